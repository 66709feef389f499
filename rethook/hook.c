/* SPDX-License-Identifier: MIT */
#include "hook.h"
#include "mirror.h"
#include "rcu.h"
#include "thread.h"
#include "../arch/sys.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define PARKED	  1ul /* with the slot: what a parked entry is found by */
#define CODE_MAX  512 /* bytes of a handler that are looked at */
#define PLACE_NO  0xff

/* What a signal handler may look at between two stores is stored in this order. */
#define ORDERED(word) (*(volatile __typeof__(word) *)&(word))

/* flags of a parked entry: it is counted already (shadow.c's claimed and accounted) */
#define PARKED_FLAGS 9

#define STATE_SIZE(large) ((large) ? 512ul : (unsigned long)HOOK_STATE_SIZE)
#define SMALL_PLACES	  5

_Static_assert(sizeof(struct hook_state) + SMALL_PLACES * 8 == STATE_SIZE(false)
		&& sizeof(struct hook_state) + HOOK_RETURNS_MAX * 8 == STATE_SIZE(true)
		&& HOOK_RETURNS_MAX <= 64, "hook state layout");

static bool used; /* some function has had handlers */

/* ---- places of states ---- */

static bool in_mirror(const struct shadow_thread *t, const struct shadow_entry *e)
{
	return (uint64_t)e - t->node.mirror < (shadow_root.mask + 8) * shadow_root.scale;
}

/* As many as there are entries: in the mirror, and behind in the overflow. */
static uint64_t states_count(const struct shadow_thread *t)
{
	uint64_t room = t->node.overflow_room - t->node.overflow;

	return (shadow_root.mask + 8) / 8 + room / sizeof(struct shadow_entry);
}

