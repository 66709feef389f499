/* SPDX-License-Identifier: MIT */
/*
 * The images that hold the detours of targets (target.h). One that no function is led to any more is
 * kept for the next probe, but only a few; the others are given back once nobody can be in them.
 * One caller at a time, except where a comment says otherwise.
 */
#ifndef TRACER_DETOURS_H
#define TRACER_DETOURS_H

#include "plan.h"

struct detours {
	struct detours *next;
	void *handle; /* the loader's */
	uint64_t lo, hi;
	uint32_t users; /* functions that are led to it */
	uint64_t idle;	/* without: when that began, compared with others */
	bool stays;	/* it cannot be told that nobody is in it */
};

/* Note the images that @plan has been given, without users. */
void detours_add(const struct plan *plan);

/* The one that @address is in; NULL: it is in none, or in one that is never given back. */
struct detours *detours_at(uint64_t address);

/* A function is led to @image, or no longer. NULL: does nothing. */
void detours_use(struct detours *image);
void detours_leave(struct detours *image);

/*
 * Take away images without users, but not those that somebody may be in: @all of them, or when there
 * are many those that have been so for longest. The calling thread's stack is looked at from @frame
 * on; it is in no handler. Returns those that are to be closed.
 */
struct detours *detours_sweep(bool all, const void *frame);

/* Close them. Takes the loader's lock, so not under the probes' one, which whoever waits for it in a
 * constructor would hold. Anyone may call this. Then: give back their memory. */
void detours_close(const struct detours *list);
void detours_free(struct detours *list);

#endif
