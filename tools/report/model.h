/* SPDX-License-Identifier: MIT */
/* Everything a data directory says, put together: what the outputs print. */
#ifndef REPORT_MODEL_H
#define REPORT_MODEL_H

#include <stdbool.h>
#include <stdio.h>
#include "datafile.h"
#include "host.h"

enum model_sort {
	MODEL_SORT_DEFAULT, /* total, or calls when no times are known */
	MODEL_SORT_TOTAL,
	MODEL_SORT_SELF,
	MODEL_SORT_CALLS,
	MODEL_SORT_AVG,
	MODEL_SORT_MAX,
	MODEL_SORT_NAME,
};

struct model_options {
	const char *dir;
	const char *filter; /* glob over name, symbol and aliases; NULL: all */
	enum model_sort sort;
	size_t top;	    /* at most so many functions; 0: all */
	uint32_t pid;	    /* only this process; 0: all */
	bool all;	    /* also functions without a call */
	bool merge;	    /* one entry per function, not one per function and process */
};

enum model_end {
	MODEL_END_UNKNOWN,
	MODEL_END_EXIT,
	MODEL_END_SIGNAL,
	MODEL_END_EXEC,
	MODEL_END_RUNNING,
};

/* A process image: a process that calls exec is several. */
struct model_process {
	char *file; /* name of its counts file */
	struct counts_header header;
	struct datafile_symbols *batches[FORMAT_BATCHES_MAX]; /* NULL: could not be read */
	enum model_end end;
	bool replaced; /* a later image of the same process exists */
	bool timed;    /* its records hold times and the clock's rate is known */
	struct host_rate rate;
};

#define MODEL_NONE UINT64_MAX /* of a time: not known */

/* A function that was called, in one process or, merged, in several. calls = returned + unwound +
 * open, always. */
struct model_function {
	struct datafile_symbols *symbols;
	size_t index;
	size_t process; /* index of the (first) process */
	uint64_t calls, returned, unwound, open;
	uint64_t total, self; /* ns */
	uint64_t min, max;    /* ns; MODEL_NONE also when nothing has ended yet */
	uint64_t timed;	      /* activations that ended and were timed */
	uint64_t key;	      /* of the sort order */
};

struct model_skipped {
	struct datafile_symbols *symbols;
	size_t index;
	size_t process;
};

struct model_thread {
	size_t process;
	uint32_t tid;
	uint32_t users;
	uint64_t calls;
	uint64_t self; /* ns, of all its functions: the time that was traced; MODEL_NONE */
	struct datafile_symbols *top_symbols; /* function with most self time, or most calls; */
	size_t top_index;		      /* NULL: none */
};

#define MODEL_REASONS 256

struct model {
	struct model_process **processes; /* by time of start */
	size_t nprocesses;
	struct model_function *functions; /* filtered, sorted, cut to the top */
	size_t nfunctions;
	size_t matched; /* before the cut */
	struct model_thread *threads;
	size_t nthreads;
	struct model_skipped *skipped; /* filtered */
	size_t nskipped;
	/* Different functions in all processes, before any filter. */
	size_t traced, refused;
	size_t reasons[MODEL_REASONS]; /* of the refused, by enum site_reason */
	uint64_t lost_calls, lost_threads, lost_processes, lost_functions;
	uint64_t flushes_asked, flushes_done; /* of instruction caches */
	bool timed;    /* of at least one process the times are known */
	bool no_rate;  /* of at least one they are lost, for want of the clock's rate */

	size_t faults; /* lines written about files that are not as they should be */
	/* private */
	const struct model_options *options;
	FILE *complaints;
	int dir;
	struct datafile_symbols **files;
	size_t nfiles;
};

/*
 * Read a data directory. Writes one line to @complaints about each file that cannot be used, and
 * counts them. 0, or -1 when there is no such directory (said too). @options must stay.
 */
int model_load(struct model *model, const struct model_options *options, FILE *complaints);
void model_free(struct model *model);

/* The returns are not observed: what it counts is entries alone, all taken as returned. */
bool model_entry_only(const struct model_function *function);
uint64_t model_average(const struct model_function *function); /* ns or MODEL_NONE */
const char *model_end_name(enum model_end end);
bool model_has_status(const struct model_process *process);
int model_status(const struct model_process *process); /* 0 unless it exited */

/* The process's arguments in turn: start with @arg = NULL; NULL at the end. */
const char *model_next_arg(const struct model_process *process, const char *arg);

#endif
