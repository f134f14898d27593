// SPDX-License-Identifier: GPL-2.0
/*
 * fallocate(2) on hugetlbfs on a machine that has no idle CPU: it ends, and
 * takes no longer than alone. Usage: busy-test [2M|1G]
 *
 * Calls of a task that may use every CPU take turns with calls of one that is
 * bound to its CPU, and so has no help. The limit is generous, for a guest whose
 * own CPUs are taken from it now and then: a call that waits for a helper which
 * cannot run takes as long as the loops do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/ktap.h"

#define PAIRS		7
#define SLACK_US	20000

static int nr_cpus;
static pid_t loops[256];
static int nr_loops;

static void set_fifo(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	NEED(!sched_setscheduler(0, SCHED_FIFO, &param), "sched_setscheduler(SCHED_FIFO, %d): %s",
	     priority, strerror(errno));
}

/* A loop on @cpu, of FIFO priority if that is not 0, that rests for @rest_us of each 30 ms. */
static void start_loop(int cpu, int priority, int rest_us)
{
	pid_t pid = fork();
	long long end;

	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (pid) {
		loops[nr_loops++] = pid;
		return;
	}
	pin_to_cpu(cpu);
	if (priority)
		set_fifo(priority);
	for (;;) {
		end = now_us() + 30000 - rest_us;
		while (now_us() < end)
			;
		if (rest_us)
			usleep(rest_us);
	}
}

/* One on each CPU from @first on. */
static void start_loops(int first, int priority, int rest_us)
{
	int cpu;

	for (cpu = first; cpu < nr_cpus; cpu++)
		start_loop(cpu, priority, rest_us);
}

static void stop_loops(void)
{
	while (nr_loops)
		kill(loops[--nr_loops], SIGKILL);
}

static void may_use(bool all)
{
	cpu_set_t set;
	int cpu;

	CPU_ZERO(&set);
	for (cpu = 0; cpu < (all ? nr_cpus : 1); cpu++)
		CPU_SET(cpu, &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity(%d CPUs): %s",
	     CPU_COUNT(&set), strerror(errno));
}

/* One call, in the file's mapping checked and then punched. */
static long long fill_once(int fd, bool all)
{
	long long us;
	ssize_t bad;
	int ret;

	may_use(all);
	us = now_us();
	ret = file_fill(fd, 0, pool_pages);
	us = now_us() - us;
	NEED(ret == 0, "fallocate: %d", ret);
	CHECK(file_pages(fd) == pool_pages, "file has %ld pages, %ld expected", file_pages(fd),
	      pool_pages);
	bad = file_pages_nonzero(fd, pool_pages);
	CHECK(bad < 0, "not zero at %zd of page %zd", bad % (ssize_t)hsize, bad / (ssize_t)hsize);
	file_dirty(fd);
	NEED(file_punch(fd, 0, pool_pages) == 0, "punch hole: %s", strerror(errno));
	return us;
}

static int by_value(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return x < y ? -1 : x > y;
}

static void compare(void)
{
	int i, pairs = hsize >> 30 ? 3 : PAIRS, fd = huge_file();
	long long alone[PAIRS], helped[PAIRS];

	for (i = 0; i < pairs; i++) {
		alone[i] = fill_once(fd, false);
		helped[i] = fill_once(fd, true);
	}
	stop_loops();
	qsort(alone, pairs, sizeof(*alone), by_value);
	qsort(helped, pairs, sizeof(*helped), by_value);
	ktap_diag("median of %d calls: %lld us alone, %lld us on every CPU (worst %lld and %lld)",
		  pairs, alone[pairs / 2], helped[pairs / 2], alone[pairs - 1], helped[pairs - 1]);
	CHECK(helped[pairs / 2] <= 2 * alone[pairs / 2] + SLACK_US,
	      "on every CPU it takes %lld us, alone %lld", helped[pairs / 2], alone[pairs / 2]);
}

static void t_nice(void)
{
	start_loops(0, 0, 0);
	compare();
}

/* On all CPUs but the caller's, without end: helpers do not run at all. */
static void t_fifo(void)
{
	start_loops(1, 1, 0);
	compare();
}

/* The same with rests: helpers start, and lose their CPU in the middle of a page. */
static void t_fifo_rests(void)
{
	start_loops(1, 1, 5000);
	compare();
}

/* On every CPU, and the caller above them: it runs, its helpers do not. */
static void t_fifo_caller(void)
{
	set_fifo(2);
	start_loops(0, 1, 0);
	compare();
}

/* On every CPU, and the caller below them: it gets what they leave, and ends. */
static void t_fifo_all(void)
{
	int fd = huge_file();

	start_loops(0, 1, 15000);
	ktap_diag("%lld us", fill_once(fd, true));
	stop_loops();
}

static const struct ktap_test tests[] = {
	{ "nice-0 loops on every CPU", t_nice },
	{ "FIFO loops on the other CPUs", t_fifo },
	{ "FIFO loops with rests on the other CPUs", t_fifo_rests },
	{ "FIFO loops on every CPU below the caller", t_fifo_caller },
	{ "FIFO loops on every CPU above the caller", t_fifo_all },
};

int main(int argc, char **argv)
{
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	return huge_test_main(argc > 1 ? argv[1] : "2M", 64, tests, ARRAY_SIZE(tests),
			      ARRAY_SIZE(tests));
}
