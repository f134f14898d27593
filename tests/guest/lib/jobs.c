// SPDX-License-Identifier: GPL-2.0
/* Padata jobs as the kernel's trace buffer has them, see jobs.h. */
#include <stdio.h>
#include <string.h>

#include "huge.h"
#include "jobs.h"

#define TRACING		"/sys/kernel/tracing"

bool jobs_start(void)
{
	return write_str(TRACING "/trace_clock", "global") && write_str(TRACING "/trace", "\n") &&
	       write_str(TRACING "/events/padata/padata_mt_start/enable", "1");
}

int jobs_read(struct job *jobs, int max)
{
	char line[512], *fields;
	int n = 0;
	FILE *f;

	f = fopen(TRACING "/trace", "r");
	if (!f)
		return -1;
	while (n >= 0 && n < max && fgets(line, sizeof(line), f)) {
		struct job *j = &jobs[n];

		fields = strstr(line, " padata_mt_start: ");
		if (!fields)
			continue;
		if (sscanf(fields, " padata_mt_start: job=%63s size=%lu ranges=%u min_chunk=%lu threads<=%u nice=%d",
			   j->name, &j->size, &j->ranges, &j->min_chunk, &j->threads, &j->nice) == 6)
			n++;
		else
			n = -1;
	}
	fclose(f);
	return n;
}
