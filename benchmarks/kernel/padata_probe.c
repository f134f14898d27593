// SPDX-License-Identifier: GPL-2.0
/*
 * Times multithreaded padata jobs while the kernel boots, since the base's
 * padata_do_multithreaded() goes away with the init memory. The configuration
 * "probe" compiles this file into kernel/range.o of both kernels (see
 * scripts/lib/kbuild.sh); it does nothing without padata_probe=NAME on the
 * command line, NAME being one of probes[] below. Prints
 *
 *	bench: padata-NAME[.METRIC] VALUE UNIT
 *
 * one line a pass, as programs in the guest do. Metrics:
 *
 *	.serial		the same work in the caller alone
 *	.limit		the same work in one thread a CPU, bound, that share nothing
 *	.nice		the same job with helpers at MAX_NICE (patched kernel alone)
 *	.nice0		the same job with helpers at nice 0
 *	.speedup	.serial divided by the case's own value, of one pass
 *
 * Work is arithmetic: a fixed number of rounds for each microsecond, found out at
 * boot. Jobs on an idle machine are given for exactly the time of work in their
 * name: what was measured, times that, divided by the serial time of the pass.
 */
#include <linux/async.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/initrd.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/padata.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/topology.h>

/* The patched kernel has more fields, and thread functions that return an error. */
#ifdef padata_do_multithreaded
#define PATCHED		1
#define set_nice(job, n) ((job)->nice = (n))
#define CHUNK_DONE	0
typedef int chunk_ret;
#else
#define PATCHED		0
#define set_nice(job, n) ((void)(n))
#define CHUNK_DONE
typedef void chunk_ret;
#endif

struct probe {
	const char *name;
	void (*run)(const struct probe *p);
	chunk_ret (*fn)(unsigned long start, unsigned long end, void *arg);
	unsigned long us;	/* Size of a job, in microseconds of work */
	unsigned long min_chunk;
	int jobs;		/* In a pass, each on its own */
	int passes;
};

struct probe_cpu {
	struct task_struct *task;
	unsigned long loops;	/* What a thread of busy_fn() has done */
	u64 begin, end;		/* Of a part of split_fn() */
};

static DEFINE_PER_CPU_SHARED_ALIGNED(struct probe_cpu, probe_cpu);
static unsigned long rounds_per_ms __initdata;
static unsigned long job_size __initdata;

static noinline void __init work_rounds(unsigned long rounds)
{
	u64 x = 1;

	while (rounds--) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		asm volatile("" : "+r" (x));	/* not optimised away */
	}
}

static void __init work_us(unsigned long us)
{
	work_rounds(us * rounds_per_ms / 1000);
}

static void __init calibrate(void)
{
	unsigned long rounds = 1000;
	u64 ns, best = U64_MAX;
	int i;

	for (i = 0; i < 20; i++) {
		u64 begin = ktime_get_ns();

		work_rounds(rounds);
		ns = ktime_get_ns() - begin;
		if (ns < 10 * NSEC_PER_MSEC) {
			rounds *= 2;
			best = U64_MAX;
			i = 0;
		} else if (ns < best) {
			best = ns;
		}
	}
	rounds_per_ms = div64_u64((u64)rounds * NSEC_PER_MSEC, best);
}

/* @milli: thousandths of @unit */
static void __init print(const struct probe *p, const char *metric, s64 milli, const char *unit)
{
	u64 abs = milli < 0 ? -milli : milli;

	pr_info("bench: padata-%s%s %s%llu.%03llu %s\n", p->name, metric, milli < 0 ? "-" : "",
		abs / 1000, abs % 1000, unit);
}

static void __init print_ns(const struct probe *p, const char *metric, u64 ns)
{
	if (p->us <= 1000)
		print(p, metric, ns, "us");
	else
		print(p, metric, ns / 1000, "ms");
}

static void __init print_speedup(const struct probe *p, const char *metric, u64 serial, u64 job)
{
	print(p, metric, div64_u64(serial * 1000, job), "x");
}

/*
 * Threads, one on each CPU but @but (-1: on all), which run fn and do not return
 * before they are asked to.
 */
static atomic_t nr_started;

