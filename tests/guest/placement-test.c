// SPDX-License-Identifier: GPL-2.0
/*
 * Which nodes' pages fallocate(2) on hugetlbfs takes: memory policies and cpusets
 * of the caller. Usage: placement-test [2M|1G]
 *
 * Each of them hangs on the calling task, so helpers that allocate in its stead
 * would get them wrong. Needs two nodes with memory and cgroup2 on
 * /sys/fs/cgroup; what is missing is skipped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/huge.h"
#include "lib/ktap.h"

#define CHILD		"placement"
#define MPOL_WEIGHTED	6	/* MPOL_WEIGHTED_INTERLEAVE, newer than some headers */

static long per_node;	/* pages of each of the two */

static void need_two_nodes(void)
{
	if (nr_nodes != 2)
		SKIP("%d nodes with memory, 2 needed", nr_nodes);
	per_node = pool_start.node_total[0];
}

/* Mask of the two nodes' bits: 1 is the first, 2 the second. */
static void set_policy(int mode, int which)
{
	unsigned long mask = 0;

	if (which & 1)
		mask |= 1UL << nodes[0];
	if (which & 2)
		mask |= 1UL << nodes[1];
	if (!mempolicy(mode, mask)) {
		if (errno == EINVAL)
			SKIP("set_mempolicy(%d): %s", mode, strerror(errno));
		NEED(0, "set_mempolicy(%d, %#lx): %s", mode, mask, strerror(errno));
	}
}

static void expect_taken(const char *what, long first, long second)
{
	long a, b;
	struct pool p;

	pool_read(&p);
	a = pool_start.node_free[0] - p.node_free[0];
	b = pool_start.node_free[1] - p.node_free[1];
	CHECK(a == first && b == second, "%s: node%d gave %ld, node%d %ld; %ld and %ld expected",
	      what, nodes[0], a, nodes[1], b, first, second);
}

static void expect_pages(int fd, long pages)
{
	CHECK(file_pages(fd) == pages, "file has %ld pages, %ld expected", file_pages(fd), pages);
}

/* Node of page @n of a mapping, as move_pages() tells it. */
static int node_of(char *map, long n)
{
	void *page = map + n * hsize;
	int status = -1;

	*(volatile char *)page;
	NEED(!syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0), "move_pages: %s",
	     strerror(errno));
	return status;
}

static int move_to(char *map, long n, int nid)
{
	void *page = map + n * hsize;
	int status = -1;

	if (syscall(SYS_move_pages, 0, 1UL, &page, &nid, &status, MPOL_MF_MOVE))
		return -errno;
	return status;
}

