/* SPDX-License-Identifier: MIT */
#include "shadow.h"
#include "thread.h"
#include "../arch/sys.h"
#include <errno.h>
#include <signal.h>

#define FLAG_RELEASED  SHADOW_RELEASED
#define FLAG_CLAIMED   2 /* accounted; released by shadow_slow_release() */
#define FUNC_INHERITED 0xffffffffu /* made before a fork: spare[0] has the id, nobody counts it */
#define SCAN_MAX       65536

struct shadow_hooks shadow_hooks;
uint64_t shadow_nodes[2];

enum outcome { RETURNED, UNWOUND };

/* ---- images ---- */

#define IMAGES_MAX 512
static struct image_range {
	uint64_t lo, hi, pad;
} images[IMAGES_MAX];
static uint32_t nimages; /* release: the range is complete; acquire in shadow_pad_of() */

void shadow_add_image(uint64_t lo, uint64_t hi, uint64_t pad)
{
	uint32_t n = __atomic_load_n(&nimages, __ATOMIC_RELAXED);

	if (n == IMAGES_MAX)
		return;
	images[n] = (struct image_range){ lo, hi, pad };
	__atomic_store_n(&nimages, n + 1, __ATOMIC_RELEASE);
}

uint64_t shadow_pad_of(uint64_t addr)
{
	uint32_t n = __atomic_load_n(&nimages, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (addr - images[i].lo < images[i].hi - images[i].lo)
			return images[i].pad;
	return 0;
}

bool shadow_is_return_point(uint64_t addr)
{
	return shadow_pad_of(addr) && arch_is_return_point((const void *)addr);
}

/* ---- one entry ---- */

static uint64_t slot_of(const struct shadow_entry *e)
{
	return -__atomic_load_n(&e->key, __ATOMIC_RELAXED);
}

static struct shadow_entry *bottom_of(const struct shadow_thread *t)
{
	return (struct shadow_entry *)t->node.bottom;
}

static bool on_own_stack(const struct shadow_thread *t, uint64_t slot)
{
	return slot >= -t->node.neg_lo && slot < -t->node.neg_hi;
}

static struct shadow_entry *top_of_thread(void)
{
	return __atomic_load_n(&shadow_top, __ATOMIC_RELAXED);
}

static struct shadow_entry *entry_reserve(void)
{
	return (struct shadow_entry *)__atomic_fetch_add(
		(uint64_t *)&shadow_top, SHADOW_ENTRY_SIZE, __ATOMIC_RELAXED);
}

/* Lower the top from behind @e to @e. False when it is not there: @e must stay as a hole. */
static bool entry_pop(struct shadow_entry *e)
{
	struct shadow_entry *expected = e + 1;

	return __atomic_compare_exchange_n(
		&shadow_top, &expected, e, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Holes that were released while something lay above them. */
static void collect(struct shadow_thread *t)
{
	for (;;) {
		struct shadow_entry *e = top_of_thread() - 1;

		if (e <= bottom_of(t) || e->key || !(e->flags & FLAG_RELEASED))
			return;
		e->flags = 0;
		if (!entry_pop(e)) {
			e->flags = FLAG_RELEASED;
			return;
		}
	}
}

/* Give up an entry of this thread that nobody refers to any more. */
static void entry_release(struct shadow_thread *t, struct shadow_entry *e)
{
	e->owner = 0;
	__atomic_store_n(&e->key, 0, __ATOMIC_RELAXED);
	e->flags = FLAG_RELEASED;
	collect(t);
}

/* The right to account an entry and to take it off goes to one. */
static bool entry_claim(struct shadow_entry *e)
{
	return !(__atomic_fetch_or(&e->flags, FLAG_CLAIMED, __ATOMIC_RELAXED) & FLAG_CLAIMED);
}

/* ---- accounting ---- */

static struct func_record *records_of(const struct shadow_thread *t)
{
	return (struct func_record *)__atomic_load_n(t->records, __ATOMIC_RELAXED);
}

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* The nearest older entry that encloses @e on the same stack. */
static struct shadow_entry *parent_of(const struct shadow_thread *t, struct shadow_entry *e)
{
	uint64_t slot = slot_of(e);

	for (struct shadow_entry *p = e - 1; p > bottom_of(t); p--)
		if (p->key)
			return slot_of(p) > slot ? p : NULL;
	return NULL;
}

static void account_time(struct shadow_thread *t, struct shadow_entry *e, struct func_record *r,
	uint64_t now, bool own)
{
	uint64_t took = now > e->start ? now - e->start : 0;
	struct shadow_entry *parent = own ? parent_of(t, e) : NULL;

	if (parent)
		parent->child += took;
	if (took > r->max)
		r->max = took;
	if (~took > r->nmin)
		r->nmin = ~took;
	if (own && r->depth)
		r->depth--;
	if (!r->depth)
		r->total += took;
	r->self += took > e->child ? took - e->child : 0;
}

/* @own: the entry lies in this thread's array. */
static void account(struct shadow_thread *t, struct shadow_entry *e, enum outcome outcome, bool own)
{
	struct func_record *r = records_of(t);

	if (!r || e->func == FUNC_INHERITED)
		return;
	r += e->func;
	add(outcome == RETURNED ? &r->returned : &r->unwound, 1);
	if (shadow_hooks.mode != MODE_COUNT)
		account_time(t, e, r, arch_clock(), own);
}

/* An entry of this thread whose frame is gone. @sure: no doubt about it. */
static void drop(struct shadow_thread *t, struct shadow_entry *e, bool sure)
{
	if (!entry_claim(e))
		return;
	if (e->key) {
		if (!sure)
			t->tombstones[t->tombstone++ % SHADOW_TOMBSTONES] = *e;
		account(t, e, UNWOUND, true);
	}
	entry_release(t, e);
}

static bool word_is_return_point(uint64_t slot)
{
	return shadow_is_return_point(*(const uint64_t *)slot);
}

/*
 * A call uses @slot now, or a frame at @slot has just returned: drop what that proves dead among
 * the entries newer than @older (exclusive), newest first.
 */
static void drop_dead(struct shadow_thread *t, struct shadow_entry *older, uint64_t slot)
{
	if (!on_own_stack(t, slot))
		return;
	for (struct shadow_entry *e = top_of_thread() - 1; e > older; e--) {
		uint64_t at = e->key ? slot_of(e) : e->owner;

		if (!at || !on_own_stack(t, at) || (e->flags & FLAG_RELEASED))
			continue;
		if (at > slot && !t->carved)
			break; /* encloses the call: older ones were settled before it */
		if (at > slot)
			continue;
		if (!e->key || !arch_slot_in_memory || !word_is_return_point(at))
			drop(t, e, true);
		else if (!t->carved)
			drop(t, e, false);
	}
}

/* ---- entry ---- */

static void *place(const struct detour_info *info, int32_t relative)
{
	return (char *)info + relative;
}

/* Everything but the key, which makes the entry valid. */
static void fill(struct shadow_entry *e, const struct slow_frame *f, uint32_t id, uint64_t ret)
{
	e->owner = f->slot;
	e->ret = ret;
	e->func = id;
	e->flags = 0;
	e->child = 0;
	e->start = shadow_hooks.mode == MODE_COUNT ? 0 : arch_clock();
}

static void count_call(struct func_record *r)
{
	if (shadow_hooks.mode != MODE_COUNT)
		r->depth++;
	add(&r->calls, 1);
}

/* The newest entry of a slot, looked for down to the frame that encloses it. */
static struct shadow_entry *find_slot(const struct shadow_thread *t, uint64_t slot)
{
	struct shadow_entry *e = top_of_thread() - 1;

	for (int n = 0; e > bottom_of(t) && n < SCAN_MAX; e--, n++) {
		uint64_t at = slot_of(e);

		if (at == slot)
			return e;
		if (at > slot && on_own_stack(t, at) && on_own_stack(t, slot) && !t->carved)
			return NULL;
	}
	return NULL;
}

/* The jump behind a call: @e's function ends, another goes on in its place. */
static void tail_call(struct shadow_thread *t, struct shadow_entry *e, struct slow_frame *f,
	struct func_record *records)
{
	drop_dead(t, e, f->slot);
	account(t, e, RETURNED, true);
	count_call(&records[f->info->id]);
	e->start = shadow_hooks.mode == MODE_COUNT ? 0 : arch_clock();
	e->child = 0;
	__atomic_store_n(&e->func, f->info->id, __ATOMIC_RELEASE);
}

/*
 * The entry below is not simply older and higher. Settles what happened; true when the call has
 * been entered into an existing entry (a tail call).
 */
static bool untangle(struct shadow_thread *t, struct slow_frame *f, struct func_record *records)
{
	struct shadow_entry *same = find_slot(t, f->slot);
	bool tail = shadow_is_return_point(f->ret);

	if (same && tail) {
		tail_call(t, same, f, records);
		return true;
	}
	if (tail) {
		/* The entry it continues is another thread's: a fiber has moved. */
		struct shadow_entry *moved = thread_find_elsewhere(t, f->slot, 0);

		if (moved && entry_claim(moved)) {
			account(t, moved, RETURNED, false);
			f->ret = moved->ret;
			moved->owner = 0;
			__atomic_store_n(&moved->key, 0, __ATOMIC_RELAXED);
			moved->flags = FLAG_RELEASED;
		}
	}
	drop_dead(t, same ? same - 1 : bottom_of(t), f->slot);
	if (same && slot_of(same) == f->slot)
		drop(t, same, true); /* off the thread's own stack */
	return false;
}

static void lose(struct shadow_entry *e)
{
	e->owner = 0;
	entry_pop(e);
	shadow_hooks.lost_call();
}

static void enter(struct shadow_thread *t, struct shadow_entry *e, struct slow_frame *f,
	struct func_record *records)
{
	uint64_t key = -f->slot;

	if ((e - 1)->key >= key) {
		e->owner = 0;
		if (!entry_pop(e))
			e->flags = FLAG_RELEASED;
		if (untangle(t, f, records)) {
			f->go = (uint64_t)place(f->info, f->info->resume);
			return;
		}
		e = entry_reserve();
	}
	if (!thread_has_room(t, e)) {
		lose(e);
		return;
	}
	fill(e, f, f->info->id, f->ret);
	count_call(&records[f->info->id]);
	__atomic_store_n(&e->key, key, __ATOMIC_RELEASE);
	f->go = (uint64_t)place(f->info, f->info->resume);
}

/* After a fork: the entries in progress belong to the parent's numbers. */
static void disown_entries(struct shadow_thread *t)
{
	struct shadow_entry *top = top_of_thread();

	for (struct shadow_entry *e = bottom_of(t) + 1; e < top; e++)
		if (e->key && e->func != FUNC_INHERITED) {
			e->spare[0] = e->func;
			e->func = FUNC_INHERITED;
		}
}

/* This thread with its records, NULL when it cannot be had. */
static struct shadow_thread *ready(void)
{
	struct shadow_thread *t = shadow_current();
	uint64_t signals;

	if (t && records_of(t))
		return t;
	if (t && t->failed)
		return NULL;
	thread_block_signals(&signals);
	if (!t)
		t = thread_enter();
	if (t && !records_of(t)) {
		if (shadow_hooks.attach(t)) {
			thread_only_survivor(t);
			disown_entries(t);
		}
		t->failed = !records_of(t);
		if (t->failed)
			t = NULL;
	}
	thread_restore_signals(&signals);
	return t;
}

void shadow_slow_entry(struct slow_frame *f)
{
	bool entry_only = !f->info->leave;
	struct shadow_thread *t = ready();
	struct shadow_entry *e = f->entry;
	struct func_record *records = t ? records_of(t) : NULL;

	f->go = (uint64_t)place(f->info, f->info->bypass);
	if (!records) {
		if (entry_only)
			shadow_hooks.lost_call();
		else
			lose(e);
		return;
	}
	if (entry_only) {
		add(&records[f->info->id].calls, 1);
		return;
	}
	if (!thread_holds(t, e)) /* reserved before the thread had its array */
		e = entry_reserve();
	enter(t, e, f, records);
}

/* ---- exit ---- */

static bool is_call_of(const struct shadow_entry *e, uint32_t id)
{
	return e->func == id || (e->func == FUNC_INHERITED && e->spare[0] == id);
}

/* The entry that returns at @slot, newest first; @id as well when @by_id. */
static struct shadow_entry *find_returning(struct shadow_thread *t, uint64_t slot, uint32_t id,
	bool by_id, bool by_slot)
{
	for (struct shadow_entry *e = top_of_thread() - 1; e > bottom_of(t); e--)
		if (e->key && (!by_slot || slot_of(e) == slot) && (!by_id || is_call_of(e, id)))
			return e;
	return NULL;
}

static struct shadow_entry *find_tombstone(struct shadow_thread *t, uint64_t slot, uint32_t id)
{
	for (uint32_t i = 0; i < SHADOW_TOMBSTONES; i++) {
		struct shadow_entry *e =
			&t->tombstones[(t->tombstone - 1 - i) % SHADOW_TOMBSTONES];

		if (e->key && slot_of(e) == slot && (id == FUNC_INHERITED || is_call_of(e, id)))
			return e;
	}
	return NULL;
}

/* An entry was dropped that lives: there is a stack inside the thread's own. */
static void resurrect(struct shadow_thread *t, struct shadow_entry *e)
{
	struct func_record *r = records_of(t);

	t->carved = true;
	if (r && e->func != FUNC_INHERITED) {
		add(&r[e->func].unwound, (uint64_t)-1);
		add(&r[e->func].returned, 1);
	}
	e->key = 0;
}

_Noreturn static void no_return_address(uint64_t slot)
{
	char line[96];
	size_t n = str_print(line, sizeof(line),
		"ftr: no return address for stack slot %p: aborting\n", (void *)slot);

	sys_write_all(2, line, n);
	sys_call(SYS_tgkill, sys_getpid(), sys_gettid(), SIGABRT);
	for (;;)
		__builtin_trap();
}

/*
 * Find the entry of a frame that is being left, account it, and hand over its return address. It
 * stays findable for unwinders until shadow_slow_release().
 */
static void leave(struct shadow_thread *t, struct slow_frame *f, uint32_t id, enum outcome outcome)
{
	bool by_id = id != FUNC_INHERITED;
	struct shadow_entry *e = NULL;

	f->entry = NULL;
	if (t) {
		e = find_returning(t, f->slot, id, by_id, true);
		if (!e && by_id)
			e = find_returning(t, f->slot, id, false, true);
	}
	if (e) {
		if (entry_claim(e))
			account(t, e, outcome, true);
		f->entry = e;
		f->ret = e->ret;
		drop_dead(t, e, f->slot);
		return;
	}
	e = thread_find_elsewhere(t, f->slot, by_id ? id : 0);
	if (e) {
		if (entry_claim(e) && t)
			account(t, e, outcome, false);
		f->entry = e;
		f->ret = e->ret;
		return;
	}
	e = t ? find_tombstone(t, f->slot, id) : NULL;
	if (e) {
		f->ret = e->ret;
		resurrect(t, e);
		return;
	}
	if (t && by_id) { /* callee-popped arguments moved the slot */
		e = find_returning(t, f->slot, id, true, false);
		if (e) {
			if (entry_claim(e))
				account(t, e, outcome, true);
			f->entry = e;
			f->ret = e->ret;
			return;
		}
	}
	no_return_address(f->slot);
}

uint64_t shadow_locate(uint64_t slot)
{
	struct shadow_thread *t = shadow_current();
	struct shadow_entry *e = NULL;

	if (!word_is_return_point(slot))
		return slot;
	if (t)
		e = find_returning(t, slot, 0, false, true);
	if (!e)
		e = thread_find_elsewhere(t, slot, 0);
	return e ? (uint64_t)&e->ret : slot;
}

void shadow_slow_exit(struct slow_frame *f)
{
	leave(ready(), f, f->info->id, RETURNED);
	f->go = (uint64_t)place(f->info, f->info->leave);
}

void shadow_slow_unwind(struct slow_frame *f)
{
	struct shadow_thread *t = ready();

	leave(t, f, FUNC_INHERITED, UNWOUND);
	f->go = t ? t->resume : 0;
}

void shadow_slow_release(struct slow_frame *f)
{
	struct shadow_thread *t = shadow_current();

	if (!f->entry)
		return;
	if (t && thread_holds(t, f->entry)) {
		entry_release(t, f->entry);
		return;
	}
	f->entry->owner = 0;
	__atomic_store_n(&f->entry->key, 0, __ATOMIC_RELAXED);
	f->entry->flags = FLAG_RELEASED;
}

/* ---- the end ---- */

static bool is_open(const struct shadow_entry *e)
{
	return e->key && e->func != FUNC_INHERITED && !(e->flags & FLAG_CLAIMED);
}

/* As if all open calls returned now, but for the counts. */
static void flush_thread(struct shadow_thread *t, uint64_t now)
{
	struct func_record *records = records_of(t);
	struct shadow_entry *last = (struct shadow_entry *)(t->node.bottom + t->node.span) - 1;
	bool gone = thread_is_gone(t), times = shadow_hooks.mode != MODE_COUNT;

	if (!records)
		return;
	for (struct shadow_entry *e = last; e > bottom_of(t); e--) {
		struct func_record *r = records + e->func;
		uint64_t took = now > e->start ? now - e->start : 0;
		struct shadow_entry *parent;

		if (!is_open(e))
			continue;
		if (gone)
			add(&r->unwound, 1);
		if (!times)
			continue;
		parent = parent_of(t, e);
		if (parent)
			parent->child += took;
		if (r->depth && !--r->depth)
			r->total += took;
		r->self += took > e->child ? took - e->child : 0;
	}
	for (struct shadow_entry *e = bottom_of(t) + 1; e <= last; e++) {
		if (!is_open(e))
			continue;
		if (gone) {
			e->key = 0;
		} else if (times) { /* should it go on after all, only what comes now is added */
			e->start = now;
			e->child = 0;
			records[e->func].depth++;
		}
	}
}

void shadow_flush(void)
{
	uint64_t now = shadow_hooks.mode == MODE_COUNT ? 0 : arch_clock();

	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		flush_thread(t, now);
}
