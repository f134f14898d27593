// SPDX-License-Identifier: GPL-2.0
/*
 * Who is charged for what fallocate(2) on hugetlbfs allocates: hugetlb and memory
 * cgroups. Usage: charge-test [2M|1G]
 *
 * The one who calls, for as long as the pages live, and not the one who made or
 * maps the file; at a limit the call gets ENOSPC and keeps what it had. Needs
 * cgroup2 on /sys/fs/cgroup.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/huge.h"
#include "lib/ktap.h"

#define CALLER	"charge-caller"
#define OTHER	"charge-other"

/* The hugetlb controller's file of the chosen size. */
static const char *hugetlb(const char *leaf)
{
	static char name[2][48];
	static int turn;
	char *p = name[turn++ % 2];

	snprintf(p, sizeof(name[0]), hsize >> 30 ? "hugetlb.1GB.%s" : "hugetlb.2MB.%s", leaf);
	return p;
}

static void set_limit(const char *leaf, long pages)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", pages * hsize);
	cgroup_write(CALLER, hugetlb(leaf), text);
}

/* What a cgroup is charged with: pages, and reservations, which are pages without one as well. */
static void expect_charge(const char *when, const char *cgroup, long pages, long resv)
{
	long v = cgroup_read(cgroup, hugetlb("current")) / (long)hsize;

	CHECK(v == pages, "%s: %s is charged with %ld pages, %ld expected", when, cgroup, v, pages);
	v = cgroup_read(cgroup, hugetlb("rsvd.current")) / (long)hsize;
	CHECK(v == resv, "%s: %s is charged with %ld reservations, %ld expected", when, cgroup, v,
	      resv);
}

/* The pool has @pages pages less, all of them in the file, and @resv reserved. */
static void expect_use(const char *when, int fd, long pages, long resv)
{
	expect_pool(when, pages, resv);
	if (fd >= 0)
		CHECK(file_pages(fd) == pages, "%s: file has %ld pages, %ld expected", when,
		      file_pages(fd), pages);
}

static void expect_fill(int fd, long nr, int want)
{
	int ret = file_fill(fd, 0, nr);

	CHECK(ret == want, "fallocate of %ld pages: %d, %d expected", nr, ret, want);
}

static void enter_hugetlb(void)
{
	cgroup_make(OTHER, "hugetlb");
	cgroup_make(CALLER, "hugetlb");
	cgroup_enter(CALLER);
}

static void leave(void)
{
	cgroup_remove(CALLER);
	cgroup_remove(OTHER);
}

/* ---- hugetlb ---- */

/* Another cgroup made and mapped the file without reservation; it is not charged. */
static void t_caller(void)
{
	char *map;
	int fd;

	enter_hugetlb();
	cgroup_enter(OTHER);
	fd = huge_file();
	map = mmap(NULL, pool_pages * hsize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		   fd, 0);
	NEED(map != MAP_FAILED, "mmap(MAP_NORESERVE): %s", strerror(errno));
	cgroup_enter(CALLER);
	expect_fill(fd, pool_pages, 0);
	expect_charge("allocated", CALLER, pool_pages, pool_pages);
	expect_charge("allocated", OTHER, 0, 0);
	cgroup_enter("");
	expect_charge("caller has left", CALLER, pool_pages, pool_pages);
	NEED(file_punch(fd, 0, 1) == 0, "punch hole: %s", strerror(errno));
	expect_charge("one page punched", CALLER, pool_pages - 1, pool_pages - 1);
	munmap(map, pool_pages * hsize);
	close(fd);
	expect_charge("after unlink", CALLER, 0, 0);
	leave();
}

/* Who mapped the file is charged with the reservations, who fills it with the pages. */
static void t_reserved(void)
{
	char *map;
	int fd;

	enter_hugetlb();
	cgroup_enter(OTHER);
	fd = huge_file();
	map = map_shared(fd, 2 * hsize);
	expect_charge("mapped", OTHER, 0, 2);
	cgroup_enter(CALLER);
	expect_fill(fd, 3, 0);
	expect_charge("allocated", CALLER, 3, 1);
	expect_charge("allocated", OTHER, 0, 2);
	munmap(map, 2 * hsize);
	close(fd);
	expect_charge("after unlink", CALLER, 0, 0);
	expect_charge("after unlink", OTHER, 0, 0);
	leave();
}

