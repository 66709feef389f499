/* SPDX-License-Identifier: MIT */
/*
 * Images that nothing leads to any more are unloaded, once nobody can be in them. That is
 *
 * - a thread that executes in it, was interrupted in it, or has called from it: live_find_busy();
 * - whoever returns through it. It has a shadow entry, and may be on a stack that does not run now;
 * - a row of calls that ended in jumps: the return handlers that are owed are called from the image of
 *   the function that they belong to, while the frame is another's.
 *
 * Nobody comes to it from elsewhere, so the calls are looked at between two looks at the threads:
 * who has left a stack that does not run is on one that does, and who is on neither is gone.
 */
#ifndef TRACER_UNLOAD_H
#define TRACER_UNLOAD_H

#include "../trampolines/live.h"

/* The images in question, sorted by address. */
struct unload {
	const struct code_range *ranges;
	bool *busy; /* false at first */
	size_t n;
};

/* See shadow_each_call(). */
typedef void unload_note(uint32_t func, uint64_t info, void *arg);

/*
 * Set u->busy where somebody may be; @note does so for the calls that it is told. The calling thread's
 * stack is looked at from @frame on. One caller at a time: looks at all threads, see threads.h.
 */
void unload_find_busy(const struct unload *u, unload_note *note, void *arg, const void *frame);

/* Nobody takes words that point to those that are not busy for return points any more. False: it cannot
 * be known when; they stay. */
bool unload_retire(const struct unload *u);

/* Close an image of theirs, which begins at @lo. Takes the loader's lock. */
void unload_image(void *handle, uint64_t lo);

#endif
