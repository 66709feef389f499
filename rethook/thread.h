/* SPDX-License-Identifier: MIT */
/*
 * The threads that have shadow stacks. A thread gets one at its first traced call and never gives
 * it back itself: traced code runs until the very end of a thread, after any destructor of ours.
 * The memory of threads that have ended is found by later ones.
 */
#ifndef RETHOOK_THREAD_H
#define RETHOOK_THREAD_H

#include "shadow.h"

#define THREAD_FREE (-1)

/* The calling thread's shadow stack, made now; signals are blocked. NULL: out of memory, or a
 * vfork child that borrows its parent's thread. */
struct shadow_thread *thread_enter(void);

/* The calling thread is the only one left, in a forked child. */
void thread_only_survivor(struct shadow_thread *thread);

/* What MADV_WIPEONFORK does to all threads in a forked child, where it is without effect. */
void thread_wipe(void);

bool thread_is_gone(const struct shadow_thread *thread);

/* The thread whose records are at @owner, NULL when it is not one of this process. */
struct shadow_thread *thread_of_records(uint64_t owner);

/* All of them, dead ones included. */
struct shadow_thread *thread_first(void);
struct shadow_thread *thread_next(const struct shadow_thread *thread);

void thread_block_signals(uint64_t *saved);
void thread_restore_signals(const uint64_t *saved);

#endif
