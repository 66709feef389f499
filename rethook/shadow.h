/* SPDX-License-Identifier: MIT */
/*
 * The shadow stack: per thread, the return addresses of the traced calls in progress. It is
 * indexed by the stack slot of the return address (struct shadow_entry in arch/arch.h), not by
 * the order of calls. So a signal handler, a longjmp, a switch to another stack and back need no
 * care at all: every frame finds its own entry, and nobody moves a common top.
 *
 * The straight-line code in the detours does the common case. Everything else comes here: a
 * thread's first call, tail calls, frames that vanished (longjmp), two stacks that share a place,
 * fibers that changed threads, the first call after a fork.
 *
 * Rules, each of which a signal handler may test between any two instructions:
 *  - `slot` is stored last and makes the entry valid; it is zeroed first.
 *  - An entry is accounted once, by whoever gets to claim it.
 *  - What proves an entry dead is that its slot is used again, or no longer holds a return point.
 *    The order of addresses proves nothing, since stacks can be carved out of stacks.
 *  - `owner` tells whose numbers a call is in; after a fork the parent's calls return in the child
 *    without being counted there.
 */
#ifndef RETHOOK_SHADOW_H
#define RETHOOK_SHADOW_H

#include "../arch/arch.h"

#define HOOK_ACTIVE_MAX 32

struct shadow_thread {
	struct shadow_node node; /* first: the unwind expression walks these */
	/*
	 * Words that a fork wipes, at MIRROR_RECORDS. [0]: struct func_record *, or 0: detours take the
	 * slow path. [1]: the same for the slow path alone, see shadow_pause() and shadow_stop_clock().
	 */
	uint64_t *records;
	int tid;		 /* THREAD_FREE: nobody's */
	uint32_t block;		 /* the recorder's */
	bool failed;		 /* no records to be had: every call is lost */
	bool shared;		 /* see shadow_share() */
	uint64_t resume;	 /* _Unwind_Resume of the unwinder whose exception passes */
	struct shadow_entry *covered; /* ring of entries whose slot was used again */
	uint32_t ncovered;
	struct shadow_entry outermost; /* parent of a thread's first calls */
	bool paused;		 /* see shadow_pause() */
	/* rethook/rcu.h and hook.h */
	uint64_t reading;
	struct hook_activation active[HOOK_ACTIVE_MAX];
	uint32_t nparked;
	struct hook_state *states[2];
};

/* What hooks have to do with an entry, in its flags, beside SHADOW_HOOKED. */
#define SHADOW_LARGE  64 /* its hook_state is a large one */
#define SHADOW_OWED   128 /* those of calls that have jumped to this one are, too; `func` is inverted */

/* What the recorder gives; set before the first detour can run. */
struct shadow_hooks {
	enum detour_mode mode;
	const struct detour_info **infos; /* isa_env.infos */
	/*
	 * Give @thread its records: at its first call, and again after a fork, which the recorder
	 * tells by its own wiped memory. Returns true in a forked child's first call. Runs with
	 * signals blocked. Leaves *thread->records = 0 when it cannot.
	 */
	bool (*attach)(struct shadow_thread *thread);
	/* @thread's memory, records included, goes to another thread (thread->tid is set). */
	void (*renew)(struct shadow_thread *thread);
	void (*lost_call)(void);
	/* A function's return point, 0: not known. NULL, or asked where return addresses are not in
	 * their slots. */
	uint64_t (*point)(uint32_t func);
	/* A function that the tracer watches is entered. */
	void (*watch)(const struct slow_frame *frame);
	/* System calls may be forbidden from now on: make none. */
	bool sealed;
	bool no_clock; /* see shadow_stop_clock() */
	/* We are a vfork child: thread and memory are the parent's. */
	bool (*borrowed)(void);
};
extern struct shadow_hooks shadow_hooks;

/* Thread-local words that detours use; initial-exec. See struct isa_env. */
struct shadow_words {
	uint64_t mirror;
	struct shadow_entry *current;
	struct shadow_thread *self;
	uint64_t own;
};
extern __thread struct shadow_words shadow_words;

