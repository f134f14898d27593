// SPDX-License-Identifier: GPL-2.0
/*
 * Whose pages fallocate(2) on hugetlbfs takes: memory policies, cpusets and
 * hugetlb cgroups of the caller. Usage: placement-test [2M|1G]
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/ktap.h"

#define CGROUP		"/sys/fs/cgroup"
#define CHILD		CGROUP "/placement"
#define MPOL_WEIGHTED	6	/* MPOL_WEIGHTED_INTERLEAVE, newer than some headers */

static struct pool start;
static long per_node;

static int falloc(int fd, long first, long nr)
{
	return fallocate(fd, 0, first * hsize, nr * hsize) ? -errno : 0;
}

static void need_two_nodes(void)
{
	if (nr_nodes != 2)
		SKIP("%d nodes with memory, 2 needed", nr_nodes);
}

/* Mask of the two nodes' bits: 1 is the first, 2 the second. */
static void set_policy(int mode, int which)
{
	unsigned long mask = 0;

	if (which & 1)
		mask |= 1UL << nodes[0];
	if (which & 2)
		mask |= 1UL << nodes[1];
	if (syscall(SYS_set_mempolicy, mode, mask ? &mask : NULL, mask ? 64 : 0)) {
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
	a = start.node_free[0] - p.node_free[0];
	b = start.node_free[1] - p.node_free[1];
	CHECK(a == first && b == second, "%s: %ld pages of node%d and %ld of node%d, %ld and %ld expected",
	      what, a, nodes[0], b, nodes[1], first, second);
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
	pool_dirty();
	fd = huge_file();
	CHECK(falloc(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("a node's worth", per_node, 0);
	CHECK(falloc(fd, 0, per_node + 1) == 0, "fallocate: %s", strerror(errno));
	expect_taken("one more", per_node, 1);
}

static void t_interleave(void)
{
	char *map;
	long n;
	int fd;

	need_two_nodes();
	set_policy(MPOL_INTERLEAVE, 3);
	pool_dirty();
	fd = huge_file();
	CHECK(falloc(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("interleave", per_node / 2, per_node / 2);
	map = map_shared(fd, per_node * hsize);
	for (n = 1; n < per_node; n++)
		CHECK(node_of(map, n) != node_of(map, n - 1), "pages %ld and %ld are both on node%d",
		      n - 1, n, node_of(map, n));
	CHECK(falloc(fd, 0, 2 * per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("all", per_node, per_node);
}

static void t_weighted(void)
{
	int fd;

	need_two_nodes();
	set_policy(MPOL_WEIGHTED, 3);
	fd = huge_file();
	CHECK(falloc(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("weights of one", per_node / 2, per_node / 2);
}

static void bind_enospc(int which)
{
	int fd, ret;

	need_two_nodes();
	set_policy(MPOL_BIND, 1 << which);
	fd = huge_file();
	ret = falloc(fd, 0, per_node + 2);
	CHECK(ret == -ENOSPC, "fallocate: %d, -ENOSPC expected", ret);
	expect_taken("bind", which ? 0 : per_node, which ? per_node : 0);
	CHECK(file_pages(fd) == per_node, "file has %ld pages, %ld expected", file_pages(fd), per_node);
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
	CHECK(falloc(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("preferred", 0, per_node);
	CHECK(falloc(fd, 0, per_node + 1) == 0, "fallocate: %s", strerror(errno));
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
	CHECK(falloc(fd, 0, 2) == 0, "fallocate: %s", strerror(errno));
	expect_taken("mbind of a mapping", 2, 0);
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
	CHECK(falloc(fd, 0, 2) == 0, "fallocate: %s", strerror(errno));
	map = map_shared(fd, 2 * hsize);
	CHECK(first_nonzero(map, 2 * hsize) < 0, "not zero");
	for (n = 0; n < 2; n++)
		memset(map + n * hsize, 0x31 + n, hsize);
	for (n = 0; n < 4; n++) {
		int to = nodes[n < 2 ? 1 : 0];

		status = move_to(map, n % 2, to);
		CHECK(status == to, "move_pages(page %ld, node%d): %d", n % 2, to, status);
		CHECK(node_of(map, n % 2) == to, "page %ld is on node%d, node%d expected", n % 2,
		      node_of(map, n % 2), to);
		expect_taken("moved", n == 0 || n == 2 ? 1 : n == 1 ? 0 : 2,
			     n == 0 || n == 2 ? 1 : n == 1 ? 2 : 0);
	}
	for (n = 0; n < 2; n++)
		CHECK(map[n * hsize] == 0x31 + n &&
		      !memcmp(map + n * hsize, map + n * hsize + 1, hsize - 1),
		      "page %ld lost its data", n);
}

/* ---- cgroups ---- */

static void need_controller(const char *name)
{
	char line[256] = "", enable[32];
	int fd = open(CGROUP "/cgroup.controllers", O_RDONLY);

	if (fd < 0 || read(fd, line, sizeof(line) - 1) < 0 || !strstr(line, name))
		SKIP("no %s controller in " CGROUP, name);
	close(fd);
	snprintf(enable, sizeof(enable), "+%s", name);
	NEED(write_str(CGROUP "/cgroup.subtree_control", enable), "enable %s: %s", name,
	     strerror(errno));
	mkdir(CHILD, 0755);
}

static void hugetlb_path(char *path, size_t len, const char *dir, const char *leaf)
{
	if (hsize >> 30)
		snprintf(path, len, "%s/hugetlb.%zuGB.%s", dir, hsize >> 30, leaf);
	else
		snprintf(path, len, "%s/hugetlb.%zuMB.%s", dir, hsize >> 20, leaf);
}

static long usage(void)
{
	char path[128];
	long v;

	hugetlb_path(path, sizeof(path), CHILD, "current");
	v = read_long(path);
	NEED(v >= 0, "read(%s): %s", path, strerror(errno));
	return v / (long)hsize;
}

static void leave_cgroup(void)
{
	write_str(CGROUP "/cgroup.procs", "0");
	CHECK(!rmdir(CHILD), "rmdir(" CHILD "): %s", strerror(errno));
}

static void t_hugetlb_max(void)
{
	char path[128], limit[32];
	int fd, ret;

	need_controller("hugetlb");
	hugetlb_path(path, sizeof(path), CHILD, "max");
	snprintf(limit, sizeof(limit), "%zu", 2 * hsize);
	NEED(write_str(path, limit), "write(%s, %s): %s", path, limit, strerror(errno));
	NEED(write_str(CHILD "/cgroup.procs", "0"), "enter " CHILD ": %s", strerror(errno));

	fd = huge_file();
	ret = falloc(fd, 0, 4);
	CHECK(ret == -ENOSPC, "fallocate over the limit: %d, -ENOSPC expected", ret);
	CHECK(file_pages(fd) == 2, "file has %ld pages, 2 expected", file_pages(fd));
	CHECK(usage() == 2, "usage is %ld pages, 2 expected", usage());
	close(fd);
	CHECK(usage() == 0, "usage after unlink is %ld pages, 0 expected", usage());
	leave_cgroup();
}

/* Without a limit: every page is charged to the caller's cgroup, and stays so when it leaves. */
static void t_hugetlb_charge(void)
{
	int fd;

	need_controller("hugetlb");
	NEED(write_str(CHILD "/cgroup.procs", "0"), "enter " CHILD ": %s", strerror(errno));
	fd = huge_file();
	CHECK(falloc(fd, 0, start.total) == 0, "fallocate: %s", strerror(errno));
	CHECK(usage() == start.total, "usage is %ld pages, %ld expected", usage(), start.total);
	write_str(CGROUP "/cgroup.procs", "0");
	CHECK(usage() == start.total, "after leaving: %ld pages, %ld expected", usage(), start.total);
	close(fd);
	CHECK(usage() == 0, "usage after unlink is %ld pages, 0 expected", usage());
	leave_cgroup();
}

static void t_cpuset(void)
{
	char mems[16];
	int fd, ret;

	need_two_nodes();
	need_controller("cpuset");
	snprintf(mems, sizeof(mems), "%d", nodes[1]);
	NEED(write_str(CHILD "/cpuset.mems", mems), "write(cpuset.mems, %s): %s", mems,
	     strerror(errno));
	NEED(write_str(CHILD "/cgroup.procs", "0"), "enter " CHILD ": %s", strerror(errno));
	fd = huge_file();
	ret = falloc(fd, 0, per_node + 2);
	CHECK(ret == -ENOSPC, "fallocate: %d, -ENOSPC expected", ret);
	expect_taken("cpuset of the second node", 0, per_node);
	CHECK(file_pages(fd) == per_node, "file has %ld pages, %ld expected", file_pages(fd), per_node);
	close(fd);
	leave_cgroup();
}

/* A task bound to one CPU, and a cpuset of one CPU: slower, not wrong. */
static void t_one_cpu(void)
{
	int fd;

	need_controller("cpuset");
	NEED(write_str(CHILD "/cpuset.cpus", "0"), "write(cpuset.cpus, 0): %s", strerror(errno));
	NEED(write_str(CHILD "/cgroup.procs", "0"), "enter " CHILD ": %s", strerror(errno));
	pin_to_cpu(0);
	pool_dirty();
	fd = huge_file();
	CHECK(falloc(fd, 0, start.total) == 0, "fallocate: %s", strerror(errno));
	CHECK(file_pages(fd) == start.total, "file has %ld pages, %ld expected", file_pages(fd),
	      start.total);
	CHECK(file_first_nonzero(fd, 0, start.total * hsize, 1 << 20) < 0, "not zero");
	close(fd);
	leave_cgroup();
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
	{ "hugetlb cgroup limit", t_hugetlb_max },
	{ "hugetlb cgroup charge", t_hugetlb_charge },
	{ "cpuset of one node", t_cpuset },
	{ "cpuset of one CPU", t_one_cpu },
};

static bool pool_is_back(void)
{
	struct pool p;

	write_str(CGROUP "/cgroup.procs", "0");
	rmdir(CHILD);
	pool_read(&p);
	if (pool_equal(&p, &start))
		return true;
	ktap_diag("pool is not as before: Total %ld Free %ld Rsvd %ld Surp %ld", p.total, p.free,
		  p.resv, p.surp);
	return false;
}

int main(int argc, char **argv)
{
	const char *size = argc > 1 ? argv[1] : "2M";

	huge_init(size);
	pool_set_per_node(0);
	per_node = pool_set_per_node(hsize > 2 << 20 ? 4 / nr_nodes : 8);
	pool_read(&start);
	if (per_node < 2 || start.total != per_node * nr_nodes || start.total < 4 ||
	    start.free != start.total) {
		printf("KTAP version 1\n1..0 # SKIP pool of %s pages: %ld, %ld free; 2 a node needed\n",
		       size, start.total, start.free);
		return 0;
	}
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]), pool_is_back);
}
