// SPDX-License-Identifier: GPL-2.0
/*
 * fallocate(2) on hugetlbfs against everything that can meet it: faults, reads,
 * writes, private copies, holes, truncation, forks, pins, migration, signals,
 * reservations, CPU hotplug, other calls.
 * Usage: fallocate-race [2M|1G] [ROUNDS] [WORD]
 *
 * WORD: only tests with this in their name.
 *
 * In each round workers (processes of their own) go at a file while fallocate
 * runs. What must hold: no one ever sees a byte that is not zero and that no one
 * wrote, what was written stays, no one gets a SIGBUS over a reserved page, and
 * the pool is whole again afterwards. The number of tests does not depend on
 * timing; a worker that never met the call makes a test weaker, not red.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/udmabuf.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/iommu.h"
#include "lib/ktap.h"

#define MAX_WORKERS	16

static int rounds = 10;

/* What a round's processes share. */
struct round {
	int go, stop;
	int met;		/* how often a worker did what it is there for */
	int number;
	int fd;			/* the file that is raced for */
	long pages;		/* its pages */
};

static struct round *r;
static pid_t workers[MAX_WORKERS];
static int nr_workers;

/* Of rounds that clear few pages there are more, but for pages that take long. */
static int short_rounds(void)
{
	return hsize >> 30 ? rounds : 10 * rounds;
}

static bool stopped(void)
{
	return __atomic_load_n(&r->stop, __ATOMIC_ACQUIRE);
}

static pid_t spawn(void (*fn)(unsigned int seed))
{
	pid_t pid = fork();

	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		while (!__atomic_load_n(&r->go, __ATOMIC_ACQUIRE))
			sched_yield();
		fn(r->number * MAX_WORKERS + nr_workers);
		ktap_end_test();
	}
	workers[nr_workers++] = pid;
	return pid;
}

static void go(void)
{
	__atomic_store_n(&r->go, 1, __ATOMIC_RELEASE);
}

/* Wait for the workers, after telling them to stop; none may have died of a signal but @sig. */
static void join(int sig)
{
	int status;

	__atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
	while (nr_workers) {
		nr_workers--;
		while (waitpid(workers[nr_workers], &status, 0) < 0 && errno == EINTR)
			;
		if (WIFSIGNALED(status))
			CHECK(WTERMSIG(status) == sig, "round %d: a worker got: %s", r->number,
			      strsignal(WTERMSIG(status)));
	}
}

/*
 * A new round on a file of @pages pages. The pool is full of non-zero data: main() fills it, and
 * each round gives its files back with finish().
 */
static void begin(int number, int fd, long pages)
{
	memset(r, 0, sizeof(*r));
	r->number = number;
	r->fd = fd;
	r->pages = pages;
	NEED(!ftruncate(fd, pages * hsize), "ftruncate(%ld pages): %s", pages, strerror(errno));
}

static void check_pages(int fd, long pages)
{
	CHECK(file_pages(fd) == pages, "round %d: file has %ld pages, %ld expected", r->number,
	      file_pages(fd), pages);
}

static void check_full(int fd, long pages)
{
	struct pool p;

	pool_read(&p);
	check_pages(fd, pages);
	CHECK(p.free == pool_pages - pages, "round %d: Free %ld, %ld expected", r->number, p.free,
	      pool_pages - pages);
	CHECK(p.resv == 0, "round %d: Rsvd %ld, 0 expected", r->number, p.resv);
}

/* The file's first @pages pages, which are there. */
static void check_zero(int fd, long pages)
{
	ssize_t bad = file_pages_nonzero(fd, pages);

	CHECK(bad < 0, "round %d: not zero at %zd of page %zd", r->number, bad % (ssize_t)hsize,
	      bad / (ssize_t)hsize);
}

static void finish(int fd)
{
	file_dirty(fd);
	close(fd);
}

/* What most rounds end with. */
static void finish_full(int fd)
{
	check_full(fd, r->pages);
	check_zero(fd, r->pages);
	finish(fd);
}

/*
 * The file mapped by the parent and so by all workers, in every other round without reservation.
 * It must be there before the race starts: mmap() waits for a fallocate of the same file.
 */
static char *map;

