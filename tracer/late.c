/* SPDX-License-Identifier: MIT */
#include "late.h"
#include "record.h"
#include "unload.h"
#include "../arch/sys.h"
#include "../rethook/thread.h"
#include "../trampolines/flush.h"
#include "../trampolines/patch.h"
#include "../trampolines/trap.h"

/* A module that is or was loaded. One that comes back to the same place gets its patches back. */
struct known {
	struct known *next;
	uint64_t bias, ld;
	bool loaded, seen;
	uint8_t build_id[32];
	size_t build_id_len;
	uint32_t first_id, nids;
	struct arena arena; /* of what follows; emptied when the images are unloaded */
	struct isa_patch *patches;
	size_t npatches, ndetours;
	struct plan_image *images;
	bool stays; /* it cannot be known whether anybody is in them */
};

/* Images of modules that have gone: so many more, and those nobody is in are unloaded. */
#define GONE_MAX 32

/* Guarded by the loader's lock, which whoever calls late_changed() holds. */
static struct {
	const struct r_debug *loader;
	struct arena arena;
	struct known *known;
	uint32_t batches;
	size_t ngone_left; /* images that stayed when it was looked last */
	int busy; /* the thread that is at it: its own images come through here, too; 0: none */
} late;

static struct known *find(const struct module *m)
{
	struct known *k = late.known;

	while (k && (k->bias != m->bias || k->ld != m->ld))
		k = k->next;
	return k;
}

static struct known *note(const struct module *m)
{
	struct known *k = find(m);

	if (!k) {
		k = arena_alloc(&late.arena, sizeof(*k));
		if (!k)
			return NULL;
		*k = (struct known){ .next = late.known, .bias = m->bias, .ld = m->ld };
		late.known = k;
	}
	k->loaded = k->seen = true;
	return k;
}

void late_start(const struct modules *modules)
{
	late.loader = modules->loader;
	late.batches = 1;
	for (size_t i = 0; i < modules->count; i++)
		note(&modules->list[i]);
}

static bool is_build(const struct known *k, const struct elf_part *id)
{
	return k->build_id_len == id->size && !memcmp(k->build_id, id->bytes, id->size);
}

/* The module, loaded before and gone since, whose build @m is, at the same place if there is such a one;
 * NULL: it is new. */
static struct known *find_build(const struct module *m)
{
	struct elffile elf;
	struct known *k = find(m);
	const char *why;

	if (modules_open(m, &elf, &why))
		return NULL;
	if (!elf.build_id.bytes)
		k = NULL;
	else if (!k || !is_build(k, &elf.build_id))
		for (k = late.known; k && (k->loaded || !is_build(k, &elf.build_id));)
			k = k->next;
	modules_close(&elf);
	return k;
}

static void keep_images(struct known *k, const struct plan *plan)
{
	for (const struct plan_image *from = plan->images; from; from = from->next) {
		struct plan_image *image = arena_alloc(&k->arena, sizeof(*image));

		if (!image)
			return; /* it stays loaded */
		*image = *from;
		image->next = k->images;
		k->images = image;
	}
}

/* Keep what the module needs should it go, and come back. */
static void remember(const struct plan *plan)
{
	struct known *k = find(plan->module);
	const struct elf_part *id = &plan->elf.build_id;

	if (!k)
		return;
	k->first_id = plan->first_id;
	k->nids = plan->nids;
	keep_images(k, plan);
	if (!id->bytes || id->size > sizeof(k->build_id))
		return;
	k->patches = arena_alloc(&k->arena, plan->npatches * sizeof(*k->patches));
	if (!k->patches)
		return;
	memcpy(k->patches, plan->patches, plan->npatches * sizeof(*k->patches));
	k->npatches = plan->npatches;
	k->ndetours = plan->ndetours;
	memcpy(k->build_id, id->bytes, id->size);
	k->build_id_len = id->size;
}

/*
 * No longer: what is loaded from now on is not traced. A module must be seen when it comes; later
 * on its code may be running.
 */
static void give_up(const char *why)
{
	late.loader = NULL;
	config_complain("modules loaded from now on are not traced: %s", why);
}

static int record_new(struct batch *batch)
{
	const char *why = "no room for more functions";
	int err = record_grow(batch->next_id);

	if (!err)
		err = batch_record(batch, late.batches, &why);
	if (!err)
		late.batches++;
	else
		give_up(why);
	return err;
}

/* Plan, load and patch @modules; @again: the one that is known and has its ids and its record. */
static bool trace_these(const struct modules *modules, const struct known *again)
{
	struct batch batch = { .first_id = again ? again->first_id : record_next_id(),
		.max_ids = record_max_ids() };
	const char *why;
	bool good = false;

	batch_plan(&batch, modules);
	if (batch.nplans) {
		batch_load(&batch);
		good = again ? batch.next_id == again->first_id + again->nids
			     : !record_new(&batch);
	}
	if (good && !trap_ready())
		batch_patch(&batch, &why);
	if (trap_given_up())
		record_let_go(trap_give_up(&session.settings.patch));
	if (late.loader)
		batch_tell(&batch);
	for (size_t i = 0; good && i < batch.nplans; i++)
		remember(&batch.plans[i]);
	batch_free(&batch);
	return good;
}

/* Its breakpoints, see trap_present(). */
static bool show_traps(const struct known *k, bool present)
{
	const struct isa_patch *last = k->npatches ? &k->patches[k->npatches - 1] : NULL;

	return !last || trap_present(k->first_id, k->patches[0].addr, last->addr + last->len, present);
}

