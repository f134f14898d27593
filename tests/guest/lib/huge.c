// SPDX-License-Identifier: GPL-2.0
/* Huge pages as the guest's tests and benchmarks see them, see huge.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "huge.h"
#include "ktap.h"

#define HUGE_DIR	"/tmp/huge-test"
#define SMALL_WORDS	(SMALL_PAGE / 8)
#define SAMPLES		512	/* small pages looked at in a huge page */

size_t hsize;
int nodes[MAX_NODES];
int nr_nodes;
struct pool pool_start;
long pool_pages;

static int hshift;

static void __attribute__((noreturn)) die(const char *what, const char *arg)
{
	fprintf(stderr, "%s(%s): %s\n", what, arg, strerror(errno));
	exit(1);
}

bool write_str(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

long read_long(const char *path)
{
	FILE *f = fopen(path, "r");
	long v = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &v) != 1)
		v = -1;
	fclose(f);
	return v;
}

static void global_path(char *path, size_t len, const char *leaf)
{
	snprintf(path, len, "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", hsize >> 10, leaf);
}

static void node_path(char *path, size_t len, int nid, const char *leaf)
{
	snprintf(path, len, "/sys/devices/system/node/node%d/hugepages/hugepages-%zukB/%s",
		 nid, hsize >> 10, leaf);
}

static long global_long(const char *leaf)
{
	char path[160];

	global_path(path, sizeof(path), leaf);
	return read_long(path);
}

static long node_long(int nid, const char *leaf)
{
	char path[160];

	node_path(path, sizeof(path), nid, leaf);
	return read_long(path);
}

long node_free_kb(int nid)
{
	char path[64], line[160];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", nid);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "Node %*d MemFree: %ld", &kb) != 1)
			kb = -1;
	fclose(f);
	return kb;
}

long free_kb(void)
{
	long n, pages = 0;
	char line[256];
	FILE *f;

	f = fopen("/proc/zoneinfo", "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " pages free %ld", &n) == 1 || sscanf(line, " count: %ld", &n) == 1)
			pages += n;
	fclose(f);
	return pages * (long)(SMALL_PAGE >> 10);
}

bool mempolicy(int mode, unsigned long mask)
{
	return !syscall(SYS_set_mempolicy, mode, mask ? &mask : NULL, mask ? 64 : 0);
}

void huge_init(const char *size)
{
	int nid;

	if (!strcmp(size, "2M")) {
		hshift = 21;
	} else if (!strcmp(size, "1G")) {
		hshift = 30;
	} else {
		fprintf(stderr, "page size '%s': 2M or 1G expected\n", size);
		exit(2);
	}
	hsize = 1UL << hshift;
	if (global_long("nr_hugepages") < 0)
		die("no huge pages of this size", size);
	for (nid = 0; nid < MAX_NODES; nid++)
		if (node_long(nid, "nr_hugepages") >= 0)
			nodes[nr_nodes++] = nid;
	if (huge_mount(HUGE_DIR, NULL))
		die("mount hugetlbfs", HUGE_DIR);
}

void pool_read(struct pool *p)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->total = global_long("nr_hugepages");
	p->free = global_long("free_hugepages");
	p->resv = global_long("resv_hugepages");
	p->surp = global_long("surplus_hugepages");
	for (i = 0; i < nr_nodes; i++) {
		p->node_total[i] = node_long(nodes[i], "nr_hugepages");
		p->node_free[i] = node_long(nodes[i], "free_hugepages");
	}
}

void expect_pool(const char *when, long used, long resv)
{
	long free_sum = 0, i;
	struct pool p;

	pool_read(&p);
	for (i = 0; i < nr_nodes; i++) {
		free_sum += p.node_free[i];
		CHECK(p.node_total[i] == pool_start.node_total[i],
		      "%s: node%d has %ld pages, %ld expected", when, nodes[i], p.node_total[i],
		      pool_start.node_total[i]);
	}
	CHECK(p.total == pool_pages, "%s: Total %ld, %ld expected", when, p.total, pool_pages);
	CHECK(p.free == pool_pages - used, "%s: Free %ld, %ld expected", when, p.free,
	      pool_pages - used);
	CHECK(free_sum == p.free, "%s: nodes have %ld free, %ld expected", when, free_sum, p.free);
	CHECK(p.resv == resv, "%s: Rsvd %ld, %ld expected", when, p.resv, resv);
	CHECK(p.surp == 0, "%s: Surp %ld, 0 expected", when, p.surp);
}

