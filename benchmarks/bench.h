/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What benchmark programs share: time, CPU time of the whole machine, one
 * process a CPU, and the output
 *
 *	bench: METRIC VALUE UNIT
 *
 * one line for each measured pass; scripts take medians and spreads. For a case
 * named C, METRIC is C for the case itself, C.cpu for the CPU time that it took,
 * C.limit for the same work split over one process a CPU, and C.limit-cpu for the
 * CPU time of these.
 */
#ifndef BENCH_H
#define BENCH_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PASSES	2		/* measured passes a boot, after one that is not counted */

static inline void __attribute__((noreturn)) bench_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline double bench_clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static inline double bench_ms(void)
{
	return bench_clock_ms(CLOCK_MONOTONIC);
}

/*
 * CPU time of all tasks but this process, helpers in kernel threads included, in
 * milliseconds. The kernel counts it in nanoseconds.
 */
static inline double bench_others_ms(void)
{
	const char key[] = "se.sum_exec_runtime";
	struct dirent *entry;
	double sum = 0, ms;
	char line[256];
	DIR *dir = opendir("/proc");
	FILE *f;

	if (!dir)
		bench_die("opendir(/proc)");
	while ((entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(line, sizeof(line), "/proc/%d/sched", pid);
		f = fopen(line, "r");
		if (!f)
			continue;	/* has ended */
		while (fgets(line, sizeof(line), f)) {
			if (!strncmp(line, key, sizeof(key) - 1) &&
			    sscanf(line + sizeof(key) - 1, " : %lf", &ms) == 1)
				sum += ms;
		}
		fclose(f);
	}
	closedir(dir);
	return sum;
}

static inline double bench_own_ms(void)
{
	return bench_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

/*
 * CPU time of the whole machine between these two calls, which is
 * bench_cpu_since(bench_cpu_begin()). Neither counts itself.
 */
static inline double bench_cpu_begin(void)
{
	double others = bench_others_ms();

	return others + bench_own_ms();
}

static inline double bench_cpu_since(double begin)
{
	double own = bench_own_ms();

	return own + bench_others_ms() - begin;
}

static inline void bench_print(const char *name, const char *suffix, double value, const char *unit)
{
	printf("bench: %s%s %.3f %s\n", name, suffix, value, unit);
	fflush(stdout);
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of @nr values, which are sorted by that. */
static inline double bench_median(double *v, int nr)
{
	qsort(v, nr, sizeof(*v), bench_compare);
	return v[nr / 2];
}

static inline void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("sched_setaffinity");
}

struct bench_split {
	int go;			/* processes wait for it, each on its CPU */
	int ready;
	int failed;
};

/*
 * Run fn(cpu, nr_cpus, arg) in one process a CPU, pinned and started together.
 * Milliseconds until the slowest has ended it; -1 if one failed. cpu_ms: CPU time
 * of all of them in it.
 */
static inline double bench_split_ms(int (*fn)(int cpu, int nr_cpus, void *arg), void *arg,
				    double *cpu_ms)
{
	int cpu, nr = sysconf(_SC_NPROCESSORS_ONLN);
	struct bench_split *s;
	double *end, *own, start, last = 0;
	size_t len = sizeof(*s) + 2 * nr * sizeof(double);

	s = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		bench_die("mmap(split)");
	end = (double *)(s + 1);
	own = end + nr;
	for (cpu = 0; cpu < nr; cpu++) {
		pid_t pid = fork();

		if (pid < 0)
			bench_die("fork");
		if (pid)
			continue;
		bench_pin(cpu);
		__atomic_add_fetch(&s->ready, 1, __ATOMIC_SEQ_CST);
		while (!__atomic_load_n(&s->go, __ATOMIC_SEQ_CST))
			sched_yield();
		own[cpu] = bench_own_ms();
		if (fn(cpu, nr, arg))
			__atomic_store_n(&s->failed, 1, __ATOMIC_SEQ_CST);
		end[cpu] = bench_ms();
		own[cpu] = bench_own_ms() - own[cpu];
		_exit(0);
	}
	while (__atomic_load_n(&s->ready, __ATOMIC_SEQ_CST) < nr)
		sched_yield();
	start = bench_ms();
	__atomic_store_n(&s->go, 1, __ATOMIC_SEQ_CST);
	while (wait(NULL) > 0)
		;
	*cpu_ms = 0;
	for (cpu = 0; cpu < nr; cpu++) {
		if (end[cpu] > last)
			last = end[cpu];
		*cpu_ms += own[cpu];
	}
	if (s->failed)
		last = start - 1;
	munmap(s, len);
	return last - start;
}

struct bench_thread {
	pthread_t thread;
	pthread_barrier_t *go;
	int (*fn)(int cpu, int nr_cpus, void *arg);
	void *arg;
	int cpu, nr_cpus;
	int err;
	double end, cpu_ms;
};

static inline void *bench_thread_run(void *arg)
{
	struct bench_thread *t = arg;

	bench_pin(t->cpu);
	pthread_barrier_wait(t->go);
	t->cpu_ms = bench_clock_ms(CLOCK_THREAD_CPUTIME_ID);
	if (t->fn(t->cpu, t->nr_cpus, t->arg))
		t->err = errno;
	t->end = bench_ms();
	t->cpu_ms = bench_clock_ms(CLOCK_THREAD_CPUTIME_ID) - t->cpu_ms;
	return NULL;
}

/*
 * The same in @nr threads of this process, on the first @nr CPUs, which have its
 * page tables. If one failed errno says why.
 */
static inline double bench_threads_ms(int nr, int (*fn)(int cpu, int nr_cpus, void *arg),
				      void *arg, double *cpu_ms)
{
	struct bench_thread *threads = calloc(nr, sizeof(*threads));
	double start, last = 0;
	pthread_barrier_t go;
	int cpu, err = 0;

	if (!threads)
		bench_die("calloc");
	pthread_barrier_init(&go, NULL, nr + 1);
	for (cpu = 0; cpu < nr; cpu++) {
		threads[cpu] = (struct bench_thread){ .go = &go, .fn = fn, .arg = arg, .cpu = cpu,
						      .nr_cpus = nr };
		errno = pthread_create(&threads[cpu].thread, NULL, bench_thread_run, &threads[cpu]);
		if (errno)
			bench_die("pthread_create");
	}
	start = bench_ms();
	pthread_barrier_wait(&go);
	*cpu_ms = 0;
	for (cpu = 0; cpu < nr; cpu++) {
		pthread_join(threads[cpu].thread, NULL);
		*cpu_ms += threads[cpu].cpu_ms;
		if (threads[cpu].err)
			err = threads[cpu].err;
		if (threads[cpu].end > last)
			last = threads[cpu].end;
	}
	pthread_barrier_destroy(&go);
	free(threads);
	errno = err;
	return err ? -1 : last - start;
}

#endif
