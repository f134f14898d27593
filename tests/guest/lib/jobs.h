/* SPDX-License-Identifier: GPL-2.0 */
/* Padata jobs as the kernel's trace buffer has them: event padata:padata_mt_start. */
#ifndef JOBS_H
#define JOBS_H

#include <stdbool.h>

struct job {
	char name[64];		/* the function that started it */
	unsigned long size, min_chunk;
	unsigned int ranges, threads;
	int nice;
};

/* Trace from now on, with an empty buffer. False if the kernel has no such event. */
bool jobs_start(void);

/* The jobs that were traced, up to @max, in the order of their starts; -1 if they cannot be read. */
int jobs_read(struct job *jobs, int max);

#endif
