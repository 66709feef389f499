/* SPDX-License-Identifier: MIT */
/* Who is attached to which static probes; see usdt.h. */
#define _GNU_SOURCE 1
#include "../arch/mem.h"
#include "breakpoints.h"
#include "loader.h"
#include "probe.h"
#include "usdt.h"
#include "wiped.h"
#include "../arch/sys.h"
#include "../rethook/hook.h"
#include "../trampolines/live.h"
#include "../trampolines/signals.h"
#include <dlfcn.h>
#include <errno.h>

#define EXPORTED __attribute__((visibility("default")))

struct usdt usdt;

/* ---- one at a time ---- */

static int prepare(void)
{
	struct usdt_wiped *none = NULL, *w;
	int err;

	if (!arch_hit_prepare())
		return -ENOSYS;
	err = probe_prepare();
	if (err)
		return err;
	if (__atomic_load_n(&usdt.wiped, __ATOMIC_ACQUIRE))
		return 0;
	w = wiped_alloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	if (!__atomic_compare_exchange_n(
		    &usdt.wiped, &none, w, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		wiped_free(w, sizeof(*w));
	return 0;
}

/* While it is held no signal handler of the program's interrupts. Where system calls may be forbidden,
 * none is made. */
struct quiet {
	uint64_t signals; /* that the calling thread blocks */
	bool sealed;
};

static struct quiet lock(void)
{
	struct quiet q = { .sealed = shadow_hooks.sealed };

	if (!q.sealed)
		q.signals = signals_block(~LIVE_SIGNALS);
	while (__atomic_exchange_n(&usdt.wiped->lock, 1, __ATOMIC_ACQUIRE))
		if (!q.sealed)
			threads_pause(50);
	return q;
}

static void unlock(struct quiet q)
{
	__atomic_store_n(&usdt.wiped->lock, 0, __ATOMIC_RELEASE);
	if (!q.sealed)
		signals_block(q.signals);
}

/* ---- memory that is given back ---- */

void usdt_free_hooks(struct usdt_hooks *hooks)
{
	struct arena arena;

	if (!hooks)
		return;
	arena = hooks->arena;
	arena_free(&arena);
}

static void free_replaced(struct usdt_place *place)
{
	while (place->replaced && !usdt_is_running(place)) {
		struct usdt_hooks *hooks = place->replaced;

		place->replaced = hooks->next;
		usdt_free_hooks(hooks);
	}
}

static void free_region(struct usdt_region *region)
{
	struct code_range range = { region->lo, region->hi };

	/* A handler's own thread is in a detour, too. */
	if (!region->lo || region->users || usdt_in_handler() || live_busy(&range, 1))
		return;
	sys_munmap((void *)region->lo, region->hi - region->lo);
	region->lo = 0;
}

/* What could not be given back when it was left. */
static void sweep(void)
{
	for (struct usdt_place *p = usdt.places; p; p = p->next)
		free_replaced(p);
	for (struct usdt_region *r = usdt.regions; r; r = r->next)
		free_region(r);
}

/* ---- hooks ---- */

/* The place's hooks but for those of @without, and @with behind them. NULL: no memory. */
static struct usdt_hooks *new_hooks(const struct usdt_place *place, const struct ftr_usdt *without,
	const struct usdt_hook *with)
{
	size_t n = place->hooks ? place->hooks->n : 0;
	struct arena arena = { 0 };
	struct usdt_hooks *hooks =
		arena_alloc(&arena, sizeof(*hooks) + (n + 1) * sizeof(hooks->list[0]));

	if (!hooks)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (place->hooks->list[i].owner != without)
			hooks->list[hooks->n++] = place->hooks->list[i];
	if (with)
		hooks->list[hooks->n++] = *with;
	hooks->arena = arena;
	return hooks;
}

static void publish(struct usdt_place *place, struct usdt_hooks *hooks)
{
	struct usdt_hooks *old = place->hooks;

	__atomic_store_n(&place->hooks, hooks, __ATOMIC_SEQ_CST);
	if (old) {
		old->next = place->replaced;
		place->replaced = old;
	}
}

static void raise_semaphores(const struct ftr_usdt *u, uint16_t by)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->places[i]->semaphore)
			__atomic_fetch_add(u->places[i]->semaphore, by, __ATOMIC_SEQ_CST);
}

static void no_handler(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	(void)data;
}

static void silence_place(struct usdt_place *p, const struct ftr_usdt *u)
{
	for (size_t i = 0; p->hooks && i < p->hooks->n; i++)
		if (p->hooks->list[i].owner == u)
			__atomic_store_n(&p->hooks->list[i].handler, no_handler, __ATOMIC_SEQ_CST);
}

static void silence(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n; i++)
		silence_place(u->places[i], u);
}

/* Take the hooks of @u away; where there is no memory for that they stay, without a handler. */
static void take_hooks(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct usdt_hooks *hooks = new_hooks(u->places[i], u, NULL);

		if (hooks)
			publish(u->places[i], hooks);
		else
			silence_place(u->places[i], u);
	}
}

static int put_hooks(const struct ftr_usdt *u, const struct usdt_hook *hook)
{
	for (size_t i = 0; i < u->n; i++) {
		struct usdt_hooks *hooks = new_hooks(u->places[i], u, hook);

		if (!hooks)
			return -ENOMEM;
		publish(u->places[i], hooks);
	}
	return 0;
}