static void t_local(void)
{
	int fd;

	need_two_nodes();
	pin_to_cpu(0);
	fd = huge_file();
	CHECK(file_fill(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("a node's worth", per_node, 0);
	CHECK(file_fill(fd, 0, per_node + 1) == 0, "fallocate: %s", strerror(errno));
	expect_taken("one more", per_node, 1);
}

static void t_interleave(void)
{
	char *map;
	long n;
	int fd;

	need_two_nodes();
	set_policy(MPOL_INTERLEAVE, 3);
	fd = huge_file();
	CHECK(file_fill(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("interleave", per_node / 2, per_node / 2);
	map = map_shared(fd, per_node * hsize);
	for (n = 1; n < per_node; n++)
		CHECK(node_of(map, n) != node_of(map, n - 1),
		      "pages %ld and %ld are both on node%d", n - 1, n, node_of(map, n));
	CHECK(file_fill(fd, 0, 2 * per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("all", per_node, per_node);
}

#define WEIGHTS	"/sys/kernel/mm/mempolicy/weighted_interleave"

static void set_weight(int nid, const char *weight)
{
	char path[96];

	snprintf(path, sizeof(path), WEIGHTS "/node%d", nid);
	NEED(write_str(path, weight), "write(%s, %s): %s", path, weight, strerror(errno));
}

/* Which node a page comes from goes by its index in the file. */
static void t_weighted(void)
{
	char *map;
	long n;
	int fd;

	need_two_nodes();
	set_policy(MPOL_WEIGHTED, 3);
	fd = huge_file();
	CHECK(file_fill(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("weights of one", per_node / 2, per_node / 2);
	NEED(file_punch(fd, 0, per_node) == 0, "punch hole: %s", strerror(errno));
	if (access(WEIGHTS, F_OK))
		SKIP("no " WEIGHTS);
	set_weight(nodes[0], "1");
	set_weight(nodes[1], per_node > 2 ? "3" : "2");
	CHECK(file_fill(fd, 1, per_node) == 0, "fallocate: %s", strerror(errno));
	write_str(WEIGHTS "/auto", "1");
	map = map_shared(fd, (per_node + 1) * hsize);
	for (n = 1; n <= per_node; n++) {
		int node = nodes[n % (per_node > 2 ? 4 : 3) != 0];

		CHECK(node_of(map, n) == node, "page %ld is on node%d, node%d expected", n,
		      node_of(map, n), node);
	}
}

static void bind_enospc(int which)
{
	int fd, ret;

	need_two_nodes();
	set_policy(MPOL_BIND, 1 << which);
	fd = huge_file();
	ret = file_fill(fd, 0, per_node + 2);
	CHECK(ret == -ENOSPC, "fallocate: %d, -ENOSPC expected", ret);
	expect_taken("bind", which ? 0 : per_node, which ? per_node : 0);
	expect_pages(fd, per_node);
	CHECK(file_size(fd) == 0, "i_size %lld, 0 expected", (long long)file_size(fd));
}

static void t_bind_first(void) { bind_enospc(0); }
static void t_bind_second(void) { bind_enospc(1); }

static void t_preferred(void)
{
	int fd;

	need_two_nodes();
	set_policy(MPOL_PREFERRED, 2);
	fd = huge_file();
	CHECK(file_fill(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("preferred", 0, per_node);
	CHECK(file_fill(fd, 0, per_node + 1) == 0, "fallocate: %s", strerror(errno));
	expect_taken("overflow", 1, per_node);
}

/* A policy of the file's mapping does not count: the call goes by the caller's. */
static void t_mbind(void)
{
	unsigned long mask;
	char *map;
	int fd;

	need_two_nodes();
	pin_to_cpu(0);
	fd = huge_file();
	map = map_shared(fd, 2 * hsize);
	mask = 1UL << nodes[1];
	NEED(!syscall(SYS_mbind, map, 2 * hsize, MPOL_BIND, &mask, 64, 0), "mbind: %s",
	     strerror(errno));
	CHECK(file_fill(fd, 0, 2) == 0, "fallocate: %s", strerror(errno));
	expect_taken("mbind of a mapping", 2, 0);
}

/* A number in each small page of 2M, in one of 512 of 1G. */
static void mark(char *map, long pages)
{
	long i;

	for (i = 0; i < pages * 512; i++)
		*(long *)(map + i * (hsize / 512)) = i + 1;
}

static void expect_marks(const char *map, long pages)
{
	long i;

	for (i = 0; i < pages * 512; i++)
		if (!CHECK(*(const long *)(map + i * (hsize / 512)) == i + 1,
			   "page %ld lost its data at %zu", i / 512, i % 512 * (hsize / 512)))
			break;
}

static void t_move(void)
{
	int fd, status;
	char *map;
	long n;

	need_two_nodes();
	pin_to_cpu(0);
	pool_dirty();
	fd = huge_file();
	CHECK(file_fill(fd, 0, 2) == 0, "fallocate: %s", strerror(errno));
	map = map_shared(fd, 2 * hsize);
	CHECK(map_first_nonzero(map, 2 * hsize) < 0, "not zero");
	mark(map, 2);
	for (n = 0; n < 4; n++) {
		int to = nodes[n < 2 ? 1 : 0];

		status = move_to(map, n % 2, to);
		CHECK(status == to, "move_pages(page %ld, node%d): %d", n % 2, to, status);
		CHECK(node_of(map, n % 2) == to, "page %ld is on node%d, node%d expected", n % 2,
		      node_of(map, n % 2), to);
		expect_taken("moved", n == 0 || n == 2 ? 1 : n == 1 ? 0 : 2,
			     n == 0 || n == 2 ? 1 : n == 1 ? 2 : 0);
	}
	expect_marks(map, 2);
}

/* ---- cpusets ---- */

static void enter_cpuset(const char *leaf, int id)
{
	char text[16];

	cgroup_make(CHILD, "cpuset");
	snprintf(text, sizeof(text), "%d", id);
	cgroup_write(CHILD, leaf, text);
	cgroup_enter(CHILD);
}

static void t_cpuset(void)
{
	int fd, ret;

	need_two_nodes();
	enter_cpuset("cpuset.mems", nodes[1]);
	pin_to_cpu(0);
	fd = huge_file();
	ret = file_fill(fd, 0, per_node + 2);
	CHECK(ret == -ENOSPC, "fallocate: %d, -ENOSPC expected", ret);
	expect_taken("cpuset of the second node", 0, per_node);
	expect_pages(fd, per_node);
	close(fd);
	cgroup_remove(CHILD);
}

/* Of the policy's nodes count those of the cpuset, and after a change of that, the new ones. */
static void t_cpuset_interleave(void)
{
	char text[16];
	int fd;

	need_two_nodes();
	set_policy(MPOL_INTERLEAVE, 3);
	enter_cpuset("cpuset.mems", nodes[1]);
	fd = huge_file();
	CHECK(file_fill(fd, 0, 2) == 0, "fallocate: %s", strerror(errno));
	expect_taken("cpuset of the second node", 0, 2);
	snprintf(text, sizeof(text), "%d", nodes[0]);
	cgroup_write(CHILD, "cpuset.mems", text);
	CHECK(file_fill(fd, 0, 4) == 0, "fallocate: %s", strerror(errno));
	expect_taken("then of the first", 2, 2);
	close(fd);
	cgroup_remove(CHILD);
}

/* A task bound to one CPU, and a cpuset of one CPU: slower, not wrong. */
static void t_one_cpu(void)
{
	int fd;

	enter_cpuset("cpuset.cpus", 0);
	pin_to_cpu(0);
	pool_dirty();
	fd = huge_file();
	CHECK(file_fill(fd, 0, pool_pages) == 0, "fallocate: %s", strerror(errno));
	expect_pages(fd, pool_pages);
	CHECK(file_pages_nonzero(fd, pool_pages) < 0, "not zero");
	close(fd);
	cgroup_remove(CHILD);
}

static const struct ktap_test tests[] = {
	{ "default policy: local node first", t_local },
	{ "interleave", t_interleave },
	{ "weighted interleave", t_weighted },
	{ "bind to the first node, ENOSPC", t_bind_first },
	{ "bind to the second node, ENOSPC", t_bind_second },
	{ "preferred node", t_preferred },
	{ "mbind of a mapping", t_mbind },
	{ "move_pages there and back", t_move },
	{ "cpuset of one node", t_cpuset },
	{ "cpuset and interleave", t_cpuset_interleave },
	{ "cpuset of one CPU", t_one_cpu },
};

int main(int argc, char **argv)
{
	return huge_test_main(argc > 1 ? argv[1] : "2M", 8, tests, ARRAY_SIZE(tests),
			      ARRAY_SIZE(tests));
}
