// SPDX-License-Identifier: GPL-2.0
/*
 * fallocate(2) on hugetlbfs against everything that can meet it: faults, reads,
 * writes, holes, truncation, forks, pins, signals, reservations, other calls.
 * Usage: fallocate-race [2M|1G] [ROUNDS]
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
#include <linux/udmabuf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/ktap.h"

#define MAX_WORKERS	16

static struct pool start;
static long total;
static int rounds = 10;

/* What a round's processes share. */
struct round {
	int go, stop;
	int number;
	int fd;			/* the file that is raced for */
	long pages;		/* its pages */
};

static struct round *r;
static pid_t workers[MAX_WORKERS];
static int nr_workers;

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
			;
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

/* A new round on a file of @pages pages, of a pool that is full of non-zero data. */
static void begin(int number, int fd, long pages)
{
	pool_dirty();
	memset(r, 0, sizeof(*r));
	r->number = number;
	r->fd = fd;
	r->pages = pages;
	NEED(!ftruncate(fd, pages * hsize), "ftruncate(%ld pages): %s", pages, strerror(errno));
}

static int fill(int fd, long pages)
{
	return fallocate(fd, 0, 0, pages * hsize) ? -errno : 0;
}

static void check_full(int fd, long pages)
{
	struct pool p;

	pool_read(&p);
	CHECK(file_pages(fd) == pages, "round %d: file has %ld pages, %ld expected", r->number,
	      file_pages(fd), pages);
	CHECK(p.free == start.free - pages, "round %d: Free %ld, %ld expected", r->number, p.free,
	      start.free - pages);
	CHECK(p.resv == 0, "round %d: Rsvd %ld, 0 expected", r->number, p.resv);
}

static void check_zero(int fd, long pages)
{
	ssize_t bad = file_first_nonzero(fd, 0, pages * hsize, 1 << 20);

	CHECK(bad < 0, "round %d: not zero at %zd of page %zd", r->number, bad % (ssize_t)hsize,
	      bad / (ssize_t)hsize);
}

/* ---- workers: each goes on until it is told to stop ---- */

static void read_by_fault(unsigned int seed)
{
	char *p = map_shared(r->fd, r->pages * hsize);

	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		ssize_t bad = first_nonzero(p + n * hsize, hsize);

		CHECK(bad < 0, "round %d: fault saw non-zero at %zd of page %ld", r->number, bad, n);
	}
}

static void read_by_pread(unsigned int seed)
{
	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		ssize_t bad = file_first_nonzero(r->fd, n * hsize, hsize, 1 << 20);

		CHECK(bad < 0, "round %d: read saw non-zero at %zd of page %ld", r->number, bad, n);
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
static char *parent_map;

static void read_by_gup(unsigned int seed)
{
	static char buf[65536];

	while (!stopped()) {
		size_t off = rnd(&seed) % (r->pages * (hsize / sizeof(buf))) * sizeof(buf);
		struct iovec local = { buf, sizeof(buf) }, remote = { parent_map + off, sizeof(buf) };
		ssize_t n = process_vm_readv(getppid(), &local, 1, &remote, 1, 0);

		NEED(n == sizeof(buf), "process_vm_readv: %zd: %s", n, strerror(errno));
		CHECK(first_nonzero(buf, sizeof(buf)) < 0, "round %d: pinned read saw non-zero at %zu",
		      r->number, off);
	}
}

static size_t mark_at(int i)
{
	return i == 0 ? 0 : i == 1 ? hsize / 2 : hsize - 8;
}

/* Write marks into each page once, forward, backward or in between, by round. */
static void write_marks(unsigned int seed)
{
	char *p = map_shared(r->fd, r->pages * hsize);
	long i, n, shift = rnd(&seed) % r->pages;
	int m;

	for (i = 0; i < r->pages; i++) {
		n = r->number % 3 == 0 ? i : r->number % 3 == 1 ? r->pages - 1 - i :
		    (i + shift) % r->pages;
		for (m = 0; m < 3; m++)
			*(uint64_t *)(p + n * hsize + mark_at(m)) = n + 1;
	}
}

static void punch(unsigned int seed)
{
	while (!stopped()) {
		long n = rnd(&seed) % r->pages, len = 1 + rnd(&seed) % 4;

		CHECK(!fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, n * hsize,
				 len * hsize), "round %d: punch hole: %s", r->number, strerror(errno));
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
	char *p = map_shared(r->fd, r->pages * hsize);

	while (!stopped()) {
		long n = rnd(&seed) % r->pages;
		pid_t pid = fork();

		if (!pid) {
			CHECK(first_nonzero(p + n * hsize, hsize) < 0,
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
		ret = fill(r->fd, r->pages);
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
		CHECK(first_nonzero(reserved_map + n * hsize, 4096) < 0,
		      "round %d: reserved page %ld is not zero", r->number, n);
	}
}

/* Pin folios of the file through /dev/udmabuf, which finds or makes them without their lock. */
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
		CHECK(first_nonzero(p, hsize) < 0, "round %d: pinned page %ld is not zero",
		      r->number, n);
		munmap(p, hsize);
		close(buf);
	}
}

#define CPU1_ONLINE	"/sys/devices/system/cpu/cpu1/online"

static void plug_cpus(unsigned int seed)
{
	while (!stopped()) {
		NEED(write_str(CPU1_ONLINE, "0"), "write(" CPU1_ONLINE ", 0): %s", strerror(errno));
		usleep(rnd(&seed) % 3000);
		NEED(write_str(CPU1_ONLINE, "1"), "write(" CPU1_ONLINE ", 1): %s", strerror(errno));
	}
}

/* ---- tests ---- */

/* One fallocate of the whole pool per round, with two workers; then all pages are there and zero. */
static void race_readers(void (*fn1)(unsigned int), void (*fn2)(unsigned int))
{
	int i, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, total);
		spawn(fn1);
		spawn(fn2);
		go();
		ret = fill(fd, total);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		check_full(fd, total);
		check_zero(fd, total);
		close(fd);
	}
}