/* @unpin: none of its places stays patched. */
static void free_attachment(struct ftr_usdt *u, bool unpin)
{
	struct arena arena = u->arena;

	for (size_t i = 0; i < u->npins && unpin; i++)
		dlclose(u->pins[i]);
	arena_free(&arena);
}

static void give_up_places(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct usdt_place *p = u->places[i];

		p->taken = p->patched || usdt_is_wanted(p);
	}
}

/* ---- the functions ---- */

static int fail(int err)
{
	static const struct {
		int err;
		const char *why;
	} reasons[] = {
		{ -ENOENT, "no loaded module has such a static probe" },
		{ -ENOTSUP, "a static probe has no room for a jump and cannot have a breakpoint, or its "
			    "code is not that of the file" },
		{ -ENODATA, "breakpoints of static probes were given up meanwhile: SIGTRAP was blocked "
			    "or handled, or system calls forbidden (seccomp)" },
		{ -EPERM, "static probes: system calls may be forbidden (seccomp), or /proc is" },
		{ -ERANGE, "there is no free memory near enough to the static probes" },
		{ -EBUSY, "a thread does not leave the code at a static probe" },
		{ -ENOSYS, "static probes cannot be attached to on this processor" },
		{ -EINVAL, "no handler, or no such attachment" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].err == err)
			return probe_fail(err, "%s", reasons[i].why);
	return probe_fail_system(err);
}

struct attachment {
	struct usdt_search search;
	struct usdt_hook hook;
	int err;
};

/* With the loader's lock held, since modules are pinned. */
static void attach(void *arg)
{
	struct attachment *a = arg;
	struct ftr_usdt *u = a->search.result;
	struct quiet q = lock();

	usdt_settle();
	a->err = q.sealed ? -EPERM : usdt_find(&a->search);
	if (!a->err)
		a->err = put_hooks(u, &a->hook);
	if (!a->err)
		a->err = usdt_patch(u, true, q.signals);
	if (a->err) {
		take_hooks(u);
		give_up_places(u);
	} else {
		raise_semaphores(u, 1);
		u->next = usdt.attached;
		usdt.attached = u;
	}
	if (!q.sealed)
		sweep();
	unlock(q);
}

/* A new attachment. *@made, and the number of its places; or -errno. */
static int attach_once(struct attachment *a, struct ftr_usdt **made)
{
	struct arena arena = { 0 };
	struct ftr_usdt *u = arena_alloc(&arena, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->arena = arena;
	a->search.result = u;
	a->hook.owner = u;
	loader_locked(attach, a);
	arena_free(&a->search.arena);
	if (!a->err) {
		*made = u;
		return (int)u->n;
	}
	free_attachment(u, true);
	return a->err;
}

EXPORTED int ftr_usdt_attach(const char *provider, const char *name, const char *module,
	ftr_usdt_handler *handler, void *data, struct ftr_usdt **attachment)
{
	struct attachment a = { .search = { .provider = provider, .name = name, .module = module },
		.hook = { .handler = handler, .data = data } };
	int error = *hook_errno(), got = handler && attachment ? prepare() : -EINVAL;

	if (!got)
		got = attach_once(&a, attachment);
	if (got == -EAGAIN) {
		got = breakpoints_guard();
		if (!got)
			got = attach_once(&a, attachment);
	}
	*hook_errno() = error;
	return got < 0 ? fail(got) : got;
}

static bool unlink_attachment(struct ftr_usdt *u)
{
	struct ftr_usdt **at = &usdt.attached;

	while (*at && *at != u)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = u->next;
	return true;
}

/* Until no other thread can be in a handler of @u. */
static void await_handlers(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n && !usdt_in_handler(); i++)
		while (usdt_is_running(u->places[i]))
			threads_pause(50);
}

static bool has_lost(const struct ftr_usdt *u)
{
	bool lost = false;

	for (size_t i = 0; i < u->n && !lost; i++)
		lost = u->places[i]->lost;
	return lost;
}

/* Its handlers are silent from here on. 0; -ENODATA: some were before; or -errno. */
static int detach(struct ftr_usdt *u, struct quiet q)
{
	bool lost;
	int err;

	raise_semaphores(u, (uint16_t)-1);
	if (q.sealed) {
		silence(u);
		return -EPERM;
	}
	usdt_settle();
	lost = has_lost(u);
	take_hooks(u);
	err = usdt_patch(u, false, q.signals);
	give_up_places(u);
	return !err && lost ? -ENODATA : err;
}

EXPORTED int ftr_usdt_detach(struct ftr_usdt *u)
{
	int err, error = *hook_errno();
	struct quiet q;

	if (!u || !usdt.wiped)
		return fail(-EINVAL);
	q = lock();
	err = unlink_attachment(u) ? detach(u, q) : -EINVAL;
	unlock(q);
	if (err == -EINVAL || q.sealed)
		return fail(err);
	await_handlers(u);
	q = lock();
	sweep();
	unlock(q);
	free_attachment(u, !err || err == -ENODATA);
	*hook_errno() = error;
	return err ? fail(err) : 0;
}
