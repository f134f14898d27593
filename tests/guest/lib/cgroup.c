// SPDX-License-Identifier: GPL-2.0
/* Cgroups of the guest's tests, see cgroup.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "huge.h"
#include "ktap.h"

#define CGROUP	"/sys/fs/cgroup"

static const char *file_of(const char *name, const char *leaf)
{
	static char path[160];

	snprintf(path, sizeof(path), CGROUP "/%s/%s", name, leaf);
	return path;
}

void cgroup_write(const char *name, const char *leaf, const char *text)
{
	const char *path = file_of(name, leaf);

	NEED(write_str(path, text), "write(%s, %s): %s", path, text, strerror(errno));
}

long cgroup_read(const char *name, const char *leaf)
{
	const char *path = file_of(name, leaf);
	long v = read_long(path);

	NEED(v >= 0, "read(%s): no number", path);
	return v;
}

long cgroup_read_key(const char *name, const char *leaf, const char *key)
{
	const char *path = file_of(name, leaf);
	FILE *f = fopen(path, "r");
	char word[64];
	long v;

	NEED(f, "open(%s): %s", path, strerror(errno));
	while (fscanf(f, "%63s %ld", word, &v) == 2) {
		if (strcmp(word, key))
			continue;
		fclose(f);
		return v;
	}
	fclose(f);
	NEED(0, "read(%s): no %s", path, key);
	return -1;
}

static bool has_controller(const char *controller)
{
	FILE *f = fopen(file_of("", "cgroup.controllers"), "r");
	bool found = false;
	char word[32];

	while (f && !found && fscanf(f, "%31s", word) == 1)
		found = !strcmp(word, controller);
	if (f)
		fclose(f);
	return found;
}

void cgroup_make(const char *name, const char *controller)
{
	char enable[32];

	if (!has_controller(controller))
		SKIP("no %s controller in " CGROUP, controller);
	snprintf(enable, sizeof(enable), "+%s", controller);
	cgroup_write("", "cgroup.subtree_control", enable);
	rmdir(file_of(name, ""));	/* of a test that failed */
	NEED(!mkdir(file_of(name, ""), 0755), "mkdir(%s): %s", file_of(name, ""), strerror(errno));
}

void cgroup_enter(const char *name)
{
	cgroup_write(name, "cgroup.procs", "0");
}

void cgroup_remove(const char *name)
{
	cgroup_enter("");
	CHECK(!rmdir(file_of(name, "")), "rmdir(%s): %s", file_of(name, ""), strerror(errno));
}