static void map_file(int fd)
{
	int flags = MAP_SHARED | (r->number % 2 ? MAP_NORESERVE : 0);

	map = mmap(NULL, r->pages * hsize, PROT_READ | PROT_WRITE, flags, fd, 0);
	NEED(map != MAP_FAILED, "mmap(%ld pages): %s", r->pages, strerror(errno));
}

/* ---- workers: each goes on until it is told to stop ---- */

static void read_by_fault(unsigned int seed)
{
	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		ssize_t bad = map_first_nonzero(map + n * hsize, hsize);

		CHECK(bad < 0, "round %d: fault saw non-zero at %zd of page %ld", r->number, bad,
		      n);
	}
}

static void read_by_pread(unsigned int seed)
{
	const size_t piece = 65536;

	while (!stopped()) {
		off_t from = rnd(&seed) % (r->pages * (hsize / piece)) * piece;
		ssize_t bad = file_first_nonzero(r->fd, from, piece, piece);

		CHECK(bad < 0, "round %d: read saw non-zero at %zd", r->number,
		      (ssize_t)from + bad);
	}
}

/* Follow the call as closely as possible: the last bytes of each page in turn, over and over. */
static void read_tails(unsigned int seed)
{
	uint64_t tail;
	long n;

	(void)seed;
	while (!stopped()) {
		for (n = 0; n < r->pages; n++) {
			if (pread(r->fd, &tail, 8, (n + 1) * hsize - 8) != 8)
				continue;	/* truncated away just now */
			CHECK(!tail, "round %d: read saw non-zero at the end of page %ld",
			      r->number, n);
		}
	}
}

/* get_user_pages() of another process's mapping, here of the parent's. */

static void read_by_gup(unsigned int seed)
{
	static char buf[65536];

	while (!stopped()) {
		size_t off = rnd(&seed) % (r->pages * (hsize / sizeof(buf))) * sizeof(buf);
		struct iovec local = { buf, sizeof(buf) };
		struct iovec remote = { map + off, sizeof(buf) };
		ssize_t n = process_vm_readv(getppid(), &local, 1, &remote, 1, 0);

		NEED(n == sizeof(buf), "process_vm_readv: %zd: %s", n, strerror(errno));
		CHECK(first_nonzero(buf, sizeof(buf)) < 0,
		      "round %d: pinned read saw non-zero at %zu", r->number, off);
	}
}

static size_t mark_at(int i)
{
	return i == 0 ? 0 : i == 1 ? hsize / 2 : hsize - 8;
}

/* Wait until the file has more than @n pages: page @n has been inserted just now. */
static void follow_to(long n)
{
	while (file_pages(r->fd) <= n && !stopped())
		;
}

/*
 * Write marks into each page once: right behind the call, backward, or from anywhere, by round.
 * Two writers share the pages, since a second mark would hide that the first was lost.
 */
static void write_marks(long first)
{
	long i, n, shift = r->number * 7 * 2;
	int m;

	for (i = first; i < r->pages; i += 2) {
		switch (r->number % 3) {
		case 0:
			n = i;
			follow_to(n);
			break;
		case 1:
			n = r->pages - 2 - i + 2 * first;
			break;
		default:
			n = (i + shift) % r->pages;
		}
		for (m = 0; m < 3; m++)
			*(uint64_t *)(map + n * hsize + mark_at(m)) = n + 1;
	}
}

static void write_even(unsigned int seed)
{
	(void)seed;
	write_marks(0);
}

static void write_odd(unsigned int seed)
{
	(void)seed;
	write_marks(1);
}

static void punch(unsigned int seed)
{
	while (!stopped()) {
		long n = rnd(&seed) % r->pages, len = 1 + rnd(&seed) % 4;

		int ret = file_punch(r->fd, n, len);

		CHECK(ret == 0, "round %d: punch hole: %d", r->number, ret);
	}
}

static void truncate_some(unsigned int seed)
{
	while (!stopped())
		CHECK(!ftruncate(r->fd, rnd(&seed) % (r->pages + 1) * hsize),
		      "round %d: ftruncate: %s", r->number, strerror(errno));
}

