// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the guest: mounts what tests need, runs the programs that the kernel
 * command line names after "--" ("prog arg + prog arg"), then powers off.
 * Prints "guest: start NAME", "guest: done NAME status=N" (or signal=N) and
 * last "guest: end", which scripts look for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define MAX_ARGS	64

static const struct {
	const char *type, *dir, *data;
} mounts[] = {
	{ "proc", "/proc" },
	{ "sysfs", "/sys" },
	{ "devtmpfs", "/dev" },
	{ "tmpfs", "/tmp" },
	{ "debugfs", "/sys/kernel/debug" },
	{ "tracefs", "/sys/kernel/tracing" },
	{ "cgroup2", "/sys/fs/cgroup" },
	{ "hugetlbfs", "/huge" },
};

/* What this kernel lacks is not mounted; a test that needs it says so. */
static void mount_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].dir, 0755);
		mount(mounts[i].type, mounts[i].dir, mounts[i].type, 0, mounts[i].data);
	}
}

static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return;
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	if (fd > 2)
		close(fd);
}

static void exec_shell(void)
{
	setsid();
	open_console();
	execl("/bin/busybox", "sh", "-i", (char *)NULL);
	fprintf(stderr, "execl(/bin/busybox): %s; is busybox-static installed on the host?\n",
		strerror(errno));
	_exit(127);
}

static void run(char **argv)
{
	char path[256];
	int status;
	pid_t pid;

	printf("guest: start %s\n", argv[0]);
	pid = fork();
	if (pid < 0) {
		printf("fork: %s\n", strerror(errno));
		printf("guest: done %s status=127\n", argv[0]);
		return;
	}
	if (!pid) {
		if (!strcmp(argv[0], "shell"))
			exec_shell();
		snprintf(path, sizeof(path), "/bin/%s", argv[0]);
		execv(path, argv);
		fprintf(stderr, "execv(%s): %s\n", path, strerror(errno));
		_exit(127);
	}
	/* PID 1 also gets the children that others left. */
	while (waitpid(-1, &status, 0) != pid)
		;
	if (WIFSIGNALED(status))
		printf("guest: done %s signal=%d\n", argv[0], WTERMSIG(status));
	else
		printf("guest: done %s status=%d\n", argv[0], WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	char *args[MAX_ARGS];
	int i, n = 0;

	mount_all();
	open_console();
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("TERM", "linux", 1);

	for (i = 1; i <= argc; i++) {
		if (i < argc && strcmp(argv[i], "+")) {
			if (n < MAX_ARGS - 1)
				args[n++] = argv[i];
			continue;
		}
		args[n] = NULL;
		if (n)
			run(args);
		n = 0;
	}

	printf("guest: end\n");
	fflush(stdout);
	tcdrain(1);
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
