// SPDX-License-Identifier: GPL-2.0
/*
 * What is left to helpers: the padata jobs that touching, copying and allocating
 * huge pages starts, from the trace buffer. Usage: jobs-test [2M|1G]
 *
 * Other tests see what is done to pages, and not by whom: they pass if one CPU does
 * it all. The unpatched kernel has no such jobs. Two CPUs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/jobs.h"
#include "lib/ktap.h"

#define RADIUS		2		/* subpages on each side of a fault that the caller does */
#define MAX_NICE	19
#define MAX_JOBS	64
#define PER_NODE	2

static struct job jobs[MAX_JOBS];
static int nr_jobs;

static void begin(void)
{
	NEED(jobs_start(), "the kernel has no event padata:padata_mt_start");
}

/* Read the jobs of a function; those of others are left out. */
static void read_jobs(const char *name)
{
	int i, n = jobs_read(jobs, MAX_JOBS);

	NEED(n >= 0, "the traced jobs cannot be read");
	for (i = nr_jobs = 0; i < n; i++)
		if (!strcmp(jobs[i].name, name))
			jobs[nr_jobs++] = jobs[i];
}

static void expect_job(const char *when, const struct job *j, unsigned long size,
		       unsigned int ranges, unsigned long min_chunk, unsigned int threads)
{
	CHECK(j->size == size && j->ranges == ranges && j->min_chunk == min_chunk &&
	      j->threads == threads && j->nice == MAX_NICE,
	      "%s: size=%lu ranges=%u min_chunk=%lu threads=%u nice=%d, size=%lu ranges=%u min_chunk=%lu threads=%u nice=%d expected",
	      when, j->size, j->ranges, j->min_chunk, j->threads, j->nice, size, ranges, min_chunk,
	      threads, MAX_NICE);
}

/*
 * The jobs of a page that was touched in subpage @sub: first what is to the right of
 * the caller's subpages, then what is to the left. A chunk is a 32nd of the page.
 */
static void expect_page_jobs(const char *when, const char *name, unsigned long sub)
{
	unsigned long subs = hsize / SMALL_PAGE, left, right;
	int n = 0;

	left = sub > RADIUS ? sub - RADIUS : 0;
	right = sub + RADIUS < subs ? subs - 1 - sub - RADIUS : 0;
	read_jobs(name);
	CHECK(nr_jobs == !!left + !!right, "%s: %d jobs, %d expected", when, nr_jobs,
	      !!left + !!right);
	if (right && n < nr_jobs)
		expect_job(when, &jobs[n++], right, 1, subs / 32, 2);
	if (left && n < nr_jobs)
		expect_job(when, &jobs[n++], left, 1, subs / 32, 2);
}

static volatile char *map_page(void)
{
	int fd = huge_memfd();
	char *p;

	NEED(!ftruncate(fd, hsize), "ftruncate: %s", strerror(errno));
	p = mmap(NULL, hsize, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(p != MAP_FAILED, "mmap: %s", strerror(errno));
	close(fd);
	return p;
}

/* ---- pages of 1G ---- */

static void t_clear(void)
{
	const unsigned long sub[] = { 0, hsize / SMALL_PAGE / 2, hsize / SMALL_PAGE - 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sub); i++) {
		volatile char *p = map_page();
		char when[32];

		snprintf(when, sizeof(when), "touched in subpage %lu", sub[i]);
		begin();
		p[sub[i] * SMALL_PAGE] = 1;
		expect_page_jobs(when, "clear_subpages_mt", sub[i]);
		munmap((void *)p, hsize);
	}
}

static void t_copy(void)
{
	unsigned long sub = hsize / SMALL_PAGE / 2;
	volatile char *p = map_page();
	pid_t pid;

	p[0] = 1;
	pid = fork();
	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		begin();
		p[sub * SMALL_PAGE] = 2;
		expect_page_jobs("copied", "copy_user_gigantic_page", sub);
		ktap_end_test();
	}
	waitpid(pid, NULL, 0);
}

/* Threads would get into each other's way when they look for so much contiguous memory. */
static void t_gigantic_pool(void)
{
	NEED(pool_write(nodes[0], "nr_hugepages", 0), "nr_hugepages: %s", strerror(errno));
	begin();
	NEED(pool_write(nodes[0], "nr_hugepages", pool_start.node_total[0]), "nr_hugepages: %s",
	     strerror(errno));
	read_jobs("hugetlb_grow");
	CHECK(!nr_jobs, "%d jobs, none expected", nr_jobs);
}

/* ---- pages of 2M ---- */

static void t_small(void)
{
	volatile char *p = map_page();

	begin();
	p[hsize / 2] = 1;
	read_jobs("clear_subpages_mt");
	CHECK(!nr_jobs, "%d jobs, none expected", nr_jobs);
}