static void fork_readers(unsigned int seed)
{
	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		pid_t pid = fork();

		if (!pid) {
			CHECK(map_first_nonzero(map + n * hsize, hsize) < 0,
			      "round %d: forked process saw non-zero in page %ld", r->number, n);
			ktap_end_test();
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void fill_again(unsigned int seed)
{
	int ret;

	(void)seed;
	do {
		ret = file_fill(r->fd, 0, r->pages);
		CHECK(ret == 0, "round %d: concurrent fallocate: %d", r->number, ret);
	} while (!stopped());
}

static void signal_parent(unsigned int seed)
{
	while (!stopped()) {
		usleep(200 + rnd(&seed) % 3000);
		kill(getppid(), SIGUSR1);
	}
}

/* Touch each page of a mapping that the parent made and whose pages are reserved. */
static char *reserved_map;
static long reserved_pages;

static void touch_reserved(unsigned int seed)
{
	long i, n, shift = rnd(&seed) % reserved_pages;

	for (i = 0; i < reserved_pages; i++) {
		n = (i + shift) % reserved_pages;
		CHECK(map_first_nonzero(reserved_map + n * hsize, hsize) < 0,
		      "round %d: reserved page %ld is not zero", r->number, n);
	}
}

static void met(void)
{
	__atomic_fetch_add(&r->met, 1, __ATOMIC_RELAXED);
}

/* The last bytes of a folio that a pinner looks at: they are cleared late. */
#define PIN_BYTES	(64 << 10)

/* Have a device read the file. It takes no lock of the inode, and so may meet what is being cleared. */
static void pin_iommu(unsigned int seed)
{
	static uint64_t buf[PIN_BYTES / sizeof(uint64_t)];
	struct iommu iommu;

	NEED(iommu_open(&iommu, r->fd, r->pages * hsize), "iommufd: %s", strerror(errno));
	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		ssize_t bad;

		if (!iommu_read(&iommu, (n + 1) * hsize - PIN_BYTES, buf, PIN_BYTES)) {
			/*
			 * Any kernel's: a page that was not there when it was looked for, and that
			 * someone else has added before memfd_alloc_folio() got the last one.
			 */
			NEED(errno == ENOMEM, "IOMMU_TEST_OP_ACCESS_RW(page %ld): %s", n,
			     strerror(errno));
			continue;
		}
		bad = first_nonzero(buf, PIN_BYTES);
		CHECK(bad < 0, "round %d: a device read non-zero in page %ld, %zd bytes from its end",
		      r->number, n, PIN_BYTES - bad);
		met();
	}
}

/*
 * Pin folios of the file through /dev/udmabuf. It takes the inode's lock for that, so it waits
 * for whole calls and meets no folio that is being cleared.
 */
static void pin_memfd(unsigned int seed)
{
	int dev = open("/dev/udmabuf", O_RDWR);

	NEED(dev >= 0, "open(/dev/udmabuf): %s", strerror(errno));
	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		struct udmabuf_create c = { .memfd = r->fd, .offset = n * hsize, .size = hsize };
		int buf = ioctl(dev, UDMABUF_CREATE, &c);
		char *p;

		NEED(buf >= 0, "UDMABUF_CREATE(page %ld): %s", n, strerror(errno));
		p = mmap(NULL, hsize, PROT_READ, MAP_SHARED, buf, 0);
		NEED(p != MAP_FAILED, "mmap(udmabuf): %s", strerror(errno));
		CHECK(map_first_nonzero(p, hsize) < 0, "round %d: pinned page %ld is not zero",
		      r->number, n);
		munmap(p, hsize);
		close(buf);
		met();
	}
}

/*
 * Read and write pages of private mappings, which see the file's until they write. Each worker has
 * one page of its own at most, for which the round leaves one free.
 */
static void write_private(unsigned int seed)
{
	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		bool first = rnd(&seed) % 2;
		ssize_t bad;
		char *p;

		p = mmap(NULL, hsize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, r->fd,
			 n * hsize);
		NEED(p != MAP_FAILED, "round %d: mmap(MAP_PRIVATE): %s", r->number,
		     strerror(errno));
		if (first)
			*(volatile char *)p = 0;
		bad = map_first_nonzero(p, hsize);
		CHECK(bad < 0, "round %d: private mapping saw non-zero at %zd of page %ld",
		      r->number, bad, n);
		map_dirty(p, hsize);
		munmap(p, hsize);
		met();
	}
}

static int node_at(unsigned int i)
{
	return nodes[i % nr_nodes];
}