__attribute__((noinline)) static bool prepare_states(struct shadow_thread *t, bool large)
{
	struct hook_state *none = NULL;
	void *states;
	size_t size;

	if (t->states[large])
		return true;
	if (shadow_hooks.sealed || !mirror_prepare(&t->node))
		return false;
	size = states_count(t) * STATE_SIZE(large);
	states = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(states))
		return false;
	sys_call(SYS_madvise, states, size, MADV_NOHUGEPAGE);
	/* A signal handler may have done the same meanwhile. */
	if (!__atomic_compare_exchange_n(&t->states[large], &none, (struct hook_state *)states,
		false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		sys_munmap(states, size);
	return true;
}

bool hook_prepare_returns(unsigned handlers)
{
	bool large = handlers > SMALL_PLACES, ready = true;

	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		if (!thread_is_gone(t))
			ready = prepare_states(t, large) && ready;
	return ready;
}

void hook_seal(void)
{
	for (struct shadow_thread *t = used ? thread_first() : NULL; t; t = thread_next(t))
		for (int large = 0; large < 2; large++)
			prepare_states(t, large);
}

/* The state of entry @e of @t; NULL: there is no memory for it. */
static inline struct hook_state *state_of(struct shadow_thread *t, const struct shadow_entry *e,
	bool large)
{
	uint64_t offset = e->slot & shadow_root.mask; /* 8 times the index */

	if (!t->states[large] && !prepare_states(t, large))
		return NULL;
	if (!in_mirror(t, e))
		offset = shadow_root.mask + 8
			+ ((uint64_t)e - t->node.overflow) / (sizeof(*e) / 8);
	return (struct hook_state *)((uint64_t)t->states[large]
		+ offset * (large ? STATE_SIZE(true) / 8 : STATE_SIZE(false) / 8));
}

static inline struct hook_state *state_kept(struct shadow_thread *t, const struct shadow_entry *e)
{
	return state_of(t, e, e->flags & SHADOW_LARGE);
}

static inline struct shadow_entry *entry_of(const struct shadow_thread *t, uint64_t slot)
{
	struct shadow_entry *e = mirror_place(&t->node, slot);

	return e->slot == slot ? e : mirror_find(&t->node, slot);
}

/* ---- calls that end in a jump ---- */

void hook_park(struct shadow_thread *t, const struct shadow_entry *e)
{
	struct shadow_entry *parked = mirror_overflow(&t->node, e->slot | PARKED);
	struct hook_state *to = parked ? state_of(t, parked, e->flags & SHADOW_LARGE) : NULL;

	if (!to) {
		shadow_hooks.lost_call();
		return;
	}
	memcpy(to, state_kept(t, e), STATE_SIZE(e->flags & SHADOW_LARGE));
	parked->ret = e->ret;
	parked->owner = e->owner;
	parked->flags = PARKED_FLAGS | (e->flags & SHADOW_LARGE);
	__atomic_store_n(&parked->slot, e->slot | PARKED, __ATOMIC_RELEASE);
	t->nparked++;
}

static struct shadow_entry *find_parked(const struct shadow_thread *t, uint64_t slot)
{
	return t->nparked ? mirror_find(&t->node, slot | PARKED) : NULL;
}

/* The newest one, and whose it is: a fiber may return on another thread. */
static struct shadow_entry *find_owed(uint64_t slot, struct shadow_thread **owner)
{
	struct shadow_entry *e = find_parked(shadow_self(), slot);

	*owner = shadow_self();
	for (struct shadow_thread *t = e ? NULL : thread_first(); t && !e; t = thread_next(t)) {
		*owner = t;
		e = find_parked(t, slot);
	}
	return e;
}

static void unpark(struct shadow_thread *t, struct shadow_entry *parked)
{
	__atomic_fetch_sub(&t->nparked, 1, __ATOMIC_RELAXED);
	if (t == shadow_self())
		mirror_free(&t->node, parked);
	else
		mirror_free_foreign(&t->node, parked, parked->slot);
}

uint64_t hook_parked_info(struct shadow_thread *t, const struct shadow_entry *e)
{
	const struct hook_state *state = e->slot & PARKED ? state_kept(t, e) : NULL;

	return state ? (uint64_t)state->info : 0;
}

bool hook_is_owed(const struct shadow_thread *t, uint64_t slot)
{
	return find_parked(t, slot) != NULL;
}

void hook_owe(struct slow_frame *f)
{
	struct shadow_thread *t;
	struct shadow_entry *parked = find_owed(f->key, &t);
	struct hook_state *state = parked ? state_kept(t, parked) : NULL;
	const struct hook_places *places;

	if (!state)
		return;
	if (f->key != f->slot) { /* a function that pops its arguments: their place is gone */
		hook_forget(t, f->key);
		return;
	}
	places = (const struct hook_places *)(state->info + 1);
	f->go = (uint64_t)state->info + (uint64_t)(int64_t)places->owed;
}

void hook_forget(struct shadow_thread *t, uint64_t slot)
{
	struct shadow_entry *parked;

	while ((parked = find_parked(t, slot)))
		unpark(t, parked);
}

static void forget(struct shadow_entry *e, void *arg)
{
	if (e->slot & PARKED)
		unpark(arg, e);
}

void hook_forget_all(struct shadow_thread *t)
{
	if (t->nparked)
		mirror_each(&t->node, forget, t);
	t->nparked = 0;
	t->reading = 0;
	memset(t->active, 0, sizeof(t->active));
}

/* ---- handlers that are running ---- */

static unsigned count_active(const struct shadow_thread *t)
{
	unsigned n = 0;

	while (n < HOOK_ACTIVE_MAX && t->active[n].slot)
		n++;
	return n;
}

/*
 * Calls newer than @slot on its own stack have been left, by a longjmp out of a signal handler. A
 * signal handler on a stack of its own leaves nobody.
 */
__attribute__((noinline)) static unsigned drop_left(struct shadow_thread *t, unsigned n,
	uint64_t slot)
{
	while (n) {
		uint64_t newest = t->active[n - 1].slot;

		if (newest >= slot || shadow_hooks.sealed || shadow_on_other_stack(newest, slot))
			break;
		t->active[--n].slot = 0;
	}
	return n;
}

/* Room on the thread's list. */
static inline bool activate(struct hook_visit *v, uint64_t slot)
{
	struct shadow_thread *t = v->thread;
	unsigned n = count_active(t);

	if (n)
		n = drop_left(t, n, slot);
	if (n == HOOK_ACTIVE_MAX)
		return false;
	v->depth = n;
	v->active = &t->active[n];
	ORDERED(v->active->serial) = 0;
	ORDERED(v->active->slot) = slot;
	return true;
}

static inline void deactivate(struct hook_activation *a)
{
	__atomic_store_n(&a->slot, 0, __ATOMIC_RELEASE);
}

/* Does a handler of the hook run in this thread? */
static bool is_blind(const struct hook_visit *v, uint64_t serial)
{
	for (uint32_t i = 0; i < v->depth; i++)
		if (v->thread->active[i].serial == serial)
			return true;
	return false;
}

bool hook_running(uint64_t serial)
{
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		for (uint32_t i = 0; t != shadow_self() && i < HOOK_ACTIVE_MAX; i++)
			if (__atomic_load_n(&t->active[i].slot, __ATOMIC_ACQUIRE)
				&& __atomic_load_n(&t->active[i].serial, __ATOMIC_ACQUIRE) == serial
				&& !thread_is_gone(t))
				return true;
	return false;
}

unsigned hook_nested(void)
{
	return shadow_self() ? count_active(shadow_self()) : 0;
}

/* ---- errno ---- */

int *__errno_location(void) __attribute__((weak, const));

/* Thread-local at a fixed offset from the thread pointer; the function itself may be hooked. */
static int64_t errno_offset;

static void find_errno(void)
{
	static __thread int none; /* the C library has none */

	errno_offset = (int64_t)((uint64_t)(__errno_location ? __errno_location() : &none)
		- arch_thread_pointer());
}

static inline int *errno_of_thread(void)
{
	return (int *)(arch_thread_pointer() + (uint64_t)errno_offset);
}

int *hook_errno(void)
{
	if (!errno_offset)
		find_errno();
	return errno_of_thread();
}

/* ---- lists ---- */

static const struct hook *find_serial(const struct hook_list *list, uint64_t serial)
{
	for (uint32_t i = 0; list && i < list->count; i++)
		if (list->hooks[i].serial == serial)
			return &list->hooks[i];
	return NULL;
}

static bool is_uniform(const struct hook_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->hooks[i].thread)
			return false;
	return list->count && !list->vectors && !rcu_needs_fence;
}