static void t_read(void) { race_readers(read_by_pread, read_tails); }
static void t_fault(void) { race_readers(read_by_fault, read_by_fault); }
static void t_mixed(void) { race_readers(read_by_fault, read_tails); }
static void t_fork(void) { race_readers(fork_readers, fork_readers); }
static void t_same_range(void) { race_readers(fill_again, fill_again); }

static void t_hotplug(void)
{
	if (read_long(CPU1_ONLINE) < 0)
		SKIP("no " CPU1_ONLINE);
	race_readers(plug_cpus, read_tails);
	write_str(CPU1_ONLINE, "1");
}

static void t_gup(void)
{
	int i, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, total);
		parent_map = map_shared(fd, total * hsize);
		spawn(read_by_gup);
		go();
		ret = fill(fd, total);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		munmap(parent_map, total * hsize);
		check_full(fd, total);
		check_zero(fd, total);
		close(fd);
	}
}

static void t_write(void)
{
	int i, m, ret, fd;
	uint64_t *mark;
	char *p;
	long n;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, total);
		spawn(write_marks);
		spawn(write_marks);
		go();
		ret = fill(fd, total);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		check_full(fd, total);
		p = map_shared(fd, total * hsize);
		for (n = 0; n < total; n++) {
			for (m = 0; m < 3; m++) {
				mark = (uint64_t *)(p + n * hsize + mark_at(m));
				CHECK(*mark == (uint64_t)n + 1, "round %d: page %ld lost what was written at %zu",
				      i, n, mark_at(m));
				*mark = 0;
			}
		}
		munmap(p, total * hsize);
		check_zero(fd, total);
		close(fd);
	}
}

static void race_shrinkers(void (*fn)(unsigned int))
{
	int i, k, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, total);
		spawn(fn);
		spawn(read_tails);
		go();
		for (k = 0; k < 3; k++) {
			ret = fill(fd, total);
			CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		}
		join(0);
		ret = fill(fd, total);
		CHECK(ret == 0, "round %d: last fallocate: %d", i, ret);
		check_full(fd, total);
		check_zero(fd, total);
		close(fd);
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
		begin(i, fd, total);
		spawn(signal_parent);
		spawn(read_tails);
		go();
		for (tries = 0; (ret = fill(fd, total)) == -EINTR && tries < 10000; tries++)
			;
		hits += tries;
		CHECK(ret == 0, "round %d: fallocate: %d after %d tries", i, ret, tries);
		join(0);
		check_full(fd, total);
		check_zero(fd, total);
		close(fd);
	}
	ktap_diag("%d interrupted calls in %d rounds", hits, rounds);
}

static int kill_fd;

static void fill_file(unsigned int seed)
{
	(void)seed;
	fill(kill_fd, total);
}

/* The process is killed half way: its pages stay a prefix of the file, all zero. */
static void t_killed(void)
{
	long long whole;
	int i, fd;
	pid_t pid;

	fd = huge_file();
	begin(0, fd, total);
	whole = now_us();
	fill(fd, total);
	whole = now_us() - whole;
	close(fd);
	for (i = 0; i < rounds; i++) {
		fd = kill_fd = huge_file();
		begin(i, fd, total);
		pid = spawn(fill_file);
		go();
		usleep(whole * (i % 8) / 8);
		kill(pid, SIGKILL);
		join(SIGKILL);
		check_full(fd, file_pages(fd));
		check_zero(fd, total);
		close(fd);
	}
}

