// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the huge page pools as "state:" lines that scenarios compare:
 *
 *	state: node0 2048kB nr=512 free=512 surplus=0
 *	state: total 2048kB nr=1024 free=1024 resv=0 surplus=0
 *	state: HugeTLB: allocating 4000 of page size 2.00 MiB failed. ...
 *
 * the last for each HugeTLB warning in the kernel's log. Sizes and nodes are in
 * rising order, whatever order the kernel made them in.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOLS		"/sys/kernel/mm/hugepages"
#define NODES		"/sys/devices/system/node"
#define KERN_WARNING	4

static long leaf(const char *dir, long kb, const char *name)
{
	char path[256];
	long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/hugepages-%ldkB/%s", dir, kb, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &v) != 1)
		v = -1;
	fclose(f);
	return v;
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

static void print_warnings(void)
{
	char rec[8192], *msg, *nl;
	ssize_t n;
	int fd;

	fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (fd < 0) {
		fprintf(stderr, "open(/dev/kmsg): %s\n", strerror(errno));
		return;
	}
	/* EPIPE: records were lost before they could be read; go on with the next. */
	while ((n = read(fd, rec, sizeof(rec) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue;
		rec[n] = '\0';
		if ((atoi(rec) & 7) > KERN_WARNING)
			continue;
		msg = strchr(rec, ';');
		if (!msg || !strcasestr(msg, "hugetlb"))
			continue;
		nl = strchr(msg, '\n');
		if (nl)
			*nl = '\0';
		printf("state: %s\n", msg + 1);
	}
	close(fd);
}

int main(void)
{
	long sizes[16], nids[1024];
	char dir[128];
	int s, i, nr_sizes, nr_nids;

	nr_sizes = numbers(POOLS, "hugepages-%ldkB", sizes, 16);
	nr_nids = numbers(NODES, "node%ld", nids, 1024);
	for (s = 0; s < nr_sizes; s++) {
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
	print_warnings();
	return 0;
}
