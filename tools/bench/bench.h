/* SPDX-License-Identifier: MIT */
/*
 * ftr-bench measures in child processes, one after the other and all on one CPU: the same rows in
 * a process that is not traced and in processes that libftr.so traces. A repetition is one child
 * of each kind, so whatever changes slowly in the machine changes for all of them.
 */
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a child runs under. */
enum world { WORLD_PLAIN, WORLD_COUNT, WORLD_PROFILE, WORLDS };
extern const char *const world_names[WORLDS];

enum probe_kind { PROBE_NONE, PROBE_ENTRY, PROBE_RETURN };

#define HANDLERS_ENTRY	 1
#define HANDLERS_RETURN	 2
#define HANDLERS_VECTORS 4 /* may use vector registers */

struct row {
	const char *name;
	void (*loop)(uint64_t rounds);
	void (*function)(void); /* of libftr-bench-target.so, called by the loop; NULL: none */
	const char *function_name; /* its symbol */
	uint32_t calls; /* of it in a round */
	uint32_t threads;
	bool entry_only; /* the function reads its return address: its return is not hooked */
	bool traced_too; /* measured in every world, else in the plain one only */
	enum probe_kind probe; /* a probe of the kernel to put on the function */
	uint8_t nprobes; /* of the library to put on it */
	uint8_t handlers; /* HANDLERS_*: which they have */
};
extern const struct row rows[];
extern const size_t nrows;

/* What was asked for. */
struct bench {
	int repetitions;
	double seconds; /* of one measurement */
	int cpus[2]; /* the second is for the second thread; -1: there is none */
	const char *self; /* this program's path */
	const char *library; /* libftr.so's */
};
extern struct bench bench;
#define REPETITIONS_MAX 99

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);

/* One measurement. */
struct timing {
	double ns; /* CPU time per call, in the mean of the threads */
	double share; /* of the wall-clock time that the threads had a CPU; 1: undisturbed */
	uint64_t rounds; /* all that were made, by all threads, warming up included */
};

/* Measure it for bench.seconds or so. 0 or an error number (no thread could be started). */
int measure_row(const struct row *row, struct timing *timing);

/* A probe of the kernel on the row's function: NULL, or why it cannot be had. */
const char *uprobe_open(const struct row *row, int *fd);
/* How often it was hit; closes it. */
uint64_t uprobe_close(int fd);

/* Probes of the library on the row's function: NULL, or why they cannot be had. */
const char *handlers_attach(const struct row *row);
void handlers_detach(void);

/* The same empty handler called directly, and from a list of one. */
void handlers_call_direct(void);
void handlers_call_list(void);

/* What libftr.so wrote into a data directory: calls and returns of a function, by its symbol.
 * NULL, or what is wrong. */
const char *counts_read(const char *dir, const char *function, uint64_t *calls, uint64_t *returned);

/* Calls of FLUSH_PROBES probes' functions are led to their detours and back in a traced child: how
 * often had instruction caches to be flushed for all the code that it put in place? */
#define FLUSH_PROBES 100
struct flushes {
	uint64_t asked, done; /* in the last child */
	char problem[160]; /* as below */
};
extern struct flushes flushes;
const char *counts_flushes(const char *dir, uint64_t *asked, uint64_t *done);

/* A row in a world, over all repetitions. */
struct result {
	double ns[REPETITIONS_MAX];
	int n;
	double share; /* the least */
	uint64_t calls; /* in the last child */
	char problem[160]; /* not empty: the figures are none, or not to be trusted */
	bool wrong; /* ftr counted other than what was done */
	double median, min, max;
};
#define ROWS_MAX 64
extern struct result results[WORLDS][ROWS_MAX];

size_t find_row(const char *name);

/* What a child process does: measure the rows of its world and print one line for each. */
void child_main(enum world world);
/* All repetitions, into results[]. False when ftr counted wrongly somewhere. */
bool run_all(void);

void print_text(const char *machine);
void print_json(const char *machine);

#endif