/* Migrate single pages, but for those that are not there yet or that someone else migrates. */
static void move_pages(unsigned int seed)
{
	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		void *page = map + n * hsize;
		int to = node_at(rnd(&seed)), status = -1;
		long ret;

		if (rnd(&seed) % 2)
			*(volatile char *)page;
		ret = syscall(SYS_move_pages, 0, 1UL, &page, &to, &status, MPOL_MF_MOVE_ALL);
		CHECK(ret >= 0, "round %d: move_pages(page %ld, node%d): %s", r->number, n, to,
		      strerror(errno));
		if (status == to)
			met();
	}
}

/* Migrate all that is there, and bind what is to come. */
static void mbind_all(unsigned int seed)
{
	while (!stopped()) {
		unsigned long mask = 1UL << node_at(rnd(&seed));
		long ret = syscall(SYS_mbind, map, r->pages * hsize, MPOL_BIND, &mask, 64,
				   MPOL_MF_MOVE_ALL);

		CHECK(ret >= 0, "round %d: mbind(nodes %#lx): %s", r->number, mask,
		      strerror(errno));
		if (!ret)
			met();
	}
}

#define CPU1_ONLINE	"/sys/devices/system/cpu/cpu1/online"

static void plug_cpus(unsigned int seed)
{
	while (!stopped()) {
		NEED(write_str(CPU1_ONLINE, "0"), "write(" CPU1_ONLINE ", 0): %s", strerror(errno));
		usleep(rnd(&seed) % 3000);
		NEED(write_str(CPU1_ONLINE, "1"), "write(" CPU1_ONLINE ", 1): %s", strerror(errno));
		met();
	}
}

/* ---- tests ---- */

/* Two workers against one fallocate of @pages pages; then all are there and zero. */
static void race_on(long pages, void (*fn1)(unsigned int), void (*fn2)(unsigned int))
{
	int i, ret, all = 0, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pages);
		map_file(fd);
		spawn(fn1);
		spawn(fn2);
		go();
		ret = file_fill(fd, 0, pages);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		all += r->met;
		munmap(map, pages * hsize);
		finish_full(fd);
	}
	if (all)
		ktap_diag("%d hits in %d rounds", all, rounds);
}

static void race_readers(void (*fn1)(unsigned int), void (*fn2)(unsigned int))
{
	race_on(pool_pages, fn1, fn2);
}

static void t_read(void) { race_readers(read_by_pread, read_tails); }
static void t_fault(void) { race_readers(read_by_fault, read_by_fault); }
static void t_mixed(void) { race_readers(read_by_fault, read_tails); }
static void t_fork(void) { race_readers(fork_readers, fork_readers); }
static void t_same_range(void) { race_readers(fill_again, fill_again); }

static void t_private(void) { race_on(pool_pages - 2, write_private, write_private); }

/* No more pages than a node has, so that each finds room where it is sent. */
static void race_migration(void (*fn)(unsigned int), void (*fn2)(unsigned int))
{
	if (nr_nodes < 2)
		SKIP("one node with memory, two needed");
	race_on(pool_start.node_total[0], fn, fn2);
}

static void t_move(void) { race_migration(move_pages, read_by_fault); }
static void t_two_moves(void) { race_migration(move_pages, move_pages); }
static void t_mbind(void) { race_migration(mbind_all, read_tails); }

/* A page that is punched out while someone reads it comes back late: so many are left free. */
#define LATE	2

/* Taking a CPU away takes longer than a call: fill until one has gone and come three times. */
static void t_hotplug(void)
{
	const long pages = pool_pages - LATE;
	int i, ret, calls = 0, fd;

	if (read_long(CPU1_ONLINE) < 0)
		SKIP("no " CPU1_ONLINE);
	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pages);
		spawn(plug_cpus);
		spawn(read_tails);
		go();
		for (;;) {
			ret = file_fill(fd, 0, pages);
			NEED(ret == 0, "round %d: fallocate: %d", i, ret);
			calls++;
			if (__atomic_load_n(&r->met, __ATOMIC_RELAXED) >= 3)
				break;
			check_pages(fd, pages);
			NEED(file_punch(fd, 0, pages) == 0, "round %d: punch hole: %s", i,
			     strerror(errno));
		}
		join(0);
		finish_full(fd);
	}
	write_str(CPU1_ONLINE, "1");
	ktap_diag("%d calls in %d rounds", calls, rounds);
}