/* All that is in a list besides its hooks' handlers. A hook keeps its place in all lists. */
static void describe_list(struct hook_list *list, const struct hook_list *former)
{
	uint64_t taken = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		const struct hook *old = find_serial(former, list->hooks[i].serial);

		list->hooks[i].place = old ? old->place : PLACE_NO;
		if (list->hooks[i].place != PLACE_NO)
			taken |= 1ull << list->hooks[i].place;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		struct hook *h = &list->hooks[i];

		if (h->ret && h->place == PLACE_NO) {
			h->place = (uint8_t)__builtin_ctzll(~taken);
			taken |= 1ull << h->place;
		}
	}
	list->uniform = is_uniform(list);
	list->newest = list->count ? list->hooks[list->count - 1].serial : 0;
	list->taken = taken;
	list->places = (uint8_t)(taken ? 64 - __builtin_clzll(taken) : 0);
}

static bool is_plain(const struct hook_list *list)
{
	return list->uniform && list->count == 1 && list->places <= 1;
}

/* Nobody who still reads the former ones takes them for these: serials are not used again. */
static void publish_plain(struct hook_plain *plain, const struct hook *h)
{
	plain->entry = h->entry;
	plain->ret = h->ret;
	plain->data = h->data;
	__atomic_store_n(&plain->serial, h->serial, __ATOMIC_RELEASE);
}

static uint64_t versions;

/* From here to end_change() nobody who looks trusts what is read. */
static void begin_change(struct hook_point *point)
{
	__atomic_store_n(&point->plain.serial, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&point->version, 0, __ATOMIC_SEQ_CST);
}

static void end_change(struct hook_point *point)
{
	__atomic_store_n(&point->version, ++versions, __ATOMIC_RELEASE);
}

struct hook_list *hook_publish(struct hook_point *point, struct hook_list *list)
{
	struct hook_list *former;

	if (!used) {
		arch_call_prepare();
		rcu_prepare();
		find_errno();
		used = true;
	}
	if (list)
		describe_list(list, point->list);
	begin_change(point);
	former = __atomic_exchange_n(&point->list, list, __ATOMIC_SEQ_CST);
	end_change(point);
	if (list && is_plain(list))
		publish_plain(&point->plain, &list->hooks[0]);
	return former;
}

static void no_handler(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
}

/* What else is in the list stays as it is: calls in progress refer to it. */
void hook_silence(struct hook_point *point, uint64_t serial)
{
	begin_change(point);
	for (uint32_t i = 0; point->list && i < point->list->count; i++) {
		struct hook *h = &point->list->hooks[i];

		if (h->serial != serial)
			continue;
		h->silent = true;
		if (h->entry)
			__atomic_store_n(&h->entry, no_handler, __ATOMIC_SEQ_CST);
		if (h->ret)
			__atomic_store_n(&h->ret, no_handler, __ATOMIC_SEQ_CST);
	}
	end_change(point);
}

