/* SPDX-License-Identifier: MIT */
/*
 * Places are patched and restored by live_store(). A breakpoint kills a thread that blocks SIGTRAP, so
 * there are breakpoints only while nobody can come to block it unseen (breakpoints.h) and nobody blocks
 * it. Finding that out and storing them is one step for who is about to block it: a lock of its own,
 * which is held for nothing else, since who is about to may hold any lock of the program's.
 */
#include "../arch/mem.h"
#include "breakpoints.h"
#include "session.h"
#include "usdt.h"
#include "../rethook/shadow.h"
#include "../trampolines/live.h"
#include "../trampolines/places.h"
#include "../trampolines/signals.h"
#include "../trampolines/trap.h"
#include <errno.h>

#define TRIES_MAX 300
#define PAUSE_US  1000

/* ---- the breakpoints' lock ---- */

/* The signals that the calling thread blocks. */
static uint64_t lock_breakpoints(void)
{
	uint64_t mask = signals_block(~LIVE_SIGNALS);

	while (__atomic_exchange_n(&usdt.wiped->breakpoints, 1, __ATOMIC_ACQUIRE))
		threads_pause(50);
	return mask;
}

static void unlock_breakpoints(uint64_t mask)
{
	__atomic_store_n(&usdt.wiped->breakpoints, 0, __ATOMIC_RELEASE);
	signals_block(mask);
}

bool usdt_has_breakpoints(void)
{
	return places_any();
}

void usdt_give_up(void)
{
	uint64_t mask;

	if (!places_any())
		return;
	mask = lock_breakpoints();
	places_restore(&session.settings.patch);
	unlock_breakpoints(mask);
}

void usdt_blocking(int by)
{
	if (by > 0)
		__atomic_fetch_add(&usdt.wiped->blocking, 1, __ATOMIC_SEQ_CST);
	else
		usdt_count_down(&usdt.wiped->blocking);
}

static bool is_given_up(const struct usdt_place *p)
{
	return p->trap && p->patched
		&& memcmp(p->probe.address, p->patch.bytes, p->patch.len) != 0;
}

void usdt_settle(void)
{
	for (struct usdt_place *p = usdt.places; p; p = p->next)
		if (is_given_up(p)) {
			places_end((uint64_t)p->probe.address);
			p->patched = false;
			p->lost = true;
			p->region->users--;
		}
}

/* ---- breakpoints ---- */

/* Does every thread hear SIGTRAP, and is none about to block it? 0; -EBUSY: not now; or -errno. */
static int everybody_hears(void)
{
	return __atomic_load_n(&usdt.wiped->blocking, __ATOMIC_SEQ_CST) ? -EBUSY : live_hears_traps();
}

/* Tell the SIGTRAP handler of all breakpoints that there are and that @u needs. */
static int announce(const struct ftr_usdt *u)
{
	struct arena arena = { 0 };
	struct places_entry *list = arena_alloc(&arena, (usdt.nplaces + 1) * sizeof(*list));
	size_t n = 0;
	int err;

	if (!list)
		return -ENOMEM;
	for (struct usdt_place *p = usdt.places; p; p = p->next)
		if (p->trap && p->patched)
			list[n++] = (struct places_entry){ .site = (uint64_t)p->probe.address,
				.detour = p->detour, .original = p->original.bytes[0] };
	for (size_t i = 0; i < u->n; i++)
		if (u->places[i]->trap && !u->places[i]->patched)
			list[n++] = (struct places_entry){ .site = (uint64_t)u->places[i]->probe.address,
				.detour = u->places[i]->detour,
				.original = *(const uint8_t *)u->places[i]->probe.address };
	err = places_set(list, n);
	arena_free(&arena);
	return err;
}