static void __init start_threads(int (*fn)(void *arg), const struct probe *p, int but)
{
	int cpu, nr = 0;

	atomic_set(&nr_started, 0);
	for_each_online_cpu(cpu) {
		if (cpu == but)
			continue;
		per_cpu(probe_cpu.task, cpu) = kthread_run_on_cpu(fn, (void *)p, cpu,
								  "padata_probe/%u");
		if (IS_ERR(per_cpu(probe_cpu.task, cpu)))
			panic("padata_probe: no thread\n");
		nr++;
	}
	while (atomic_read(&nr_started) < nr)
		usleep_range(1000, 1100);
}

static void __init stop_threads(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (per_cpu(probe_cpu.task, cpu))
			kthread_stop(per_cpu(probe_cpu.task, cpu));
		per_cpu(probe_cpu.task, cpu) = NULL;
	}
}

/* Thread functions of jobs */

static chunk_ret __init empty_chunk(unsigned long start, unsigned long end, void *arg)
{
	return CHUNK_DONE;
}

static chunk_ret __init even_chunk(unsigned long start, unsigned long end, void *arg)
{
	work_us(end - start);
	return CHUNK_DONE;
}

/* The further to the end, the more work in an index: twice the mean at the end. */
static chunk_ret __init rising_chunk(unsigned long start, unsigned long end, void *arg)
{
	work_rounds(div64_ul((u64)(end - start) * (end + start) * rounds_per_ms, job_size * 1000));
	return CHUNK_DONE;
}

/* Ways to do the work of a job, each returns how long it took. */

static u64 __init serial(const struct probe *p, int nice)
{
	u64 begin = ktime_get_ns();

	p->fn(0, p->us, NULL);
	return ktime_get_ns() - begin;
}

static u64 __init parallel(const struct probe *p, int nice)
{
	struct padata_mt_job job = {
		.thread_fn	= p->fn,
		.size		= p->us,
		.align		= 1,
		.min_chunk	= p->min_chunk,
		.max_threads	= num_online_cpus(),
	};
	u64 begin = ktime_get_ns();

	set_nice(&job, nice);
	padata_do_multithreaded(&job);
	return ktime_get_ns() - begin;
}

static DECLARE_COMPLETION(split_done);
static atomic_t nr_ended;

static int __init split_fn(void *arg)
{
	struct probe_cpu *c = this_cpu_ptr(&probe_cpu);
	const struct probe *p = arg;

	atomic_inc(&nr_started);
	while (atomic_read(&nr_started) < num_online_cpus())
		cpu_relax();
	c->begin = ktime_get_ns();
	work_us(p->us / num_online_cpus());
	c->end = ktime_get_ns();
	if (atomic_inc_return(&nr_ended) == num_online_cpus())
		complete(&split_done);
	while (!kthread_should_stop())
		schedule_timeout_idle(1);
	return 0;
}

static u64 __init split(const struct probe *p, int nice)
{
	u64 begin = U64_MAX, end = 0;
	int cpu;

	reinit_completion(&split_done);
	atomic_set(&nr_ended, 0);
	start_threads(split_fn, p, -1);
	wait_for_completion(&split_done);
	stop_threads();
	for_each_online_cpu(cpu) {
		begin = min(begin, per_cpu(probe_cpu.begin, cpu));
		end = max(end, per_cpu(probe_cpu.end, cpu));
	}
	return end - begin;
}

/* Mean time of a pass. A pause before each job lets the other CPUs become idle. */
static u64 __init mean(const struct probe *p, u64 (*way)(const struct probe *p, int nice), int nice)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < p->jobs; i++) {
		usleep_range(2000, 2100);
		sum += way(p, nice);
	}
	return div_u64(sum, p->jobs);
}

static void __init run_empty(const struct probe *p)
{
	int pass;

	for (pass = 0; pass < p->passes; pass++) {
		print_ns(p, "", mean(p, parallel, 0));
		if (PATCHED)
			print_ns(p, ".nice", mean(p, parallel, MAX_NICE));
	}
}

static void __init run_idle(const struct probe *p)
{
	u64 alone, job, nice;
	int pass;

	for (pass = 0; pass < p->passes; pass++) {
		alone = mean(p, serial, 0);
		job = mean(p, parallel, 0);
		print_ns(p, ".serial", alone);
		print_ns(p, "", div64_u64(job * p->us * NSEC_PER_USEC, alone));
		print_speedup(p, ".speedup", alone, job);
		if (PATCHED) {
			nice = mean(p, parallel, MAX_NICE);
			print_ns(p, ".nice", div64_u64(nice * p->us * NSEC_PER_USEC, alone));
			print_speedup(p, ".nice-speedup", alone, nice);
		}
		print_ns(p, ".limit", div64_u64(mean(p, split, 0) * p->us * NSEC_PER_USEC, alone));
	}
}

