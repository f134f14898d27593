// SPDX-License-Identifier: GPL-2.0
/*
 * Growing and shrinking the pool at run time, by sysctl and sysfs, global, with
 * a memory policy, and for a node. Usage: pool-test [2M|1G]
 *
 * Nodes take turns, page by page, from call to call; one that is full is passed
 * over. Whoever allocates the pages, each node must end up with what that rule
 * gives it. Pages of 1G have just their own test, as there are too few of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/huge.h"
#include "lib/ktap.h"

#define CHILD		"pool"	/* a cgroup */
#define SYSCTL		"/proc/sys/vm/nr_hugepages"
#define HVO		"/proc/sys/vm/hugetlb_optimize_vmemmap"
#define MIN_FREE	"/proc/sys/vm/min_free_kbytes"
#define MANY		"18446744073709551615"

static void set_node(int i, long nr)
{
	NEED(pool_write(nodes[i], "nr_hugepages", nr), "node%d nr_hugepages=%ld: %s", nodes[i], nr,
	     strerror(errno));
}

static void set_total_by_policy(int mode, unsigned long mask, long nr)
{
	if (!mempolicy(mode, mask))
		SKIP("set_mempolicy(%d, %#lx): %s", mode, mask, strerror(errno));
	NEED(pool_write(-1, "nr_hugepages_mempolicy", nr), "nr_hugepages_mempolicy=%ld: %s", nr,
	     strerror(errno));
	mempolicy(MPOL_DEFAULT, 0);
}

/* As before all tests. The first of each test, too, in case another one failed. */
static void reset(void)
{
	int i;

	for (i = 0; i < nr_nodes; i++)
		set_node(i, pool_start.node_total[i]);
}

/* What can safely be had of a node, in huge pages, besides what is in the pool. */
static long room(int i)
{
	return node_free_kb(nodes[i]) / (long)(hsize >> 10) * 3 / 4;
}

static long least_room(void)
{
	long least = room(0);
	int i;

	for (i = 1; i < nr_nodes; i++)
		if (room(i) < least)
			least = room(i);
	return least;
}

/* All pages are free and on some node; returns the total. */
static long check_sums(const char *when)
{
	long total = 0, free = 0;
	struct pool p;
	int i;

	pool_read(&p);
	for (i = 0; i < nr_nodes; i++) {
		total += p.node_total[i];
		free += p.node_free[i];
	}
	CHECK(p.total == total && p.free == free && p.free == p.total && !p.resv && !p.surp,
	      "%s: Total %ld Free %ld Rsvd %ld Surp %ld; nodes have %ld, %ld of them free", when,
	      p.total, p.free, p.resv, p.surp, total, free);
	return p.total;
}

static void expect_total(const char *when, long nr)
{
	long total = check_sums(when);

	CHECK(total == nr, "%s: Total %ld, %ld expected", when, total, nr);
}

static void expect_nodes(const char *when, const long *want)
{
	struct pool p;
	int i;

	check_sums(when);
	pool_read(&p);
	for (i = 0; i < nr_nodes; i++)
		CHECK(p.node_total[i] == want[i], "%s: node%d has %ld pages, %ld expected", when,
		      nodes[i], p.node_total[i], want[i]);
}

/* ---- turns ---- */

static long want[MAX_NODES];	/* what each node must have */
static long want_total;
static int turn;		/* whose is the next page */

static void take_turns(long nr)
{
	want_total += nr;
	for (; nr; nr--) {
		want[turn]++;
		turn = (turn + 1) % nr_nodes;
	}
}

/* One page tells whose turn it was. */
static void learn_turn(void)
{
	struct pool before, after;
	int i;

	pool_read(&before);
	pool_set_total(before.total + 1);
	pool_read(&after);
	NEED(after.total == before.total + 1, "one page more: Total %ld -> %ld", before.total,
	     after.total);
	for (i = 0; i < nr_nodes; i++) {
		want[i] = after.node_total[i];
		if (want[i] != before.node_total[i])
			turn = (i + 1) % nr_nodes;
	}
	want_total = after.total;
}

