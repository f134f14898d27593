// SPDX-License-Identifier: GPL-2.0
/*
 * Time of fallocate(2) on a new hugetlbfs file.
 * Usage: bench-fallocate NAME SIZE_MIB [2M|1G]
 *
 * NAME: one process allocates the whole size. NAME.limit: one process a CPU,
 * pinned, each a file of its own with its part of the size, until the slowest is
 * done. NAME.cpu: busy time of the whole machine during the first of the two.
 * The pool must have the pages; it is emptied between passes by closing files.
 */
#define _GNU_SOURCE
#include <fcntl.h>

#include "bench.h"
#include "lib/huge.h"

static off_t part_size(int cpu, int nr_cpus, off_t size)
{
	off_t pages = size / hsize;

	return (pages * (cpu + 1) / nr_cpus - pages * cpu / nr_cpus) * hsize;
}

static int alloc_part(int cpu, int nr_cpus, void *arg)
{
	off_t len = part_size(cpu, nr_cpus, *(off_t *)arg);
	int fd = huge_file();

	if (len && fallocate(fd, 0, 0, len)) {
		fprintf(stderr, "fallocate(%lld): %s\n", (long long)len, strerror(errno));
		return -1;
	}
	return 0;	/* the file goes with the process, after the clock has stopped */
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	double wall, cpu, split;
	struct pool pool;
	off_t size;
	int pass, fd;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: bench-fallocate NAME SIZE_MIB [2M|1G]\n");
		return 2;
	}
	size = atoll(argv[2]) << 20;
	huge_init(argc > 3 ? argv[3] : "2M");
	pool_read(&pool);
	if (pool.free < (long)(size / hsize)) {
		fprintf(stderr, "pool has %ld free pages, %ld needed\n", pool.free,
			(long)(size / hsize));
		return 1;
	}

	for (pass = -1; pass < PASSES; pass++) {
		fd = huge_file();
		cpu = bench_cpu_ms();
		wall = bench_ms();
		if (fallocate(fd, 0, 0, size))
			bench_die("fallocate");
		wall = bench_ms() - wall;
		cpu = bench_cpu_ms() - cpu;
		close(fd);
		split = bench_split_ms(alloc_part, &size);
		if (split < 0)
			return 1;
		if (pass < 0)
			continue;
		bench_print(name, "", wall, "ms");
		bench_print(name, ".cpu", cpu, "ms");
		bench_print(name, ".limit", split, "ms");
	}
	return 0;
}
