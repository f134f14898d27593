/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KTAP output for tests that run in the guest.
 *
 * A test is a function that returns.  It runs in a process of its own, so that
 * a SIGBUS, an rlimit or a memory policy ends with it:
 *
 *	CHECK(cond, fmt, ...)	the test fails if !cond, and goes on
 *	NEED(cond, fmt, ...)	the test fails if !cond, and ends
 *	SKIP(fmt, ...)		the test ends, skipped, with a reason
 *	KNOWN(cond, fmt, ...)	!cond is a known defect of the unpatched kernel:
 *				"not ok ... # TODO", which fails nothing
 */
#ifndef KTAP_H
#define KTAP_H

#include <stdbool.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct ktap_test {
	const char *name;
	void (*fn)(void);
};

extern int ktap_seconds;	/* a test that takes longer is ended, and fails */

/* Run all tests; @after is called in the parent after each. Returns the exit status. */
int ktap_run(const struct ktap_test *tests, int nr, bool (*after)(void));

void ktap_diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ktap_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ktap_known(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ktap_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void ktap_end_test(void) __attribute__((noreturn));

#define CHECK(cond, ...)						\
	({								\
		bool ok_ = (cond);					\
		if (!ok_)						\
			ktap_fail(__FILE__, __LINE__, __VA_ARGS__);	\
		ok_;							\
	})

#define NEED(cond, ...)							\
	do {								\
		if (!CHECK(cond, __VA_ARGS__))				\
			ktap_end_test();				\
	} while (0)

#define KNOWN(cond, ...)						\
	do {								\
		if (!(cond))						\
			ktap_known(__VA_ARGS__);			\
	} while (0)

#define SKIP(...)	ktap_skip(__VA_ARGS__)

#endif