static void t_gup(void)
{
	if (process_vm_readv(getpid(), NULL, 0, NULL, 0, 0) < 0)
		SKIP("process_vm_readv: %s", strerror(errno));
	race_readers(read_by_gup, read_by_gup);
}

static void t_write(void)
{
	int i, m, ret, fd;
	uint64_t *mark;
	long n;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		map_file(fd);
		spawn(write_even);
		spawn(write_odd);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		check_full(fd, pool_pages);
		for (n = 0; n < pool_pages; n++) {
			for (m = 0; m < 3; m++) {
				mark = (uint64_t *)(map + n * hsize + mark_at(m));
				CHECK(*mark == (uint64_t)n + 1,
				      "round %d: page %ld lost what was written at %zu", i, n,
				      mark_at(m));
				*mark = 0;
			}
		}
		munmap(map, pool_pages * hsize);
		check_zero(fd, pool_pages);
		finish(fd);
	}
}

static void race_shrinkers(void (*fn)(unsigned int))
{
	const long pages = pool_pages - LATE;
	int i, k, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pages);
		spawn(fn);
		spawn(read_tails);
		go();
		for (k = 0; k < 3; k++) {
			ret = file_fill(fd, 0, pages);
			CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		}
		join(0);
		ret = file_fill(fd, 0, pages);
		CHECK(ret == 0, "round %d: last fallocate: %d", i, ret);
		finish_full(fd);
	}
}

static void t_punch(void) { race_shrinkers(punch); }
static void t_truncate(void) { race_shrinkers(truncate_some); }

static void on_signal(int sig)
{
	(void)sig;
}

static void t_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int i, ret, tries, hits = 0, fd;

	sigaction(SIGUSR1, &sa, NULL);
	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		spawn(signal_parent);
		spawn(read_tails);
		go();
		tries = 0;
		while ((ret = file_fill(fd, 0, pool_pages)) == -EINTR && tries < 10000)
			tries++;
		hits += tries;
		CHECK(ret == 0, "round %d: fallocate: %d after %d tries", i, ret, tries);
		join(0);
		finish_full(fd);
	}
	ktap_diag("%d interrupted calls in %d rounds", hits, rounds);
}

static int other_fd;

static void fill_file(unsigned int seed)
{
	(void)seed;
	file_fill(other_fd, 0, pool_pages);
}

/* The process is killed half way: its pages stay a prefix of the file, all zero. */
static void t_killed(void)
{
	bool *present = calloc(pool_pages, sizeof(bool));
	long n, pages;
	long long whole;
	int i, fd;
	pid_t pid;

	fd = huge_file();
	begin(0, fd, pool_pages);
	whole = now_us();
	file_fill(fd, 0, pool_pages);
	whole = now_us() - whole;
	finish(fd);
	for (i = 0; i < rounds; i++) {
		fd = other_fd = huge_file();
		begin(i, fd, pool_pages);
		pid = spawn(fill_file);
		go();
		usleep(whole * (i % 8) / 8);
		kill(pid, SIGKILL);
		join(SIGKILL);
		pages = file_pages(fd);
		check_full(fd, pages);
		check_zero(fd, pages);
		file_dirty(fd);
		file_punch_map(fd, pool_pages, present);
		for (n = 0; n < pool_pages; n++)
			CHECK(present[n] == (n < pages),
			      "round %d: %ld pages, page %ld present: %d", i, pages, n, present[n]);
		close(fd);
	}
}

/* Every page of the pool is reserved by a mapping of the file that fallocate fills. */
static void t_reserved_same(void)
{
	int i, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		reserved_pages = pool_pages;
		reserved_map = map_shared(fd, pool_pages * hsize);
		spawn(touch_reserved);
		spawn(touch_reserved);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		munmap(reserved_map, pool_pages * hsize);
		finish_full(fd);
	}
}

/*
 * The last two pages of the pool are reserved by a mapping. Two faults and fallocate want both: a
 * call that takes a second page for an index, if only for a moment, makes one fault a SIGBUS.
 */
static void touch_upwards(unsigned int seed)
{
	(void)seed;
	*(volatile char *)reserved_map;
	*(volatile char *)(reserved_map + hsize);
}

static void touch_downwards(unsigned int seed)
{
	(void)seed;
	*(volatile char *)(reserved_map + hsize);
	*(volatile char *)reserved_map;
}

