// SPDX-License-Identifier: GPL-2.0
/*
 * Time of growing the pool of 2M pages at run time.
 * Usage: bench-pool NAME PAGES all|mempolicy|node|single
 *
 * NAME: a write to nr_hugepages that grows an empty pool to PAGES pages, on all
 * nodes in turn (all), the same through the file that goes by the memory policy
 * (mempolicy), or on the first node (node). NAME.cpu: CPU time of the whole
 * machine meanwhile. Shrinking again is not timed.
 *
 * NAME.limit: those who write nr_hugepages wait for each other, but those who
 * map more pages than there are do not: one process a CPU, pinned, gets its part
 * of the pages into the pool by that, as surplus pages, from the same nodes.
 * NAME.limit-cpu: CPU time of these processes.
 *
 * single: grows by one page, PAGES times. NAME is the median in us, which is the
 * time of a thousand in ms.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>

#include "bench.h"
#include "lib/huge.h"

#define SYSCTL	"/proc/sys/vm/nr_hugepages"

struct pool_case {
	const char *leaf;
	int nid;		/* of the file, -1: of all nodes */
	long pages;
};

static void set_pool(const struct pool_case *c, long pages)
{
	if (!pool_write(c->nid, c->leaf, pages))
		bench_die(c->leaf);
}

static void expect_free(long pages, const char *when)
{
	struct pool p;

	pool_read(&p);
	if (p.total == pages && p.free == pages)
		return;
	fprintf(stderr, "%s: pool has %ld pages, %ld of them free; %ld expected\n", when, p.total,
		p.free, pages);
	exit(1);
}

static int map_part(int cpu, int nr_cpus, void *arg)
{
	const struct pool_case *c = arg;
	size_t len = (c->pages * (cpu + 1) / nr_cpus - c->pages * cpu / nr_cpus) * hsize;

	if (c->nid >= 0 && !mempolicy(MPOL_BIND, 1UL << c->nid))
		return -1;
	/* Not touched; what was reserved goes with the process, after the clock has stopped. */
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		    -1, 0) == MAP_FAILED ? -1 : 0;
}

static double limit_ms(struct pool_case *c, double *cpu)
{
	double ms;

	if (!pool_write(-1, "nr_overcommit_hugepages", c->pages))
		bench_die("nr_overcommit_hugepages");
	ms = bench_split_ms(map_part, c, cpu);
	pool_write(-1, "nr_overcommit_hugepages", 0);
	set_pool(c, 0);
	expect_free(0, "after the limit");
	return ms;
}

static void bench_large(const char *name, struct pool_case *c)
{
	double wall, cpu, split, split_cpu;
	int pass;

	for (pass = -1; pass < PASSES; pass++) {
		cpu = bench_cpu_begin();
		wall = bench_ms();
		set_pool(c, c->pages);
		wall = bench_ms() - wall;
		cpu = bench_cpu_since(cpu);
		expect_free(c->pages, name);
		set_pool(c, 0);
		split = limit_ms(c, &split_cpu);
		if (split < 0) {
			fprintf(stderr, "a process could not map its part of %ld pages\n", c->pages);
			exit(1);
		}
		if (pass < 0)
			continue;
		bench_print(name, "", wall, "ms");
		bench_print(name, ".cpu", cpu, "ms");
		bench_print(name, ".limit", split, "ms");
		bench_print(name, ".limit-cpu", split_cpu, "ms");
	}
}

/* With the file open and the number written out, so that little is timed but the growing. */
static double grow_us(int fd, long pages)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%ld", pages);
	double ms = bench_ms();

	if (pwrite(fd, text, len, 0) != len)
		bench_die("pwrite(" SYSCTL ")");
	return (bench_ms() - ms) * 1e3;
}

static void bench_single(const char *name, struct pool_case *c)
{
	double *us = calloc(c->pages, sizeof(*us));
	int pass, fd = open(SYSCTL, O_WRONLY);
	long i;

	if (!us || fd < 0)
		bench_die("calloc, or open(" SYSCTL ")");
	for (pass = -1; pass < PASSES; pass++) {
		for (i = 0; i < c->pages; i++)
			us[i] = grow_us(fd, i + 1);
		expect_free(c->pages, name);
		set_pool(c, 0);
		if (pass >= 0)
			bench_print(name, "", bench_median(us, c->pages), "us");
	}
	free(us);
}

int main(int argc, char **argv)
{
	const char *how = argc == 4 ? argv[3] : "";
	struct pool_case c = { .leaf = "nr_hugepages", .nid = -1 };
	unsigned long all = 0;
	int i;

	if (strcmp(how, "all") && strcmp(how, "mempolicy") && strcmp(how, "node") &&
	    strcmp(how, "single")) {
		fprintf(stderr, "usage: bench-pool NAME PAGES all|mempolicy|node|single\n");
		return 2;
	}
	huge_init("2M");
	c.pages = atol(argv[2]);
	if (!strcmp(how, "node")) {
		c.nid = nodes[0];
	} else if (!strcmp(how, "mempolicy")) {
		for (i = 0; i < nr_nodes; i++)
			all |= 1UL << nodes[i];
		if (!mempolicy(MPOL_INTERLEAVE, all))
			bench_die("set_mempolicy");
		c.leaf = "nr_hugepages_mempolicy";
	}
	set_pool(&c, 0);
	expect_free(0, "before");

	if (!strcmp(how, "single"))
		bench_single(argv[1], &c);
	else
		bench_large(argv[1], &c);
	return 0;
}