/* They add up to less than 600; the larger ones are multiplied where there is room. */
static const int steps[] = { 1, 2, 3, 129, 5, 200, 64, 131, 1 };

static long step_unit(void)
{
	long unit = least_room() * nr_nodes / 600;

	return unit > 1 ? unit : 1;
}

static void t_turns(void)
{
	long unit;
	size_t i;

	reset();
	unit = step_unit();
	learn_turn();
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		long nr = steps[i] > 5 ? steps[i] * unit : steps[i];
		char when[32];

		take_turns(nr);
		pool_set_total(want_total);
		snprintf(when, sizeof(when), "%ld more", nr);
		expect_nodes(when, want);
	}
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		want_total -= steps[i];
		pool_set_total(want_total);
		expect_total("fewer", want_total);
	}
	reset();
}

/* The files of sysctl are those of the default size. */
static void t_sysctl(void)
{
	char text[32];

	reset();
	learn_turn();
	take_turns(201);
	snprintf(text, sizeof(text), "%ld", want_total);
	NEED(write_str(SYSCTL, text), "write(" SYSCTL ", %s): %s", text, strerror(errno));
	CHECK(read_long(SYSCTL) == want_total, SYSCTL ": %ld, %ld expected", read_long(SYSCTL),
	      want_total);
	expect_nodes("sysctl", want);
	reset();
}

static void t_node(void)
{
	long nr[MAX_NODES];
	int i;

	reset();
	for (i = nr_nodes - 1; i >= 0; i--) {
		long most = room(i);

		memcpy(nr, pool_start.node_total, sizeof(nr));
		nr[i] += 1;
		set_node(i, nr[i]);
		expect_nodes("one more on a node", nr);
		nr[i] = most;
		set_node(i, nr[i]);
		expect_nodes("many more on a node", nr);
		nr[i] = most / 3;
		set_node(i, nr[i]);
		expect_nodes("fewer on a node", nr);
		reset();
	}
}

static void t_bind(void)
{
	long nr[MAX_NODES];
	int i;

	reset();
	for (i = 0; i < nr_nodes; i++) {
		memcpy(nr, pool_start.node_total, sizeof(nr));
		nr[i] += 203;
		set_total_by_policy(MPOL_BIND, 1UL << nodes[i], pool_pages + 203);
		expect_nodes("bound", nr);
		nr[i] -= 101;
		set_total_by_policy(MPOL_BIND, 1UL << nodes[i], pool_pages + 102);
		expect_nodes("bound, fewer", nr);
		reset();
	}
}

static void t_interleave(void)
{
	unsigned long mask = 0;
	int i;

	reset();
	for (i = 0; i < nr_nodes; i++)
		mask |= 1UL << nodes[i];
	learn_turn();
	take_turns(333);
	set_total_by_policy(MPOL_INTERLEAVE, mask, want_total);
	expect_nodes("interleaved", want);
	/* It has no say in the other file. */
	mempolicy(MPOL_BIND, 1UL << nodes[0]);
	take_turns(200);
	pool_set_total(want_total);
	mempolicy(MPOL_DEFAULT, 0);
	expect_nodes("policy, but the file without", want);
	reset();
}

static pid_t start_child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	NEED(pid >= 0, "fork: %s", strerror(errno));
	return pid;
}

