// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the huge page pools as "state:" lines that scenarios compare:
 *
 *	state: node0 2048kB nr=512 free=512 surplus=0
 *	state: total 2048kB nr=1024 free=1024 resv=0 surplus=0
 *	state: sysctl nr_hugepages=1024
 *	state: node0 cma=262144
 *	state: HugeTLB: allocating 4000 of page size 2.00 MiB failed. ...
 *
 * the one of CMA, in small pages, for each node that has some, and the last for each
 * message of hugetlb in the kernel's log but the one that tells a time. Sizes and nodes
 * are in rising order, whatever order the kernel made them in.
 * Fails where a warning of too few pages and the pool do not agree.
 *
 * "hugestate empty" gives all free pages back first, and leaves the messages out.
 * "hugestate jobs" adds that message without its time, and the padata jobs that were
 * traced, with the most threads that each may have. It needs trace_clock=global, or the
 * kernel empties the buffer when it chooses a clock, and
 * trace_event=padata:padata_mt_start:
 *
 *	state: HugeTLB: allocation took ... with hugepage_allocation_threads=4
 *	state: job=hugetlb_pages_alloc_boot_ranges size=1024 ranges=2 min_chunk=64 threads=4 nice=0
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/huge.h"
#include "lib/jobs.h"

#define POOLS		"/sys/kernel/mm/hugepages"
#define NODES		"/sys/devices/system/node"
#define KERN_WARNING	4
#define TOOK		"allocation took "

static long leaf(const char *dir, long kb, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/hugepages-%ldkB/%s", dir, kb, name);
	return read_long(path);
}

/* Numbers N of the entries of @dir that match @format, in rising order. */
static int numbers(const char *dir, const char *format, long *out, int max)
{
	struct dirent *e;
	int i, n = 0;
	long v, t;
	DIR *d;

	d = opendir(dir);
	if (!d)
		return 0;
	while (n < max && (e = readdir(d))) {
		if (sscanf(e->d_name, format, &v) != 1)
			continue;
		out[n++] = v;
		for (i = n - 1; i > 0 && out[i - 1] > out[i]; i--) {
			t = out[i];
			out[i] = out[i - 1];
			out[i - 1] = t;
		}
	}
	closedir(d);
	return n;
}

/* What hugetlb says of itself, and any warning that names it. */
static bool wanted(int level, const char *msg)
{
	if (!strncasecmp(msg, "hugetlb", 7))
		return !strstr(msg, TOOK);
	return level <= KERN_WARNING && strcasestr(msg, "hugetlb");
}

/*
 * "allocating 4000 of page size 2.00 MiB failed node0.  Only allocated 1234 hugepages.":
 * that many must be there, on the node or in all.
 */
static int check_shortage(const char *msg)
{
	const char *failed = strstr(msg, "failed");
	char unit[4], dir[128] = POOLS;
	long size, nid, got, nr;

	if (!failed || sscanf(msg, "HugeTLB: allocating %*d of page size %ld.%*d %3s", &size,
			      unit) != 2)
		return 0;
	if (sscanf(failed, "failed node%ld. Only allocated %ld", &nid, &got) == 2)
		snprintf(dir, sizeof(dir), NODES "/node%ld/hugepages", nid);
	else if (sscanf(failed, "failed. Only allocated %ld", &got) != 1)
		return 0;
	nr = leaf(dir, size << (*unit == 'G' ? 20 : 10), "nr_hugepages");
	if (nr == got)
		return 0;
	printf("there are %ld pages: %s\n", nr, msg);
	return 1;
}

/* The message that tells a time, without it. */
static void print_took(const char *msg)
{
	const char *took = strstr(msg, TOOK), *with = took ? strstr(took, " with ") : NULL;

	if (with)
		printf("state: %.*s...%s\n", (int)(took - msg + strlen(TOOK)), msg, with);
}