/* Every page of the pool is reserved by a mapping of the file that fallocate fills. */
static void t_reserved_same(void)
{
	int i, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, total);
		reserved_pages = total;
		reserved_map = map_shared(fd, total * hsize);
		spawn(touch_reserved);
		spawn(touch_reserved);
		go();
		ret = fill(fd, total);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		munmap(reserved_map, total * hsize);
		check_full(fd, total);
		close(fd);
	}
}

/* All but two pages are reserved by another file's mapping: fallocate gets two, no one a SIGBUS. */
static void t_reserved_other(void)
{
	int i, ret, fd, owner;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, total);
		owner = huge_file();
		reserved_pages = total - 2;
		reserved_map = map_shared(owner, reserved_pages * hsize);
		spawn(touch_reserved);
		spawn(touch_reserved);
		go();
		ret = fill(fd, total);
		CHECK(ret == -ENOSPC, "round %d: fallocate: %d, -ENOSPC expected", i, ret);
		join(0);
		CHECK(file_pages(fd) == 2, "round %d: file has %ld pages, 2 expected", i, file_pages(fd));
		CHECK(file_pages(owner) == total - 2, "round %d: owner has %ld pages, %ld expected", i,
		      file_pages(owner), total - 2);
		munmap(reserved_map, reserved_pages * hsize);
		close(owner);
		close(fd);
	}
}

/* Two files that each want the whole pool: together they get it, and not a page is lost. */
static void t_two_files(void)
{
	int i, ret, fd;
	struct pool p;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, total);
		kill_fd = huge_file();
		spawn(fill_file);
		go();
		ret = fill(fd, total);
		CHECK(ret == 0 || ret == -ENOSPC, "round %d: fallocate: %d", i, ret);
		join(0);
		pool_read(&p);
		CHECK(file_pages(fd) + file_pages(kill_fd) == total && p.free == 0,
		      "round %d: files have %ld and %ld pages of %ld, %ld free", i, file_pages(fd),
		      file_pages(kill_fd), total, p.free);
		close(kill_fd);
		check_zero(fd, total);
		close(fd);
	}
}

static void t_pin(void)
{
	int i, ret, fd;

	if (access("/dev/udmabuf", R_OK | W_OK))
		SKIP("no /dev/udmabuf: %s", strerror(errno));
	for (i = 0; i < rounds; i++) {
		fd = huge_memfd();
		begin(i, fd, total);
		NEED(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "F_SEAL_SHRINK: %s", strerror(errno));
		spawn(pin_memfd);
		spawn(pin_memfd);
		go();
		ret = fill(fd, total);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		check_full(fd, total);
		check_zero(fd, total);
		close(fd);
	}
}

static const struct ktap_test tests[] = {
	{ "read while filling", t_read },
	{ "fault while filling", t_fault },
	{ "fault and read while filling", t_mixed },
	{ "write while filling", t_write },
	{ "get_user_pages while filling", t_gup },
	{ "memfd pin while filling", t_pin },
	{ "fork while filling", t_fork },
	{ "punch holes while filling", t_punch },
	{ "truncate while filling", t_truncate },
	{ "several calls on one range", t_same_range },
	{ "several files, one pool", t_two_files },
	{ "signals while filling", t_signals },
	{ "killed while filling", t_killed },
	{ "reserved by a mapping of the file", t_reserved_same },
	{ "reserved by a mapping of another file", t_reserved_other },
	{ "CPU hotplug while filling", t_hotplug },
};

static bool pool_is_back(void)
{
	struct pool p;
	int i;

	/* A killed process and a closed dma-buf give their pages back a moment later. */
	for (i = 0; i < 50; i++) {
		pool_read(&p);
		if (pool_equal(&p, &start))
			return true;
		usleep(20000);
	}
	ktap_diag("pool is not as before: Total %ld Free %ld Rsvd %ld Surp %ld", p.total, p.free,
		  p.resv, p.surp);
	return false;
}

int main(int argc, char **argv)
{
	const char *size = argc > 1 ? argv[1] : "2M";

	if (argc > 2)
		rounds = atoi(argv[2]);
	huge_init(size);
	pool_set_per_node(0);
	pool_set_per_node(hsize > 2 << 20 ? 4 / nr_nodes + (4 % nr_nodes != 0) : 24);
	pool_read(&start);
	total = start.total;
	if (total < 4 || start.free != total) {
		printf("KTAP version 1\n1..0 # SKIP pool of %s pages: %ld, %ld free; 4 needed\n", size,
		       total, start.free);
		return 0;
	}
	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED) {
		fprintf(stderr, "mmap(round): %s\n", strerror(errno));
		return 1;
	}
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]), pool_is_back);
}
