/* SPDX-License-Identifier: GPL-2.0 */
/* Cgroups below /sys/fs/cgroup, which the guest's init mounts as cgroup2. */
#ifndef CGROUP_H
#define CGROUP_H

/* Make the cgroup @name with @controller; skips the test if there is no such controller. */
void cgroup_make(const char *name, const char *controller);
void cgroup_enter(const char *name);	/* "" is the root */
void cgroup_remove(const char *name);	/* of the calling process, which goes to the root */

void cgroup_write(const char *name, const char *leaf, const char *text);
/* The number in the file, or the one behind @key. */
long cgroup_read(const char *name, const char *leaf);
long cgroup_read_key(const char *name, const char *leaf, const char *key);

#endif
