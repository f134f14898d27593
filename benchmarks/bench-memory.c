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
#include <pthread.h>

#include "bench.h"

#define MAX_CPUS	64
#define STRUCT_PAGE	64UL
#define TAIL_PAGES	512UL	/* of a huge page, the head counted in */

static unsigned long *memory;
static size_t struct_pages;
static pthread_barrier_t barrier;
static int nr_threads;

static void pass(size_t begin, size_t end)
{
	size_t words = STRUCT_PAGE / sizeof(long);
	volatile unsigned long *page = memory + begin * words;

	for (; begin < end; begin++, page += words) {
		page[0] |= 1;
		page[1] = begin;
		page[3] = 0;
	}
}

static struct part {
	pthread_t thread;
	double begin, end;
	double cpu_ms;
} parts[MAX_CPUS];

static double thread_cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static void *thread(void *arg)
{
	struct part *part = arg;
	size_t cpu = part - parts, size = struct_pages / nr_threads;

	bench_pin(cpu);
	pthread_barrier_wait(&barrier);
	part->cpu_ms = thread_cpu_ms();
	part->begin = bench_ms();
	pass(cpu * size, (cpu + 1) * size);
	part->end = bench_ms();
	part->cpu_ms = thread_cpu_ms() - part->cpu_ms;
	return NULL;
}

/* Milliseconds from the first to the last of @nr threads, each on a CPU; cpu_ms: the CPU time of all of them. */
static double pass_ms(int nr, double *cpu_ms)
{
	double begin = 0, end = 0;
	int i;

	nr_threads = nr;
	if (pthread_barrier_init(&barrier, NULL, nr))
		bench_die("pthread_barrier_init");
	for (i = 0; i < nr; i++) {
		if (pthread_create(&parts[i].thread, NULL, thread, &parts[i]))
			bench_die("pthread_create");
	}
	*cpu_ms = 0;
	for (i = 0; i < nr; i++) {
		pthread_join(parts[i].thread, NULL);
		*cpu_ms += parts[i].cpu_ms;
		if (!i || parts[i].begin < begin)
			begin = parts[i].begin;
		if (parts[i].end > end)
			end = parts[i].end;
	}
	pthread_barrier_destroy(&barrier);
	return end - begin;
}

int main(int argc, char **argv)
{
	int i, nr = sysconf(_SC_NPROCESSORS_ONLN);
	double ms, cpu_ms;
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
		ms = pass_ms(1, &cpu_ms);
		if (i) {
			bench_print(argv[1], "", ms, "ms");
			bench_print(argv[1], ".cpu", cpu_ms, "ms");
		}
		ms = pass_ms(nr < MAX_CPUS ? nr : MAX_CPUS, &cpu_ms);
		if (i) {
			bench_print(argv[1], ".limit", ms, "ms");
			bench_print(argv[1], ".limit-cpu", cpu_ms, "ms");
		}
	}
	return 0;
}