/* A module has come back: its patches are known if it is where it was, else its ids are. */
static bool trace_again(const struct module *m, const struct known *k)
{
	struct module copy = *m;
	const struct modules one = { .list = &copy, .count = 1 };

	if (k == find(m) && k->patches && show_traps(k, true)) {
		flush_count(k->ndetours, 0);
		return !patch_store(k->patches, k->npatches, NULL, &session.settings.patch);
	}
	return trace_these(&one, k);
}

/* Leave in @modules those that have come and are to be planned. */
static void keep_new(struct modules *modules)
{
	size_t n = 0;

	for (struct known *k = late.known; k; k = k->next)
		k->seen = false;
	for (size_t i = 0; i < modules->count; i++) {
		const struct module *m = &modules->list[i];
		struct known *k = find(m);
		bool was_loaded = k && k->loaded;

		if (!was_loaded)
			k = find_build(m);
		if (!note(m))
			give_up("no memory");
		if (!was_loaded && !(k && trace_again(m, k)))
			modules->list[n++] = *m;
	}
	modules->count = n;
	for (struct known *k = late.known; k; k = k->next) {
		if (k->loaded && !k->seen)
			show_traps(k, false);
		k->loaded = k->seen;
	}
}

/* ---- images of modules that have gone ---- */

struct gone {
	struct unload unload;
	struct code_range *ranges;
	struct known **owners;
	struct arena arena;
};

static bool is_gone(const struct known *k)
{
	return !k->loaded && !k->stays;
}

static size_t count_gone(void)
{
	size_t n = 0;

	for (const struct known *k = late.known; k; k = k->next)
		for (const struct plan_image *i = is_gone(k) ? k->images : NULL; i; i = i->next)
			n++;
	return n;
}

/* Insert in order. */
static void add_gone(struct gone *g, struct known *k, const struct plan_image *image)
{
	size_t at = g->unload.n++;

	for (; at && g->ranges[at - 1].lo > image->lo; at--) {
		g->ranges[at] = g->ranges[at - 1];
		g->owners[at] = g->owners[at - 1];
	}
	g->ranges[at] = (struct code_range){ image->lo, image->hi };
	g->owners[at] = k;
}

static bool find_gone(struct gone *g, size_t n)
{
	g->unload.ranges = g->ranges = arena_alloc(&g->arena, n * sizeof(*g->ranges));
	g->unload.busy = arena_alloc(&g->arena, n);
	g->owners = arena_alloc(&g->arena, n * sizeof(struct known *));
	if (!g->ranges || !g->unload.busy || !g->owners)
		return false;
	for (struct known *k = late.known; k; k = k->next)
		for (const struct plan_image *i = is_gone(k) ? k->images : NULL; i; i = i->next)
			add_gone(g, k, i);
	return true;
}

static void note_call(uint32_t id, uint64_t info, void *arg)
{
	const struct gone *g = arg;

	for (size_t i = 0; i < g->unload.n; i++)
		g->unload.busy[i] |= id - g->owners[i]->first_id < g->owners[i]->nids
			|| info - g->ranges[i].lo < g->ranges[i].hi - g->ranges[i].lo;
}

/* All of a module or none. */
static void share_busy(const struct gone *g)
{
	for (size_t i = 0; i < g->unload.n; i++)
		for (size_t j = 0; j < g->unload.n; j++)
			g->unload.busy[j] |= g->unload.busy[i] && g->owners[i] == g->owners[j];
}

static void unload_images(struct known *k)
{
	for (const struct plan_image *i = k->images; i; i = i->next)
		unload_image(i->handle, i->lo);
	k->images = NULL;
	k->patches = NULL;
	k->npatches = 0;
	arena_free(&k->arena);
}

/* Libraries that are loaded again and again, to ever new addresses, must not use up all there is. */
static void unload_gone(void)
{
	struct gone g = { .unload.n = 0 };
	size_t n = count_gone();
	bool sure;

	if (!arch_slot_in_memory || n < late.ngone_left + GONE_MAX)
		return;
	if (!find_gone(&g, n)) {
		arena_free(&g.arena);
		return;
	}
	unload_find_busy(&g.unload, note_call, &g, __builtin_frame_address(0));
	share_busy(&g);
	sure = unload_retire(&g.unload);
	for (size_t i = 0; i < n; i++)
		if (!g.unload.busy[i] && !sure)
			g.owners[i]->stays = true;
		else if (!g.unload.busy[i])
			unload_images(g.owners[i]);
	late.ngone_left = count_gone();
	arena_free(&g.arena);
}

static void trace_new(void)
{
	struct arena arena = { 0 };
	struct modules modules;
	struct maps maps;

	if (session_modules(&modules, &maps, &arena)) {
		give_up("the loaded modules cannot be found");
	} else {
		keep_new(&modules);
		if (modules.count && late.loader)
			trace_these(&modules, NULL);
	}
	arena_free(&arena);
}

/*
 * Signals wait: their handlers' calls would not be recorded meanwhile, and one might leave by a
 * longjmp.
 */
ARCH_ALIGNS_STACK void late_changed(void)
{
	uint64_t signals;
	bool was_paused;

	if (!late.loader || !modules_settled(late.loader))
		return;
	if (shadow_hooks.sealed) {
		late.loader = NULL;
		return;
	}
	if (late.busy == sys_gettid()) /* another one's is of the parent, amid whose work we were forked */
		return;
	thread_block_signals(&signals);
	was_paused = shadow_self() && shadow_self()->paused; /* a probe has the loader load something */
	if (shadow_pause(true)) {
		late.busy = sys_gettid();
		session.settings.trap = session.config.trap && trap_possible(signals);
		trace_new();
		unload_gone();
		late.busy = 0;
		shadow_pause(was_paused);
	} else {
		give_up("no memory");
	}
	thread_restore_signals(&signals);
}
