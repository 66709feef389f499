/* SPDX-License-Identifier: MIT */
#include "thread.h"
#include "../arch/sys.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#define SPAN_MIN     (SHADOW_CHUNK_MASK + 1ul)
#define ARRAY_MAX    (256ul << 20) /* 4 million open calls */
#define ARRAY_MIN    (128ul << 10)
#define WIPED_PAGE   4096ul
#define REUSE_PROBES 8
#define NESTED_MAX   64 /* signal handlers that interrupt each other in a thread's first call */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/*
 * What a thread's top points into before its first call: the key sends any call to the slow path.
 * Calls that are reserved here meanwhile store their owner, which nobody reads.
 */
static struct shadow_entry bottoms[NESTED_MAX] = {
	[0 ... NESTED_MAX - 1] = { .key = ~0ull },
};
static uint64_t no_records;

__thread struct shadow_entry *shadow_top __attribute__((tls_model("initial-exec"))) = &bottoms[1];
__thread uint64_t *shadow_records __attribute__((tls_model("initial-exec"))) = &no_records;
static __thread struct shadow_thread *self __attribute__((tls_model("initial-exec")));

static struct shadow_thread *reuse_cursor;

struct shadow_thread *shadow_current(void)
{
	return self;
}

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
	return (struct shadow_thread *)__atomic_load_n(&shadow_nodes[0], __ATOMIC_ACQUIRE);
}

struct shadow_thread *thread_next(const struct shadow_thread *t)
{
	return (struct shadow_thread *)t->node.next;
}

bool thread_is_gone(const struct shadow_thread *t)
{
	int tid = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);

	return tid == THREAD_FREE
		|| (t != self && sys_call(SYS_tgkill, sys_getpid(), tid, 0) == -ESRCH);
}

bool thread_holds(const struct shadow_thread *t, const struct shadow_entry *e)
{
	return (uint64_t)e > t->node.bottom && e <= t->end;
}

bool thread_has_room(struct shadow_thread *t, const struct shadow_entry *e)
{
	if (e >= t->end)
		return false;
	while ((uint64_t)(e + 1) > t->node.bottom + t->node.span)
		__atomic_store_n(&t->node.span, t->node.span * 2, __ATOMIC_RELEASE);
	return true;
}

struct shadow_entry *thread_find_elsewhere(const struct shadow_thread *me, uint64_t slot,
	uint32_t id)
{
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		struct shadow_entry *bottom = (struct shadow_entry *)t->node.bottom;
		struct shadow_entry *e = (struct shadow_entry *)(t->node.bottom + t->node.span) - 1;

		for (; t != me && e > bottom; e--)
			if (e->key == -slot && (!id || e->func == id))
				return e;
	}
	return NULL;
}

/* ---- a thread's memory ---- */

static void *map(size_t size, int flags)
{
	return sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		0);
}

/*
 * A word that a fork sets to zero. Words are a cache line apart, each is written once per thread.
 * Only called with signals blocked; threads may race.
 */
static uint64_t *wiped_word(void)
{
	static uint64_t *page;	/* guarded by: used, which counts past the end while one maps */
	static uint32_t used = WIPED_PAGE / 64;
	static int lock;
	uint64_t *word = NULL;

	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		sys_call(SYS_sched_yield);
	if (used == WIPED_PAGE / 64) {
		uint64_t *fresh = map(WIPED_PAGE, 0);

		if (!sys_failed(fresh)) {
			sys_call(SYS_madvise, fresh, WIPED_PAGE, MADV_WIPEONFORK);
			page = fresh;
			used = 0;
		}
	}
	if (used < WIPED_PAGE / 64)
		word = page + 8 * used++;
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	return word;
}

/* An array whose bottom lies at a multiple of the chunk size, as large as can be had. */
static bool map_array(struct shadow_thread *t, size_t want)
{
	for (size_t size = want; size >= ARRAY_MIN; size /= 8) {
		uint8_t *raw = map(size + SPAN_MIN, MAP_NORESERVE);
		uint64_t start;

		if (sys_failed(raw))
			continue;
		start = ((uint64_t)raw + SPAN_MIN - 1) & -SPAN_MIN;
		t->node.bottom = start;
		t->end = (struct shadow_entry *)(start + size);
		((struct shadow_entry *)start)->key = ~0ull;
		return true;
	}
	return false;
}

static uint64_t parse_hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		char c = **p;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

/* The bounds of the stack we are on; where the kernel does not tell, what lies around @sp. */
static void find_stack(struct shadow_thread *t, uint64_t sp)
{
	uint64_t lo = sp & -4096ul, hi = lo + 4096;
	struct arena arena = { 0 };
	const char *line = sys_slurp(&arena, "/proc/self/maps", NULL);

	while (line && *line) {
		const char *p = line;
		uint64_t from = parse_hex(&p), to = (p++, parse_hex(&p));

		while (*p && *p != '\n' && *p != '[')
			p++;
		if (sp - from < to - from) {
			lo = str_starts(p, "[stack]") ? to - (1ul << 34) : from;
			hi = to;
			break;
		}
		while (*line && *line++ != '\n')
			;
	}
	arena_free(&arena);
	t->node.neg_hi = -hi;
	t->node.neg_lo = -lo;
}

