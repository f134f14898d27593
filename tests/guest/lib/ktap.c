// SPDX-License-Identifier: GPL-2.0
/* KTAP output: one forked process a test, see ktap.h. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ktap.h"

int ktap_seconds = 240;

/* Shared with the test's process and with the processes that it starts. */
struct state {
	int failed;
	char skip[160];
	char known[160];
};

static struct state *state;

void ktap_diag(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	printf("# %s\n", line);
	fflush(stdout);
}

void ktap_fail(const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!state) {	/* a program that is no test uses lib/huge.c */
		fprintf(stderr, "%s\n", text);
		exit(1);
	}
	/* Ten lines tell enough; the count tells the rest. */
	if (__atomic_fetch_add(&state->failed, 1, __ATOMIC_RELAXED) < 10)
		ktap_diag("%s:%d: %s", base ? base + 1 : file, line, text);
}

void ktap_known(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(state->known, sizeof(state->known), fmt, ap);
	va_end(ap);
}

void ktap_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(state->skip, sizeof(state->skip), fmt, ap);
	va_end(ap);
	ktap_end_test();
}

void ktap_end_test(void)
{
	fflush(stdout);
	_exit(0);
}

static void run_one(const struct ktap_test *test)
{
	int status;
	pid_t pid;

	memset(state, 0, sizeof(*state));
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		ktap_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
		return;
	}
	if (!pid) {
		setpgid(0, 0);
		alarm(ktap_seconds);
		test->fn();
		ktap_end_test();
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL);	/* what the test may have left behind */
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		ktap_fail(__FILE__, __LINE__, "not done after %d s", ktap_seconds);
	else if (WIFSIGNALED(status))
		ktap_fail(__FILE__, __LINE__, "ended by %s", strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		ktap_fail(__FILE__, __LINE__, "exit status %d", WEXITSTATUS(status));
}

static long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int ktap_run(const struct ktap_test *tests, int nr, bool (*after)(void))
{
	long long start;
	int i, failed = 0;

	state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (state == MAP_FAILED) {
		fprintf(stderr, "mmap(state): %s\n", strerror(errno));
		return 1;
	}
	printf("KTAP version 1\n1..%d\n", nr);
	for (i = 0; i < nr; i++) {
		start = now_ns();
		run_one(&tests[i]);
		if (after && !after())
			state->failed++;
		if (state->failed)
			printf("not ok %d %s\n", i + 1, tests[i].name);
		else if (state->known[0])
			printf("not ok %d %s # TODO %s\n", i + 1, tests[i].name, state->known);
		else if (state->skip[0])
			printf("ok %d %s # SKIP %s\n", i + 1, tests[i].name, state->skip);
		else
			printf("ok %d %s\n", i + 1, tests[i].name);
		printf("# took %lld ms\n", (now_ns() - start) / 1000000);
		fflush(stdout);
		failed += !!state->failed;
	}
	return failed ? 1 : 0;
}