bool hook_synchronize(void)
{
	return !shadow_hooks.sealed && rcu_synchronize();
}

bool hook_uses_vectors(ftr_handler *code)
{
	uint8_t bytes[CODE_MAX];
	struct iovec to = { bytes, CODE_MAX }, from = { (void *)code, CODE_MAX };
	long n = -1;

	/* Less is read where the mapping ends. */
	if (!shadow_hooks.sealed)
		n = sys_call(SYS_process_vm_readv, sys_getpid(), &to, 1, &from, 1, 0);
	return n <= 0 || arch_isa->uses_vectors(bytes, (size_t)n);
}

/* ---- what handlers ask for ---- */

void hook_unfold(struct ftr_call *call)
{
	struct shadow_thread *t = shadow_self();
	struct shadow_entry *e;

	if (!call->state.plain || call->state.unfolded)
		return;
	call->state.unfolded = true;
	call->word = NULL;
	e = call->frame.info->leave ? entry_of(t, call->frame.slot) : NULL;
	if (!e)
		return;
	call->ret = e->ret;
	if (e->flags & SHADOW_HOOKED)
		call->word = state_of(t, e, false)->words;
}

struct apart {
	ftr_handler *function;
	void *data;
	void *visit; /* the call's own */
};

static void run_apart(struct ftr_call *call)
{
	const struct apart *apart = call->visit;

	call->visit = apart->visit;
	apart->function(call, apart->data);
}

void hook_call_apart(struct ftr_call *call, ftr_handler *function, void *data)
{
	struct apart apart = { function, data, call->visit };

	if (call->state.apart) {
		function(call, data);
		return;
	}
	if (call->state.spilled)
		arch_call_finish(call, false);
	call->state.spilled = 0;
	call->visit = &apart;
	arch_call_vectors(run_apart, call);
}

/* ---- which handler is next ---- */

/*
 * Copy what there is to call into @v; it is known to run from before the section's end on.
 * hook_running() looks later.
 */
static inline void take(struct ftr_call *call, const struct hook *h, uint32_t index,
	ftr_handler *handler)
{
	struct hook_visit *v = call->visit;

	v->index = index;
	v->place = h->place;
	v->serial = h->serial;
	v->handler = handler;
	v->data = h->data;
	call->word = v->state && h->place != PLACE_NO ? &v->state->words[h->place] : NULL;
	__atomic_store_n(&v->active->serial, h->serial, __ATOMIC_RELAXED);
}

/* Behind the hook that was taken last; lists change. */
static uint32_t behind_last(const struct hook_visit *v, const struct hook_list *list)
{
	uint32_t i = v->index;

	if (i < list->count && list->hooks[i].serial == v->serial)
		return i + 1;
	for (i = 0; i < list->count && list->hooks[i].serial <= v->serial;)
		i++;
	return i;
}

/* The call of @e has no state any more. */
static inline void end_state(struct shadow_entry *e)
{
	e->flags &= ~(uint32_t)(SHADOW_HOOKED | SHADOW_LARGE);
}

static void prepare_large(struct ftr_call *call)
{
	(void)call;
	prepare_states(shadow_self(), true);
}

/* NULL: there is no memory for it. */
static inline struct hook_state *begin_state(struct ftr_call *call, struct shadow_thread *t,
	bool large, uint64_t limit, uint64_t seen)
{
	struct shadow_entry *e = entry_of(t, call->frame.slot);
	struct hook_state *state;

	if (large && !t->states[large])
		arch_call_vectors(prepare_large, call);
	state = e ? state_of(t, e, large) : NULL;
	if (!state)
		return NULL;
	state->info = call->frame.info;
	state->limit = limit;
	state->seen = seen;
	ORDERED(e->flags) = (e->flags & ~(uint32_t)SHADOW_LARGE) | SHADOW_HOOKED
		| (large ? SHADOW_LARGE : 0);
	return state;
}

static inline bool is_for(const struct hook_visit *v, const struct hook *h)
{
	return (!h->thread || h->thread == v->thread->tid) && !(v->depth && is_blind(v, h->serial));
}

/* The hook sees the entry. */
static inline void see(struct hook_visit *v, const struct hook *h)
{
	if (!v->state || h->place == PLACE_NO)
		return;
	v->state->seen |= 1ull << h->place;
	v->state->words[h->place] = 0;
}