/* Close what a thread that is gone has left open, and make its array look new. */
static void clean(struct shadow_thread *t)
{
	struct func_record *records = (struct func_record *)*t->records;
	uint64_t span = t->node.span ? t->node.span : t->dirty;

	t->node.neg_hi = t->node.neg_lo = 0;
	for (uint64_t at = SHADOW_ENTRY_SIZE; at < span; at += SHADOW_ENTRY_SIZE) {
		struct shadow_entry *e = (struct shadow_entry *)(t->node.bottom + at);

		if (!e->key && !e->owner && !e->flags)
			continue;
		if (e->key && records && e->func != ~0u && !e->flags) {
			records[e->func].unwound++;
			if (records[e->func].depth)
				records[e->func].depth--;
		}
		memset(e, 0, sizeof(*e));
	}
	if (span > SPAN_MIN)
		sys_call(SYS_madvise, t->node.bottom + SPAN_MIN, span - SPAN_MIN, MADV_DONTNEED);
	t->node.span = SPAN_MIN;
	t->dirty = 0;
	t->carved = t->failed = false;
	memset(t->tombstones, 0, sizeof(t->tombstones));
}

static bool take_over(struct shadow_thread *t, int tid)
{
	int old = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);

	return thread_is_gone(t)
		&& __atomic_compare_exchange_n(
			&t->tid, &old, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool bounds_hold(const struct shadow_thread *t, uint64_t sp)
{
	return sp >= -t->node.neg_lo && sp < -t->node.neg_hi;
}

/* The memory of a thread that is gone: the one that had this stack, else one of a few tried. */
static struct shadow_thread *reuse(int tid, uint64_t sp)
{
	struct shadow_thread *t, *best = NULL;

	for (t = thread_first(); t; t = thread_next(t))
		if (bounds_hold(t, sp) && take_over(t, tid)) {
			clean(t);
			if (best)
				__atomic_store_n(&best->tid, THREAD_FREE, __ATOMIC_RELEASE);
			best = t;
		}
	for (int i = 0; !best && i < REUSE_PROBES; i++) {
		t = __atomic_load_n(&reuse_cursor, __ATOMIC_RELAXED);
		if (!t)
			t = thread_first();
		if (!t)
			break;
		__atomic_store_n(&reuse_cursor, thread_next(t), __ATOMIC_RELAXED);
		if (take_over(t, tid)) {
			clean(t);
			best = t;
		}
	}
	return best;
}

static struct shadow_thread *create(uint64_t sp)
{
	struct shadow_thread *t = map((sizeof(*t) + 4095) & -4096ul, 0);
	uint64_t want;

	if (sys_failed(t))
		return NULL;
	find_stack(t, sp);
	/* A frame takes 16 bytes of stack at least, its entry 64. */
	want = (t->node.neg_lo - t->node.neg_hi) * 4;
	want = (want + SPAN_MIN - 1) & -SPAN_MIN;
	if (want < 8 * ARRAY_MIN)
		want = 8 * ARRAY_MIN;
	if (want > ARRAY_MAX)
		want = ARRAY_MAX;
	t->records = wiped_word();
	if (!t->records || !map_array(t, want)) {
		sys_munmap(t, (sizeof(*t) + 4095) & -4096ul);
		return NULL;
	}
	t->node.span = SPAN_MIN;
	return t;
}

static void publish(struct shadow_thread *t)
{
	t->node.next = __atomic_load_n(&shadow_nodes[0], __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&shadow_nodes[0], &t->node.next, (uint64_t)t, false,
		__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

struct shadow_thread *thread_enter(void)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	int tid = sys_gettid();
	struct shadow_thread *t;

	if (shadow_hooks.borrowed())
		return NULL;
	t = reuse(tid, sp);
	if (t) {
		find_stack(t, sp);
		if (*t->records)
			shadow_hooks.renew(t);
	} else {
		t = create(sp);
		if (!t)
			return NULL;
		t->tid = tid;
		publish(t);
	}
	self = t;
	shadow_records = t->records;
	__atomic_store_n(&shadow_top, (struct shadow_entry *)t->node.bottom + 1, __ATOMIC_RELEASE);
	return t;
}

void thread_only_survivor(struct shadow_thread *me)
{
	me->tid = sys_gettid();
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		if (t == me)
			continue;
		t->tid = THREAD_FREE;
		if (t->node.span)
			t->dirty = t->node.span;
		t->node.span = 0;
		t->node.neg_hi = t->node.neg_lo = 0;
	}
}
