/* SPDX-License-Identifier: MIT */
/*
 * Exceptions and forced unwinding (pthread_exit, cancellation) through return points.
 *
 * A return point's frame has our own personality routine, whatever the traced module's language.
 * In the search phase it lets everything pass. In the cleanup phase it sends the unwinder to the
 * image's landing pad, which takes the entry off as "unwound" and calls _Unwind_Resume from a
 * frame that has the real return address in its slot. It must: libgcc tells the handler's frame by
 * its callee's CFA, a return point has the same CFA as the body above it, and a frame that is
 * taken for the handler's and goes on unwinding aborts the program.
 *
 * The routine uses the SetIP, SetGR and Resume of the unwinder that called it, found by its return
 * address. Itanium C++ ABI, Exception Handling, level 1.
 */
#ifndef RETHOOK_UNWIND_H
#define RETHOOK_UNWIND_H

#include "shadow.h"

struct unwind_context;

/* What is needed of an unwinder. */
struct unwinder {
	uint64_t lo, hi; /* its module */
	uint64_t (*get_ip)(struct unwind_context *);
	void (*set_ip)(struct unwind_context *, uint64_t);
	void (*set_gr)(struct unwind_context *, int, uint64_t);
	uint64_t resume; /* void (struct _Unwind_Exception *) */
};

/* Fills @out for the module that @addr lies in; false when it does not export what is needed.
 * Set by the tracer, called while an exception passes, on any thread. */
extern bool (*unwind_find)(uint64_t addr, struct unwinder *out);

/* Note an unwinder that is known beforehand. */
void unwind_add(const struct unwinder *unwinder);

/* struct isa_env.personality */
int unwind_personality(int version, int actions, uint64_t class, void *exception,
	struct unwind_context *context);

#endif
