// SPDX-License-Identifier: GPL-2.0
/*
 * fallocate(2) on hugetlbfs from one process: contents, counters, sizes and
 * errors. Usage: fallocate-test [2M|1G]
 *
 * What is asserted is what the unpatched kernel does, odd or not: after ENOSPC
 * the pages stay in the file and i_size does not grow, after EINTR i_size grows
 * to the full request. The pages of the pool hold non-zero data before each
 * fallocate whose result is read, so that a page that was not cleared shows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/ktap.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE	0x0010
#endif

/* fallocate() as 0 or -errno, offset and length in bytes. */
static int falloc(int fd, int mode, off_t offset, off_t len)
{
	return fallocate(fd, mode, offset, len) ? -errno : 0;
}

#define EXPECT_RET(call, want)							\
	do {									\
		int ret_ = (call);						\
		CHECK(ret_ == (want), "%s: %d, %d expected", #call, ret_, want);\
	} while (0)

/* The file has @pages pages and size @size; the pool has @used fewer free, and @resv reserved. */
static void expect(const char *when, int fd, long pages, off_t size, long used, long resv)
{
	expect_pool(when, used, resv);
	if (fd < 0)
		return;
	CHECK(file_pages(fd) == pages, "%s: file has %ld pages, %ld expected", when,
	      file_pages(fd), pages);
	CHECK(file_size(fd) == size, "%s: i_size %lld, %lld expected", when,
	      (long long)file_size(fd), (long long)size);
}

static void expect_zero(const char *when, int fd, long first, long nr)
{
	char *p = map_shared(fd, (first + nr) * hsize);
	ssize_t bad = map_first_nonzero(p + first * hsize, nr * hsize);

	CHECK(bad < 0, "%s: not zero at %zd of page %ld", when, bad % (ssize_t)hsize,
	      first + bad / (ssize_t)hsize);
	munmap(p, (first + nr) * hsize);
}

static int new_file(void)
{
	pool_dirty();
	return huge_file();
}

/* The one test that looks at every byte (of 1G, at every small page), by read and by mapping. */
static void t_whole_pool(void)
{
	size_t read_len = hsize >> 30 ? 2 << 20 : pool_pages * hsize;
	ssize_t bad;
	char *p;
	int fd;

	pool_dirty_all();
	fd = huge_file();
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	expect("after fallocate", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
	bad = file_first_nonzero(fd, 0, read_len, 1 << 20);
	CHECK(bad < 0, "read: not zero at %zd", bad);
	p = map_shared(fd, pool_pages * hsize);
	bad = map_first_nonzero_all(p, pool_pages * hsize);
	CHECK(bad < 0, "mmap: not zero at %zd", bad);
	munmap(p, pool_pages * hsize);
	CHECK(file_first_nonzero(fd, 4097, 2 << 20, 4099) < 0, "odd pread: not zero");
	expect("after reading", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
}

/* A pool full of non-zero data, given out through a memfd and through faults of all kinds. */
static void t_memfd_and_faults(void)
{
	const int flags[] = { MAP_SHARED, MAP_PRIVATE, MAP_SHARED | MAP_NORESERVE };
	ssize_t bad;
	size_t i;
	char *p;
	int fd;

	pool_dirty();
	fd = huge_memfd();
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	expect_zero("memfd", fd, 0, pool_pages);
	file_dirty(fd);
	close(fd);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		fd = huge_file();
		EXPECT_RET(ftruncate(fd, 2 * hsize), 0);
		p = mmap(NULL, 2 * hsize, PROT_READ | PROT_WRITE, flags[i], fd, 0);
		NEED(p != MAP_FAILED, "mmap(%#x): %s", flags[i], strerror(errno));
		*(volatile char *)(p + hsize) = 0;
		bad = map_first_nonzero(p, 2 * hsize);
		CHECK(bad < 0, "mmap(%#x): not zero at %zd", flags[i], bad);
		map_dirty(p, 2 * hsize);
		munmap(p, 2 * hsize);
		file_dirty(fd);
		close(fd);
	}
}

static void t_unaligned(void)
{
	int fd = new_file();

	EXPECT_RET(falloc(fd, 0, hsize - 1, 2), 0);
	expect("two bytes on an edge", fd, 2, hsize + 1, 2, 0);
	EXPECT_RET(falloc(fd, 0, 2 * hsize + 4096, hsize), 0);
	expect("a page off by 4096", fd, 4, 3 * hsize + 4096, 4, 0);
	EXPECT_RET(ftruncate(fd, 4 * hsize), 0);
	expect_zero("both", fd, 0, 4);
}

static void t_hole_before(void)
{
	bool present[4];
	int fd = huge_file();

	EXPECT_RET(file_fill(fd, 2, 2), 0);
	expect("pages 2 and 3", fd, 2, 4 * hsize, 2, 0);
	file_punch_map(fd, 4, present);
	CHECK(!present[0] && !present[1] && present[2] && present[3], "present: %d%d%d%d",
	      present[0], present[1], present[2], present[3]);
	expect("after punching", fd, 0, 4 * hsize, 0, 0);
}

static void t_twice(void)
{
	int fd = new_file();

	EXPECT_RET(file_fill(fd, 0, 3), 0);
	EXPECT_RET(file_fill(fd, 0, 3), 0);
	expect("same range twice", fd, 3, 3 * hsize, 3, 0);
	EXPECT_RET(file_fill(fd, 1, 3), 0);
	expect("overlapping", fd, 4, 4 * hsize, 4, 0);
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	expect("all", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	expect("all again, pool empty", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
	expect_zero("all", fd, 0, pool_pages);
}

static void t_keeps_data(void)
{
	int fd = new_file();
	unsigned char *p;
	size_t i;
	long n;

	EXPECT_RET(ftruncate(fd, pool_pages * hsize), 0);
	p = (unsigned char *)map_shared(fd, pool_pages * hsize);
	for (n = 0; n < pool_pages; n += 2)
		for (i = n * hsize; i < (n + 1) * hsize; i += hsize / 512)
			p[i] = 0x5a;
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	expect("after fallocate", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
	for (n = 0; n < pool_pages; n++) {
		if (n % 2) {
			CHECK(map_first_nonzero((char *)p + n * hsize, hsize) < 0,
			      "page %ld is not zero", n);
			continue;
		}
		for (i = n * hsize; i < (n + 1) * hsize && p[i] == 0x5a; i += hsize / 512)
			;
		CHECK(i == (n + 1) * hsize, "page %ld lost its data at %zu", n, i - n * hsize);
	}
}

static void t_punch_refill(void)
{
	int fd = new_file();
	char *p;
	long n;

	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	p = map_shared(fd, pool_pages * hsize);
	map_dirty(p, pool_pages * hsize);
	for (n = 0; n < pool_pages; n += 2)
		EXPECT_RET(file_punch(fd, n, 1), 0);
	CHECK(file_pages(fd) == pool_pages / 2, "%ld pages, %ld expected", file_pages(fd),
	      pool_pages / 2);
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	for (n = 0; n < pool_pages; n++) {
		if (n % 2)
			CHECK(map_first_nonzero(p + n * hsize, hsize) == 0,
			      "page %ld lost its data", n);
		else
			CHECK(map_first_nonzero(p + n * hsize, hsize) < 0,
			      "page %ld is not zero", n);
	}
	munmap(p, pool_pages * hsize);
	expect("refilled", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
}

static void t_keep_size(void)
{
	int fd = new_file();

	EXPECT_RET(falloc(fd, FALLOC_FL_KEEP_SIZE, 0, 2 * hsize), 0);
	expect("KEEP_SIZE", fd, 2, 0, 2, 0);
	EXPECT_RET(file_fill(fd, 0, 1), 0);
	expect("then one page", fd, 2, hsize, 2, 0);
	EXPECT_RET(ftruncate(fd, 2 * hsize), 0);
	expect_zero("both", fd, 0, 2);
}

static void t_bad_calls(void)
{
	int fd = huge_file();

	EXPECT_RET(falloc(fd, FALLOC_FL_ZERO_RANGE, 0, hsize), -EOPNOTSUPP);
	EXPECT_RET(falloc(fd, 0, 0, 0), -EINVAL);
	EXPECT_RET(falloc(fd, 0, -1, hsize), -EINVAL);
	EXPECT_RET(falloc(fd, 0, 0x7fffffffffffffffLL, hsize), -EFBIG);
	expect("bad calls", fd, 0, 0, 0, 0);
}

static void t_enospc(void)
{
	bool *present = calloc(pool_pages + 8, sizeof(bool));
	int fd = new_file();
	long n;

	EXPECT_RET(file_fill(fd, 0, 1), 0);
	EXPECT_RET(file_fill(fd, 0, pool_pages + 8), -ENOSPC);
	expect("pool too small", fd, pool_pages, hsize, pool_pages, 0);
	EXPECT_RET(file_fill(fd, pool_pages + 4, 1), -ENOSPC);
	expect("pool empty", fd, pool_pages, hsize, pool_pages, 0);
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	expect("what fits", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
	expect_zero("prefix", fd, 0, pool_pages);
	file_punch_map(fd, pool_pages + 8, present);
	for (n = 0; n < pool_pages + 8; n++)
		CHECK(present[n] == (n < pool_pages), "page %ld present: %d", n, present[n]);
}

/* A file that gets ENOSPC while it is new keeps its pages past i_size = 0. */
static void t_enospc_new(void)
{
	int fd = new_file();

	EXPECT_RET(file_fill(fd, 0, pool_pages + 1), -ENOSPC);
	expect("pool too small", fd, pool_pages, 0, pool_pages, 0);
	EXPECT_RET(ftruncate(fd, pool_pages * hsize), 0);
	expect_zero("prefix", fd, 0, pool_pages);
	EXPECT_RET(ftruncate(fd, 0), 0);
	expect("truncated", fd, 0, 0, 0, 0);
}

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void catch_signal(int sig)
{
	struct sigaction sa = { .sa_handler = on_signal };

	NEED(!sigaction(sig, &sa, NULL), "sigaction(%d): %s", sig, strerror(errno));
	signals = 0;
}

/* One fallocate of the whole pool with a signal after @delay_us; true if it was interrupted. */
static bool interrupt_once(timer_t timer, long long delay_us)
{
	struct itimerspec when = {
		.it_value = { delay_us / 1000000, delay_us % 1000000 * 1000 + 1 },
	};
	bool *present = calloc(pool_pages, sizeof(bool));
	int ret, fd = huge_file();
	long n, pages;

	timer_settime(timer, 0, &when, NULL);
	ret = file_fill(fd, 0, pool_pages);
	when.it_value.tv_sec = when.it_value.tv_nsec = 0;
	timer_settime(timer, 0, &when, NULL);

	pages = file_pages(fd);
	CHECK(ret == 0 || ret == -EINTR, "fallocate: %d", ret);
	CHECK(ret || pages == pool_pages, "returned 0 with %ld pages of %ld", pages, pool_pages);
	CHECK(!ret || pages < pool_pages, "returned %d with all %ld pages", ret, pages);
	expect("after a signal", fd, pages, pool_pages * hsize, pages, 0);
	if (pages)
		expect_zero("prefix", fd, 0, pages);
	file_dirty(fd);
	if (ret && pages % 2) {
		/* Half of the times: carry on where it stopped. */
		EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
		expect("carried on", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
		expect_zero("carried on", fd, pages, pool_pages - pages);
		file_dirty(fd);
	} else {
		file_punch_map(fd, pool_pages, present);
		for (n = 0; n < pool_pages; n++)
			CHECK(present[n] == (n < pages), "%ld pages, page %ld present: %d", pages,
			      n, present[n]);
	}
	close(fd);
	free(present);
	return ret == -EINTR;
}

static void t_eintr(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const int steps = hsize > 2 << 20 ? 3 : 8, sweeps = 5;
	int i, sweep, hits = 0;
	long long whole;
	timer_t timer;
	int fd;

	catch_signal(SIGUSR1);
	NEED(!timer_create(CLOCK_MONOTONIC, &ev, &timer), "timer_create: %s", strerror(errno));
	fd = new_file();
	whole = now_us();
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	whole = now_us() - whole;
	file_dirty(fd);
	close(fd);

	for (sweep = 0; sweep < sweeps && !hits; sweep++)
		for (i = 0; i < steps; i++)
			hits += interrupt_once(timer, whole * i / steps);
	ktap_diag("%d interrupted, uninterrupted takes %lld us", hits, whole);
	CHECK(hits > 0, "no fallocate was interrupted in %d tries", sweeps * steps);
}

static void t_rlimit(void)
{
	struct rlimit rl = { .rlim_cur = hsize, .rlim_max = RLIM_INFINITY };
	int fd = huge_file();

	catch_signal(SIGXFSZ);
	NEED(!setrlimit(RLIMIT_FSIZE, &rl), "setrlimit(RLIMIT_FSIZE): %s", strerror(errno));
	EXPECT_RET(file_fill(fd, 0, 2), -EFBIG);
	CHECK(signals == 1, "%d SIGXFSZ, 1 expected", signals);
	EXPECT_RET(falloc(fd, FALLOC_FL_KEEP_SIZE, 0, 2 * hsize), -EFBIG);
	CHECK(signals == 2, "%d SIGXFSZ, 2 expected", signals);
	expect("over the limit", fd, 0, 0, 0, 0);
	EXPECT_RET(file_fill(fd, 0, 1), 0);
	expect("at the limit", fd, 1, hsize, 1, 0);
}

static void t_seals(void)
{
	int fd;

	pool_dirty();
	fd = huge_memfd();
	EXPECT_RET(ftruncate(fd, 2 * hsize), 0);
	NEED(!fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), "F_SEAL_GROW: %s", strerror(errno));
	EXPECT_RET(file_fill(fd, 0, 3), -EPERM);
	EXPECT_RET(falloc(fd, FALLOC_FL_KEEP_SIZE, 0, 3 * hsize), -EPERM);
	expect("F_SEAL_GROW, beyond", fd, 0, 2 * hsize, 0, 0);
	EXPECT_RET(file_fill(fd, 0, 2), 0);
	expect("F_SEAL_GROW, within", fd, 2, 2 * hsize, 2, 0);
	expect_zero("F_SEAL_GROW", fd, 0, 2);
	NEED(!fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), "F_SEAL_FUTURE_WRITE: %s",
	     strerror(errno));
	EXPECT_RET(file_punch(fd, 0, 1), -EPERM);
	NEED(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), "F_SEAL_WRITE: %s", strerror(errno));
	EXPECT_RET(file_punch(fd, 0, 1), -EPERM);
	expect("F_SEAL_WRITE, punch", fd, 2, 2 * hsize, 2, 0);
}

#define SMALL_DIR	"/tmp/huge-small"
#define SMALL_FILE	SMALL_DIR "/f"

/* A mount of its own with size= and min_size= in pages, 0 for none, and a file in it. */
static int small_mount(long size, long min_size)
{
	char options[64] = "";
	int n = 0, fd;

	if (size)
		n = snprintf(options, sizeof(options), "size=%zuM", size * hsize >> 20);
	if (min_size)
		snprintf(options + n, sizeof(options) - n, "%smin_size=%zuM", n ? "," : "",
			 min_size * hsize >> 20);
	NEED(!huge_mount(SMALL_DIR, options), "mount(hugetlbfs, %s): %s", options, strerror(errno));
	fd = open(SMALL_FILE, O_CREAT | O_RDWR, 0600);
	NEED(fd >= 0, "open(" SMALL_FILE "): %s", strerror(errno));
	return fd;
}

static void small_unlink(int fd)
{
	unlink(SMALL_FILE);
	close(fd);
}

static void small_umount(void)
{
	NEED(!umount(SMALL_DIR), "umount(" SMALL_DIR "): %s", strerror(errno));
}

/* What df shows. */
static long small_free(void)
{
	struct statfs st;

	NEED(!statfs(SMALL_DIR, &st), "statfs(" SMALL_DIR "): %s", strerror(errno));
	return st.f_bfree;
}

static void expect_small_free(const char *when, long pages)
{
	CHECK(small_free() == pages, "%s: df shows %ld free, %ld expected", when, small_free(),
	      pages);
}

/* A mount of four pages over a pool that has two: each ENOSPC must give its quota back. */
static void t_size_mount(void)
{
	int fd, other, i;
	long after;

	other = huge_file();
	EXPECT_RET(file_fill(other, 0, pool_pages - 2), 0);
	fd = small_mount(4, 0);
	expect_small_free("mounted", 4);
	for (i = 0; i < 5; i++)
		EXPECT_RET(file_fill(fd, 0, 4), -ENOSPC);
	expect("after five ENOSPC", fd, 2, 0, pool_pages, 0);
	small_unlink(fd);
	expect("after unlink", -1, 0, 0, pool_pages - 2, 0);
	after = small_free();
	small_umount();
	KNOWN(after == 4, "a failed allocation keeps its quota: %ld of 4 blocks free after unlink",
	      after);
}

/* The mount's limit itself, with pages enough in the pool. */
static void t_size_limit(void)
{
	int fd = small_mount(2, 0);

	expect_small_free("mounted", 2);
	EXPECT_RET(file_fill(fd, 0, 1), 0);
	expect_small_free("one page", 1);
	EXPECT_RET(file_fill(fd, 0, 3), -ENOSPC);
	expect("over the mount's size", fd, 2, hsize, 2, 0);
	expect_small_free("full", 0);
	EXPECT_RET(file_fill(fd, 0, 2), 0);
	expect("as large as the mount", fd, 2, 2 * hsize, 2, 0);
	EXPECT_RET(file_punch(fd, 1, 1), 0);
	expect_small_free("one page punched", 1);
	small_unlink(fd);
	expect_small_free("after unlink", 2);
	small_umount();
}

/* The mount reserves its smallest size; its files take from that before they take from the pool. */
static void t_min_size(void)
{
	int fd = small_mount(4, 2), other = huge_file();

	expect("mounted", fd, 0, 0, 0, 2);
	EXPECT_RET(file_fill(fd, 0, 1), 0);
	expect("one of two", fd, 1, hsize, 1, 1);
	EXPECT_RET(file_fill(fd, 0, 3), 0);
	expect("more than reserved", fd, 3, 3 * hsize, 3, 0);
	EXPECT_RET(file_punch(fd, 2, 1), 0);
	expect("as much as reserved", fd, 2, 3 * hsize, 2, 0);
	EXPECT_RET(file_punch(fd, 1, 1), 0);
	expect("less than reserved", fd, 1, 3 * hsize, 1, 1);
	EXPECT_RET(file_fill(other, 0, pool_pages), -ENOSPC);
	expect("another mount's file", other, pool_pages - 2, 0, pool_pages - 1, 1);
	EXPECT_RET(file_fill(fd, 0, 2), 0);
	expect("the reserved page", fd, 2, 3 * hsize, pool_pages, 0);
	small_unlink(fd);
	expect("after unlink", other, pool_pages - 2, 0, pool_pages - 2, 2);
	small_umount();
	expect("unmounted", other, pool_pages - 2, 0, pool_pages - 2, 0);
}

/* Without size= the kernel does not count the mount's pages, but min_size= goes by their number. */
static void t_min_size_alone(void)
{
	int fd = small_mount(0, 2);
	struct pool p;

	EXPECT_RET(file_fill(fd, 0, 3), 0);
	expect("more than reserved", fd, 3, 3 * hsize, 3, 0);
	EXPECT_RET(file_punch(fd, 2, 1), 0);
	pool_read(&p);
	small_unlink(fd);
	expect("after unlink", -1, 0, 0, 0, 2);
	small_umount();
	expect("unmounted", -1, 0, 0, 0, 0);
	KNOWN(p.resv == 0, "Rsvd %ld, 0 expected, where a mount has as much as its min_size=",
	      p.resv);
}

/* All that the mount may have is reserved: what fails for its limit gives all of it back. */
static void t_min_size_limit(void)
{
	int fd = small_mount(2, 2), i;

	for (i = 0; i < 3; i++)
		EXPECT_RET(file_fill(fd, 0, 3), -ENOSPC);
	expect("over the mount's size", fd, 2, 0, 2, 0);
	expect_small_free("full", 0);
	small_unlink(fd);
	expect("after unlink", -1, 0, 0, 0, 2);
	expect_small_free("after unlink", 2);
	small_umount();
	expect("unmounted", -1, 0, 0, 0, 0);
}

static void t_resv_shared(void)
{
	int fd = new_file();
	char *p;

	p = map_shared(fd, 3 * hsize);
	expect("mapped", fd, 0, 3 * hsize, 0, 3);
	EXPECT_RET(file_fill(fd, 0, 2), 0);
	expect("two of three", fd, 2, 3 * hsize, 2, 1);
	EXPECT_RET(file_fill(fd, 0, 4), 0);
	expect("past the mapping", fd, 4, 4 * hsize, 4, 0);
	CHECK(map_first_nonzero(p, 3 * hsize) < 0, "mapping is not zero");
	munmap(p, 3 * hsize);
	EXPECT_RET(file_punch(fd, 0, 4), 0);
	expect("punched", fd, 0, 4 * hsize, 0, 0);
}

static void t_resv_private(void)
{
	int fd = new_file();
	char *p;

	EXPECT_RET(ftruncate(fd, 2 * hsize), 0);
	p = mmap(NULL, 2 * hsize, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(p != MAP_FAILED, "mmap(MAP_PRIVATE): %s", strerror(errno));
	expect("mapped", fd, 0, 2 * hsize, 0, 2);
	EXPECT_RET(file_fill(fd, 0, 2), 0);
	expect("fallocated", fd, 2, 2 * hsize, 2, 2);
	CHECK(map_first_nonzero(p, 2 * hsize) < 0, "mapping is not zero");
	map_dirty(p, 2 * hsize);
	expect("copied on write", fd, 2, 2 * hsize, 4, 0);
	expect_zero("the file", fd, 0, 2);
	munmap(p, 2 * hsize);
	expect("unmapped", fd, 2, 2 * hsize, 2, 0);
}

/* What a private mapping of the file has reserved is its own, not for the file's fallocate. */
static void t_resv_private_kept(void)
{
	int fd = new_file();
	ssize_t bad;
	char *p;

	EXPECT_RET(ftruncate(fd, 2 * hsize), 0);
	p = mmap(NULL, 2 * hsize, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(p != MAP_FAILED, "mmap(MAP_PRIVATE): %s", strerror(errno));
	EXPECT_RET(file_fill(fd, 0, pool_pages), -ENOSPC);
	expect("all but two", fd, pool_pages - 2, 2 * hsize, pool_pages - 2, 2);
	bad = map_first_nonzero(p, 2 * hsize);
	CHECK(bad < 0, "mapping: not zero at %zd", bad);
	map_dirty(p, 2 * hsize);
	expect("copied on write", fd, pool_pages - 2, 2 * hsize, pool_pages, 0);
	expect_zero("the file", fd, 0, 2);
	EXPECT_RET(file_fill(fd, 0, pool_pages), -ENOSPC);
	expect("pool empty", fd, pool_pages - 2, 2 * hsize, pool_pages, 0);
	munmap(p, 2 * hsize);
	EXPECT_RET(file_fill(fd, 0, pool_pages), 0);
	expect("unmapped", fd, pool_pages, pool_pages * hsize, pool_pages, 0);
	expect_zero("what the mapping had", fd, pool_pages - 2, 2);
}

static void t_resv_noreserve(void)
{
	int fd = new_file();
	char *p;

	EXPECT_RET(ftruncate(fd, 2 * hsize), 0);
	p = mmap(NULL, 2 * hsize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	NEED(p != MAP_FAILED, "mmap(MAP_NORESERVE): %s", strerror(errno));
	expect("mapped", fd, 0, 2 * hsize, 0, 0);
	EXPECT_RET(file_fill(fd, 0, 2), 0);
	CHECK(map_first_nonzero(p, 2 * hsize) < 0, "mapping is not zero");
	p[0] = 1;
	expect("fallocated", fd, 2, 2 * hsize, 2, 0);
}

/* Pages that another mapping has reserved are not for fallocate to take. */
static void t_resv_others(void)
{
	int fd = huge_file(), owner = huge_file();
	char *p;
	long n;

	p = map_shared(owner, (pool_pages - 2) * hsize);
	expect("reserved", fd, 0, 0, 0, pool_pages - 2);
	EXPECT_RET(file_fill(fd, 0, 4), -ENOSPC);
	expect("two were free", fd, 2, 0, 2, pool_pages - 2);
	for (n = 0; n < pool_pages - 2; n++)
		p[n * hsize] = 1;
	expect("owner's pages", owner, pool_pages - 2, (pool_pages - 2) * hsize, pool_pages, 0);
}

static void t_surplus(void)
{
	char path[128];
	struct pool p;
	int fd;

	if (hsize > 2 << 20)
		SKIP("2M pages only: gigantic surplus pages need free contiguous memory");
	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", hsize >> 10,
		 "nr_overcommit_hugepages");
	NEED(write_str(path, "2"), "write(%s): %s", path, strerror(errno));
	fd = new_file();
	EXPECT_RET(file_fill(fd, 0, pool_pages + 2), 0);
	pool_read(&p);
	CHECK(p.surp == 2 && p.total == pool_pages + 2 && p.free == 0,
	      "Total %ld Free %ld Surp %ld", p.total, p.free, p.surp);
	expect_zero("with surplus", fd, 0, pool_pages + 2);
	EXPECT_RET(file_fill(fd, 0, pool_pages + 3), -ENOSPC);
	write_str(path, "0");
}

/* What depends on the size of a page comes first, and is all that is run with 1G. */
#define TESTS_1G	14

static const struct ktap_test tests[] = {
	{ "whole pool", t_whole_pool },
	{ "memfd and faults", t_memfd_and_faults },
	{ "unaligned range", t_unaligned },
	{ "same and overlapping ranges", t_twice },
	{ "pages with data are kept", t_keeps_data },
	{ "punched pages are refilled", t_punch_refill },
	{ "ENOSPC half way", t_enospc },
	{ "EINTR half way", t_eintr },
	{ "RLIMIT_FSIZE", t_rlimit },
	{ "size= mount limit", t_size_limit },
	{ "min_size= and size= mount", t_min_size },
	{ "reservation of a shared mapping", t_resv_shared },
	{ "reservation of a private mapping", t_resv_private },
	{ "reservation of another file", t_resv_others },
	{ "hole before the range", t_hole_before },
	{ "KEEP_SIZE", t_keep_size },
	{ "bad calls", t_bad_calls },
	{ "ENOSPC on a new file", t_enospc_new },
	{ "seals", t_seals },
	{ "size= mount over a small pool", t_size_mount },
	{ "min_size= mount", t_min_size_alone },
	{ "min_size= as large as size=", t_min_size_limit },
	{ "reservation of a private mapping is kept", t_resv_private_kept },
	{ "mapping without reservation", t_resv_noreserve },
	{ "surplus pages", t_surplus },
};

int main(int argc, char **argv)
{
	return huge_test_main(argc > 1 ? argv[1] : "2M", 64, tests, ARRAY_SIZE(tests),
			      TESTS_1G);
}