static void end_child(pid_t pid)
{
	int status;

	NEED(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	CHECK(!status, "child ended with %#x", status);
}

static void t_cpuset(void)
{
	long nr[MAX_NODES];
	char mems[16];

	if (nr_nodes < 2)
		SKIP("one node");
	reset();
	cgroup_make(CHILD, "cpuset");
	snprintf(mems, sizeof(mems), "%d", nodes[1]);
	cgroup_write(CHILD, "cpuset.mems", mems);
	cgroup_enter(CHILD);

	memcpy(nr, pool_start.node_total, sizeof(nr));
	nr[1] += 3;
	pool_set_total(pool_pages + 3);
	expect_nodes("3 more in a cpuset", nr);
	nr[1] += 200;
	pool_set_total(pool_pages + 203);
	expect_nodes("200 more in a cpuset", nr);
	set_node(0, pool_start.node_total[0] + 200);
	expect_nodes("another node than the cpuset's", nr);

	cgroup_remove(CHILD);
	reset();
}

/* The cpuset loses nodes while the pool grows: what they gave is counted once, and all comes to an end. */
static void t_cpuset_shrinks(void)
{
	long total, most = pool_pages + least_room() * nr_nodes;
	char all[16], one[16];
	long long us;
	int round;

	if (nr_nodes < 2)
		SKIP("one node");
	reset();
	us = now_us();
	pool_set_total(most);
	us = now_us() - us;
	expect_total("all nodes", most);
	snprintf(one, sizeof(one), "%d", nodes[0]);
	cgroup_make(CHILD, "cpuset");
	snprintf(all, sizeof(all), "0-%d", nodes[nr_nodes - 1]);
	for (round = 0; round < 8; round++) {
		pid_t pid;

		reset();
		cgroup_write(CHILD, "cpuset.mems", all);
		pid = start_child();
		if (!pid) {
			cgroup_enter(CHILD);
			pool_set_total(most);
			ktap_end_test();
		}
		usleep(us * (round + 1) / 10);
		cgroup_write(CHILD, "cpuset.mems", one);
		end_child(pid);
		total = check_sums("cpuset of one node");
		CHECK(total <= most, "Total %ld, %ld asked for", total, most);
	}
	cgroup_remove(CHILD);
	reset();
}

/* ---- less memory than asked for ---- */

static void expect_most(const char *when, int i, long safe)
{
	struct pool p;

	pool_read(&p);
	CHECK(p.node_total[i] - pool_start.node_total[i] >= safe,
	      "%s: node%d got %ld pages, where there were at least %ld", when, nodes[i],
	      p.node_total[i] - pool_start.node_total[i], safe);
}

static void t_node_too_few(void)
{
	struct pool p;
	long safe;
	int i, j;

	reset();
	for (i = 0; i < nr_nodes; i++) {
		safe = room(i);
		NEED(pool_write_text(nodes[i], "nr_hugepages", MANY), "node%d: %s", nodes[i],
		     strerror(errno));
		check_sums("all of a node");
		expect_most("all of a node", i, safe);
		pool_read(&p);
		for (j = 0; j < nr_nodes; j++)
			CHECK(j == i || p.node_total[j] == pool_start.node_total[j],
			      "all of node%d: node%d has %ld pages, %ld expected", nodes[i],
			      nodes[j], p.node_total[j], pool_start.node_total[j]);
		reset();
	}
}

/* A node that has few pages left gives them; the others share the rest in turn. */
static void t_one_node_full(void)
{
	struct pool a, b;
	long each, few = 48, got, least = -1, most = 0;
	int i;

	if (nr_nodes < 2)
		SKIP("one node");
	reset();
	each = least_room() / nr_nodes;
	set_node(0, pool_start.node_total[0] + room(0) * 4 / 3);
	pool_read(&a);
	set_node(0, a.node_total[0] - few);
	pool_read(&a);
	pool_set_total(a.total + each * nr_nodes);
	expect_total("a node is full", a.total + each * nr_nodes);
	pool_read(&b);
	for (i = 1; i < nr_nodes; i++) {
		got = b.node_total[i] - a.node_total[i];
		least = least < 0 || got < least ? got : least;
		most = got > most ? got : most;
	}
	got = b.node_total[0] - a.node_total[0];
	CHECK(most - least <= 1, "nodes with room got %ld to %ld pages", least, most);
	CHECK(got >= few / 2 && got < each && got < least,
	      "node%d, which was to be full, got %ld pages, the others %ld", nodes[0], got, least);
	reset();
}

/* Let the kernel keep @kb free, so that a test does not die for lack of memory. */
static long keep_free(long kb)
{
	long old = read_long(MIN_FREE);
	char text[32];

	snprintf(text, sizeof(text), "%ld", kb);
	NEED(write_str(MIN_FREE, text), "write(" MIN_FREE ", %s): %s", text, strerror(errno));
	return old;
}

static void t_all_too_few(void)
{
	long safe[MAX_NODES], total, kept;
	int i, round;

	/* The vmemmap optimization takes a page first to free seven, with GFP_KERNEL. */
	if (read_long(HVO) > 0)
		SKIP("the unpatched kernel may kill the task here, with " HVO);
	reset();
	for (i = 0; i < nr_nodes; i++)
		safe[i] = room(i);
	kept = keep_free(64 << 10);
	for (round = 0; round < 2; round++) {
		NEED(pool_write_text(-1, "nr_hugepages", MANY), "nr_hugepages: %s", strerror(errno));
		total = check_sums("all that there is");
		for (i = 0; i < nr_nodes; i++)
			expect_most("all that there is", i, safe[i]);
	}
	pool_set_total(total - 1);
	expect_total("one fewer", total - 1);
	reset();
	keep_free(kept);

	/* The turns go on after that. */
	learn_turn();
	take_turns(201);
	pool_set_total(want_total);
	expect_nodes("after all that there is", want);
	reset();
}

/* ---- signals, and others who want the same ---- */

/* No memory is lost, but for what may have been taken for other uses. Some comes back late. */
static void expect_free(long before_kb)
{
	long kb = free_kb();
	int tries;

	for (tries = 0; tries < 20 && kb <= before_kb - (32 << 10); tries++) {
		usleep(100000);
		kb = free_kb();
	}
	CHECK(kb > before_kb - (32 << 10), "%ld kB were free before, %ld kB after", before_kb, kb);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void t_signal(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	long start, most, total, fewest, limit, nr, kb;
	long long us;
	int round;

	reset();
	kb = free_kb();
	sigaction(SIGALRM, &sa, NULL);
	start = check_sums("before");
	fewest = nr = least_room() * nr_nodes;
	most = start + nr;
	us = now_us();
	pool_set_total(most);
	us = now_us() - us;
	expect_total("no signal", most);
	for (round = 1; round <= 16; round++) {
		long long after = us * (round % 8 + 1) / 16;
		struct itimerval off = {}, timer = {
			.it_value = { .tv_sec = after / 1000000, .tv_usec = after % 1000000 },
		};

		reset();
		setitimer(ITIMER_REAL, &timer, NULL);
		pool_set_total(most);
		setitimer(ITIMER_REAL, &off, NULL);
		total = check_sums("signal");
		CHECK(total > start && total <= most, "Total %ld, %ld asked for", total, most);
		if (total - start < fewest)
			fewest = total - start;
	}
	ktap_diag("%ld pages take %lld us; a signal left %ld", nr, us, fewest);
	/* The first ones come after a 16th, and on a busy host up to 200 ms late. */
	limit = nr / 8 + nr * 200000 / us;
	if (limit > nr * 3 / 4)
		limit = nr * 3 / 4;
	if (us < 40000)
		ktap_diag("too short for a timer: whether a signal ends it is not checked");
	else
		CHECK(fewest < limit, "no signal ended it before %ld of %ld pages", fewest, nr);
	/* What is missing is made up for. */
	pool_set_total(most);
	expect_total("again", most);
	reset();
	expect_free(kb);
}

static void t_two_nodes_at_once(void)
{
	long nr[MAX_NODES];
	pid_t pid;
	int round;

	if (nr_nodes < 2)
		SKIP("one node");
	for (round = 0; round < 10; round++) {
		reset();
		memcpy(nr, pool_start.node_total, sizeof(nr));
		nr[0] += 150 + round;
		nr[1] += 250 - round;
		pid = start_child();
		set_node(!pid, nr[!pid]);
		if (!pid)
			ktap_end_test();
		end_child(pid);
		expect_nodes("two nodes at once", nr);
	}
	reset();
}

static void t_global_and_node_at_once(void)
{
	struct pool p;
	pid_t pid;
	int round;

	for (round = 0; round < 10; round++) {
		reset();
		pid = start_child();
		if (!pid) {
			set_node(0, 150 + round);
			ktap_end_test();
		}
		pool_set_total(350 - round);
		end_child(pid);
		check_sums("all and one at once");
		pool_read(&p);
		/* Whoever comes last has the say. */
		CHECK(p.total == 350 - round || p.node_total[0] == 150 + round,
		      "all and one at once: Total %ld, node%d has %ld; %d or %d expected", p.total,
		      nodes[0], p.node_total[0], 350 - round, 150 + round);
	}
	reset();
}

/* ---- what becomes of the pages ---- */

static void t_use(void)
{
	long nr, kb;
	int fd;

	reset();
	kb = free_kb();
	nr = least_room() * nr_nodes;
	pool_set_total(pool_pages + nr);
	expect_total("grown", pool_pages + nr);
	/* No more than a gigabyte, which is a lot of the host's. */
	nr = nr < 512 ? nr : 512;
	fd = huge_file();
	CHECK(file_fill(fd, 0, nr) == 0, "fallocate of %ld pages: %s", nr, strerror(errno));
	CHECK(file_pages(fd) == nr, "file has %ld pages, %ld expected", file_pages(fd), nr);
	close(fd);
	reset();
	check_sums("back");
	expect_free(kb);
}

/* Surplus pages are the first to make a larger pool, and overcommit goes on above it. */
static void t_surplus(void)
{
	size_t len = (pool_pages + 4) * hsize;
	struct pool p;
	char *map;
	int fd;

	reset();
	NEED(pool_write(-1, "nr_overcommit_hugepages", 6), "nr_overcommit_hugepages: %s",
	     strerror(errno));
	fd = huge_memfd();
	NEED(!ftruncate(fd, len), "ftruncate(%zu): %s", len, strerror(errno));
	map = map_shared(fd, len);
	memset(map, 1, len);
	pool_read(&p);
	CHECK(p.surp == 4 && p.total == pool_pages + 4 && !p.free,
	      "overcommitted: Total %ld Free %ld Surp %ld", p.total, p.free, p.surp);
	pool_set_total(pool_pages + 200);
	pool_read(&p);
	CHECK(!p.surp && p.total == pool_pages + 200 && p.free == 196,
	      "grown: Total %ld Free %ld Surp %ld", p.total, p.free, p.surp);
	pool_set_total(pool_pages);
	pool_read(&p);
	CHECK(p.surp == 4 && p.total == pool_pages + 4 && !p.free,
	      "shrunk: Total %ld Free %ld Surp %ld", p.total, p.free, p.surp);
	munmap(map, len);
	close(fd);
	pool_write(-1, "nr_overcommit_hugepages", 0);
	reset();
	expect_total("surplus given back", pool_pages);
}

/* ---- pages of 1G ---- */

/* Up to three pages; the last must not take much longer than the first. */
static void gigantic_steps(int n)
{
	long nr[MAX_NODES], i;
	long long us, first_us = 0;

	memcpy(nr, pool_start.node_total, sizeof(nr));
	nr[n] = 0;
	set_node(n, 0);
	expect_nodes("none", nr);
	for (i = 1; i <= 3; i++) {
		us = now_us();
		set_node(n, i);
		us = now_us() - us;
		ktap_diag("node%d %ld -> %ld: %lld us", nodes[n], i - 1, i, us);
		nr[n] = i;
		expect_nodes("one more", nr);
		if (i == 1)
			first_us = us;
		CHECK(us < 10 * first_us + 100000, "page %ld took %lld us, the first %lld us", i, us,
		      first_us);
	}
	reset();
}

static void t_gigantic_node(void)
{
	int n;

	for (n = 0; n < nr_nodes; n++)
		gigantic_steps(n);
}

/* Fill most of a node with small pages and free every other one: what is free then is in pieces. */
static void fragment_node(int i)
{
	size_t off, len = (node_free_kb(nodes[i]) / 5 * 4) << 10;
	char *map;

	NEED(mempolicy(MPOL_BIND, 1UL << nodes[i]), "set_mempolicy: %s", strerror(errno));
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(map != MAP_FAILED, "mmap(%zu): %s", len, strerror(errno));
	madvise(map, len, MADV_NOHUGEPAGE);
	for (off = 0; off < len; off += SMALL_PAGE)
		map[off] = 1;
	for (off = 0; off < len; off += 2 * SMALL_PAGE)
		NEED(!madvise(map + off, SMALL_PAGE, MADV_DONTNEED), "madvise: %s", strerror(errno));
	mempolicy(MPOL_DEFAULT, 0);
}

/* What helpers find free is not enough: the rest has to be made free, on each node. */
static void t_compact(void)
{
	long total, whole = least_room(), nr = whole * 4 / 3 / 4;
	struct pool p;
	int i;

	if (nr_nodes * whole * hsize > 4UL << 30)
		SKIP("nodes are too large to fill them");
	for (i = 0; i < nr_nodes; i++)
		fragment_node(i);
	/* Of the memory, 20 % is free in whole huge pages, and 40 % in small ones; 25 % is asked for. */
	pool_set_total(pool_pages + nr * nr_nodes);
	total = check_sums("fragmented");
	pool_read(&p);
	/* How many cannot be had, and so fall to another node, is another number each time. */
	CHECK(total >= pool_pages + nr * nr_nodes * 19 / 20, "%ld of %ld pages were had",
	      total - pool_pages, nr * nr_nodes);
	for (i = 0; i < nr_nodes; i++)
		CHECK(p.node_total[i] - pool_start.node_total[i] >= nr * 3 / 4,
		      "node%d got %ld pages, about %ld expected", nodes[i],
		      p.node_total[i] - pool_start.node_total[i], nr);
	reset();
}

static const struct ktap_test tests[] = {
	{ "nodes take turns", t_turns },
	{ "sysctl", t_sysctl },
	{ "one node", t_node },
	{ "mempolicy: bind", t_bind },
	{ "mempolicy: interleave", t_interleave },
	{ "cpuset of one node", t_cpuset },
	{ "cpuset that shrinks", t_cpuset_shrinks },
	{ "more than a node has", t_node_too_few },
	{ "a node is full", t_one_node_full },
	{ "more than there is", t_all_too_few },
	{ "a signal", t_signal },
	{ "two nodes at once", t_two_nodes_at_once },
	{ "all and one node at once", t_global_and_node_at_once },
	{ "pages can be used and go back", t_use },
	{ "surplus pages", t_surplus },
	{ "memory has to be compacted", t_compact },
};

static const struct ktap_test gigantic_tests[] = {
	{ "one node, page by page", t_gigantic_node },
};

int main(int argc, char **argv)
{
	const char *size = argc > 1 ? argv[1] : "2M";

	if (!strcmp(size, "1G"))
		return huge_test_main(size, 0, gigantic_tests, ARRAY_SIZE(gigantic_tests),
				      ARRAY_SIZE(gigantic_tests));
	return huge_test_main(size, 2, tests, ARRAY_SIZE(tests), 0);
}
