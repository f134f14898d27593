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
	pool_dirty();
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
	pool_dirty();
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

static void t_weighted(void)
{
	int fd;

	need_two_nodes();
	set_policy(MPOL_WEIGHTED, 3);
	fd = huge_file();
	CHECK(file_fill(fd, 0, per_node) == 0, "fallocate: %s", strerror(errno));
	expect_taken("weights of one", per_node / 2, per_node / 2);
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
	rmdir(CHILD);	/* of a test that failed */
	NEED(!mkdir(CHILD, 0755), "mkdir(" CHILD "): %s", strerror(errno));
}

static void hugetlb_path(char *path, size_t len, const char *dir, const char *leaf)
{
	if (hsize >> 30)
		snprintf(path, len, "%s/hugetlb.%zuGB.%s", dir, hsize >> 30, leaf);
	else
		snprintf(path, len, "%s/hugetlb.%zuMB.%s", dir, hsize >> 20, leaf);
}

/* The hugetlb usage of the child cgroup, in pages. */
static void expect_usage(const char *when, long pages)
{
	char path[128];
	long v;

	hugetlb_path(path, sizeof(path), CHILD, "current");
	v = read_long(path);
	NEED(v >= 0, "read(%s): %s", path, strerror(errno));
	CHECK(v == pages * (long)hsize, "%s: usage is %ld pages, %ld expected", when,
	      v / (long)hsize, pages);
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
	ret = file_fill(fd, 0, 4);
	CHECK(ret == -ENOSPC, "fallocate over the limit: %d, -ENOSPC expected", ret);
	expect_pages(fd, 2);
	expect_usage("at the limit", 2);
	close(fd);
	expect_usage("after unlink", 0);
	leave_cgroup();
}

/* Without a limit: every page is charged to the caller's cgroup, and stays so when it leaves. */
static void t_hugetlb_charge(void)
{
	int fd;

	need_controller("hugetlb");
	NEED(write_str(CHILD "/cgroup.procs", "0"), "enter " CHILD ": %s", strerror(errno));
	fd = huge_file();
	CHECK(file_fill(fd, 0, pool_pages) == 0, "fallocate: %s", strerror(errno));
	expect_usage("allocated", pool_pages);
	write_str(CGROUP "/cgroup.procs", "0");
	expect_usage("after leaving", pool_pages);
	close(fd);
	expect_usage("after unlink", 0);
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
	ret = file_fill(fd, 0, per_node + 2);
	CHECK(ret == -ENOSPC, "fallocate: %d, -ENOSPC expected", ret);
	expect_taken("cpuset of the second node", 0, per_node);
	expect_pages(fd, per_node);
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
	CHECK(file_fill(fd, 0, pool_pages) == 0, "fallocate: %s", strerror(errno));
	expect_pages(fd, pool_pages);
	CHECK(file_first_nonzero(fd, 0, pool_pages * hsize, 1 << 20) < 0, "not zero");
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

int main(int argc, char **argv)
{
	return huge_test_main(argc > 1 ? argv[1] : "2M", 8, tests, ARRAY_SIZE(tests));
}