/* May there be breakpoints? Then the SIGTRAP handler knows of those of @u. -EBUSY: not now. */
static int prepare_breakpoints(const struct ftr_usdt *u, uint64_t blocked)
{
	int err;

	if (!breakpoints_guarded())
		return -EAGAIN;
	if (!trap_is_free(blocked)) /* before our handler is there for nothing */
		return -ENOTSUP;
	err = announce(u);
	if (!err)
		err = everybody_hears();
	if (!err && shadow_hooks.sealed)
		return -EPERM;
	return !err && (breakpoints_masked() || !trap_is_free(blocked)) ? -ENOTSUP : err;
}

static bool needs_breakpoints(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->places[i]->trap && !u->places[i]->patched)
			return true;
	return false;
}

/* ---- patches ---- */

/* What is to be stored, and the places it belongs to. */
struct todo {
	struct isa_patch *patches, *old;
	struct usdt_place **places;
	uint8_t *windows;
	size_t n;
};

static int plan_patches(struct todo *todo, const struct ftr_usdt *u, bool wanted, struct arena *arena)
{
	todo->patches = arena_alloc(arena, u->n * sizeof(*todo->patches));
	todo->old = arena_alloc(arena, u->n * sizeof(*todo->old));
	todo->places = arena_alloc(arena, u->n * sizeof(*todo->places));
	todo->windows = arena_alloc(arena, u->n);
	if (!todo->patches || !todo->old || !todo->places || !todo->windows)
		return -ENOMEM;
	for (size_t i = 0; i < u->n; i++) {
		struct usdt_place *p = u->places[i];

		if (usdt_is_wanted(p) != wanted || p->patched == wanted)
			continue;
		todo->places[todo->n] = p;
		todo->windows[todo->n] = p->window;
		todo->patches[todo->n++] = wanted ? p->patch : p->original;
	}
	return 0;
}

static void note_patched(const struct todo *todo, bool wanted)
{
	for (size_t i = 0; i < todo->n; i++) {
		struct usdt_place *p = todo->places[i];

		if (wanted)
			p->original = todo->old[i];
		else if (p->trap)
			places_end((uint64_t)p->probe.address);
		p->patched = wanted;
		p->region->users += wanted ? 1 : -1u;
	}
}

/* Store them. Who comes to block SIGTRAP unseen while that happens is found afterwards. */
static int store(struct todo *todo, bool breakpoints)
{
	int err = live_store(todo->patches, todo->n, todo->windows, todo->old, &session.settings.patch);

	if (err || !breakpoints || live_hears_traps() != -EBUSY)
		return err;
	err = live_store(todo->old, todo->n, NULL, NULL, &session.settings.patch);
	return err ? err : -EBUSY;
}

/* *@deaf: it failed because a thread blocks SIGTRAP, or is about to. */
static int patch_once(struct ftr_usdt *u, bool wanted, uint64_t blocked, bool *deaf)
{
	struct arena arena = { 0 };
	struct todo todo = { 0 };
	uint64_t mask = lock_breakpoints();
	bool breakpoints = wanted && needs_breakpoints(u);
	int err = plan_patches(&todo, u, wanted, &arena);

	if (!err && breakpoints)
		err = prepare_breakpoints(u, blocked);
	if (!err && todo.n)
		err = store(&todo, breakpoints);
	*deaf = breakpoints && err == -EBUSY;
	if (!err)
		note_patched(&todo, wanted);
	for (size_t i = 0; i < u->n && err && wanted; i++)
		if (u->places[i]->trap && !u->places[i]->patched)
			places_end((uint64_t)u->places[i]->probe.address);
	unlock_breakpoints(mask);
	arena_free(&arena);
	return err;
}

/* libc blocks all signals for a moment now and then, which may be long on a busy machine. */
int usdt_patch(struct ftr_usdt *u, bool wanted, uint64_t blocked)
{
	bool deaf = true;
	int err = 0;

	for (unsigned n = 0; n < TRIES_MAX && deaf; n++) {
		if (n)
			threads_pause(PAUSE_US);
		err = patch_once(u, wanted, blocked, &deaf);
	}
	return deaf ? -ENOTSUP : err;
}