/* From hook @i of the list on. */
static inline bool take_entry(struct ftr_call *call, const struct hook_list *list, uint32_t i)
{
	struct hook_visit *v = call->visit;
	const struct hook *h = &list->hooks[i], *end = &list->hooks[list->count];

	for (; h < end && h->serial <= v->limit; h++) {
		if (!is_for(v, h))
			continue;
		see(v, h);
		if (!h->entry)
			continue;
		take(call, h, (uint32_t)(h - list->hooks), h->entry);
		v->more = h + 1 < end;
		return true;
	}
	return false;
}

static inline uint64_t outer_section(const struct hook_visit *v)
{
	return v->depth ? v->thread->reading : 0;
}

static inline const struct hook_list *list_of(const struct hook_visit *v)
{
	const struct hook_point *point = (const struct hook_point *)v->info->point;

	return __atomic_load_n(&point->list, __ATOMIC_CONSUME);
}

/* The first entry handler. */
static inline bool first_entry(struct ftr_call *call, bool returns)
{
	struct hook_visit *v = call->visit;
	uint64_t outer = outer_section(v);
	const struct hook_list *list;
	bool found = false;

	rcu_lock(v->thread, outer);
	list = list_of(v);
	if (list && list->count) {
		v->limit = list->newest;
		v->vectors = list->vectors;
		if (returns && list->places) {
			v->state = begin_state(call, v->thread,
				list->places > SMALL_PLACES, v->limit, 0);
			if (!v->state)
				shadow_hooks.lost_call();
		}
		found = take_entry(call, list, 0);
	}
	rcu_unlock(v->thread, outer);
	return found;
}

static bool next_entry(struct ftr_call *call)
{
	struct hook_visit *v = call->visit;
	uint64_t outer = outer_section(v);
	const struct hook_list *list;
	bool found = false;

	rcu_lock(v->thread, outer);
	list = list_of(v);
	if (list)
		found = take_entry(call, list, behind_last(v, list));
	rcu_unlock(v->thread, outer);
	return found;
}

/* Has it seen the entry, and not the return yet? */
static inline bool is_awaited(const struct hook_visit *v, const struct hook *h)
{
	return h->serial <= v->limit && h->place != PLACE_NO && v->state->seen >> h->place & 1
		&& !(v->depth && is_blind(v, h->serial));
}

/* Below hook @i of the list. */
static inline bool take_return(struct ftr_call *call, const struct hook_list *list, uint32_t i)
{
	struct hook_visit *v = call->visit;

	while (i > 0) {
		const struct hook *h = &list->hooks[--i];

		if (!is_awaited(v, h))
			continue;
		v->state->seen &= ~(1ull << h->place);
		take(call, h, i, h->ret);
		v->more = v->state->seen != 0;
		return true;
	}
	return false;
}

static inline bool first_return(struct ftr_call *call)
{
	struct hook_visit *v = call->visit;
	uint64_t outer = outer_section(v);
	const struct hook_list *list;
	bool found = false;

	rcu_lock(v->thread, outer);
	list = list_of(v);
	if (list) {
		v->vectors = list->vectors;
		found = take_return(call, list, list->count);
	}
	rcu_unlock(v->thread, outer);
	return found;
}

/* Of the hooks older than the last one. */
static bool next_return(struct ftr_call *call)
{
	struct hook_visit *v = call->visit;
	uint64_t outer = outer_section(v);
	const struct hook_list *list;
	bool found = false;

	rcu_lock(v->thread, outer);
	list = list_of(v);
	if (list) {
		uint32_t i = behind_last(v, list);

		/* All before i are as old as the last one, or older. */
		found = take_return(call, list, i && list->hooks[i - 1].serial == v->serial ? i - 1 : i);
	}
	rcu_unlock(v->thread, outer);
	return found;
}

/* ---- calling them ---- */

static inline void call_handler(struct ftr_call *call, struct hook_visit *v)
{
	v->handler(call, v->data);
	__atomic_store_n(&v->active->serial, 0, __ATOMIC_RELEASE);
}

/* Older ones than the last one. */
static void go_on_returns(struct ftr_call *call)
{
	struct hook_visit *v = call->visit;

	while (v->more && next_return(call))
		call_handler(call, v);
	if (call->state.spilled)
		arch_call_finish(call, false);
}

static inline void run_returns(struct ftr_call *call)
{
	call_handler(call, call->visit);
	go_on_returns(call);
}

/* The function does not run: those see its return who have seen its entry before, but not who has
 * skipped it. */
