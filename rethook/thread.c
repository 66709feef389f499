/* SPDX-License-Identifier: MIT */
#include "thread.h"
#include "mirror.h"
#include "../arch/sys.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#define REUSE_PROBES 8

/* The words before the mirror of a thread that has none. */
static uint64_t no_records[-MIRROR_RECORDS / 8];
static struct shadow_entry no_parent = { .slot = SHADOW_SLOT_MAX };

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
__thread struct shadow_words shadow_words INITIAL_EXEC = {
	.mirror = (uint64_t)no_records - MIRROR_RECORDS, .current = &no_parent
};

static struct shadow_thread *reuse_cursor;

void thread_block_signals(uint64_t *saved)
{
	uint64_t all = ~0ull;

	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, saved, 8);
}

void thread_restore_signals(const uint64_t *saved)
{
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, saved, NULL, 8);
}

struct shadow_thread *thread_first(void)
{
	return (struct shadow_thread *)__atomic_load_n(&shadow_root.nodes, __ATOMIC_ACQUIRE);
}

struct shadow_thread *thread_next(const struct shadow_thread *t)
{
	return (struct shadow_thread *)t->node.next;
}

struct shadow_thread *thread_of_records(uint64_t owner)
{
	struct shadow_thread *self = shadow_self();

	if (self && (uint64_t)shadow_records_of(self) == owner) /* usually, whatever the others' number */
		return self;
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		if ((uint64_t)shadow_records_of(t) == owner)
			return t;
	return NULL;
}

static bool is_gone(int tid)
{
	return tid == THREAD_FREE || sys_call(SYS_tgkill, sys_getpid(), tid, 0) == -ESRCH;
}

bool thread_is_gone(const struct shadow_thread *t)
{
	int tid = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);

	return tid == THREAD_FREE || (t != shadow_self() && is_gone(tid));
}

static bool take_over(struct shadow_thread *t, int tid)
{
	int old = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);

	return thread_is_gone(t)
		&& __atomic_compare_exchange_n(
			&t->tid, &old, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool reuse_nothing;

/* The memory of a thread that is gone; a few are tried, in turn. */
static struct shadow_thread *reuse(int tid)
{
	for (int i = 0; i < REUSE_PROBES && !reuse_nothing; i++) {
		struct shadow_thread *t = __atomic_load_n(&reuse_cursor, __ATOMIC_RELAXED);

		if (!t)
			t = thread_first();
		if (!t)
			return NULL;
		__atomic_store_n(&reuse_cursor, thread_next(t), __ATOMIC_RELAXED);
		if (take_over(t, tid)) {
			shadow_close(t);
			return t;
		}
	}
	return NULL;
}

static struct shadow_thread *create(int tid)
{
	struct shadow_thread *t = sys_mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(t))
		return NULL;
	if (mirror_map(&t->node)) {
		sys_munmap(t, sizeof(*t));
		return NULL;
	}
	t->records = (uint64_t *)(t->node.mirror + MIRROR_RECORDS);
	t->tid = tid;
	t->node.next = __atomic_load_n(&shadow_root.nodes, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&shadow_root.nodes, &t->node.next, (uint64_t)t, false,
		__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return t;
}

/* Whatever the thread that had this memory was at: a fork leaves threads behind anywhere. */
static void begin_afresh(struct shadow_thread *t)
{
	t->outermost = (struct shadow_entry){ .slot = SHADOW_SLOT_MAX };
	t->shared = t->paused = false;
	if (!t->records[0] && !shadow_hooks.no_clock) /* it ended in a pause */
		t->records[0] = t->records[1];
	t->resume = 0;
	t->ncovered = 0;
}

struct shadow_thread *thread_enter(void)
{
	int tid = sys_gettid();
	struct shadow_thread *t;

	if (shadow_hooks.borrowed())
		return NULL;
	t = reuse(tid);
	if (t && shadow_records_of(t))
		shadow_hooks.renew(t);
	if (!t)
		t = create(tid);
	if (!t)
		return NULL;
	begin_afresh(t);
	shadow_words.self = t;
	shadow_words.current = &t->outermost;
	shadow_words.own = t->node.mirror;
	__atomic_store_n(&shadow_words.mirror, t->node.mirror, __ATOMIC_RELEASE);
	return t;
}

void thread_wipe(void)
{
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		t->records[0] = t->records[1] = 0;
}

/*
 * Threads that the child has begun meanwhile have memory of their own already. If one of them comes
 * first it cannot tell which memory is the forking thread's: then nobody takes over any.
 */
void thread_only_survivor(struct shadow_thread *me)
{
	reuse_nothing = me->tid != sys_getpid();
	if (reuse_nothing)
		return;
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		int old = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);

		if (t != me && is_gone(old))
			__atomic_compare_exchange_n(
				&t->tid, &old, THREAD_FREE, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}