/* Four pages, and four again, where two are allowed by the limit in the file @leaf. */
static void over_limit(const char *leaf)
{
	int fd, i;

	enter_hugetlb();
	set_limit(leaf, 2);
	fd = huge_file();
	for (i = 0; i < 2; i++) {
		expect_fill(fd, 4, -ENOSPC);
		expect_charge("at the limit", CALLER, 2, 2);
		expect_use("at the limit", fd, 2, 0);
	}
	CHECK(file_size(fd) == 0, "i_size %lld, 0 expected", (long long)file_size(fd));
	close(fd);
	expect_charge("after unlink", CALLER, 0, 0);
	expect_use("after unlink", -1, 0, 0);
	leave();
}

static void t_max(void) { over_limit("max"); }
static void t_rsvd_max(void) { over_limit("rsvd.max"); }

/* Pages that a mapping has reserved: over the limit, each reservation is as it was. */
static void t_max_reserved(void)
{
	char *map;
	int fd;

	enter_hugetlb();
	set_limit("max", 1);
	fd = huge_file();
	map = map_shared(fd, 3 * hsize);
	expect_charge("mapped", CALLER, 0, 3);
	expect_fill(fd, 3, -ENOSPC);
	expect_charge("at the limit", CALLER, 1, 3);
	expect_use("at the limit", fd, 1, 2);
	set_limit("max", 3);
	expect_fill(fd, 3, 0);
	expect_use("limit raised", fd, 3, 0);
	munmap(map, 3 * hsize);
	close(fd);
	expect_charge("after unlink", CALLER, 0, 0);
	leave();
}

/* ---- mounts of limited size, where a limit ends the call ---- */

#define MOUNT	"/tmp/huge-charge"

static int mount_file(const char *option)
{
	char options[64];
	int fd;

	snprintf(options, sizeof(options), "%s=%zuM", option, 4 * hsize >> 20);
	NEED(!huge_mount(MOUNT, options), "mount(hugetlbfs, %s): %s", options, strerror(errno));
	fd = open(MOUNT "/f", O_CREAT | O_RDWR, 0600);
	NEED(fd >= 0, "open(" MOUNT "/f): %s", strerror(errno));
	return fd;
}

static void mount_unlink(int fd)
{
	unlink(MOUNT "/f");
	close(fd);
}

static void t_max_min_size(void)
{
	int fd;

	enter_hugetlb();
	set_limit("max", 2);
	fd = mount_file("min_size");
	expect_use("mounted", fd, 0, 4);
	expect_fill(fd, 4, -ENOSPC);
	expect_charge("at the limit", CALLER, 2, 2);
	expect_use("at the limit", fd, 2, 2);
	mount_unlink(fd);
	expect_charge("after unlink", CALLER, 0, 0);
	expect_use("after unlink", -1, 0, 4);
	umount(MOUNT);
	expect_use("unmounted", -1, 0, 0);
	leave();
}

static void t_max_size(void)
{
	struct statfs st;
	int fd;

	enter_hugetlb();
	set_limit("max", 2);
	fd = mount_file("size");
	expect_fill(fd, 4, -ENOSPC);
	expect_charge("at the limit", CALLER, 2, 2);
	mount_unlink(fd);
	expect_charge("after unlink", CALLER, 0, 0);
	NEED(!statfs(MOUNT, &st), "statfs(" MOUNT "): %s", strerror(errno));
	umount(MOUNT);
	leave();
	KNOWN(st.f_bfree == 4,
	      "what the cgroup refuses keeps its quota: %ld of 4 blocks free after unlink",
	      (long)st.f_bfree);
}

/* ---- memory ---- */

#define CGROUP_DIR	"/sys/fs/cgroup"

/* Huge pages count as memory only with this mount option. */
static void count_huge_pages(bool on)
{
	NEED(!mount("none", CGROUP_DIR, "cgroup2", MS_REMOUNT,
		    on ? "memory_hugetlb_accounting" : ""),
	     "remount(" CGROUP_DIR "): %s", strerror(errno));
}

static void enter_memory(void)
{
	cgroup_make(CALLER, "memory");
	count_huge_pages(true);
	cgroup_enter(CALLER);
}

