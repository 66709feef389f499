/* SPDX-License-Identifier: MIT */
#include "shadow.h"
#include "hook.h"
#include "mirror.h"
#include "rcu.h"
#include "thread.h"
#include "../arch/sys.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define FLAG_CLAIMED 1 /* accounted; freed by shadow_slow_release() */
#define FLAG_CLOSED  2 /* accounted as unwound on the word of the thread's end only */
#define CLOSED_OWNER 1ul /* with it, so that a return point does not take it for its thread's */
#define FLAG_SETTLED 4 /* its time is booked: its caller has gone on, most likely without it */
#define FLAG_ACCOUNTED 8 /* follows FLAG_CLAIMED, unless a handler has left in between */
#define FLAG_PARENT  16 /* made before a fork, by the parent: not counted here */
#define OWNER_ELSEWHERE ~0ul /* a forking parent's: owners are not below their thread's records */
#define FLAG_OVERFLOW 1024 /* not in the mirror: only the slow path knows how to free it */
#define MOVED_MAX    64 /* words that a callee may have popped */
#define COVERED_MAX  4096
#define CHAIN_MAX    (1 << 23)
#define STEPS_MAX    (1 << 26)

struct shadow_hooks shadow_hooks;

enum outcome { RETURNED, UNWOUND };

static bool is_counted(const struct shadow_entry *e)
{
	return shadow_func_of(e) != ID_NONE;
}

/* ---- images ---- */

#define IMAGES_MAX 1024
static struct image_range {
	uint64_t lo, size, pad; /* size 0: free */
	uint32_t version; /* odd: being changed */
	bool retired;
} images[IMAGES_MAX];
static uint32_t nimages; /* those in use are below; only rises */