static void skip(struct ftr_call *call, struct hook_visit *v)
{
	if (v->state && v->place != PLACE_NO)
		v->state->seen &= ~(1ull << v->place);
	call->state.settled = true;
	if (v->state && v->state->seen && next_return(call))
		do
			call_handler(call, v);
		while (v->more && next_return(call));
	arch_call_finish(call, true);
}

/* Behind the last one. */
static void go_on_entries(struct ftr_call *call)
{
	struct hook_visit *v = call->visit;

	while (!call->state.skipped && v->more && next_entry(call))
		call_handler(call, v);
	if (call->state.skipped)
		skip(call, v);
	else if (call->state.spilled)
		arch_call_finish(call, false);
}

static inline void run_entries(struct ftr_call *call)
{
	call_handler(call, call->visit);
	go_on_entries(call);
}

static void run_entries_apart(struct ftr_call *call)
{
	run_entries(call);
}

static void run_returns_apart(struct ftr_call *call)
{
	run_returns(call);
}

/* Run handlers, with errno and vectors as they were afterwards. */
static inline void run(struct ftr_call *call, struct hook_visit *v, bool returns)
{
	int *error = errno_of_thread();

	call->saved_errno = *error;
	if (v->vectors)
		arch_call_vectors(returns ? run_returns_apart : run_entries_apart, call);
	else if (returns)
		run_returns(call);
	else
		run_entries(call);
	*error = call->saved_errno;
}

static inline bool begin_visit(struct ftr_call *call, struct hook_visit *v, struct shadow_thread *t,
	const struct detour_info *info)
{
	v->info = info;
	v->thread = t;
	v->state = NULL;
	call->visit = v;
	call->state = (struct call_state){ .spilled = 0 };
	if (activate(v, call->frame.slot))
		return true;
	shadow_hooks.lost_call();
	return false;
}

static inline const struct hook_places *places_of(const struct detour_info *info)
{
	return (const struct hook_places *)(info + 1);
}

static inline uint64_t place(const struct detour_info *info, int32_t relative)
{
	return (uint64_t)info + (uint64_t)(int64_t)relative;
}

static inline struct shadow_thread *thread_ready(void)
{
	struct shadow_thread *t = shadow_self();

	return t && *t->records ? t : shadow_ready();
}

/*
 * What the first call of a thread makes ready takes system calls, which on some CPUs leave nothing
 * of the longest vectors.
 */
static void prepare(struct ftr_call *call)
{
	struct shadow_thread *t = thread_ready();

	(void)call;
	if (t)
		prepare_states(t, false);
}

static bool is_prepared(void)
{
	const struct shadow_thread *t = shadow_self();

	return t && *t->records && t->states[false];
}

/* The function does not run: where to go instead. */
static void skip_body(struct ftr_call *call, bool has_entry)
{
	const struct hook_places *places = places_of(call->frame.info);

	if (has_entry)
		end_state(entry_of(shadow_self(), call->frame.slot));
	call->frame.go = place(call->frame.info, has_entry ? places->skip : places->drop);
}

__attribute__((noinline)) static void enter(struct ftr_call *call, bool has_entry)
{
	struct shadow_thread *t = has_entry ? shadow_self() : thread_ready();
	struct hook_visit v;

	if (!t || t->paused || !begin_visit(call, &v, t, call->frame.info))
		return;
	if (first_entry(call, has_entry))
		run(call, &v, false);
	deactivate(v.active);
	if (call->state.skipped)
		skip_body(call, has_entry);
}

/* The return handlers that are owed, newest call first. The frame looks as at an entry. */
__attribute__((noinline)) static void pay(struct ftr_call *call)
{
	struct slow_frame *f = &call->frame;
	struct shadow_thread *owner;
	struct shadow_entry *parked;
	struct hook_visit v;

	f->go = place(f->info, places_of(f->info)->drop);
	arch_call_owed(call);
	while ((parked = find_owed(f->slot, &owner))) {
		struct hook_state *state = state_kept(owner, parked);

		f->info = state->info;
		if (!begin_visit(call, &v, shadow_self(), state->info)) {
			hook_forget(owner, f->slot);
			return;
		}
		call->state.returning = call->state.owed = true;
		call->ret = parked->ret;
		v.state = state;
		v.limit = state->limit;
		if (first_return(call))
			run(call, &v, true);
		deactivate(v.active);
		unpark(owner, parked);
	}
}

/* ---- uniform lists, in a thread that is in no handler ---- */

/*
 * Few instructions for each handler, and no read side section: while the version is what it was when
 * reading began, all that was read is true, and a hook whose serial has been stored is seen by
 * hook_running(). Lists stay readable. When the version has changed the general way takes over.
 */
