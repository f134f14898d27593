/* SPDX-License-Identifier: GPL-2.0 */
/* Huge pages as the guest's tests and benchmarks see them: pool, files, contents. */
#ifndef HUGE_H
#define HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ktap.h"

#define MAX_NODES	64
#define SMALL_PAGE	4096UL	/* bytes of one, as of a subpage */

struct pool {
	long total, free, resv, surp;
	long node_total[MAX_NODES], node_free[MAX_NODES];
};

extern size_t hsize;		/* bytes of a huge page; set by huge_init() */
extern int nodes[MAX_NODES];	/* ids of the nodes that have memory */
extern int nr_nodes;

/* Choose the page size, "2M" or "1G", and find the nodes. Exits if there are no such pages. */
void huge_init(const char *size);

void pool_read(struct pool *p);
/* Write a file of the pool, of node @nid or of all if that is -1. */
bool pool_write(int nid, const char *leaf, long value);
bool pool_write_text(int nid, const char *leaf, const char *text);

void pool_set_per_node(long nr);	/* as far as there are so many */
void pool_set_total(long nr);		/* on all nodes in turn; ends the test if it cannot */

long node_free_kb(int nid);	/* MemFree of a node */
long free_kb(void);		/* of all nodes, and what CPUs keep in their lists */
/* set_mempolicy() with the nodes whose bits are set; errno if it returns false. */
bool mempolicy(int mode, unsigned long mask);

/*
 * Main function of a test program: a pool of @per_node pages of 2M, or of four
 * pages of 1G in all, or a few more, then the tests (of 1G, the first @nr_1g), each of which
 * must leave the pool as it was. Without the pages the program fails.
 */
int huge_test_main(const char *size, long per_node, const struct ktap_test *tests, int nr,
		   int nr_1g);
extern struct pool pool_start;	/* before each test; all pages are free */
extern long pool_pages;		/* how many */
/* The pool is as it was at the start, with @used fewer pages free, and @resv reserved. */
void expect_pool(const char *when, long used, long resv);

/*
 * Fill every free page with non-zero data and give them back: so much of it that
 * one small page (4K) which was not cleared shows in a page of 2M, and 2M that
 * were not cleared in a page of 1G. With _all, every byte of 2M, and every small
 * page of 1G.
 */
void pool_dirty(void);
void pool_dirty_all(void);

/* A new file without a name, on a hugetlbfs mount (options may be NULL) of the chosen size. */
int huge_mount(const char *dir, const char *options);
int huge_file(void);
int huge_memfd(void);

/* fallocate() and hole punching of @nr pages from page @first on; 0 or -errno. */
int file_fill(int fd, long first, long nr);
int file_punch(int fd, long first, long nr);

long file_pages(int fd);	/* huge pages in the file, from st_blocks */
off_t file_size(int fd);
/* Take the pages of [0, nr) out one by one; present[i] says whether index i had one. */
void file_punch_map(int fd, long nr, bool *present);

/* Offset of the first byte that is not zero, or -1; len is a multiple of eight. */
ssize_t first_nonzero(const void *buf, size_t len);
/* In whole huge pages of a mapping, where pool_dirty() or pool_dirty_all() writes. */
ssize_t map_first_nonzero(const char *map, size_t len);
ssize_t map_first_nonzero_all(const char *map, size_t len);
void map_dirty(char *map, size_t len);
/* The same for a file's contents, by pread() in pieces of @piece bytes. */
ssize_t file_first_nonzero(int fd, off_t from, size_t len, size_t piece);

/* The same for the first  pages of a file, which are present. */
ssize_t file_pages_nonzero(int fd, long nr);
/* pool_dirty() for the pages of a file, its first ones: they go back to the pool as after that. */
void file_dirty(int fd);

char *map_shared(int fd, size_t len);	/* exits the test if it fails */
unsigned int rnd(unsigned int *seed);
long long now_us(void);
void pin_to_cpu(int cpu);
bool write_str(const char *path, const char *text);
long read_long(const char *path);	/* -1 if it cannot be read */

#endif
