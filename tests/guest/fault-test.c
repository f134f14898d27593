// SPDX-License-Identifier: GPL-2.0
/*
 * Faults on huge pages: what is cleared, what is copied, and the counters.
 * Usage: fault-test [2M|1G]
 *
 * Every page of the pool is dirty before each test, so that a subpage that was
 * not cleared or copied shows, and the first touch of each page is at another
 * place, as the subpages around it are treated apart from the others.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/ktap.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

#define WORDS	(SMALL_PAGE / 8)
#define ZERO	0

/* As many pages as can be there twice. */
#define COW_PAGES	(pool_pages / 2)

#define TOUCHES		6	/* places of first touches */
static long touch_shift;	/* chooses others where there are fewer pages */

/* In the first, last, middle, second, ... subpage. */
static size_t touch_in_page(long i)
{
	const size_t at[TOUCHES] = { 0, hsize - 8, hsize / 2, SMALL_PAGE, hsize - 3 * SMALL_PAGE + 8,
				     hsize / 4 + 2 * SMALL_PAGE };

	return at[i % TOUCHES];
}

static size_t touch_offset(long i)
{
	return i * hsize + touch_in_page(i + touch_shift);
}

/* What a word holds that was filled with @seed; another one for each subpage. */
static uint64_t word(unsigned int seed, size_t offset)
{
	return seed ? offset * 0x9e3779b97f4a7c15UL + seed : 0;
}

/*
 * All of gigabytes takes too long. Of a larger page the first and the last word of
 * a subpage are looked at, and every 61st subpage and those around the places of
 * first touches. Tests that set all_subpages look at each.
 */
static bool all_subpages;

static bool large(void)
{
	return hsize > 2UL << 20;
}

static bool looked_at(size_t offset)
{
	long i, sub = offset % hsize / SMALL_PAGE;

	if (all_subpages || !large() || sub % 61 == 0)
		return true;
	for (i = 0; i < TOUCHES; i++)
		if (labs(sub - (long)(touch_in_page(i) / SMALL_PAGE)) < 16)
			return true;
	return false;
}

static size_t word_step(void)
{
	return large() ? WORDS - 1 : 1;
}

static void fill(char *map, long pages, unsigned int seed)
{
	size_t offset, w;

	for (offset = 0; offset < pages * hsize; offset += SMALL_PAGE) {
		if (!looked_at(offset))
			continue;
		for (w = 0; w < WORDS; w += word_step())
			((uint64_t *)(map + offset))[w] = word(seed, offset + 8 * w);
	}
}

/*
 * After fork(2) a child of the unpatched kernel, which has no such parameter of
 * padata, may find no entry for its 1G pages: it sees zeroes, or gets a SIGBUS if
 * the pool is empty.
 */
static bool may_lose_pages(void)
{
	return large() && access("/sys/module/padata/parameters/max_threads", F_OK);
}

static bool lost_on_fork;	/* This is such a child */

/* CHECK() of what a child sees. */
#define CHECK_CHILD(may_lose, cond, ...)				\
	do {								\
		if (may_lose)						\
			KNOWN(cond, "after fork(2) a child of the unpatched kernel may lose its 1G pages"); \
		else							\
			CHECK(cond, __VA_ARGS__);			\
	} while (0)

/* Each page holds @seed, but @mark where it was touched. */
static void expect_words(const char *when, const char *map, long pages, unsigned int seed,
			 uint64_t mark)
{
	const uint64_t *p;
	size_t offset, w;
	long i;

	for (i = 0; i < pages; i++)
		CHECK_CHILD(lost_on_fork, *(uint64_t *)(map + touch_offset(i)) == mark,
			    "%s: page %ld: not %#lx where it was touched", when, i, (long)mark);
	for (i = 0; i < pages; i++) {
		long bad = 0, first = 0, last = 0;
		uint64_t got = 0;

		for (offset = i * hsize; offset < (i + 1) * hsize; offset += SMALL_PAGE) {
			p = (const uint64_t *)(map + offset);
			if (!looked_at(offset))
				continue;
			for (w = 0; w < WORDS; w += word_step()) {
				if (p[w] == word(seed, offset + 8 * w) ||
				    offset + 8 * w == touch_offset(i))
					continue;
				last = offset % hsize / SMALL_PAGE;
				if (bad++)
					continue;
				first = last;
				got = p[w];
			}
		}
		CHECK_CHILD(lost_on_fork, !bad,
			    "%s: page %ld: %ld words are wrong, the first (%#lx) in subpage %ld, the last in %ld",
			    when, i, bad, (long)got, first, last);
	}
}