struct walk {
	const struct hook_point *point;
	uint64_t version;
	const struct hook *hooks;
	uint32_t count;
	uint8_t places;
	uint64_t taken, limit;
	struct hook_activation *active;
	struct hook_state *state;
};

static inline bool is_current(const struct walk *w)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ORDERED(w->point->version) == w->version;
}

static inline bool begin_walk(struct walk *w, struct ftr_call *call, struct shadow_thread *t)
{
	const struct hook_list *list;

	w->point = (const struct hook_point *)call->frame.info->point;
	w->version = __atomic_load_n(&w->point->version, __ATOMIC_ACQUIRE);
	list = __atomic_load_n(&w->point->list, __ATOMIC_CONSUME);
	if (!list || !list->uniform)
		return false;
	w->hooks = list->hooks;
	w->count = list->count;
	w->places = list->places;
	w->taken = list->taken;
	w->limit = list->newest;
	w->active = &t->active[0];
	w->state = NULL;
	call->saved_errno = *errno_of_thread();
	return is_current(w);
}

/* False: @hook may not be what it was. Else it has begun to run. */
static inline bool announce(const struct walk *w, const struct hook *hook)
{
	ORDERED(w->active->serial) = hook->serial;
	return is_current(w);
}

static inline void set_word(struct ftr_call *call, const struct walk *w, uint8_t place)
{
	call->word = w->state && place != PLACE_NO ? &w->state->words[place] : NULL;
}

/* Go on in the general way from behind the hook @index of @serial, which has run. */
__attribute__((noinline)) static void leave_walk(struct ftr_call *call, struct hook_state *state,
	uint64_t limit, uint32_t index, uint64_t serial)
{
	struct hook_visit v = { .more = true, .info = call->frame.info, .thread = shadow_self(),
		.place = PLACE_NO, .index = index, .serial = serial, .limit = limit, .state = state };

	if (call->word && state)
		v.place = (uint8_t)(call->word - state->words);
	v.active = &v.thread->active[0];
	v.active->serial = 0;
	call->visit = &v;
	if (call->state.returning)
		go_on_returns(call);
	else
		go_on_entries(call);
}

/* @last: the walk has ended early, behind it. */
static inline void end_walk(const struct walk *w, struct ftr_call *call, const struct hook *last,
	uint64_t serial)
{
	int *error = errno_of_thread();

	if (last)
		leave_walk(call, w->state, w->limit, (uint32_t)(last - w->hooks), serial);
	else if (call->state.spilled)
		arch_call_finish(call, false);
	if (*error != call->saved_errno)
		*error = call->saved_errno;
	deactivate(w->active);
}

/* False: nothing has been done. */
static bool walk_entries(struct ftr_call *call, struct shadow_thread *t, bool has_entry)
{
	const struct hook *h, *last = NULL;
	uint64_t serial = 0;
	bool same = true;
	struct walk w;

	if (!begin_walk(&w, call, t))
		return false;
	if (has_entry && w.places) {
		w.state = begin_state(call, t, w.places > SMALL_PLACES, w.limit, w.taken);
		if (!w.state)
			return false;
	}
	call->state = (struct call_state){ .returning = false };
	ORDERED(w.active->slot) = call->frame.slot;
	for (h = w.hooks; h < w.hooks + w.count && !call->state.skipped; h++) {
		const struct hook hook = *h;

		same = announce(&w, &hook);
		if (!same)
			break;
		set_word(call, &w, hook.place);
		if (call->word)
			*call->word = 0;
		if (!hook.entry)
			continue;
		last = h;
		serial = hook.serial;
		hook.entry(call, hook.data);
	}
	if (same || last)
		end_walk(&w, call, same && !call->state.skipped ? NULL : last, serial);
	else
		deactivate(w.active);
	if (call->state.skipped)
		skip_body(call, has_entry);
	return same || last;
}

static bool walk_returns(struct ftr_call *call, struct shadow_thread *t, struct shadow_entry *e)
{
	const struct hook *h, *last = NULL;
	uint64_t serial = 0;
	bool same = true;
	struct walk w;

	if (!begin_walk(&w, call, t))
		return false;
	w.state = state_kept(t, e);
	if (w.state->limit != w.limit || w.state->seen != w.taken)
		return false;
	call->ret = e->ret;
	call->state = (struct call_state){ .returning = true };
	ORDERED(w.active->slot) = call->frame.slot;
	for (h = w.hooks + w.count; h > w.hooks;) {
		const struct hook hook = *--h;

		same = announce(&w, &hook);
		if (!same)
			break;
		if (!hook.ret)
			continue;
		set_word(call, &w, hook.place);
		last = h;
		serial = hook.serial;
		hook.ret(call, hook.data);
	}
	if (same || last)
		end_walk(&w, call, same ? NULL : last, serial);
	else
		deactivate(w.active);
	return same || last;
}

