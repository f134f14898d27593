// SPDX-License-Identifier: GPL-2.0
/*
 * Where the chunks of per-node ranges ran, from the trace buffer.
 * Usage: bench-chunks NAME
 *
 * Boot with trace_event=padata:padata_mt_chunk,padata:padata_mt_end
 * trace_clock=global. NAME.traced: per cent of the work that ran on the node of its
 * range; NAME.traced-chunks: per cent of the chunks.
 *
 * A virtual CPU that its host runs for half of the time is idle for the guest, but
 * half as fast, and its work rightly moves to the other node. NAME.even,
 * NAME.even-chunks: the same of those jobs in which the slowest CPU was at most 5 %
 * slower than the fastest. NAME.even-jobs: per cent of the jobs that these are.
 *
 * A kernel without the events prints nothing.
 */
#define _GNU_SOURCE
#include "bench.h"

#define TRACING		"/sys/kernel/tracing"
#define MAX_CPUS	64
#define EVEN		0.95	/* The slowest CPU against the fastest */

struct share {
	unsigned long jobs, work, own_work, chunks, own_chunks;
};

struct job {
	struct share share;
	unsigned long work[MAX_CPUS];
	unsigned long long ns[MAX_CPUS];
};

static void add_chunk(struct job *job, const char *fields, const char *line)
{
	unsigned long start, end;
	unsigned long long ns;
	int nid, ran_nid, cpu;

	if (sscanf(fields, "job=%*s start=%lu end=%lu nid=%d ran_nid=%d cpu=%d by=%*s ns=%llu",
		   &start, &end, &nid, &ran_nid, &cpu, &ns) != 6 || cpu < 0 || cpu >= MAX_CPUS) {
		fprintf(stderr, "bench-chunks: cannot read: %s", line);
		exit(1);
	}
	if (nid < 0)
		return;		/* not of a per-node range */
	job->share.chunks++;
	job->share.work += end - start;
	if (nid == ran_nid) {
		job->share.own_chunks++;
		job->share.own_work += end - start;
	}
	job->work[cpu] += end - start;
	job->ns[cpu] += ns;
}

static bool even(const struct job *job)
{
	double rate, slowest = 0, fastest = 0;
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!job->ns[cpu])
			continue;
		rate = (double)job->work[cpu] / job->ns[cpu];
		if (!slowest || rate < slowest)
			slowest = rate;
		if (rate > fastest)
			fastest = rate;
	}
	return slowest >= EVEN * fastest;
}

static void add_share(struct share *sum, const struct share *share)
{
	sum->jobs++;
	sum->work += share->work;
	sum->own_work += share->own_work;
	sum->chunks += share->chunks;
	sum->own_chunks += share->own_chunks;
}

static void print_share(const char *name, const char *kind, const char *chunks,
			const struct share *share)
{
	if (!share->jobs)
		return;
	bench_print(name, kind, 100.0 * share->own_work / share->work, "%");
	bench_print(name, chunks, 100.0 * share->own_chunks / share->chunks, "%");
}

int main(int argc, char **argv)
{
	const char chunk[] = " padata_mt_chunk: ", end[] = " padata_mt_end: ";
	struct share all = { 0 }, evens = { 0 };
	struct job job = { 0 };
	char line[512], *fields;
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
		fields = strstr(line, chunk);
		if (fields)
			add_chunk(&job, fields + sizeof(chunk) - 1, line);
		if (!strstr(line, end))
			continue;
		if (job.share.chunks) {
			add_share(&all, &job.share);
			if (even(&job))
				add_share(&evens, &job.share);
		}
		memset(&job, 0, sizeof(job));
	}
	fclose(f);
	if (!all.jobs) {
		fprintf(stderr, "bench-chunks: no job with per-node ranges was traced\n");
		return 1;
	}
	print_share(argv[1], ".traced", ".traced-chunks", &all);
	print_share(argv[1], ".even", ".even-chunks", &evens);
	bench_print(argv[1], ".even-jobs", 100.0 * evens.jobs / all.jobs, "%");
	return 0;
}