#define CHUNK	64	/* least pages of a chunk: 128M */
#define BATCH	4096	/* most pages of a job: 4G a thread */

/* Jobs for @nr pages, batch by batch, in whole rounds of the nodes. */
static void expect_grow_jobs(const char *when, long nr)
{
	int i;

	read_jobs("hugetlb_grow");
	for (i = 0; nr >= nr_nodes; i++) {
		long size = nr < BATCH ? nr : BATCH;

		size -= size % nr_nodes;
		nr -= size;
		if (i >= nr_jobs)
			continue;
		expect_job(when, &jobs[i], size, nr_nodes, CHUNK, size >= 2 * CHUNK ? 2 : 1);
	}
	CHECK(i == nr_jobs, "%s: %d jobs, %d expected", when, nr_jobs, i);
}

static void t_grow(void)
{
	long most = 0;
	int i;

	/* What all nodes have, so that no job falls short. */
	for (i = 0; i < nr_nodes; i++) {
		long mb = node_free_kb(nodes[i]) >> 10;

		most = !i || mb < most ? mb : most;
	}
	most = most / 2 * nr_nodes * 3 / 4;

	begin();
	pool_set_total(pool_pages + 2 * CHUNK - 1);
	read_jobs("hugetlb_grow");
	CHECK(!nr_jobs, "a few pages: %d jobs, none expected", nr_jobs);
	pool_set_per_node(PER_NODE);

	begin();
	pool_set_total(pool_pages + 2 * CHUNK + 1);
	expect_grow_jobs("enough", 2 * CHUNK + 1);
	pool_set_per_node(PER_NODE);

	begin();
	pool_set_total(pool_pages + most);
	expect_grow_jobs("many", most);
	pool_set_per_node(PER_NODE);
}

/* Pages on node 1 when node 0 has surplus ones: these are no part of what is missing. */
static void t_surplus(void)
{
	size_t len = (PER_NODE + 4) * hsize;
	struct pool p;
	char *map;
	int i, fd;

	if (nr_nodes < 2)
		SKIP("one node");
	for (i = 1; i < nr_nodes; i++)
		NEED(pool_write(nodes[i], "nr_hugepages", 0), "nr_hugepages: %s", strerror(errno));
	NEED(pool_write(-1, "nr_overcommit_hugepages", 4), "nr_overcommit_hugepages: %s",
	     strerror(errno));
	NEED(mempolicy(MPOL_BIND, 1UL << nodes[0]), "set_mempolicy: %s", strerror(errno));
	fd = huge_memfd();
	NEED(!ftruncate(fd, len), "ftruncate(%zu): %s", len, strerror(errno));
	map = map_shared(fd, len);
	memset(map, 1, len);
	begin();
	NEED(pool_write(nodes[1], "nr_hugepages", 2), "nr_hugepages: %s", strerror(errno));
	read_jobs("hugetlb_grow");
	CHECK(!nr_jobs, "2 pages: %d jobs, none expected", nr_jobs);
	begin();
	NEED(pool_write(nodes[1], "nr_hugepages", 202), "nr_hugepages: %s", strerror(errno));
	read_jobs("hugetlb_grow");
	CHECK(nr_jobs == 1, "200 pages: %d jobs, 1 expected", nr_jobs);
	expect_job("200 pages", jobs, 200, 1, CHUNK, 2);
	pool_read(&p);
	CHECK(p.surp == 4 && p.node_total[0] == PER_NODE + 4 && p.node_total[1] == 202,
	      "Surp %ld, node%d has %ld pages, node%d %ld", p.surp, nodes[0], p.node_total[0],
	      nodes[1], p.node_total[1]);
	munmap(map, len);
	close(fd);
	pool_write(-1, "nr_overcommit_hugepages", 0);
	pool_set_per_node(PER_NODE);
}

static const struct ktap_test tests[] = {
	{ "a small page is cleared without helpers", t_small },
	{ "growing the pool", t_grow },
	{ "growing it next to surplus pages", t_surplus },
};

static const struct ktap_test gigantic_tests[] = {
	{ "clearing", t_clear },
	{ "copying", t_copy },
	{ "growing the pool of gigantic pages without helpers", t_gigantic_pool },
};

int main(int argc, char **argv)
{
	const char *size = argc > 1 ? argv[1] : "2M";

	if (!strcmp(size, "1G"))
		return huge_test_main(size, 0, gigantic_tests, ARRAY_SIZE(gigantic_tests),
				      ARRAY_SIZE(gigantic_tests));
	return huge_test_main(size, PER_NODE, tests, ARRAY_SIZE(tests), 0);
}