bool pool_write_text(int nid, const char *leaf, const char *text)
{
	char path[160];

	if (nid < 0)
		global_path(path, sizeof(path), leaf);
	else
		node_path(path, sizeof(path), nid, leaf);
	return write_str(path, text);
}

bool pool_write(int nid, const char *leaf, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	return pool_write_text(nid, leaf, text);
}

void pool_set_total(long nr)
{
	NEED(pool_write(-1, "nr_hugepages", nr), "nr_hugepages=%ld: %s", nr, strerror(errno));
}

void pool_set_per_node(long nr)
{
	int i;

	for (i = 0; i < nr_nodes; i++)
		pool_write(nodes[i], "nr_hugepages", nr);
}

static bool pool_is_back(void)
{
	struct pool p;
	int i;

	/* Killed processes and closed dma-bufs give their pages back a moment later. */
	for (i = 0; i < 50; i++) {
		pool_read(&p);
		if (!memcmp(&p, &pool_start, sizeof(p)))
			return true;
		usleep(20000);
	}
	ktap_diag("pool is not as before: Total %ld Free %ld Rsvd %ld Surp %ld", p.total, p.free,
		  p.resv, p.surp);
	return false;
}

int huge_test_main(const char *size, long per_node, const struct ktap_test *tests, int nr,
		   int nr_1g)
{
	struct pool *p = &pool_start;

	huge_init(size);
	if (hshift == 30) {
		per_node = (4 + nr_nodes - 1) / nr_nodes;
		nr = nr_1g;
	}
	pool_set_per_node(per_node);
	pool_read(p);
	pool_pages = p->total;
	if (p->total != per_node * nr_nodes || p->total < 4 || p->free != p->total) {
		printf("KTAP version 1\n1..1\nnot ok 1 pool of %ld pages of %s\n",
		       per_node * nr_nodes, size);
		ktap_diag("%ld of %ld pages are free; this guest cannot run the tests", p->free,
			  p->total);
		return 1;
	}
	pool_dirty();
	return ktap_run(tests, nr, pool_is_back);
}

/* A mapping of every free page, as an anonymous one that ends with @use. */
static void with_free_pages(void (*use)(char *map, size_t len))
{
	size_t len = global_long("free_hugepages") * hsize;
	char *p;

	if (!len)
		return;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (hshift << MAP_HUGE_SHIFT), -1, 0);
	NEED(p != MAP_FAILED, "mmap(MAP_HUGETLB, %zu): %s", len, strerror(errno));
	use(p, len);
	munmap(p, len);
}

/* One of the words of a small page, another one in the next. */
static size_t middle_word(size_t offset)
{
	return offset / SMALL_PAGE * 37 % SMALL_WORDS;
}

/* Of each 512th of a huge page one small page: all of them in a page of 2M. */
static size_t sample(size_t i)
{
	size_t step = hsize / SAMPLES;

	return i * step + i * 37 * SMALL_PAGE % step;
}

static void dirty_words(char *map, size_t offset)
{
	uint64_t *p = (uint64_t *)(map + offset);

	p[0] = p[middle_word(offset)] = p[SMALL_WORDS - 1] = ~0UL;
}

static bool zero_words(const char *map, size_t offset)
{
	const uint64_t *p = (const uint64_t *)(map + offset);

	return !(p[0] | p[middle_word(offset)] | p[SMALL_WORDS - 1]);
}

void map_dirty(char *map, size_t len)
{
	size_t i;

	for (i = 0; i < len / hsize * SAMPLES; i++)
		dirty_words(map, sample(i));
}

ssize_t map_first_nonzero(const char *map, size_t len)
{
	size_t i;

	for (i = 0; i < len / hsize * SAMPLES; i++)
		if (!zero_words(map, sample(i)))
			return sample(i);
	return -1;
}

static void map_dirty_all(char *map, size_t len)
{
	size_t i;

	if (hshift == 21) {
		memset(map, 0xa5, len);
		return;
	}
	for (i = 0; i < len; i += SMALL_PAGE)
		dirty_words(map, i);
}

ssize_t map_first_nonzero_all(const char *map, size_t len)
{
	size_t i;

	if (hshift == 21)
		return first_nonzero(map, len);
	for (i = 0; i < len; i += SMALL_PAGE)
		if (!zero_words(map, i))
			return i;
	return -1;
}

