/* SPDX-License-Identifier: MIT */
/*
 * Where the other threads of this process are, found from outside and without stopping the
 * program: /proc/self/task tells where a thread that sleeps will go on, and one that runs is asked
 * by a signal to sleep for a moment.
 */
#ifndef TRAMPOLINES_THREADS_H
#define TRAMPOLINES_THREADS_H

#include "../arch/arch.h"
#include "maps.h"

/* What threads are asked by; libc's own, see threads.c. */
#define SIGNAL_ASK 33

/* Addresses [lo, hi). */
struct code_range {
	uint64_t lo, hi;
};

/*
 * A search, by one thread, with all its signals blocked; one at a time in the process. The caller
 * sets the first part, the rest is 0 in the beginning.
 */
struct threads {
	struct arena *arena;
	int mem; /* /proc/self/mem, open */
	const struct code_range *ranges; /* sorted, apart from each other */
	size_t nranges;
	bool everyone; /* for threads_hold_deaf(): all threads are asked */
	bool *busy; /* NULL; or an element for each range, set when a thread is there: then the
		     * search goes on */

	struct maps maps;
	int *listed, *seen; /* ids, sorted; room for nroom */
	int *fresh;	    /* the listed ones that were not seen, to be looked at */
	size_t nlisted, nseen, nfresh, nroom;
	char *text;	 /* of a file in /proc */
	uint64_t *words; /* of a stack */
	bool strict;	 /* a thread may make no system calls but read, write and exit */
	bool asked;	 /* threads were put to sleep */
};

/*
 * A breakpoint kills a thread that blocks SIGTRAP: ask all that do, but the calling one, to sleep
 * until threads_let_go(). From the next membarrier(2) on they execute nothing but our handler, in
 * which they sleep. Notes also whether a thread may make no system calls.
 * 0; -EBUSY: one cannot be asked; -EPERM; -ENOMEM.
 */
int threads_hold_deaf(struct threads *threads);

/* Does none of them block it? 0; -EBUSY: one does; -EPERM; -ENOMEM. */
int threads_none_deaf(struct threads *threads);

/* After threads_hold_deaf(): is there no other thread? */
bool threads_alone(const struct threads *threads);

/*
 * Is no thread but the calling one in threads->ranges, nor will return there? Every thread is
 * examined at a moment of its own after the call; one that was not there may come there later
 * through the front door. What looks like a return address counts as one.
 *
 * 0; -EBUSY: one is, or could not be examined; -EPERM; -ENOMEM.
 */
int threads_outside(struct threads *threads);

/* The same for the calling thread, whose stack is looked at from @frame on. */
int threads_self_outside(struct threads *threads, const void *frame);

/* Let those go on that were put to sleep, here or by threads_outside(). */
void threads_let_go(struct threads *threads);

/* Sleep while *@word is @value, at most so long (0: no limit); wake all who do, with another value. */
void threads_sleep(const uint32_t *word, uint32_t value, unsigned microseconds);
void threads_wake(uint32_t *word);

/* The same in a signal handler, with its ucontext_t: threads_outside() judges the thread by what the
 * signal has interrupted, from here until it has woken and runs again. */
void threads_sleep_in(const void *context, const uint32_t *word, uint32_t value,
	unsigned microseconds);

/* Threads that are in threads_sleep_in(). In memory that a fork wipes; before the first of them. */
#define THREADS_SLEEPERS 1024
struct threads_sleeper {
	uint32_t tid;	/* whose the element is; 0: nobody's */
	uint32_t times; /* it has been left */
	uint64_t context; /* 0: about to be one, or no longer */
};
extern struct threads_sleeper *threads_sleepers;
void threads_pause(unsigned microseconds);

#endif