static int print_messages(bool with_took)
{
	char rec[8192], *msg, *nl;
	ssize_t n;
	int fd, rc = 0;

	fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (fd < 0) {
		fprintf(stderr, "open(/dev/kmsg): %s\n", strerror(errno));
		return 1;
	}
	/* EPIPE: records were lost before they could be read; go on with the next. */
	while ((n = read(fd, rec, sizeof(rec) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		rec[n] = '\0';
		msg = strchr(rec, ';');
		if (!msg)
			continue;
		nl = strchr(msg, '\n');
		if (nl)
			*nl = '\0';
		if (with_took)
			print_took(msg + 1);
		if (!wanted(atoi(rec) & 7, msg + 1))
			continue;
		printf("state: %s\n", msg + 1);
		rc |= check_shortage(msg + 1);
	}
	close(fd);
	return rc;
}

static int print_jobs(void)
{
	struct job jobs[64], *j;
	int n = jobs_read(jobs, 64);

	if (n < 0) {
		fprintf(stderr, "the traced jobs cannot be read: %s\n", strerror(errno));
		return 1;
	}
	for (j = jobs; j < jobs + n; j++)
		printf("state: job=%s size=%lu ranges=%u min_chunk=%lu threads=%u nice=%d\n",
		       j->name, j->size, j->ranges, j->min_chunk, j->threads, j->nice);
	return 0;
}

/* The zones' sum for each node that has pages of CMA. */
static void print_cma(void)
{
	long nid = -1, next, pages, sum = 0;
	char line[256];
	FILE *f;

	f = fopen("/proc/zoneinfo", "r");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " cma %ld", &pages) == 1)
			sum += pages;
		if (sscanf(line, "Node %ld, zone", &next) != 1 || next == nid)
			continue;
		if (sum)
			printf("state: node%ld cma=%ld\n", nid, sum);
		nid = next;
		sum = 0;
	}
	if (sum)
		printf("state: node%ld cma=%ld\n", nid, sum);
	fclose(f);
}

/* Give all free pages of a size back. */
static void empty_pool(long kb)
{
	char path[128];

	snprintf(path, sizeof(path), POOLS "/hugepages-%ldkB/nr_hugepages", kb);
	if (!write_str(path, "0"))
		fprintf(stderr, "write(%s, 0): %s\n", path, strerror(errno));
}

int main(int argc, char **argv)
{
	long sizes[16], nids[1024];
	bool empty = argc > 1 && !strcmp(argv[1], "empty");
	bool jobs = argc > 1 && !strcmp(argv[1], "jobs");
	int s, i, nr_sizes, nr_nids, rc;
	char dir[128];

	nr_sizes = numbers(POOLS, "hugepages-%ldkB", sizes, 16);
	nr_nids = numbers(NODES, "node%ld", nids, 1024);
	for (s = 0; s < nr_sizes; s++) {
		if (empty)
			empty_pool(sizes[s]);
		for (i = 0; i < nr_nids; i++) {
			snprintf(dir, sizeof(dir), NODES "/node%ld/hugepages", nids[i]);
			if (leaf(dir, sizes[s], "nr_hugepages") < 0)
				continue;
			printf("state: node%ld %ldkB nr=%ld free=%ld surplus=%ld\n",
			       nids[i], sizes[s], leaf(dir, sizes[s], "nr_hugepages"),
			       leaf(dir, sizes[s], "free_hugepages"),
			       leaf(dir, sizes[s], "surplus_hugepages"));
		}
		printf("state: total %ldkB nr=%ld free=%ld resv=%ld surplus=%ld\n", sizes[s],
		       leaf(POOLS, sizes[s], "nr_hugepages"),
		       leaf(POOLS, sizes[s], "free_hugepages"),
		       leaf(POOLS, sizes[s], "resv_hugepages"),
		       leaf(POOLS, sizes[s], "surplus_hugepages"));
	}
	/* What a write to the file of the default size would be compared with. */
	printf("state: sysctl nr_hugepages=%ld\n", read_long("/proc/sys/vm/nr_hugepages"));
	print_cma();
	if (empty)
		return 0;
	rc = print_messages(jobs);
	return jobs ? rc | print_jobs() : rc;
}