void pool_dirty(void)
{
	with_free_pages(map_dirty);
}

void pool_dirty_all(void)
{
	with_free_pages(map_dirty_all);
}

int huge_mount(const char *dir, const char *options)
{
	char data[128];

	mkdir(dir, 0755);
	snprintf(data, sizeof(data), "pagesize=%zuM%s%s", hsize >> 20,
		 options ? "," : "", options ? options : "");
	return mount("none", dir, "hugetlbfs", 0, data);
}

int huge_file(void)
{
	char path[] = HUGE_DIR "/XXXXXX";
	int fd = mkstemp(path);

	NEED(fd >= 0, "mkstemp(%s): %s", path, strerror(errno));
	unlink(path);
	return fd;
}

int huge_memfd(void)
{
	int fd = memfd_create("huge", MFD_ALLOW_SEALING | MFD_HUGETLB |
			      ((unsigned int)hshift << MAP_HUGE_SHIFT));

	NEED(fd >= 0, "memfd_create(MFD_HUGETLB): %s", strerror(errno));
	return fd;
}

long file_pages(int fd)
{
	struct stat st;

	NEED(!fstat(fd, &st), "fstat: %s", strerror(errno));
	return st.st_blocks / (long)(hsize / 512);
}

off_t file_size(int fd)
{
	struct stat st;

	NEED(!fstat(fd, &st), "fstat: %s", strerror(errno));
	return st.st_size;
}

int file_fill(int fd, long first, long nr)
{
	return fallocate(fd, 0, first * hsize, nr * hsize) ? -errno : 0;
}

int file_punch(int fd, long first, long nr)
{
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	return fallocate(fd, mode, first * hsize, nr * hsize) ? -errno : 0;
}

void file_punch_map(int fd, long nr, bool *present)
{
	long i, before;
	int ret;

	for (i = 0; i < nr; i++) {
		before = file_pages(fd);
		ret = file_punch(fd, i, 1);
		NEED(!ret, "punch hole of page %ld: %d", i, ret);
		present[i] = file_pages(fd) == before - 1;
	}
}

ssize_t first_nonzero(const void *buf, size_t len)
{
	const uint64_t *p = buf;
	size_t i, n = len / 8;

	/* Eight words a turn, so that checking costs no more than clearing. */
	for (i = 0; i + 8 <= n; i += 8)
		if (p[i] | p[i + 1] | p[i + 2] | p[i + 3] |
		    p[i + 4] | p[i + 5] | p[i + 6] | p[i + 7])
			break;
	for (i *= 8; i < len; i++)
		if (((const unsigned char *)buf)[i])
			return i;
	return -1;
}

ssize_t file_first_nonzero(int fd, off_t from, size_t len, size_t piece)
{
	static char buf[1 << 20] __attribute__((aligned(64)));
	size_t done = 0;
	ssize_t n, bad;

	while (done < len) {
		if (piece > sizeof(buf))
			piece = sizeof(buf);
		if (piece > len - done)
			piece = len - done;
		memset(buf, 0xff, piece);
		n = pread(fd, buf, piece, from + done);
		NEED(n > 0, "pread(%zu at %zu): %zd, %s", piece, (size_t)from + done, n,
		     n ? strerror(errno) : "end of file");
		bad = first_nonzero(buf, n);
		if (bad >= 0)
			return done + bad;
		done += n;
	}
	return -1;
}

char *map_shared(int fd, size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	NEED(p != MAP_FAILED, "mmap(MAP_SHARED, %zu): %s", len, strerror(errno));
	return p;
}

/* Without reserving what is not there. */
static char *map_present(int fd, size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	NEED(p != MAP_FAILED, "mmap(MAP_NORESERVE, %zu): %s", len, strerror(errno));
	return p;
}

ssize_t file_pages_nonzero(int fd, long nr)
{
	ssize_t bad;
	char *p;

	if (!nr)
		return -1;
	p = map_present(fd, nr * hsize);
	bad = map_first_nonzero(p, nr * hsize);
	munmap(p, nr * hsize);
	return bad;
}

void file_dirty(int fd)
{
	long nr = file_pages(fd);
	char *p;

	if (!nr)
		return;
	p = map_present(fd, nr * hsize);
	map_dirty(p, nr * hsize);
	munmap(p, nr * hsize);
}

unsigned int rnd(unsigned int *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 8;
}

long long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity(cpu %d): %s",
	      cpu, strerror(errno));
}
