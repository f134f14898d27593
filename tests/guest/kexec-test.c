// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel for crash dumps: a small machine that asks for more huge pages than it has.
 *
 *	kexec-test crash WORD...	loads /kernel and this guest's initramfs into what
 *					crashkernel= reserved, with WORDs at the end of its
 *					command line, and crashes
 *	kexec-test check		is what the second kernel then runs
 *
 * Needs retain_initrd on the first kernel's command line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kexec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/huge.h"

#define KERNEL		"/kernel"
#define INITRD		"/sys/firmware/initrd"
#define SCRAPS		32

static int open_or_exit(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0) {
		fprintf(stderr, "open(%s): %s\n", path, strerror(errno));
		exit(1);
	}
	return fd;
}

static void read_cmdline(char *buf, size_t len)
{
	int fd = open_or_exit("/proc/cmdline");
	ssize_t n = read(fd, buf, len - 1);

	buf[n > 0 ? n : 0] = '\0';
	close(fd);
}

/* Where crashkernel= was given memory; 0 if nowhere. */
static unsigned long crash_memory(void)
{
	FILE *f = fopen("/proc/iomem", "r");
	unsigned long start = 0;
	char line[160];

	while (f && !start && fgets(line, sizeof(line), f))
		if (strstr(line, ": Crash kernel"))
			start = strtoul(line, NULL, 16);
	if (f)
		fclose(f);
	return start;
}

/*
 * What this kernel was told, without what makes it the first, then @words. A small page
 * missing in some blocks of 2M leaves those to user space, which the pool would take too;
 * the kernel and its initramfs are at the other end.
 */
static void second_cmdline(char *out, size_t len, char **words)
{
	unsigned long start = crash_memory();
	char own[2048], *word, *save;
	size_t n = 0;
	int i;

	read_cmdline(own, sizeof(own));
	for (word = strtok_r(own, " \n", &save); word && strcmp(word, "--");
	     word = strtok_r(NULL, " \n", &save))
		if (strncmp(word, "crashkernel=", 12) && strcmp(word, "retain_initrd"))
			n += snprintf(out + n, len - n, "%s ", word);
	n += snprintf(out + n, len - n, "transparent_hugepage=never memmap=");
	for (i = 0; i < SCRAPS; i++)
		n += snprintf(out + n, len - n, "%s4K$%#lx", i ? "," : "",
			      start + i * (2UL << 20));
	for (; *words; words++)
		n += snprintf(out + n, len - n, " %s", *words);
	snprintf(out + n, len - n, " -- kexec-test check + hugestate");
}

static int crash(char **words)
{
	char cmdline[2048];
	int kernel = open_or_exit(KERNEL), initrd = open_or_exit(INITRD);

	second_cmdline(cmdline, sizeof(cmdline), words);
	if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(cmdline) + 1, cmdline,
		    KEXEC_FILE_ON_CRASH)) {
		fprintf(stderr, "kexec_file_load(%s): %s\n", KERNEL, strerror(errno));
		return 1;
	}
	write_str("/proc/sysrq-trigger", "c");
	fprintf(stderr, "write(/proc/sysrq-trigger, c): %s\n", strerror(errno));
	return 1;
}

static void t_second(void)
{
	char cmdline[2048];

	read_cmdline(cmdline, sizeof(cmdline));
	CHECK(strstr(cmdline, "elfcorehdr="), "not started by a crash: %s", cmdline);
}

static void t_one_cpu(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	CHECK(n == 1, "%ld CPUs are online", n);
}

static void t_short(void)
{
	static char log[1 << 20];
	int n = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);
	char cmdline[2048], said[64];
	const char *asked;
	struct pool p;

	read_cmdline(cmdline, sizeof(cmdline));
	asked = strstr(cmdline, " hugepages=");
	NEED(asked, "no hugepages= in %s", cmdline);
	NEED(n >= 0, "klogctl: %s", strerror(errno));
	log[n] = '\0';
	pool_read(&p);
	CHECK(p.total > 0 && p.total < atol(asked + 11), "%ld pages", p.total);
	CHECK(p.free == p.total && !p.resv && !p.surp, "free %ld of %ld, resv %ld, surp %ld",
	      p.free, p.total, p.resv, p.surp);
	snprintf(said, sizeof(said), "Only allocated %ld hugepages", p.total);
	CHECK(strstr(log, said), "the log has no \"%s\"", said);
}

static void t_use(void)
{
	struct pool p;
	ssize_t dirty;
	int fd, rc;

	pool_read(&p);
	fd = huge_file();
	rc = file_fill(fd, 0, p.total);
	NEED(!rc, "fallocate of all %ld pages: %s", p.total, strerror(-rc));
	dirty = file_pages_nonzero(fd, p.total);
	CHECK(dirty < 0, "not zero at %zd", dirty);
}

static const struct ktap_test tests[] = {
	{ "a second kernel", t_second },
	{ "one CPU", t_one_cpu },
	{ "short of pages, and says so", t_short },
	{ "all of the pool can be used", t_use },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "crash"))
		return crash(argv + 2);
	if (argc != 2 || strcmp(argv[1], "check")) {
		fprintf(stderr, "kexec-test: \"crash WORD...\" or \"check\" expected\n");
		return 2;
	}
	huge_init("2M");
	return ktap_run(tests, ARRAY_SIZE(tests), NULL);
}