static char *map_pages(int fd, int flags, long pages)
{
	char *p = mmap(NULL, pages * hsize, PROT_READ | PROT_WRITE, flags, fd, 0);

	NEED(p != MAP_FAILED, "mmap(%ld pages): %s", pages, strerror(errno));
	return p;
}

static void touch(char *map, long pages, uint64_t mark)
{
	long i;

	for (i = 0; i < pages; i++)
		*(volatile uint64_t *)(map + touch_offset(i)) = mark;
}

static int new_file(long pages)
{
	int fd = huge_memfd();

	NEED(!ftruncate(fd, pages * hsize), "ftruncate: %s", strerror(errno));
	return fd;
}

/* Make @pages free pages dirty: all of them, or those that are left. */
static void dirty(long pages)
{
	int fd = new_file(pages);
	char *map = map_pages(fd, MAP_SHARED, pages);

	fill(map, pages, 1);
	munmap(map, pages * hsize);
	close(fd);
}

/* Pages of the whole pool, dirty before, are faulted in by @touch_fn, which leaves @mark. */
static void check_cleared(const char *when, int flags, void (*touch_fn)(char *, long, uint64_t),
			  uint64_t mark)
{
	char *map;
	int fd;

	dirty(pool_pages);
	expect_pool("dirtied", 0, 0);

	fd = new_file(pool_pages);
	map = map_pages(fd, flags, pool_pages);
	expect_pool("mapped", 0, pool_pages);
	touch_fn(map, pool_pages, mark);
	expect_pool("touched", pool_pages, 0);
	expect_words(when, map, pool_pages, ZERO, mark);
	munmap(map, pool_pages * hsize);
	close(fd);
}

static void touch_by_reading(char *map, long pages, uint64_t mark)
{
	long i;

	for (i = 0; i < pages; i++)
		CHECK(*(volatile uint64_t *)(map + touch_offset(i)) == mark,
		      "page %ld: not %#lx when read first", i, (long)mark);
}

static void touch_by_madvise(char *map, long pages, uint64_t mark)
{
	NEED(!madvise(map, pages * hsize, mark ? MADV_POPULATE_WRITE : MADV_POPULATE_READ),
	     "madvise(MADV_POPULATE): %s", strerror(errno));
	touch(map, pages, mark);
}

/* The fault is one of the kernel's, which copies to user space. */
static void touch_by_syscall(char *map, long pages, uint64_t mark)
{
	int pipefd[2];
	long i;

	NEED(!pipe(pipefd), "pipe: %s", strerror(errno));
	for (i = 0; i < pages; i++) {
		NEED(write(pipefd[1], &mark, 8) == 8, "write(pipe): %s", strerror(errno));
		NEED(read(pipefd[0], map + touch_offset(i), 8) == 8, "read(pipe): %s",
		     strerror(errno));
	}
}

static void touch_from_children(char *map, long pages, uint64_t mark)
{
	long i;

	for (i = 0; i < pages; i++) {
		pid_t pid = fork();

		NEED(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			*(volatile uint64_t *)(map + touch_offset(i)) = mark;
			ktap_end_test();
		}
	}
	while (wait(NULL) > 0)
		;
}

static void t_shared(void)
{
	all_subpages = true;
	check_cleared("shared", MAP_SHARED, touch, 7);
}

static void t_private(void)
{
	touch_shift = 4;
	check_cleared("private", MAP_PRIVATE, touch, 7);
}

static void t_read(void) { check_cleared("read", MAP_SHARED, touch_by_reading, 0); }
static void t_populate(void) { check_cleared("populate", MAP_PRIVATE, touch_by_madvise, 7); }
static void t_syscall(void) { check_cleared("syscall", MAP_SHARED, touch_by_syscall, 7); }
static void t_together(void) { check_cleared("together", MAP_SHARED, touch_from_children, 7); }

