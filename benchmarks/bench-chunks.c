// SPDX-License-Identifier: GPL-2.0
/*
 * Where the chunks of per-node ranges ran, from the trace buffer.
 * Usage: bench-chunks NAME
 *
 * Boot with trace_event=padata:padata_mt_chunk trace_clock=global. NAME.traced: per
 * cent of the work that ran on the node of its range; NAME.traced-chunks: per cent
 * of the chunks. A kernel without the event prints nothing.
 */
#define _GNU_SOURCE
#include "bench.h"

#define TRACING		"/sys/kernel/tracing"

int main(int argc, char **argv)
{
	unsigned long work = 0, own_work = 0, chunks = 0, own_chunks = 0, start, end;
	char line[512], *fields;
	int nid, ran_nid;
	FILE *f;

	if (argc != 2) {
		fprintf(stderr, "usage: bench-chunks NAME\n");
		return 2;
	}
	if (access(TRACING "/events/padata/padata_mt_chunk", F_OK)) {
		printf("bench-chunks: this kernel has no padata_mt_chunk\n");
		return 0;
	}
	f = fopen(TRACING "/trace", "r");
	if (!f)
		bench_die("fopen(" TRACING "/trace)");
	while (fgets(line, sizeof(line), f)) {
		fields = strstr(line, " padata_mt_chunk: ");
		if (!fields)
			continue;
		if (sscanf(fields, " padata_mt_chunk: job=%*s start=%lu end=%lu nid=%d ran_nid=%d",
			   &start, &end, &nid, &ran_nid) != 4) {
			fprintf(stderr, "bench-chunks: cannot read: %s", line);
			return 1;
		}
		if (nid < 0)
			continue;	/* not of a per-node range */
		chunks++;
		work += end - start;
		if (nid == ran_nid) {
			own_chunks++;
			own_work += end - start;
		}
	}
	fclose(f);
	if (!chunks) {
		fprintf(stderr, "bench-chunks: no chunk of a per-node range was traced\n");
		return 1;
	}
	bench_print(argv[1], ".traced", 100.0 * own_work / work, "%");
	bench_print(argv[1], ".traced-chunks", 100.0 * own_chunks / chunks, "%");
	return 0;
}