static bool change_begin(struct image_range *r)
{
	uint32_t version = __atomic_load_n(&r->version, __ATOMIC_RELAXED);

	return !(version & 1)
		&& __atomic_compare_exchange_n(&r->version, &version, version + 1, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void change_end(struct image_range *r)
{
	__atomic_store_n(&r->version, r->version + 1, __ATOMIC_RELEASE);
}

static void store_range(struct image_range *r, uint64_t lo, uint64_t size, uint64_t pad)
{
	__atomic_thread_fence(__ATOMIC_RELEASE); /* the version is odd before */
	__atomic_store_n(&r->lo, lo, __ATOMIC_RELAXED);
	__atomic_store_n(&r->size, size, __ATOMIC_RELAXED);
	__atomic_store_n(&r->pad, pad, __ATOMIC_RELAXED);
	__atomic_store_n(&r->retired, true, __ATOMIC_RELAXED);
}

bool shadow_announce_image(uint64_t lo, uint64_t hi, uint64_t pad)
{
	for (uint32_t i = 0; i < IMAGES_MAX; i++) {
		struct image_range *r = &images[i];
		uint32_t n = __atomic_load_n(&nimages, __ATOMIC_RELAXED);
		bool free;

		if (__atomic_load_n(&r->size, __ATOMIC_RELAXED) || !change_begin(r))
			continue;
		free = !r->size;
		if (free)
			store_range(r, lo, hi - lo, pad);
		change_end(r);
		while (free && n <= i
			&& !__atomic_compare_exchange_n(&nimages, &n, i + 1, false,
				__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		if (free)
			return true;
	}
	return false;
}

/* A copy of the image that @addr lies in. What is being changed is no image that anybody is in. */
static bool find_image(uint64_t addr, struct image_range *out)
{
	uint32_t n = __atomic_load_n(&nimages, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		const struct image_range *r = &images[i];
		uint32_t version = __atomic_load_n(&r->version, __ATOMIC_ACQUIRE);

		out->lo = __atomic_load_n(&r->lo, __ATOMIC_RELAXED);
		out->size = __atomic_load_n(&r->size, __ATOMIC_RELAXED);
		if (addr - out->lo >= out->size)
			continue;
		out->pad = __atomic_load_n(&r->pad, __ATOMIC_RELAXED);
		out->retired = __atomic_load_n(&r->retired, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(version & 1) && __atomic_load_n(&r->version, __ATOMIC_RELAXED) == version)
			return true;
	}
	return false;
}

static struct image_range *image_at(uint64_t lo)
{
	uint32_t i = 0;

	while (images[i].lo != lo || !images[i].size)
		i++;
	return &images[i];
}

void shadow_open_image(uint64_t lo)
{
	__atomic_store_n(&image_at(lo)->retired, false, __ATOMIC_RELEASE);
}

bool shadow_add_image(uint64_t lo, uint64_t hi, uint64_t pad)
{
	bool added = shadow_announce_image(lo, hi, pad);

	if (added)
		shadow_open_image(lo);
	return added;
}

void shadow_retire_image(uint64_t lo)
{
	__atomic_store_n(&image_at(lo)->retired, true, __ATOMIC_SEQ_CST);
}

void shadow_remove_image(uint64_t lo)
{
	struct image_range *r = image_at(lo);

	change_begin(r);
	store_range(r, 0, 0, 0);
	change_end(r);
}

uint64_t shadow_pad_of(uint64_t addr)
{
	struct image_range image;

	return find_image(addr, &image) ? image.pad : 0;
}

bool shadow_is_return_point(uint64_t addr)
{
	struct image_range image;

	return find_image(addr, &image) && !image.retired && arch_is_return_point((const void *)addr);
}

/* The same of a word that nobody may ever return to: the section keeps its image, which then may be
 * about to go, where it is. */
static bool was_return_point(uint64_t addr)
{
	struct shadow_thread *self = shadow_self();
	uint64_t outer = self ? self->reading : 0;
	bool is;

	if (!self)
		return true; /* unsure */
	rcu_lock(self, outer);
	is = shadow_is_return_point(addr);
	rcu_unlock(self, outer);
	return is;
}

/*
 * Which of the entries have frames: the slot holds a return point, or still the real return
 * address (between the entry's making and the call of the body). The memory may be gone, so it is
 * the kernel that reads it. Unsure means yes. Bit i of the result is for entries[i].
 */
#define BATCH_MAX 8 /* a signal handler's stack may be small */
static uint32_t alive(const struct shadow_thread *t, struct shadow_entry *const *entries,
	unsigned n)
{
	uint64_t words[BATCH_MAX];
	struct iovec from[BATCH_MAX];
	uint32_t result = 0;
	unsigned done = 0;

	if (!arch_slot_in_memory || shadow_hooks.sealed || t->shared)
		return ~0u;
	for (unsigned i = 0; i < n; i++)
		from[i] = (struct iovec){ (void *)entries[i]->slot, 8 };
	while (done < n) {
		struct iovec to = { words + done, 8ul * (n - done) };
		long got = sys_call(SYS_process_vm_readv, sys_getpid(), &to, 1, from + done,
			n - done, 0);

		if (got < 0 && got != -14 /* EFAULT */)
			return ~0u; /* not allowed */
		for (; got >= 8; got -= 8, done++)
			result |= (uint32_t)(words[done] == entries[done]->ret
					  || was_return_point(words[done]))
				<< done;
		if (done < n)
			done++; /* unmapped */
	}
	return result;
}

static bool is_alive(const struct shadow_thread *t, struct shadow_entry *e)
{
	return alive(t, &e, 1) & 1;
}

/* ---- accounting ---- */

struct func_record *shadow_records_of(const struct shadow_thread *t)
{
	uint64_t records = __atomic_load_n(&t->records[0], __ATOMIC_RELAXED);

	return (struct func_record *)(records ? records
					      : __atomic_load_n(&t->records[1], __ATOMIC_RELAXED));
}

void shadow_seal(void)
{
	/* A child that was forked to do this has no records yet. */
	shadow_ready();
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		mirror_prepare(&t->node);
	hook_seal();
	shadow_hooks.sealed = true;
}

/* Calls of the thread take the slow path from now on. One of the two words leads to its records at all times. */
static void hide_records(struct shadow_thread *t)
{
	uint64_t records = __atomic_load_n(&t->records[0], __ATOMIC_RELAXED);

	if (!records)
		return;
	__atomic_store_n(&t->records[1], records, __ATOMIC_RELEASE);
	__atomic_store_n(&t->records[0], 0, __ATOMIC_RELEASE);
}

static void show_records(struct shadow_thread *t)
{
	uint64_t records = __atomic_load_n(&t->records[1], __ATOMIC_RELAXED);

	if (records)
		__atomic_store_n(&t->records[0], records, __ATOMIC_RELEASE);
}

void shadow_stop_clock(void)
{
	if (shadow_hooks.mode == MODE_COUNT)
		return;
	shadow_hooks.no_clock = true;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* with the one in shadow_pause() */
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		hide_records(t);
}

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static uint64_t since(const struct shadow_entry *e, uint64_t now)
{
	return now > e->start ? now - e->start : 0;
}

/* Does no call of the same function enclose it? */
static bool is_outermost(const struct shadow_entry *e)
{
	const struct shadow_entry *p = (const struct shadow_entry *)e->parent;

	for (int n = 0; p && n < CHAIN_MAX; n++, p = (const struct shadow_entry *)p->parent)
		if (p->slot && shadow_func_of(p) == shadow_func_of(e) && p->owner == e->owner)
			return false;
	return true;
}

/*
 * What @e has taken so far, of which the enclosing call's own is none. A signal's handler may add to the same
 * numbers between reading and writing them: then a time is wrong, not a count. Returns whether the call is the
 * function's outermost.
 */
static bool add_time(struct func_record *r, struct shadow_entry *e, uint64_t took)
{
	struct shadow_entry *parent = (struct shadow_entry *)e->parent;
	uint64_t self = took > e->child ? took - e->child : 0;
	bool outermost = is_outermost(e);

	if (parent && parent->slot > e->slot)
		parent->child += took;
	if (outermost) {
		r->total += took;
		r->callees += took - self;
	} else {
		r->callees -= self;
	}
	return outermost;
}

/* The same, and @e, which has been counted, takes no more time from now on. */
static void end_time(struct func_record *r, struct shadow_entry *e, uint64_t took, bool is_left)
{
	bool was_left = e->flags & FLAG_SETTLED;

	if (add_time(r, e, took)) /* handlers that leave by longjmp may have disturbed it */
		r->left = r->calls - r->returned;
	else
		add(&r->left, (uint64_t)is_left - was_left);
}

static void add_extremes(struct func_record *r, uint64_t took)
{
	if (took > r->max)
		r->max = took;
	if (~took > r->nmin)
		r->nmin = ~took;
}

static uint64_t now(void)
{
	return shadow_timed() ? arch_clock() : 0;
}

/*
 * The one call of this for an entry: see claim(). @when is LONG_AGO when the frame may have been
 * gone for any time: then only what its callees took is known to have passed.
 */
#define LONG_AGO 0
static void account(struct shadow_thread *t, struct shadow_entry *e, enum outcome outcome,
	uint64_t when)
{
	struct func_record *r = shadow_records_of(t);

	if (outcome == UNWOUND && e->flags & SHADOW_OWED)
		hook_forget(t, e->slot);
	if (r && is_counted(e) && thread_of_records(e->owner)) { /* else it is a forking parent's */
		r += shadow_func_of(e);
		add(outcome == RETURNED ? &r->returned : &r->unwound, 1);
		if (shadow_timed() && !(outcome == UNWOUND && (e->flags & FLAG_SETTLED))) {
			uint64_t took = when == LONG_AGO ? e->child : since(e, when);

			if (!(e->flags & FLAG_SETTLED))
				add_extremes(r, took);
			end_time(r, e, took, outcome == UNWOUND);
		}
	}
	e->flags |= FLAG_ACCOUNTED;
}

static bool claim(struct shadow_entry *e)
{
	return !(__atomic_fetch_or(&e->flags, FLAG_CLAIMED, __ATOMIC_RELAXED) & FLAG_CLAIMED);
}

/* The entry's frame is gone without a return. */
static void drop(struct shadow_thread *t, struct shadow_entry *e, uint64_t when)
{
	if (!claim(e))
		return; /* another thread is just leaving it */
	account(t, e, UNWOUND, when);
	mirror_free(&t->node, e);
}

/* Most likely its frame is gone. */
static void settle_one(struct shadow_thread *t, struct shadow_entry *e, uint64_t when)
{
	struct func_record *r = shadow_records_of(t) + shadow_func_of(e);
	uint64_t took = since(e, when);

	if (!shadow_records_of(t) || !thread_of_records(e->owner))
		return;
	add_extremes(r, took);
	end_time(r, e, took, true);
	e->flags |= FLAG_SETTLED;
	e->start = when;
	e->child = 0;
}

static bool is_open(const struct shadow_entry *e)
{
	return e->slot && !(e->flags & (FLAG_CLAIMED | FLAG_SETTLED));
}

/* Is @slot on the signal stack we are on? */
static bool on_signal_stack(stack_t *stack, uint64_t slot)
{
	return sys_call(SYS_sigaltstack, NULL, stack) >= 0 && (stack->ss_flags & SS_ONSTACK)
		&& slot - (uint64_t)stack->ss_sp < stack->ss_size;
}

/* Is @slot on the signal stack we are on, and @older not? */
bool shadow_on_other_stack(uint64_t older, uint64_t slot)
{
	stack_t stack;

	return !shadow_hooks.sealed && on_signal_stack(&stack, slot)
		&& older - (uint64_t)stack.ss_sp >= stack.ss_size;
}

/* May an entry that is half made be one that goes on after a signal handler at @slot? */
static bool may_go_on(uint64_t slot)
{
	stack_t stack;

	return shadow_hooks.sealed || on_signal_stack(&stack, slot);
}

/*
 * A frame at @slot calls or returns, so the calls newer than it have been left by a longjmp,
 * unless they are on a stack carved out of this one: dropped if that is certain, else their time
 * is booked as if. Newest first, so that each has its callees' time.
 */
static void settle(struct shadow_thread *t, uint64_t slot, uint64_t when)
{
	struct shadow_entry *e = shadow_words.current, *batch[BATCH_MAX];

	if (e->slot < slot && shadow_on_other_stack(e->slot, slot))
		return; /* a signal has interrupted it */

	for (int steps = 0; e && e->slot < slot && steps < CHAIN_MAX; steps += BATCH_MAX) {
		unsigned n = 0;
		uint32_t live;

		for (unsigned i = 0; i < BATCH_MAX && e && e->slot < slot; i++) {
			if (is_open(e))
				batch[n++] = e;
			e = (struct shadow_entry *)e->parent;
		}
		live = alive(t, batch, n);
		for (unsigned i = 0; i < n; i++)
			if (live >> i & 1)
				settle_one(t, batch[i], when);
			else
				drop(t, batch[i], when);
	}
	shadow_words.current = e && e->slot >= slot ? e : &t->outermost;
}

static void leave_chain(const struct shadow_entry *e)
{
	if (shadow_timed() && shadow_words.current == e)
		shadow_words.current = (struct shadow_entry *)e->parent;
}

/* @e is left: account it, after those that were left before it. */
static void close_call(struct shadow_thread *t, struct shadow_entry *e, enum outcome outcome)
{
	uint64_t when = now();

	if (shadow_timed())
		settle(t, e->slot, when);
	account(t, e, outcome, when);
	leave_chain(e);
}

/* ---- entry ---- */

static uint64_t place(const struct detour_info *info, int32_t relative)
{
	return (uint64_t)info + (uint64_t)(int64_t)relative;
}

/*
 * Make @e the entry of the call. All but `slot` may be seen half done by a handler; `owner` is first,
 * so that none takes the place for free.
 */
static void fill(struct shadow_thread *t, struct shadow_entry *e, const struct slow_frame *f)
{
	bool counted = f->info->id != ID_NONE, times = shadow_timed() && counted;
	bool owed = t->nparked && hook_is_owed(t, f->slot);
	struct func_record *r = shadow_records_of(t) + f->info->id;

	__atomic_store_n(&e->owner, (uint64_t)shadow_records_of(t), __ATOMIC_RELEASE);
	e->ret = f->ret;
	e->func = owed ? ~f->info->id : f->info->id;
	e->flags = owed ? SHADOW_OWED : 0;
	if (!f->info->ret)
		e->flags |= SHADOW_NO_TAIL;
	if (e != mirror_place(&t->node, f->slot))
		e->flags |= FLAG_OVERFLOW;
	if (times) {
		e->parent = (uint64_t)shadow_words.current;
		e->child = 0;
	}
	if (counted)
		add(&r->calls, 1);
	if (times)
		e->start = arch_clock();
	__atomic_store_n(&e->slot, f->slot, __ATOMIC_RELEASE);
	if (times)
		shadow_words.current = e;
}

/* A thread other than @t that has an entry of @slot, with it in *@entry. */
static struct shadow_thread *find_elsewhere(const struct shadow_thread *t, uint64_t slot,
	struct shadow_entry **entry)
{
	for (struct shadow_thread *other = thread_first(); other; other = thread_next(other))
		if (other != t && (*entry = mirror_find(&other->node, slot)))
			return other;
	return NULL;
}

/* A frame that was taken for gone is left now: its thread has ended, or its slot was used again. */
static void reopen(struct shadow_entry *e, enum outcome outcome)
{
	struct func_record *r = (struct func_record *)(e->owner & ~CLOSED_OWNER) + shadow_func_of(e);

	if (!is_counted(e) || outcome == UNWOUND || !thread_of_records(e->owner & ~CLOSED_OWNER))
		return;
	add(&r->unwound, (uint64_t)-1);
	add(&r->left, (uint64_t)-1);
	add(&r->returned, 1);
}

/*
 * The return address is a return point: a function was left by a jump to this one, and goes on in
 * its place, with its return address. The detour of either returns through the same slot.
 */
static void tail_call(struct shadow_thread *t, struct slow_frame *f)
{
	struct shadow_entry *e = mirror_find(&t->node, f->slot);
	struct shadow_thread *owner = e ? t : find_elsewhere(t, f->slot, &e);

	if (!owner)
		return; /* an entry that was given up; the return points take turns */
	if (owner == t && e->flags & SHADOW_HOOKED)
		hook_park(t, e);
	if (claim(e))
		close_call(t, e, RETURNED);
	else if (e->flags & FLAG_CLOSED)
		reopen(e, RETURNED);
	f->ret = e->ret;
	f->key = 1;
	if (arch_slot_in_memory)
		*(uint64_t *)f->slot = f->ret; /* until the call of the body: for unwinders */
	if (owner != t)
		mirror_free_foreign(&owner->node, e, f->slot);
}

struct recount {
	uint64_t owner;
	uint32_t func;
	uint64_t live, active;
};

static void count_live(struct shadow_entry *e, void *arg)
{
	struct recount *c = arg;

	if (!e->slot || e->owner != c->owner || shadow_func_of(e) != c->func || (e->flags & FLAG_CLAIMED))
		return;
	c->live++;
	c->active += !(e->flags & FLAG_SETTLED);
}

/*
 * A signal handler has left by a longjmp, or a thread was cancelled, between the counter and the
 * entry, on the way in or out: nobody will ever count the end of that call. Whether it had been
 * counted itself, the other calls of the function tell.
 */
static void recount(struct shadow_thread *t, const struct shadow_entry *e)
{
	struct recount c = { .owner = e->owner, .func = shadow_func_of(e) };
	struct func_record *r = (struct func_record *)e->owner + shadow_func_of(e);

	if (!is_counted(e) || e->owner != (uint64_t)shadow_records_of(t))
		return;
	mirror_each(&t->node, count_live, &c);
	if (r->calls > r->returned + r->unwound + c.live)
		add(&r->unwound, 1);
	r->left = r->calls - r->returned - c.active;
}

/*
 * Some coroutines (greenlet, continuations) copy their stack away and back, and so use the same
 * slots in turn. An entry whose slot is used again is kept for a while: its frame may come back.
 */
static void cover(struct shadow_thread *t, const struct shadow_entry *e)
{
	if (!t->covered) {
		size_t size = COVERED_MAX * sizeof(*e);
		void *ring = shadow_hooks.sealed
			? NULL
			: sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (!ring || sys_failed(ring))
			return;
		t->covered = ring;
	}
	memcpy(&t->covered[t->ncovered++ % COVERED_MAX], e,
		shadow_timed() ? SHADOW_TIMED_SIZE : SHADOW_COUNT_SIZE);
}

/* The newest covered entry of a frame, NULL when there is none. */
static struct shadow_entry *find_covered(struct shadow_thread *t, uint64_t slot, uint32_t id)
{
	for (uint32_t i = 1; t && t->covered && i <= COVERED_MAX && i <= t->ncovered; i++) {
		struct shadow_entry *e = &t->covered[(t->ncovered - i) % COVERED_MAX];

		if (e->slot == slot && shadow_func_of(e) == id)
			return e;
	}
	return NULL;
}

/* Where the entry goes: its place in the mirror, or the overflow. NULL: nowhere. */
static struct shadow_entry *find_room(struct shadow_thread *t, uint64_t slot)
{
	struct shadow_entry *e = mirror_find(&t->node, slot);

	if (e) {
		/* A tail call has claimed it; else its frame was left by a longjmp. */
		if (claim(e)) {
			cover(t, e);
			account(t, e, UNWOUND, LONG_AGO);
			leave_chain(e);
		} else if (!(e->flags & FLAG_ACCOUNTED)) {
			recount(t, e);
		}
		__atomic_store_n(&e->slot, 0, __ATOMIC_RELEASE); /* see recount() */
		return e;
	}
	e = mirror_place(&t->node, slot);
	if (e->owner && !e->slot && !may_go_on(slot)) {
		recount(t, e);
		mirror_give_up(e);
	}
	/* In deep recursion the place belongs to an older frame, further up. */
	if (e->slot && e->slot < slot && !is_alive(t, e))
		drop(t, e, LONG_AGO);
	return e->owner ? mirror_overflow(&t->node, slot) : e;
}

/* Detours need not look at the owner of an entry without flags. */
static void set_parent(struct shadow_entry *e, void *unused)
{
	(void)unused;
	e->flags |= FLAG_PARENT;
	e->owner = OWNER_ELSEWHERE;
}

struct shadow_thread *shadow_ready(void)
{
	struct shadow_thread *t = shadow_self();
	uint64_t signals;

	if (t && shadow_records_of(t))
		return t;
	if ((t && t->failed) || shadow_hooks.sealed)
		return NULL;
	thread_block_signals(&signals);
	if (!t)
		t = thread_enter();
	else if (!shadow_hooks.borrowed())
		t->tid = sys_gettid(); /* a fork has changed it */
	if (t && !shadow_records_of(t)) {
		if (shadow_hooks.attach(t)) {
			thread_only_survivor(t);
			mirror_each(&t->node, set_parent, NULL);
		}
		t->failed = !shadow_records_of(t);
		if (t->failed)
			t = NULL;
	}
	thread_restore_signals(&signals);
	return t;
}

bool shadow_pause(bool pause)
{
	struct shadow_thread *t;

	if (pause)
		shadow_ready();
	t = shadow_self(); /* it may have no records */
	if (!t || shadow_hooks.sealed)
		return false;
	t->paused = pause;
	if (!pause && !shadow_hooks.no_clock)
		show_records(t);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* another thread may be stopping the clock */
	if (pause || shadow_hooks.no_clock)
		hide_records(t);
	return true;
}

void shadow_share(void)
{
	struct shadow_thread *t = shadow_ready();

	if (t)
		t->shared = true;
}

void shadow_slow_entry(struct slow_frame *f)
{
	struct shadow_thread *t;
	struct shadow_entry *e;

	f->go = place(f->info, f->info->bypass);
	f->key = 0;
	if (f->info->watch)
		shadow_hooks.watch(f);
	t = shadow_self();
	if ((f->info->id == ID_NONE && !f->info->point) || (t && t->paused))
		return;
	t = shadow_ready();
	if (!t) {
		shadow_hooks.lost_call();
		return;
	}
	if (!f->info->leave) { /* entry only */
		add(&shadow_records_of(t)[f->info->id].calls, 1);
		return;
	}
	if (shadow_timed())
		settle(t, f->slot, now());
	if (shadow_is_return_point(f->ret))
		tail_call(t, f);
	e = find_room(t, f->slot);
	if (!e) {
		shadow_hooks.lost_call();
		return;
	}
	fill(t, e, f);
	f->go = place(f->info, f->info->resume);
}

/* ---- exit ---- */

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

/* A callee that pops its arguments returns above its slot. */
static struct shadow_entry *find_popped(struct shadow_thread *t, const struct slow_frame *f)
{
	struct shadow_entry *e = NULL;

	for (uint64_t n = 1; !e && n <= MOVED_MAX; n++) {
		e = mirror_find(&t->node, f->slot - 8 * n);
		if (e && shadow_func_of(e) != f->info->id)
			e = NULL;
	}
	return e;
}

struct shadow_entry *shadow_find(const struct slow_frame *f, struct shadow_thread **owner)
{
	struct shadow_thread *self = shadow_self();
	struct shadow_entry *e = self ? mirror_find(&self->node, f->slot) : NULL;

	*owner = self;
	if (!e)
		*owner = find_elsewhere(self, f->slot, &e);
	if (!e && self && f->info) {
		*owner = self;
		e = find_popped(self, f);
	}
	return e;
}

/*
 * Find the entry of a frame that is being left, account it, and hand over its return address. It
 * stays findable for unwinders until shadow_slow_release().
 */
static struct shadow_thread *leave(struct slow_frame *f, enum outcome outcome)
{
	struct shadow_thread *t = shadow_ready();
	struct shadow_thread *owner;
	struct shadow_entry *e = shadow_find(f, &owner), *covered = NULL;

	if (f->info && (!e || shadow_func_of(e) != f->info->id))
		covered = find_covered(t, f->slot, f->info->id);
	if (covered) {
		f->entry = NULL;
		f->ret = covered->ret;
		covered->slot = 0;
		reopen(covered, outcome);
		return t;
	}
	if (!e)
		no_return_address(f->slot);
	f->entry = e;
	f->key = e->slot;
	f->ret = e->ret;
	if (t && claim(e)) {
		close_call(t, e, outcome);
	} else if (e->flags & FLAG_CLOSED) {
		reopen(e, outcome);
	}
	return t;
}

/* Is this no return, but the way to the body of a function that was jumped to? */
static bool passes_on(struct slow_frame *f)
{
	struct shadow_thread *t = shadow_self();
	struct shadow_entry *e = t ? mirror_find(&t->node, f->slot) : NULL;
	const struct detour_info *next;

	if (!e || !(e->flags & SHADOW_TAIL))
		return false;
	__atomic_fetch_and(&e->flags, ~SHADOW_TAIL, __ATOMIC_RELAXED);
	next = shadow_hooks.infos[shadow_func_of(e)];
	f->entry = NULL;
	f->ret = e->ret;
	f->go = place(next, next->resume);
	return true;
}

void shadow_slow_exit(struct slow_frame *f)
{
	if (passes_on(f))
		return;
	leave(f, RETURNED);
	f->go = place(f->info, f->info->leave);
	if (f->entry && f->entry->flags & SHADOW_OWED)
		hook_owe(f);
}

void shadow_slow_unwind(struct slow_frame *f)
{
	struct shadow_thread *t = leave(f, UNWOUND);

	f->go = t ? t->resume : 0;
}

void shadow_slow_release(struct slow_frame *f)
{
	struct shadow_thread *t = shadow_self();

	if (!f->entry)
		return;
	if (t && mirror_find(&t->node, f->key) == f->entry) {
		mirror_free(&t->node, f->entry);
		return;
	}
	for (t = thread_first(); t; t = thread_next(t))
		if (mirror_find(&t->node, f->key) == f->entry) {
			mirror_free_foreign(&t->node, f->entry, f->key);
			return;
		}
}

uint64_t shadow_locate(uint64_t slot)
{
	struct shadow_thread *t = shadow_self();
	struct shadow_entry *e = NULL;

	if (!shadow_is_return_point(*(const uint64_t *)slot))
		return slot;
	if (t)
		e = mirror_find(&t->node, slot);
	if (!e)
		find_elsewhere(t, slot, &e);
	return e ? (uint64_t)&e->ret : slot;
}

/* ---- calls that may return ---- */

struct visitor {
	void (*visit)(uint32_t func, uint64_t info, void *arg);
	void *arg;
	struct shadow_thread *thread;
};

static void visit_entry(struct shadow_entry *e, void *arg)
{
	const struct visitor *v = arg;

	v->visit(shadow_func_of(e), hook_parked_info(v->thread, e), v->arg);
}

void shadow_each_call(void (*visit)(uint32_t func, uint64_t info, void *arg), void *arg)
{
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		struct visitor v = { .visit = visit, .arg = arg, .thread = t };

		mirror_each(&t->node, visit_entry, &v);
		/* After the mirror: entries go from there to here. */
		for (uint32_t i = 0; t->covered && i < COVERED_MAX && i < t->ncovered; i++)
			if (t->covered[i].slot)
				visit(shadow_func_of(&t->covered[i]), 0, arg);
	}
}

/* ---- the end ---- */

struct closing {
	struct shadow_thread *thread;
	bool gone;	 /* all its frames are */
	uint64_t lo, hi; /* frames in between are gone */
	struct arch_frames frames; /* have called */
	uint64_t now;
};

/* A frame of the calling thread's in use has called: so it must have saved its return address. */
static bool has_saved_none(struct closing *c, const struct shadow_entry *e)
{
	uint64_t point;

	if (arch_slot_in_memory || !shadow_hooks.point || e->slot < c->frames.from
		|| e->slot >= c->frames.top)
		return false;
	point = shadow_hooks.point(shadow_func_of(e));
	return point && !arch_has_saved(e->slot, point, &c->frames);
}

static void close_times(const struct closing *c, struct shadow_entry *e, bool gone)
{
	struct func_record *r = (struct func_record *)e->owner + shadow_func_of(e);

	if (!shadow_timed() || (gone && (e->flags & FLAG_SETTLED)))
		return;
	if (gone)
		end_time(r, e, e->child, true);
	else
		add_time(r, e, since(e, c->now));
	/* Should it go on after all, only what comes now is added. */
	e->start = c->now;
	e->child = 0;
}

/*
 * Entries come newest first, so a call has its callees' time when its turn comes. One whose frame
 * is gone stays findable: should it be a fiber's, it may still return.
 */
static void close_entry(struct shadow_entry *e, void *arg)
{
	struct closing *c = arg;
	struct func_record *r = (struct func_record *)e->owner + shadow_func_of(e);
	bool gone;

	if (e->flags & FLAG_CLAIMED)
		return;
	if (!thread_of_records(e->owner)) {
		if (c->gone)
			e->owner = OWNER_ELSEWHERE;
		return;
	}
	if (!e->slot) {
		recount(c->thread, e);
		mirror_give_up(e);
		return;
	}
	gone = c->gone || (e->slot >= c->lo && e->slot < c->hi) || has_saved_none(c, e)
		|| !is_alive(c->thread, e);
	if (is_counted(e))
		close_times(c, e, gone);
	if (gone) {
		if (is_counted(e))
			add(&r->unwound, 1);
		e->flags |= FLAG_CLAIMED | FLAG_CLOSED;
		e->owner |= CLOSED_OWNER;
	}
}

void shadow_close(struct shadow_thread *t)
{
	struct closing c = { .thread = t, .gone = true, .now = now() };

	mirror_each(&t->node, close_entry, &c);
	hook_forget_all(t);
	t->failed = false;
}

void shadow_flush(uint64_t lo, uint64_t hi, uint64_t top)
{
	struct shadow_thread *self = shadow_self();
	uint64_t when = now();

	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		struct closing c = { .thread = t, .gone = thread_is_gone(t), .now = when };

		if (t == self) {
			c.lo = lo;
			c.hi = hi;
			c.frames = (struct arch_frames){ .from = hi, .top = top,
				.frame = (uint64_t)__builtin_frame_address(0), .steps = STEPS_MAX };
		}
		mirror_each(&t->node, close_entry, &c);
	}
}