/* ---- what the stubs call ---- */

void hook_set_env(struct isa_env *env)
{
	find_errno();
	env->tls_thread = (int64_t)((uint64_t)&shadow_words.self - arch_thread_pointer());
	env->tls_errno = errno_offset;
	env->thread_active = offsetof(struct shadow_thread, active);
	env->thread_states = offsetof(struct shadow_thread, states);
	env->hook_entered = (uint64_t)hook_entered;
	env->hook_returned = (uint64_t)hook_returned;
	env->hook_finish = (uint64_t)hook_finish;
}

/* Is it worth trying to walk? */
static inline bool may_walk(const struct shadow_thread *t)
{
	return t && !t->active[0].slot && !t->paused;
}

void hook_entered(struct ftr_call *call)
{
	const uint64_t tagged = (uint64_t)call->frame.info;
	const struct detour_info *info = (const struct detour_info *)(tagged & ~HOOK_TAG_MASK);
	unsigned tag = tagged & HOOK_TAG_MASK;
	bool has_entry = tag == HOOK_TAG_ENTERED && info->leave;
	struct shadow_thread *t;

	call->frame.info = info;
	if (!is_prepared())
		arch_call_vectors(prepare, call);
	t = shadow_self();
	call->frame.go = place(info,
		tag == HOOK_TAG_ENTERED ? places_of(info)->run : places_of(info)->pass);
	if (tag == HOOK_TAG_OWED)
		pay(call);
	else if (!may_walk(t) || !*t->records || !walk_entries(call, t, has_entry))
		enter(call, has_entry);
}

/* The entry of the call that returns, if it has return handlers to call. */
static struct shadow_entry *find_hooked(const struct slow_frame *f, struct shadow_thread **owner)
{
	struct shadow_thread *t = shadow_self();
	struct shadow_entry *e = t ? mirror_place(&t->node, f->slot) : NULL;

	*owner = t;
	if (!e || e->slot != f->slot)
		e = shadow_find(f, owner);
	if (!e || !(e->flags & SHADOW_HOOKED))
		return NULL;
	return shadow_func_of(e) == f->info->id ? e : NULL;
}

__attribute__((noinline)) static void leave(struct ftr_call *call, struct shadow_thread *owner,
	struct shadow_entry *e)
{
	struct hook_visit v = { .thread = shadow_self() };

	if (!v.thread || v.thread->paused || !begin_visit(call, &v, v.thread, call->frame.info))
		return;
	call->state.returning = true;
	call->ret = e->ret;
	v.state = state_kept(owner, e);
	v.limit = v.state->limit;
	if (v.state->seen && first_return(call))
		run(call, &v, true);
	deactivate(v.active);
}

void hook_returned(struct ftr_call *call)
{
	struct slow_frame *f = &call->frame;
	struct shadow_thread *owner;
	struct shadow_entry *e = find_hooked(f, &owner);

	f->go = place(f->info, places_of(f->info)->account);
	if (!e)
		return;
	if (owner != shadow_self() || !may_walk(owner) || !walk_returns(call, owner, e))
		leave(call, owner, e);
	end_state(e);
}

void hook_finish(struct ftr_call *call)
{
	const struct detour_info *info = call->frame.info;

	call->frame.go = place(info,
		call->state.returning ? places_of(info)->account : places_of(info)->run);
	if (call->state.skipped)
		skip_body(call, info->leave);
	if (call->state.skipped || call->state.spilled)
		arch_call_finish(call, call->state.skipped);
	*errno_of_thread() = call->saved_errno;
	deactivate(&shadow_self()->active[0]);
}

unsigned hook_depth(const struct ftr_call *call)
{
	const struct detour_info *info = call->frame.info;
	const struct func_record *r = shadow_records_of(shadow_self());
	uint64_t own = !call->state.owed, open;

	if (!r || info->id == ID_NONE || !info->leave)
		return 0;
	r += info->id;
	open = r->calls - r->returned - r->unwound;
	return open > own ? (unsigned)(open - own) : 0;
}
