// SPDX-License-Identifier: GPL-2.0
/*
 * Time of fallocate(2) on a new hugetlbfs file.
 * Usage: bench-fallocate NAME SIZE_MIB [2M|1G [pinned|single]]
 *
 * NAME: one process allocates the whole size. NAME.limit: one process a CPU,
 * pinned, each a file of its own with its part of the size, until the slowest is
 * done. NAME.cpu, NAME.limit-cpu: CPU time of the whole machine during the first,
 * and of the processes during the second.
 * The pool must have the pages; it is emptied between passes by closing files.
 *
 * pinned: the process may use one CPU alone, and there is no limit.
 * single: one page at a time, until the size is there, each in a file of its own.
 * NAME is the median in us, which is the time of a thousand in ms.
 */
#define _GNU_SOURCE
#include <fcntl.h>

#include "bench.h"
#include "lib/huge.h"

#define SINGLE_MAX	1000

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

static double fallocate_ms(int fd, off_t size)
{
	double start = bench_ms();

	if (fallocate(fd, 0, 0, size))
		bench_die("fallocate");
	return bench_ms() - start;
}

static void single(const char *name, off_t size)
{
	double us[SINGLE_MAX];
	int i, fd, nr = size / hsize;

	if (nr > SINGLE_MAX)
		nr = SINGLE_MAX;
	for (i = 0; i < nr; i++) {
		fd = huge_file();
		us[i] = fallocate_ms(fd, hsize) * 1000;
		close(fd);
	}
	bench_print(name, "", bench_median(us, nr), "us");
}

static void whole(const char *name, off_t size, bool pinned)
{
	double wall, cpu, split = 0, split_cpu = 0;
	int fd = huge_file();

	cpu = bench_cpu_begin();
	wall = fallocate_ms(fd, size);
	cpu = bench_cpu_since(cpu);
	close(fd);
	if (!pinned) {
		split = bench_split_ms(alloc_part, &size, &split_cpu);
		if (split < 0)
			exit(1);
	}
	if (!name)
		return;
	bench_print(name, "", wall, "ms");
	bench_print(name, ".cpu", cpu, "ms");
	if (pinned)
		return;
	bench_print(name, ".limit", split, "ms");
	bench_print(name, ".limit-cpu", split_cpu, "ms");
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const char *mode = argc > 4 ? argv[4] : "";
	bool pinned = !strcmp(mode, "pinned");
	struct pool pool;
	off_t size;
	int pass;

	if (argc < 3 || argc > 5 || (*mode && !pinned && strcmp(mode, "single"))) {
		fprintf(stderr, "usage: bench-fallocate NAME SIZE_MIB [2M|1G [pinned|single]]\n");
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
	if (pinned)
		bench_pin(0);

	for (pass = -1; pass < PASSES; pass++) {
		if (!strcmp(mode, "single"))
			single(name, size);
		else
			whole(pass < 0 ? NULL : name, size, pinned);
	}
	return 0;
}
