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

static void check_zero(int fd, long pages)
{
	ssize_t bad = file_first_nonzero(fd, 0, pages * hsize, 1 << 20);

	CHECK(bad < 0, "round %d: not zero at %zd of page %zd", r->number, bad % (ssize_t)hsize,
	      bad / (ssize_t)hsize);
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
		ssize_t bad = first_nonzero(map + n * hsize, hsize);

		CHECK(bad < 0, "round %d: fault saw non-zero at %zd of page %ld", r->number, bad,
		      n);
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
			CHECK(first_nonzero(map + n * hsize, hsize) < 0,
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

/* Two workers against one fallocate of the whole pool; then all pages are there and zero. */
static void race_readers(void (*fn1)(unsigned int), void (*fn2)(unsigned int))
{
	int i, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		map_file(fd);
		spawn(fn1);
		spawn(fn2);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		munmap(map, pool_pages * hsize);
		check_full(fd, pool_pages);
		check_zero(fd, pool_pages);
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

	if (process_vm_readv(getpid(), NULL, 0, NULL, 0, 0) < 0)
		SKIP("process_vm_readv: %s", strerror(errno));
	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		map_file(fd);
		spawn(read_by_gup);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		munmap(map, pool_pages * hsize);
		check_full(fd, pool_pages);
		check_zero(fd, pool_pages);
		close(fd);
	}
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
		close(fd);
	}
}

static void race_shrinkers(void (*fn)(unsigned int))
{
	int i, k, ret, fd;

	for (i = 0; i < rounds; i++) {
		fd = huge_file();
		begin(i, fd, pool_pages);
		spawn(fn);
		spawn(read_tails);
		go();
		for (k = 0; k < 3; k++) {
			ret = file_fill(fd, 0, pool_pages);
			CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		}
		join(0);
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0, "round %d: last fallocate: %d", i, ret);
		check_full(fd, pool_pages);
		check_zero(fd, pool_pages);
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
		check_full(fd, pool_pages);
		check_zero(fd, pool_pages);
		close(fd);
	}
	ktap_diag("%d interrupted calls in %d rounds", hits, rounds);
}

static int kill_fd;

static void fill_file(unsigned int seed)
{
	(void)seed;
	file_fill(kill_fd, 0, pool_pages);
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
	close(fd);
	for (i = 0; i < rounds; i++) {
		fd = kill_fd = huge_file();
		begin(i, fd, pool_pages);
		pid = spawn(fill_file);
		go();
		usleep(whole * (i % 8) / 8);
		kill(pid, SIGKILL);
		join(SIGKILL);
		pages = file_pages(fd);
		check_full(fd, pages);
		check_zero(fd, pool_pages);
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
		check_full(fd, pool_pages);
		close(fd);
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
	for (i = 0; i < 10 * rounds; i++) {
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
		munmap(reserved_map, 2 * hsize);
		check_full(fd, pool_pages);
		ret = file_punch(fd, first, 2);
		NEED(ret == 0, "round %d: punch hole: %d", i, ret);
	}
	close(fd);
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
		begin(i, fd, pool_pages);
		kill_fd = huge_file();
		spawn(fill_file);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0 || ret == -ENOSPC, "round %d: fallocate: %d", i, ret);
		join(0);
		pool_read(&p);
		CHECK(file_pages(fd) + file_pages(kill_fd) == pool_pages && p.free == 0,
		      "round %d: files have %ld and %ld pages of %ld, %ld free", i, file_pages(fd),
		      file_pages(kill_fd), pool_pages, p.free);
		close(kill_fd);
		check_zero(fd, pool_pages);
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
		begin(i, fd, pool_pages);
		NEED(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), "F_SEAL_SHRINK: %s", strerror(errno));
		spawn(pin_memfd);
		spawn(pin_memfd);
		go();
		ret = file_fill(fd, 0, pool_pages);
		CHECK(ret == 0, "round %d: fallocate: %d", i, ret);
		join(0);
		check_full(fd, pool_pages);
		check_zero(fd, pool_pages);
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
	{ "reserved by a mapping, last pages", t_reserved_last },
	{ "reserved by a mapping of another file", t_reserved_other },
	{ "CPU hotplug while filling", t_hotplug },
};

int main(int argc, char **argv)
{
	if (argc > 2)
		rounds = atoi(argv[2]);
	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED) {
		fprintf(stderr, "mmap(round): %s\n", strerror(errno));
		return 1;
	}
	return huge_test_main(argc > 1 ? argv[1] : "2M", 24, tests, ARRAY_SIZE(tests));
}