/* Wait for a child that looked at its parent's pages: it must have ended by itself. */
static void reap(pid_t pid)
{
	int status;

	NEED(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	CHECK_CHILD(may_lose_pages(), WIFEXITED(status) && !WEXITSTATUS(status),
		    "child: status %#x", status);
}

#define RAMFS	"/tmp/ramfs"

/*
 * Free small pages that were part of a file. What this leaves in their struct pages
 * must not matter to those who use them next, such as page tables. The pages of ramfs
 * are not movable, so that they go where the next page tables are taken from.
 */
static void free_file_pages(void)
{
	static char buf[SMALL_PAGE];
	int i, fd;

	mkdir(RAMFS, 0755);
	NEED(!mount("none", RAMFS, "ramfs", 0, NULL), "mount(ramfs): %s", strerror(errno));
	fd = open(RAMFS "/small", O_CREAT | O_RDWR, 0600);
	NEED(fd >= 0, "open(" RAMFS "/small): %s", strerror(errno));
	for (i = 0; i < 2048; i++)
		NEED(write(fd, buf, SMALL_PAGE) == SMALL_PAGE, "write(" RAMFS "/small): %s", strerror(errno));
	close(fd);
	NEED(!umount(RAMFS), "umount: %s", strerror(errno));
}

/* A child writes to its parent's anonymous pages; each sees its own afterwards. */
static void check_cow_child(void)
{
	int fd = new_file(COW_PAGES);
	char *map = map_pages(fd, MAP_PRIVATE, COW_PAGES);
	pid_t pid;

	fill(map, COW_PAGES, 2);
	touch(map, COW_PAGES, 5);
	free_file_pages();
	pid = fork();
	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		lost_on_fork = may_lose_pages();
		touch(map, COW_PAGES, 7);
		expect_pool("copied", 2 * COW_PAGES, 0);
		expect_words("copy", map, COW_PAGES, 2, 7);
		ktap_end_test();
	}
	reap(pid);
	expect_pool("child gone", COW_PAGES, 0);
	expect_words("source", map, COW_PAGES, 2, 5);
	munmap(map, COW_PAGES * hsize);
	close(fd);
}

static void t_cow_child(void)
{
	all_subpages = true;
	dirty(pool_pages);
	check_cow_child();
}

/* The parent writes, and the child, which has no reservation, keeps the source. */
static void t_cow_parent(void)
{
	int fd = new_file(COW_PAGES), done[2];
	char *map, c;
	pid_t pid;

	touch_shift = 2;
	dirty(pool_pages);
	map = map_pages(fd, MAP_PRIVATE, COW_PAGES);
	fill(map, COW_PAGES, 2);
	touch(map, COW_PAGES, 5);
	NEED(!pipe(done), "pipe: %s", strerror(errno));
	pid = fork();
	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		lost_on_fork = may_lose_pages();
		NEED(read(done[0], &c, 1) == 1, "read(pipe): %s", strerror(errno));
		expect_words("source", map, COW_PAGES, 2, 5);
		ktap_end_test();
	}
	touch(map, COW_PAGES, 7);
	NEED(write(done[1], "", 1) == 1, "write(pipe): %s", strerror(errno));
	expect_words("copy", map, COW_PAGES, 2, 7);
	reap(pid);
	expect_pool("child gone", COW_PAGES, 0);
}

/* A private mapping of a file's pages is written to; the file stays as it was. */
static void t_cow_file(void)
{
	int fd = new_file(COW_PAGES);
	char *file = map_pages(fd, MAP_SHARED, COW_PAGES), *map;

	touch_shift = 4;
	fill(file, COW_PAGES, 2);
	touch(file, COW_PAGES, 5);
	dirty(COW_PAGES);
	map = map_pages(fd, MAP_PRIVATE, COW_PAGES);
	touch(map, COW_PAGES, 7);
	expect_pool("copied", 2 * COW_PAGES, 0);
	expect_words("copy", map, COW_PAGES, 2, 7);
	expect_words("file", file, COW_PAGES, 2, 5);
}

#define FAIL_DIR	"/sys/kernel/debug/fail_function/"

static bool fail_set(const char *leaf, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), FAIL_DIR "%s", leaf);
	return write_str(path, value);
}

/*
 * The copy meets a memory error, for which error injection stands in, in its third
 * chunk: the child gets a SIGBUS and no page, its parent keeps what it has.
 */
