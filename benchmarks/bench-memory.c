// SPDX-License-Identifier: GPL-2.0
/*
 * What a machine can gain from its CPUs where work is bound by memory.
 * Usage: bench-memory NAME PAGES
 *
 * Passes over as much memory as the struct pages of PAGES huge pages of 2M take,
 * and reads and writes what the kernel does of each to make it a tail page. NAME: ms
 * for one thread; NAME.limit: for one thread a CPU, each with its part. .cpu and
 * .limit-cpu: their CPU time, which grows where they wait for memory or each other.
 * The kernel is not asked for anything meanwhile.
 */
#define _GNU_SOURCE
#include "bench.h"

#define STRUCT_PAGE	64UL
#define TAIL_PAGES	512UL	/* of a huge page, the head counted in */

static size_t struct_pages;

static int pass(int cpu, int nr_cpus, void *memory)
{
	size_t i, part = struct_pages / nr_cpus, words = STRUCT_PAGE / sizeof(long);
	volatile unsigned long *page = (unsigned long *)memory + cpu * part * words;

	for (i = 0; i < part; i++, page += words) {
		page[0] |= 1;
		page[1] = i;
		page[3] = 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int i, nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double ms, cpu_ms;
	void *memory;
	size_t len;

	if (argc != 3 || atol(argv[2]) <= 0) {
		fprintf(stderr, "usage: bench-memory NAME PAGES\n");
		return 2;
	}
	struct_pages = atol(argv[2]) * TAIL_PAGES;
	len = struct_pages * STRUCT_PAGE;
	memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		bench_die("mmap");
	for (i = 0; i <= PASSES; i++) {
		ms = bench_threads_ms(1, pass, memory, &cpu_ms);
		if (i) {
			bench_print(argv[1], "", ms, "ms");
			bench_print(argv[1], ".cpu", cpu_ms, "ms");
		}
		ms = bench_threads_ms(nr_cpus, pass, memory, &cpu_ms);
		if (i) {
			bench_print(argv[1], ".limit", ms, "ms");
			bench_print(argv[1], ".limit-cpu", cpu_ms, "ms");
		}
	}
	return 0;
}
