/* SPDX-License-Identifier: MIT */
/*
 * Read-copy-update for what handlers are found by. The read side is a store to the thread's own
 * memory; nothing is registered, locked or asked of the kernel there, in no thread at no time: it
 * runs in any function of the program, in the very last ones of a thread, in a forked child, under
 * seccomp. (liburcu-bp, else the obvious choice, does all of this at a thread's first read, and
 * calls libc for it, whose functions may be the hooked ones.) The writer makes the stores visible
 * with membarrier(2), as liburcu does; where there is none readers have a fence of their own.
 */
#ifndef RETHOOK_RCU_H
#define RETHOOK_RCU_H

#include "shadow.h"

extern uint64_t rcu_phase;
extern bool rcu_needs_fence;

/* Before the first reader. */
void rcu_prepare(void);

/*
 * A read side section of the calling thread. @outer: what rcu_lock() found, or 0 where it is known
 * that no other section can be open in this thread: one that was left by a longjmp is closed then.
 */
static inline void rcu_lock(struct shadow_thread *thread, uint64_t outer)
{
	if (!outer)
		__atomic_store_n(&thread->reading, __atomic_load_n(&rcu_phase, __ATOMIC_RELAXED),
			__ATOMIC_RELAXED);
	if (rcu_needs_fence)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void rcu_unlock(struct shadow_thread *thread, uint64_t outer)
{
	__atomic_store_n(&thread->reading, outer, __ATOMIC_RELEASE);
}

/*
 * Wait until all sections that may have seen what was replaced before are closed. One caller at a
 * time, in no section itself. Makes system calls. False: one stays open, most likely because a signal
 * handler has left it by longjmp and its thread has run no hooked function since; what was replaced
 * must stay.
 */
bool rcu_synchronize(void);

#endif