static void leave_memory(void)
{
	cgroup_remove(CALLER);
	count_huge_pages(false);
}

static void expect_memory(const char *when, long pages)
{
	long v = cgroup_read_key(CALLER, "memory.stat", "hugetlb");

	CHECK(v == pages * (long)hsize, "%s: %ld pages are counted as memory, %ld expected", when,
	      v / (long)hsize, pages);
	/* The rest is small, but not nothing. */
	v = cgroup_read(CALLER, "memory.current");
	CHECK(v >= pages * (long)hsize && v < (pages + 1) * (long)hsize,
	      "%s: memory.current is %ld, that of %ld pages expected", when, v, pages);
}

static void t_memory(void)
{
	int fd;

	enter_memory();
	fd = huge_file();
	expect_fill(fd, pool_pages, 0);
	expect_memory("allocated", pool_pages);
	cgroup_enter("");
	expect_memory("caller has left", pool_pages);
	NEED(file_punch(fd, 0, 1) == 0, "punch hole: %s", strerror(errno));
	expect_memory("one page punched", pool_pages - 1);
	close(fd);
	expect_memory("after unlink", 0);
	leave_memory();
}

static void set_memory_max(long pages)
{
	char text[32];

	/* Half a page is for the task's own. */
	snprintf(text, sizeof(text), "%zu", pages * hsize + hsize / 2);
	cgroup_write(CALLER, "memory.max", text);
}

static void t_memory_max(void)
{
	int fd, i;

	enter_memory();
	set_memory_max(2);
	fd = huge_file();
	for (i = 0; i < 2; i++) {
		expect_fill(fd, 4, -ENOSPC);
		expect_memory("at the limit", 2);
		expect_use("at the limit", fd, 2, 0);
	}
	CHECK(file_size(fd) == 0, "i_size %lld, 0 expected", (long long)file_size(fd));
	CHECK(cgroup_read_key(CALLER, "memory.events", "oom_kill") == 0, "a task was killed");
	close(fd);
	expect_memory("after unlink", 0);
	expect_use("after unlink", -1, 0, 0);
	leave_memory();
}

static void t_memory_max_reserved(void)
{
	char *map;
	int fd;

	enter_memory();
	set_memory_max(1);
	fd = huge_file();
	map = map_shared(fd, 3 * hsize);
	expect_fill(fd, 3, -ENOSPC);
	expect_memory("at the limit", 1);
	expect_use("at the limit", fd, 1, 2);
	munmap(map, 3 * hsize);
	close(fd);
	expect_memory("after unlink", 0);
	expect_use("after unlink", -1, 0, 0);
	leave_memory();
}

static void t_memory_max_min_size(void)
{
	int fd;

	enter_memory();
	set_memory_max(2);
	fd = mount_file("min_size");
	expect_fill(fd, 4, -ENOSPC);
	expect_memory("at the limit", 2);
	expect_use("at the limit", fd, 2, 2);
	mount_unlink(fd);
	expect_memory("after unlink", 0);
	expect_use("after unlink", -1, 0, 4);
	umount(MOUNT);
	expect_use("unmounted", -1, 0, 0);
	leave_memory();
}

/* What depends on the size of a page comes first, and is all that is run with 1G. */
#define TESTS_1G	5

static const struct ktap_test tests[] = {
	{ "charged to the caller's hugetlb cgroup", t_caller },
	{ "hugetlb limit", t_max },
	{ "hugetlb limit below a mapping's reservation", t_max_reserved },
	{ "hugetlb limit on a min_size= mount", t_max_min_size },
	{ "memory limit", t_memory_max },
	{ "reservations of another cgroup", t_reserved },
	{ "hugetlb reservation limit", t_rsvd_max },
	{ "hugetlb limit on a size= mount", t_max_size },
	{ "charged to the caller's memory cgroup", t_memory },
	{ "memory limit below a mapping's reservation", t_memory_max_reserved },
	{ "memory limit on a min_size= mount", t_memory_max_min_size },
};

int main(int argc, char **argv)
{
	return huge_test_main(argc > 1 ? argv[1] : "2M", 8, tests, ARRAY_SIZE(tests),
			      TESTS_1G);
}