/*
 * Every CPU has a nice-0 loop, as a program in user space would be: scheduled
 * away whenever the tick asks for it. The loops count what they do. Their rate is
 * taken over the job alone (.lost: what they lose against their rate beside the
 * serial job) and over a window of three times the work from the start of the job
 * on, within which the job ends either way (.window-lost: what is lost for good,
 * for a job that merely ends earlier takes from the loops no more than a serial one).
 */
static int __init busy_fn(void *arg)
{
	struct probe_cpu *c = this_cpu_ptr(&probe_cpu);

	atomic_inc(&nr_started);
	while (!kthread_should_stop()) {
		work_us(10);
		WRITE_ONCE(c->loops, c->loops + 1);
		if (need_resched() || test_thread_flag(TIF_NEED_RESCHED_LAZY))
			schedule();
	}
	return 0;
}

static u64 __init loops(void)
{
	u64 sum = 0;
	int cpu;

	for_each_online_cpu(cpu)
		sum += READ_ONCE(per_cpu(probe_cpu.loops, cpu));
	return sum;
}

struct busy {
	u64 ns;			/* Time of the job */
	u64 rate, window_rate;	/* Loops a second */
};

static struct busy __init run_beside(const struct probe *p,
				     u64 (*way)(const struct probe *p, int nice), int nice)
{
	u64 window = 3 * p->us * NSEC_PER_USEC, before, begin, ns;
	struct busy b;

	usleep_range(20000, 21000);
	begin = ktime_get_ns();
	before = loops();
	b.ns = way(p, nice);
	b.rate = div64_u64((loops() - before) * NSEC_PER_SEC, ktime_get_ns() - begin);
	ns = ktime_get_ns() - begin;
	if (ns < window)
		fsleep(div_u64(window - ns, NSEC_PER_USEC));
	b.window_rate = div64_u64((loops() - before) * NSEC_PER_SEC, ktime_get_ns() - begin);
	return b;
}

static void __init print_lost(const struct probe *p, const char *metric, u64 before, u64 now)
{
	print(p, metric, div64_s64(((s64)before - (s64)now) * 100000, before), "%");
}

static void __init run_busy(const struct probe *p)
{
	struct busy alone, nice0, nice;
	int pass;

	start_threads(busy_fn, p, -1);
	for (pass = 0; pass < p->passes; pass++) {
		alone = run_beside(p, serial, 0);
		nice0 = run_beside(p, parallel, 0);
		print_ns(p, ".serial", alone.ns);
		print_ns(p, ".nice0", nice0.ns);
		print_lost(p, ".nice0-lost", alone.rate, nice0.rate);
		if (!PATCHED) {
			print_ns(p, "", alone.ns);
			continue;
		}
		nice = run_beside(p, parallel, MAX_NICE);
		print_ns(p, "", nice.ns);
		print_speedup(p, ".speedup", alone.ns, nice.ns);
		print_lost(p, ".lost", alone.rate, nice.rate);
		print_lost(p, ".window-lost", alone.window_rate, nice.window_rate);
	}
	stop_threads();
}

/* A SCHED_FIFO thread on each CPU but the caller's. */
static int __init fifo_fn(void *arg)
{
	sched_set_fifo(current);
	atomic_inc(&nr_started);
	while (!kthread_should_stop())
		cpu_relax();
	return 0;
}

static u64 __init run_hogged(const struct probe *p, u64 (*way)(const struct probe *p, int nice),
			     int nice)
{
	u64 ns;

	usleep_range(20000, 21000);
	migrate_disable();
	start_threads(fifo_fn, p, smp_processor_id());
	migrate_enable();
	ns = way(p, nice);
	stop_threads();
	return ns;
}

static void __init run_fifo(const struct probe *p)
{
	u64 alone, nice0, nice;
	int pass;

	for (pass = 0; pass < p->passes; pass++) {
		alone = run_hogged(p, serial, 0);
		nice0 = run_hogged(p, parallel, 0);
		print_ns(p, ".serial", alone);
		print_ns(p, ".nice0", nice0);
		if (!PATCHED) {
			print_ns(p, "", alone);
			continue;
		}
		print_ns(p, "", nice0);
		print_speedup(p, ".speedup", alone, nice0);
		nice = run_hogged(p, parallel, MAX_NICE);
		print_ns(p, ".nice", nice);
		print_speedup(p, ".nice-speedup", alone, nice);
	}
}