static void t_cow_poison(void)
{
	int fd = new_file(COW_PAGES), status;
	char *map, retval[32];
	pid_t pid;

	if (!large())
		SKIP("2M pages are not copied in chunks");
	if (!fail_set("inject", "copy_subpages"))
		SKIP("the kernel has no error injection for it");
	snprintf(retval, sizeof(retval), "%#lx", (unsigned long)-EHWPOISON);
	NEED(fail_set("copy_subpages/retval", retval) && fail_set("verbose", "0") &&
	     fail_set("interval", "3") && fail_set("times", "1"), "write(" FAIL_DIR "...): %s",
	     strerror(errno));

	dirty(pool_pages);
	map = map_pages(fd, MAP_PRIVATE, COW_PAGES);
	fill(map, COW_PAGES, 2);
	touch(map, COW_PAGES, 5);
	NEED(fail_set("probability", "100"), "write(" FAIL_DIR "probability): %s", strerror(errno));
	pid = fork();
	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		touch(map, 1, 7);
		ktap_end_test();
	}
	NEED(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	fail_set("probability", "0");
	fail_set("inject", "!copy_subpages");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "child: status %#x, not SIGBUS",
	      status);
	expect_pool("child gone", COW_PAGES, 0);
	expect_words("source", map, COW_PAGES, 2, 5);
	munmap(map, COW_PAGES * hsize);
	close(fd);
}

/* One CPU, on which helpers may not be waited for. */
static void t_pinned(void)
{
	pin_to_cpu(0);
	t_private();
	check_cow_child();
}

#define CPU1_ONLINE	"/sys/devices/system/cpu/cpu1/online"

static void t_hotplug(void)
{
	unsigned int seed = 1;
	pid_t pid;

	if (read_long(CPU1_ONLINE) != 1)
		SKIP("there is no CPU to take offline");
	pid = fork();
	NEED(pid >= 0, "fork: %s", strerror(errno));
	while (!pid) {
		NEED(write_str(CPU1_ONLINE, "0"), "write(" CPU1_ONLINE ", 0): %s", strerror(errno));
		usleep(rnd(&seed) % 20000);
		NEED(write_str(CPU1_ONLINE, "1"), "write(" CPU1_ONLINE ", 1): %s", strerror(errno));
		usleep(rnd(&seed) % 20000);
	}
	t_private();
	check_cow_child();
	NEED(!waitpid(pid, NULL, WNOHANG), "the process that plugs CPUs has ended");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	NEED(write_str(CPU1_ONLINE, "1") || read_long(CPU1_ONLINE) == 1, "CPU 1 is offline: %s",
	     strerror(errno));
}

/* A process dies in the middle of its faults; all of its pages come back. */
static void t_killed(void)
{
	unsigned int seed = 1;
	int fd, i;
	pid_t pid;

	for (i = 0; i < 4; i++) {
		fd = new_file(COW_PAGES);
		pid = fork();
		NEED(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			for (;;) {
				char *map = map_pages(fd, MAP_PRIVATE, COW_PAGES);

				touch(map, COW_PAGES, 7);
				munmap(map, COW_PAGES * hsize);
			}
		}
		usleep(20000 + rnd(&seed) % 300000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(fd);
		expect_pool("killed", 0, 0);
	}
}

static const struct ktap_test tests[] = {
	{ "first write, shared", t_shared },
	{ "first write, private", t_private },
	{ "first writes of several processes at a time", t_together },
	{ "copy on write of a child", t_cow_child },
	{ "copy on write of the parent", t_cow_parent },
	{ "copy on write of a file's page", t_cow_file },
	{ "copy on write that meets a memory error", t_cow_poison },
	{ "a task that may use one CPU", t_pinned },
	{ "CPU going offline and online", t_hotplug },
	{ "killed while faulting", t_killed },
	/* Of 1G pages these would take too long, and are the faults of the first two tests. */
	{ "first read, shared", t_read },
	{ "populate, private", t_populate },
	{ "first write by a system call", t_syscall },
};

#define TESTS_2M	3

int main(int argc, char **argv)
{
	const char *size;

	if (argc > 2) {
		fprintf(stderr, "usage: fault-test [2M|1G]\n");
		return 2;
	}
	size = argc > 1 ? argv[1] : "2M";
	return huge_test_main(size, 6, tests, ARRAY_SIZE(tests),
			      ARRAY_SIZE(tests) - TESTS_2M);
}