static void t_reserved_last(void)
{
	long first = pool_pages - 2;
	int i, ret, fd = huge_file();

	begin(0, fd, pool_pages);
	ret = file_fill(fd, 0, first);
	NEED(ret == 0, "fallocate of all but two pages: %d", ret);
	for (i = 0; i < short_rounds(); i++) {
		r->number = i;
		r->go = r->stop = 0;
		reserved_map = mmap(NULL, 2 * hsize, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    first * hsize);
		NEED(reserved_map != MAP_FAILED, "round %d: mmap: %s", i, strerror(errno));
		spawn(touch_upwards);
		spawn(touch_downwards);
		go();
		ret = file_fill(fd, first, 2);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		check_full(fd, pool_pages);
		CHECK(map_first_nonzero(reserved_map, 2 * hsize) < 0,
		      "round %d: reserved pages are not zero", i);
		map_dirty(reserved_map, 2 * hsize);
		munmap(reserved_map, 2 * hsize);
		ret = file_punch(fd, first, 2);
		NEED(ret == 0, "round %d: punch hole: %d", i, ret);
	}
	finish(fd);
}

/* One page is free and three want it for the same index of a file: all are served by it. */
static void touch_last(unsigned int seed)
{
	(void)seed;
	*(volatile char *)(map + (pool_pages - 1) * hsize);
}

static void fill_last(unsigned int seed)
{
	int ret = file_fill(r->fd, pool_pages - 1, 1);

	(void)seed;
	CHECK(ret == 0, "round %d: second fallocate of the last page: %d", r->number, ret);
}

static void t_last_page(void)
{
	int i, ret, fd = huge_file();

	begin(0, fd, pool_pages);
	ret = file_fill(fd, 0, pool_pages - 1);
	NEED(ret == 0, "fallocate of all but one page: %d", ret);
	map = mmap(NULL, pool_pages * hsize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		   0);
	NEED(map != MAP_FAILED, "mmap(MAP_NORESERVE): %s", strerror(errno));
	for (i = 0; i < short_rounds(); i++) {
		r->number = i;
		r->go = r->stop = 0;
		spawn(touch_last);
		spawn(fill_last);
		go();
		ret = file_fill(fd, pool_pages - 1, 1);
		CHECK(ret == 0, "round %d: fallocate of the last page: %d", i, ret);
		join(0);
		check_full(fd, pool_pages);
		CHECK(map_first_nonzero(map + (pool_pages - 1) * hsize, hsize) < 0,
		      "round %d: last page is not zero", i);
		map_dirty(map + (pool_pages - 1) * hsize, hsize);
		ret = file_punch(fd, pool_pages - 1, 1);
		NEED(ret == 0, "round %d: punch hole: %d", i, ret);
	}
	munmap(map, pool_pages * hsize);
	finish(fd);
}

/* One page is free and two files want it: one of them gets it. */
static void fill_one(unsigned int seed)
{
	int ret = file_fill(other_fd, 0, 1);

	(void)seed;
	CHECK(ret == 0 || ret == -ENOSPC, "round %d: fallocate of the other: %d", r->number, ret);
}

static void t_last_page_two_files(void)
{
	int i, ret, fd, rest = huge_file();
	long other;

	begin(0, rest, pool_pages);
	ret = file_fill(rest, 0, pool_pages - 1);
	NEED(ret == 0, "fallocate of all but one page: %d", ret);
	for (i = 0; i < short_rounds(); i++) {
		fd = huge_file();
		other_fd = huge_file();
		r->number = i;
		r->go = r->stop = 0;
		spawn(fill_one);
		go();
		ret = file_fill(fd, 0, 1);
		join(0);
		other = file_pages(other_fd);
		CHECK((ret == 0 && !other) || (ret == -ENOSPC && other == 1),
		      "round %d: fallocate: %d, the other file has %ld pages", i, ret, other);
		CHECK(file_pages(fd) == (ret == 0), "round %d: fallocate: %d, file has %ld pages",
		      i, ret, file_pages(fd));
		check_zero(fd, file_pages(fd));
		check_zero(other_fd, other);
		finish(other_fd);
		finish(fd);
	}
	finish(rest);
}

