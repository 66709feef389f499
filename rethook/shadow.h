/* SPDX-License-Identifier: MIT */
/*
 * The shadow stack: per thread, an array of struct shadow_entry (arch/arch.h) that holds the
 * return addresses of the traced calls in progress, oldest first.
 *
 * The straight-line code in the detours does the common case: reserve the next entry, fill it,
 * find it on top again at the return. Everything else comes here: a thread's first call, tail
 * calls, frames that vanished (longjmp, exceptions), other stacks (signals, fibers), the first
 * call after a fork, overflow.
 *
 * Rules, each of which a signal handler may test between any two instructions:
 *  - One instruction reserves (top += size), one releases (top: E + size -> E, compare and
 *    exchange). Entries never move.
 *  - `owner` is stored first, `key` last; key = 0 is a hole, which looks newer than everything.
 *  - An entry is taken off by exchanging its key for 0, by whoever sees it return or proves it
 *    dead; so it is accounted once. Taken off below the top it stays as a hole that is marked
 *    SHADOW_RELEASED, and is collected when it comes to the top.
 *  - Only the thread itself moves its top. Another thread (a fiber that migrated) may only take
 *    an entry off.
 *  - What proves an entry dead: its slot is used by a newer call; its stack word no longer holds a
 *    return point; a caller of it returned. The order of addresses alone proves nothing, since
 *    stacks can be carved out of stacks.
 */
#ifndef RETHOOK_SHADOW_H
#define RETHOOK_SHADOW_H

#include "../arch/arch.h"

#define SHADOW_TOMBSTONES 128

struct shadow_thread {
	struct shadow_node node; /* first: the unwind expression walks these */
	struct shadow_entry *end; /* of the array */
	uint64_t *records;	 /* a word in memory that a fork wipes: struct func_record * or 0 */
	uint64_t dirty;		 /* node.span of a thread that did not survive a fork */
	int tid;		 /* THREAD_FREE: nobody's */
	uint32_t block;	   /* the recorder's */
	bool carved;	   /* has been seen on a stack carved out of its own */
	bool failed;	   /* no records to be had: every call is lost */
	uint64_t resume;   /* _Unwind_Resume of the unwinder whose exception passes */
	uint32_t tombstone; /* next to be overwritten */
	struct shadow_entry tombstones[SHADOW_TOMBSTONES]; /* dropped, but perhaps wrongly */
};

/* What the recorder gives; set before the first detour can run. */
struct shadow_hooks {
	enum detour_mode mode;
	/*
	 * Give @thread its records: at its first call, and again after a fork, which the recorder
	 * tells by its own wiped memory. Returns true in a forked child's first call: all entries
	 * are the parent's. Runs with signals blocked. Leaves *thread->records = 0 when it cannot.
	 */
	bool (*attach)(struct shadow_thread *thread);
	/* @thread's memory, records included, goes to another thread (thread->tid is set). */
	void (*renew)(struct shadow_thread *thread);
	void (*lost_call)(void);
	/* We are a vfork child: thread and memory are the parent's. */
	bool (*borrowed)(void);
};
extern struct shadow_hooks shadow_hooks;

/* Thread-local words that detours use; initial-exec. */
extern __thread struct shadow_entry *shadow_top;
extern __thread uint64_t *shadow_records;

extern uint64_t shadow_nodes[2]; /* the list's first node; always zero */

/* The four functions of struct isa_env. */
void shadow_slow_entry(struct slow_frame *frame);
void shadow_slow_exit(struct slow_frame *frame);
void shadow_slow_unwind(struct slow_frame *frame);
void shadow_slow_release(struct slow_frame *frame);

/* The calling thread's, or NULL before its first traced call. */
struct shadow_thread *shadow_current(void);

/* Images whose return points may be on stacks. [lo, hi) is the text; never removed. */
void shadow_add_image(uint64_t lo, uint64_t hi, uint64_t pad);
bool shadow_is_return_point(uint64_t addr);
uint64_t shadow_pad_of(uint64_t addr); /* the landing pad of the image @addr lies in, or 0 */

/* Where the return address of stack slot @slot is kept now: @slot itself, or the address of the
 * shadow entry's word, which may be read and written. */
uint64_t shadow_locate(uint64_t slot);

/* Book the time of all open calls up to now, as the process is about to end. Calls of threads
 * that have ended are closed as unwound. */
void shadow_flush(void);

#endif