/*
 * Work that lives on nodes: an equal range for each that has CPUs, the n-th one
 * beginning at n * us. The base, which knows no ranges, does it as a single one.
 */
static int node_of_range[MAX_NUMNODES] __initdata;
static atomic_long_t own_work, all_work, own_chunks, all_chunks;

static chunk_ret __init node_chunk(unsigned long start, unsigned long end, void *arg)
{
	bool own = node_of_range[start / job_size] == numa_node_id();

	atomic_long_add(end - start, &all_work);
	atomic_long_inc(&all_chunks);
	if (own) {
		atomic_long_add(end - start, &own_work);
		atomic_long_inc(&own_chunks);
	}
	work_us(end - start);
	return CHUNK_DONE;
}

static void __init node_job(const struct probe *p, int nice)
{
	struct padata_mt_job job = {
		.thread_fn	= p->fn,
		.align		= 1,
		.min_chunk	= p->min_chunk,
		.max_threads	= num_online_cpus(),
	};
	int nid, nr = 0;
#if PATCHED
	static struct padata_mt_range ranges[MAX_NUMNODES] __initdata;
#endif

	for_each_node_state(nid, N_CPU) {
		node_of_range[nr] = nid;
#if PATCHED
		ranges[nr] = (struct padata_mt_range) {
			.start	= nr * p->us,
			.size	= p->us,
			.nid	= nid,
		};
#endif
		nr++;
	}
#if PATCHED
	job.ranges = ranges;
	job.nr_ranges = nr;
#else
	job.size = nr * p->us;
#endif
	set_nice(&job, nice);
	usleep_range(20000, 21000);
	padata_do_multithreaded(&job);
}

static void __init print_share(const struct probe *p, const char *metric, atomic_long_t *part,
			       atomic_long_t *all)
{
	print(p, metric, div64_u64(atomic_long_read(part) * 100000ULL, atomic_long_read(all)), "%");
	atomic_long_set(part, 0);
	atomic_long_set(all, 0);
}

static void __init run_nodes(const struct probe *p)
{
	int pass, i;

	for (pass = 0; pass < p->passes; pass++) {
		for (i = 0; i < p->jobs; i++)
			node_job(p, 0);
		print_share(p, "", &own_work, &all_work);
		print_share(p, ".chunks", &own_chunks, &all_chunks);
		if (!PATCHED)
			continue;
		for (i = 0; i < p->jobs; i++)
			node_job(p, MAX_NICE);
		print_share(p, ".nice", &own_work, &all_work);
		print_share(p, ".nice-chunks", &own_chunks, &all_chunks);
	}
}

static const struct probe probes[] __initconst = {
	{ "empty", run_empty, empty_chunk, 1000, 1, 20, 15 },
	{ "1ms", run_idle, even_chunk, 1000, 20, 20, 15 },
	{ "10ms", run_idle, even_chunk, 10000, 20, 5, 15 },
	{ "100ms", run_idle, even_chunk, 100000, 20, 2, 11 },
	{ "tail", run_idle, rising_chunk, 10000, 20, 5, 15 },
	{ "busy", run_busy, even_chunk, 200000, 20, 1, 7 },
	{ "fifo", run_fifo, even_chunk, 100000, 20, 1, 9 },
	{ "fifo-long", run_fifo, even_chunk, 1200000, 20, 1, 3 },
	{ "nodes", run_nodes, node_chunk, 100000, 80, 15, 2 },
};

static char wanted[16] __initdata;

static int __init padata_probe_setup(char *s)
{
	strscpy(wanted, s);
	return 1;
}
__setup("padata_probe=", padata_probe_setup);

static int __init padata_probe(void)
{
	int i;

	if (!wanted[0])
		return 0;
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		const struct probe *p = &probes[i];

		if (strcmp(p->name, wanted))
			continue;
		/* What else the boot does beside its init calls */
		async_synchronize_full();
		wait_for_initramfs();
		msleep(500);
		calibrate();
		job_size = p->us;
		p->run(p);
		return 0;
	}
	pr_err("padata_probe: no probe \"%s\"\n", wanted);
	return 0;
}
late_initcall(padata_probe);
