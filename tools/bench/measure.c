/* SPDX-License-Identifier: MIT */
/*
 * One measurement. Times are the CPU time of each thread: what others take away from us does not
 * count, and how much that was is told.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "returns.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#define THREADS_MAX 2

struct runner {
	const struct row *row;
	pthread_barrier_t *start;
	int cpu;
	uint64_t rounds;
	double cpu_s, wall_s;
};

static double read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void timed(struct runner *r)
{
	double wall = read_clock(CLOCK_MONOTONIC);
	double cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);

	r->row->loop(r->rounds);
	r->cpu_s = read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	r->wall_s = read_clock(CLOCK_MONOTONIC) - wall;
}

static void *runner_main(void *arg)
{
	struct runner *r = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(r->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	returns_start_thread();
	r->row->loop(1);
	pthread_barrier_wait(r->start);
	timed(r);
	return NULL;
}

/* Each thread on a CPU of its own, all at once. */
static int timed_threads(struct runner *runners, uint32_t n)
{
	pthread_t threads[THREADS_MAX];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, n);
	for (uint32_t i = 0; i < n; i++) {
		runners[i].start = &start;
		int err = pthread_create(&threads[i], NULL, runner_main, &runners[i]);

		if (err)
			return err; /* those begun wait for ever; the caller ends the process */
	}
	for (uint32_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	return 0;
}

/* Rounds that take a quarter of the time; *@done counts all that were made. */
static struct runner find_rounds(const struct row *row, uint64_t *done)
{
	struct runner r = {.row = row, .rounds = 1};

	for (;; r.rounds *= 2) {
		timed(&r);
		*done += r.rounds;
		if (r.cpu_s >= bench.seconds / 4)
			return r;
	}
}

int measure_row(const struct row *row, struct timing *timing)
{
	struct runner found, runners[THREADS_MAX];
	int err = 0;

	*timing = (struct timing){.share = 1};
	found = find_rounds(row, &timing->rounds);
	found.rounds = (uint64_t)((double)found.rounds * (bench.seconds / found.cpu_s)) + 1;
	for (uint32_t i = 0; i < row->threads; i++) {
		runners[i] = found;
		runners[i].cpu = bench.cpus[i];
	}
	if (row->threads == 1)
		timed(&runners[0]);
	else
		err = timed_threads(runners, row->threads);
	if (err)
		return err;
	for (uint32_t i = 0; i < row->threads; i++) {
		struct runner *r = &runners[i];

		timing->ns += r->cpu_s * 1e9 / (double)r->rounds / row->calls / row->threads;
		if (r->cpu_s / r->wall_s < timing->share)
			timing->share = r->cpu_s / r->wall_s;
		timing->rounds += r->rounds + (row->threads > 1);
	}
	return 0;
}