extern struct shadow_root shadow_root;

/* The four functions of struct isa_env. */
void shadow_slow_entry(struct slow_frame *frame);
void shadow_slow_exit(struct slow_frame *frame);
void shadow_slow_unwind(struct slow_frame *frame);
void shadow_slow_release(struct slow_frame *frame);

static inline uint32_t shadow_func_of(const struct shadow_entry *e)
{
	return e->flags & SHADOW_OWED ? ~e->func : e->func;
}

/* Do calls take time? */
static inline bool shadow_timed(void)
{
	return shadow_hooks.mode != MODE_COUNT && !shadow_hooks.no_clock;
}

/* The calling thread's, or NULL before its first traced call. */
static inline struct shadow_thread *shadow_self(void)
{
	return shadow_words.self;
}

/* The same with records, made now if need be; NULL when they cannot be had. */
struct shadow_thread *shadow_ready(void);

/* The entry that the frame of a return point returns through, and *@owner whose it is. */
struct shadow_entry *shadow_find(const struct slow_frame *frame, struct shadow_thread **owner);

/* Images whose return points may be on stacks. [lo, hi) is the image. False: there are too many,
 * and nothing may lead to this one. */
bool shadow_add_image(uint64_t lo, uint64_t hi, uint64_t pad);

/* The same in two steps: it is ours from the first one on, which is before it is loaded, so that the
 * loader's news of it are none; its code is not read before the second. */
bool shadow_announce_image(uint64_t lo, uint64_t hi, uint64_t pad);
void shadow_open_image(uint64_t lo);

/*
 * The image at @lo is about to go. Once it is retired and rcu_synchronize() has returned true,
 * nobody reads its code for what stale words of stacks point there. Removed, it is no image of ours.
 */
void shadow_retire_image(uint64_t lo);
void shadow_remove_image(uint64_t lo);

/*
 * The functions of all calls that may return, in all threads: open ones, those whose frames may be
 * gone and those that are taken for gone included. @info: of a call that has ended in a jump, and
 * whose return handlers are owed, its detour_info; else 0. Pages that are swapped out are not
 * looked at.
 */
void shadow_each_call(void (*visit)(uint32_t func, uint64_t info, void *arg), void *arg);

/* @addr: one that a live frame returns to, or that is in no image. */
bool shadow_is_return_point(uint64_t addr);
uint64_t shadow_pad_of(uint64_t addr); /* the landing pad of the image @addr lies in, or 0 */

/* The thread's records, whichever way they are reached; NULL: it has none. */
struct func_record *shadow_records_of(const struct shadow_thread *thread);

/*
 * Record nothing on the calling thread, whatever it calls, until resumed: for work of our own that
 * goes through traced functions. False when it cannot be: nothing is to be done then.
 */
bool shadow_pause(bool pause);

/*
 * Another task is about to run on the calling thread's thread pointer, at the same time: from now
 * on no frame of theirs is taken for gone, since a look at one is out of date at once. Their
 * counts may miss calls.
 */
void shadow_share(void);

/* System calls are about to be forbidden: what they are needed for is done now, or never. */
void shadow_seal(void);

/* The clock is about to be forbidden: calls are counted in the slow path from now on, untimed. */
void shadow_stop_clock(void);

/* Is @slot on the signal stack we are on, and @older not? Makes a system call. */
bool shadow_on_other_stack(uint64_t older, uint64_t slot);

/* Where the return address of stack slot @slot is kept now: @slot itself, or the address of the
 * shadow entry's word, which may be read and written. */
uint64_t shadow_locate(uint64_t slot);

/* Close the open calls of a thread that is gone as unwound. */
void shadow_close(struct shadow_thread *thread);

/*
 * The process is about to end: book the time of all open calls up to now, and close as unwound
 * those whose frames are gone. Of the calling thread's, those in [lo, hi) are: the unused part of
 * its stack. Its part up to @top is in use and readable: a frame there has called, and so may have to
 * have saved its return address.
 */
void shadow_flush(uint64_t lo, uint64_t hi, uint64_t top);

#endif