/* All but two pages are reserved by another file's mapping: fallocate gets two, no one a SIGBUS. */
static void t_reserved_other(void)
{
	int i, ret, fd, owner;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		owner = huge_file();
		reserved_pages = pool_pages - 2;
		reserved_map = map_shared(owner, reserved_pages * hsize);
		spawn(touch_reserved);
		spawn(touch_reserved);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == -ENOSPC, "round %d: fallocate: %d, -ENOSPC expected", i, ret);
		join(0);
		check_pages(fd, 2);
		check_pages(owner, pool_pages - 2);
		munmap(reserved_map, reserved_pages * hsize);
		finish(owner);
		check_zero(fd, 2);
		finish(fd);
	}
}

/* Two files that each want the whole pool: together they get it, and not a page is lost. */
static void t_two_files(void)
{
	int i, ret, fd;
	struct pool p;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		other_fd = huge_file();
		spawn(fill_file);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0 || ret == -ENOSPC, "round %d: fallocate: %d", i, ret);
		join(0);
		pool_read(&p);
		CHECK(file_pages(fd) + file_pages(other_fd) == pool_pages && p.free == 0,
		      "round %d: files have %ld and %ld pages of %ld, %ld free", i, file_pages(fd),
		      file_pages(other_fd), pool_pages, p.free);
		check_zero(fd, file_pages(fd));
		check_zero(other_fd, file_pages(other_fd));
		finish(other_fd);
		finish(fd);
	}
}

static void race_pin(const char *name, void (*pin)(unsigned int seed))
{
	int i, ret, fd, all = 0;

	for (i = 0; i < rounds; i++) {
		/* What was anonymous memory comes from the pool as if it were cleared. */
		pool_dirty();
		fd = huge_memfd();
		begin(i, fd, pool_pages);
		NEED(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "F_SEAL_SHRINK: %s", strerror(errno));
		spawn(pin);
		spawn(pin);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		all += r->met;
		finish_full(fd);
	}
	ktap_diag("%d pins in %d rounds by %s", all, rounds, name);
}

/* With a device where the kernel has one, else with the other user of memfd_pin_folios(). */
static void t_pin(void)
{
	if (iommu_present()) {
		race_pin("iommufd", pin_iommu);
		return;
	}
	if (access("/dev/udmabuf", R_OK | W_OK))
		SKIP("no /dev/udmabuf: %s", strerror(errno));
	race_pin("udmabuf", pin_memfd);
}

/* What depends on the size of a page comes first, and is all that is run with 1G. */
#define TESTS_1G	10

static const struct ktap_test tests[] = {
	{ "fault and read while filling", t_mixed },
	{ "write while filling", t_write },
	{ "memfd pin while filling", t_pin },
	{ "private mappings while filling", t_private },
	{ "move_pages and faults while filling", t_move },
	{ "several calls on one range", t_same_range },
	{ "killed while filling", t_killed },
	{ "reserved by a mapping of the file", t_reserved_same },
	{ "reserved by a mapping, last pages", t_reserved_last },
	{ "last page, one index", t_last_page },
	{ "get_user_pages while filling", t_gup },
	{ "punch holes while filling", t_punch },
	{ "signals while filling", t_signals },
	{ "CPU hotplug while filling", t_hotplug },
	{ "read while filling", t_read },
	{ "fault while filling", t_fault },
	{ "two move_pages while filling", t_two_moves },
	{ "mbind while filling", t_mbind },
	{ "fork while filling", t_fork },
	{ "truncate while filling", t_truncate },
	{ "several files, one pool", t_two_files },
	{ "reserved by a mapping of another file", t_reserved_other },
	{ "last page, two files", t_last_page_two_files },
};

int main(int argc, char **argv)
{
	const char *size = argc > 1 ? argv[1] : "2M";
	static struct ktap_test chosen[ARRAY_SIZE(tests)];
	int i, nr = 0, nr_1g = 0;

	if (argc > 2)
		rounds = atoi(argv[2]);
	for (i = 0; i < (int)ARRAY_SIZE(tests); i++) {
		if (argc > 3 && !strstr(tests[i].name, argv[3]))
			continue;
		chosen[nr++] = tests[i];
		nr_1g += i < TESTS_1G;
	}
	if (!nr) {
		fprintf(stderr, "no test has \"%s\" in its name\n", argv[3]);
		return 2;
	}
	ktap_seconds += rounds;
	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED) {
		fprintf(stderr, "mmap(round): %s\n", strerror(errno));
		return 1;
	}
	return huge_test_main(size, 8, chosen, nr, nr_1g);
}
