// SPDX-License-Identifier: GPL-2.0
/*
 * Time of the first write to huge pages, one after the other, by one process.
 * Usage: bench-fault NAME fault|cow PAGES 2M|1G
 *
 * fault: the pages come from the pool and are cleared. NAME: in a shared mapping;
 *	NAME.private: in a private one.
 * cow: a child writes to what its parent has written in a private mapping, and
 *	gets a copy.
 *
 * NAME.limit: the same size in pages of 2M, split over one process a CPU. This is
 * the same clearing or copying, and no page has to wait for another CPU.
 * NAME.peer (fault alone): as NAME.limit, but by threads of one process that use
 * MADV_POPULATE_WRITE, as users prefault today.
 * NAME.cpu, NAME.private.cpu: CPU time of the whole machine. NAME.limit-cpu: that of
 * the processes of NAME.limit.
 */
#define _GNU_SOURCE

#include "bench.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

#define SMALL	(2UL << 20)	/* what the limit and the peer use */

static size_t hsize, len;

static char *map_pages(size_t size, int flags)
{
	int shift = __builtin_ctzl(size);
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       flags | MAP_ANONYMOUS | MAP_HUGETLB | (shift << MAP_HUGE_SHIFT), -1, 0);

	if (p == MAP_FAILED)
		bench_die("mmap(MAP_HUGETLB); is the pool large enough?");
	return p;
}

static void touch(char *p, size_t bytes, size_t size)
{
	size_t i;

	for (i = 0; i < bytes; i += size)
		*(volatile char *)(p + i) = 1;
}

/* The part of [p, p + len) that is one CPU's. */
static char *part(char *p, int cpu, int nr_cpus, size_t *bytes)
{
	size_t pages = len / SMALL, first = pages * cpu / nr_cpus;

	*bytes = (pages * (cpu + 1) / nr_cpus - first) * SMALL;
	return p + first * SMALL;
}

static int touch_part(int cpu, int nr_cpus, void *arg)
{
	size_t bytes;
	char *p = part(arg, cpu, nr_cpus, &bytes);

	touch(p, bytes, SMALL);
	return 0;
}

static int populate_part(int cpu, int nr_cpus, void *arg)
{
	size_t bytes;
	char *p = part(arg, cpu, nr_cpus, &bytes);

	return madvise(p, bytes, MADV_POPULATE_WRITE);
}

static double peer_ms(char *p)
{
	double cpu_ms, ms = bench_threads_ms(sysconf(_SC_NPROCESSORS_ONLN), populate_part, p, &cpu_ms);

	if (ms < 0)
		bench_die("madvise(MADV_POPULATE_WRITE)");
	return ms;
}

static void print(bool counts, const char *name, const char *suffix, double ms)
{
	if (counts)
		bench_print(name, suffix, ms, "ms");
}

static void print_limit(bool counts, const char *name, char *p)
{
	double cpu, wall = bench_split_ms(touch_part, p, &cpu);

	print(counts, name, ".limit", wall);
	print(counts, name, ".limit-cpu", cpu);
}

static void fault_pass(const char *name, bool counts)
{
	static const struct {
		int flags;
		const char *wall, *cpu;
	} kinds[] = {
		{ MAP_SHARED, "", ".cpu" },
		{ MAP_PRIVATE, ".private", ".private.cpu" },
	};
	double wall, cpu;
	size_t i;
	char *p;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		p = map_pages(hsize, kinds[i].flags);
		cpu = bench_cpu_begin();
		wall = bench_ms();
		touch(p, len, hsize);
		wall = bench_ms() - wall;
		cpu = bench_cpu_since(cpu);
		munmap(p, len);
		print(counts, name, kinds[i].wall, wall);
		print(counts, name, kinds[i].cpu, cpu);
	}

	p = map_pages(SMALL, MAP_SHARED);
	print_limit(counts, name, p);
	munmap(p, len);

	p = map_pages(SMALL, MAP_SHARED);
	print(counts, name, ".peer", peer_ms(p));
	munmap(p, len);
}

static void cow_pass(const char *name, bool counts)
{
	struct {
		double wall, cpu;
	} *t;
	double wall, cpu;
	char *p;

	t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED)
		bench_die("mmap");
	p = map_pages(hsize, MAP_PRIVATE);
	touch(p, len, hsize);
	switch (fork()) {
	case -1:
		bench_die("fork");
	case 0:
		cpu = bench_cpu_begin();
		wall = bench_ms();
		touch(p, len, hsize);
		t->wall = bench_ms() - wall;
		t->cpu = bench_cpu_since(cpu);
		_exit(0);
	}
	/* Without a page for the copy the child dies of a SIGBUS and leaves no time. */
	if (wait(NULL) < 0 || !t->wall) {
		fprintf(stderr, "the child got no copy; is the pool large enough?\n");
		exit(1);
	}
	munmap(p, len);
	print(counts, name, "", t->wall);
	print(counts, name, ".cpu", t->cpu);
	munmap(t, sizeof(*t));

	p = map_pages(SMALL, MAP_PRIVATE);
	touch(p, len, SMALL);
	print_limit(counts, name, p);
	munmap(p, len);
}

int main(int argc, char **argv)
{
	bool cow = argc == 5 && !strcmp(argv[2], "cow");
	int pass;

	if (argc != 5 || (!cow && strcmp(argv[2], "fault")) ||
	    (strcmp(argv[4], "2M") && strcmp(argv[4], "1G"))) {
		fprintf(stderr, "usage: bench-fault NAME fault|cow PAGES 2M|1G\n");
		return 2;
	}
	hsize = strcmp(argv[4], "1G") ? SMALL : 1UL << 30;
	len = atol(argv[3]) * hsize;

	for (pass = -1; pass < PASSES; pass++) {
		if (cow)
			cow_pass(argv[1], pass >= 0);
		else
			fault_pass(argv[1], pass >= 0);
	}
	return 0;
}
