// SPDX-License-Identifier: GPL-2.0
/*
 * Time of fallocate(2) of 2M pages while every CPU runs a loop at nice 0, and what
 * the loops get done meanwhile. Usage: bench-busy NAME SIZE_MIB cpu|mem
 *
 * cpu: the loops compute; mem: they fill 32 MiB of memory over and over.
 * NAME: the call. NAME.loops: what all loops did in a window of WINDOW_MS that
 * begins with the call, in rounds a ms, so that a call which takes less time but
 * more of the CPUs does not look better than it is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>

#include "bench.h"
#include "lib/huge.h"

#define WINDOW_MS	4000
#define MEM_SIZE	(32UL << 20)
#define MAX_CPUS	64

/* A cache line for each loop's count. */
static volatile struct {
	unsigned long rounds;
	char pad[120];
} *loops;

static pid_t pids[MAX_CPUS];
static int nr_cpus;

static void compute(volatile unsigned long *rounds)
{
	unsigned long x = 1;
	int i;

	for (;;) {
		for (i = 0; i < 10000; i++)
			x = x * 6364136223846793005UL + 1442695040888963407UL;
		*rounds += 1 + !x;
	}
}

static void fill(volatile unsigned long *rounds)
{
	const size_t step = 64 << 10;
	char *p = malloc(MEM_SIZE);
	size_t at = 0;

	if (!p)
		bench_die("malloc");
	for (;;) {
		memset(p + at, *rounds, step);
		at = (at + step) % MEM_SIZE;
		++*rounds;
	}
}

static void start_loops(bool mem)
{
	int cpu;

	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (nr_cpus > MAX_CPUS)
		nr_cpus = MAX_CPUS;
	loops = mmap(NULL, nr_cpus * sizeof(*loops), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (loops == MAP_FAILED)
		bench_die("mmap(loops)");
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		pids[cpu] = fork();
		if (pids[cpu] < 0)
			bench_die("fork");
		if (pids[cpu])
			continue;
		bench_pin(cpu);
		(mem ? fill : compute)(&loops[cpu].rounds);
	}
}

static unsigned long rounds(void)
{
	unsigned long sum = 0;
	int cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++)
		sum += loops[cpu].rounds;
	return sum;
}

int main(int argc, char **argv)
{
	double start, wall, window;
	unsigned long before;
	int pass, cpu, fd;
	off_t size;

	if (argc != 4 || (strcmp(argv[3], "cpu") && strcmp(argv[3], "mem"))) {
		fprintf(stderr, "usage: bench-busy NAME SIZE_MIB cpu|mem\n");
		return 2;
	}
	size = atoll(argv[2]) << 20;
	huge_init("2M");
	start_loops(!strcmp(argv[3], "mem"));
	usleep(200000);

	for (pass = -1; pass < PASSES; pass++) {
		fd = huge_file();
		before = rounds();
		start = bench_ms();
		if (fallocate(fd, 0, 0, size))
			bench_die("fallocate");
		wall = bench_ms() - start;
		while (bench_ms() < start + WINDOW_MS)
			usleep(10000);
		window = bench_ms() - start;
		before = rounds() - before;
		close(fd);
		if (pass < 0)
			continue;
		bench_print(argv[1], "", wall, "ms");
		bench_print(argv[1], ".loops", before / window, "1/ms");
	}
	for (cpu = 0; cpu < nr_cpus; cpu++)
		kill(pids[cpu], SIGKILL);
	return 0;
}
