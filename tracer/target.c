/* SPDX-License-Identifier: MIT */
#include "target.h"
#include "demangle.h"
#include "record.h"
#include "session.h"
#include "where.h"
#include "../trampolines/flush.h"
#include "../trampolines/live.h"
#include <errno.h>

#define BUCKETS 4096

static struct {
	struct target *buckets[BUCKETS]; /* by address; release: the target is complete */
	struct arena arena;
} targets;

static struct target **bucket_of(uint64_t address)
{
	return &targets.buckets[(address >> 4) % BUCKETS];
}

static struct target *find(uint64_t address)
{
	struct target *t = __atomic_load_n(bucket_of(address), __ATOMIC_ACQUIRE);

	while (t && (t->module->gone || t->address != address))
		t = t->next;
	return t;
}

const struct target *target_find(uint64_t address)
{
	return find(address);
}

static const char *keep(const char *s)
{
	return s ? arena_str(&targets.arena, s, strlen(s)) : NULL;
}

static bool name(struct target *t, const char *called)
{
	struct ftr_function *f = &t->point.function;
	struct arena arena = { 0 };
	char *scratch = arena_alloc(&arena, 2 * PLAN_NAME_MAX);
	const char *names[3];

	if (!scratch)
		return false;
	plan_symbol_names(&t->module->plan, t->function.symbol, true, scratch, names);
	f->address = (const void *)t->address;
	f->symbol = keep(called && !t->function.symbol->name ? called : names[0]);
	f->name = names[1] ? keep(names[1]) : f->symbol;
	f->module = t->module->module.path;
	arena_free(&arena);
	return f->symbol && f->name;
}

struct target *target_of(struct catalog_module *module, const struct symbol *symbol,
	const char *called)
{
	uint64_t address = symbol->start + module->module.bias;
	const struct where_entry *where = where_find(address);
	struct target *t = find(address);

	if (t)
		return t;
	t = arena_alloc(&targets.arena, sizeof(*t));
	if (!t)
		return NULL;
	t->module = module;
	t->address = address;
	t->patched = where;
	t->traced = where_traced(address);
	t->function.symbol = symbol;
	t->function.index = (uint32_t)(symbol - module->plan.symbols.list);
	t->function.id = t->traced ? where->id : 0;
	if (!name(t, called))
		return NULL;
	plan_site(&module->plan, &t->function, &session.settings, where ? where->detour : 0);
	if (where && where->entry_only)
		t->function.site.entry_only = true;
	t->next = *bucket_of(address);
	__atomic_store_n(bucket_of(address), t, __ATOMIC_RELEASE);
	return t;
}

static enum target_kind kind_needed(const struct target *t)
{
	bool counted = t->traced || t->ncounters;

	if (t->nreturns)
		return TARGET_RETURN;
	if (t->nentries)
		return counted ? TARGET_BOTH : TARGET_ENTRY;
	return t->ncounters && !t->traced ? TARGET_COUNT : TARGET_NONE;
}

/* ---- detours ---- */

uint32_t *target_id(struct target *t, enum target_kind kind)
{
	return kind == TARGET_ENTRY && !target_is_entry_only(t) ? &t->entry_id : &t->function.id;
}

static void set_function(struct target *t, enum target_kind kind, struct plan_function *f)
{
	*f = t->function;
	f->id = *target_id(t, kind);
	f->has_id = f->id;
	f->point = kind >= TARGET_ENTRY ? &t->point : NULL;
	f->hook_return = kind == TARGET_RETURN;
	f->site.entry_only |= kind == TARGET_ENTRY;
	f->detour = t->detours[kind].address;
}

static bool is_missing(const struct target *t)
{
	enum target_kind kind = kind_needed(t);

	return !t->module->gone && kind != TARGET_NONE && !t->detours[kind].address;
}

/* All targets of one module whose detours are missing get them, in one image. */
static int make_detours(struct catalog_module *module, struct target *const *list, size_t n,
	const char **why)
{
	struct plan_settings settings = session.settings;
	struct plan plan = module->plan;
	struct arena arena = { 0 };
	uint32_t next_id = record_next_id();
	int err = 0;

	plan.module = &module->module;
	plan.functions = arena_alloc(&arena, n * sizeof(*plan.functions));
	*why = "no memory";
	if (!plan.functions)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < n; i++)
		if (list[i]->module == module && is_missing(list[i]))
			set_function(list[i], kind_needed(list[i]),
				&plan.functions[plan.count++]);
	plan.patchable = plan.count;
	settings.max_ids = record_max_ids();
	if (!err)
		err = plan_image(&plan, &settings, &next_id, &arena, why);
	detours_add(&plan);
	for (size_t i = 0; !err && i < plan.count; i++)
		if (plan.functions[i].site.choice == SITE_REFUSED) {
			*why = isa_reason_name(plan.functions[i].site.reason);
			err = plan.functions[i].site.reason == REASON_OUT_OF_REACH ? -ERANGE
										 : -ENOTSUP;
		}
	if (!err) {
		err = record_grow(next_id);
		*why = "no room for more functions";
	}
	for (size_t i = 0, k = 0; !err && i < n; i++) {
		struct target *t = list[i];

		if (t->module != module || !is_missing(t))
			continue;
		*target_id(t, kind_needed(t)) = plan.functions[k].id;
		t->detours[kind_needed(t)] = (struct target_detour){ plan.functions[k].detour,
			detours_at(plan.functions[k].detour) };
		k++;
	}
	arena_free(&arena);
	return err;
}

/* Those that are there since they were needed before. */
static void count_kept(struct target *const *list, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		enum target_kind kind = kind_needed(list[i]);

		kept += !list[i]->module->gone && kind != TARGET_NONE && kind != list[i]->kind
			&& !is_missing(list[i]);
	}
	flush_count(kept, 0);
}

int target_make(struct target *const *list, size_t n, const char **why)
{
	count_kept(list, n);
	for (size_t i = 0; i < n; i++) {
		struct catalog_module *module = list[i]->module;
		void *pin;
		int err;

		if (!is_missing(list[i]))
			continue;
		pin = catalog_pin(module);
		err = make_detours(module, list, n, why);
		catalog_unpin(pin);
		if (err)
			return err;
	}
	return 0;
}

/* ---- patches ---- */

struct change {
	struct isa_patch patch;
	uint8_t window; /* see live_store() */
	struct target *target; /* in changes.after */
};

struct changes {
	struct arena arena;
	struct change *now;
	struct change *after; /* once @now is done: what nothing leads to any more */
	size_t nnow, nafter;
	const void *frame;
};

static bool covers_several(const struct isa_site *site)
{
	return site->choice != SITE_ONE && site->choice != SITE_HOP;
}

/* What is at the places of @patches by now. */
static void note_original(struct target *t, const struct isa_patch *patches, int n)
{
	t->noriginal = n;
	for (int i = 0; i < n; i++) {
		t->original[i] = patches[i];
		memcpy(t->original[i].bytes, (const void *)patches[i].addr, patches[i].len);
	}
}

/* The padding that a short jump led to. */
static void take_padding(struct changes *c, struct target *t)
{
	c->after[c->nafter++] = (struct change){ .patch = t->original[0], .target = t };
}

static void take_back(struct changes *c, struct target *t)
{
	c->now[c->nnow++].patch = t->original[t->noriginal - 1];
	if (t->noriginal > 1)
		take_padding(c, t);
}

/* The function's own instructions are replaced, or one detour by another. */
static int lead_to(struct changes *c, struct target *t, enum target_kind kind)
{
	bool own_code = t->kind == TARGET_NONE && !t->patched;
	struct isa_patch patches[2];
	struct plan_function f;
	int n;

	set_function(t, kind, &f);
	n = plan_patch(&t->module->plan, &session.settings, &f, patches);
	if (n > 0 && t->kind == TARGET_NONE)
		note_original(t, patches, n);
	for (int i = 0; i < n; i++)
		c->now[c->nnow++] = (struct change){ .patch = patches[i],
			.window = own_code && covers_several(&f.site) ? f.site.len : 0 };
	return n < 0 ? n : 0;
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return x->patch.addr < y->patch.addr ? -1 : x->patch.addr > y->patch.addr;
}

static int store(struct changes *c, struct change *list, size_t n)
{
	struct patch_how how = session.settings.patch;
	struct isa_patch *patches = arena_alloc(&c->arena, n * sizeof(*patches));
	uint8_t *windows = arena_alloc(&c->arena, n);

	how.frame = c->frame;
	if (!n)
		return 0;
	if (!patches || !windows)
		return -ENOMEM;
	mem_sort(list, n, sizeof(*list), compare_changes);
	for (size_t i = 0; i < n; i++) {
		patches[i] = list[i].patch;
		windows[i] = list[i].window;
	}
	return live_store(patches, n, windows, NULL, &how);
}

/* The padding of @t leads to @image, and nothing to the padding. */
static void leave_padding(struct target *t, struct detours *image)
{
	detours_use(image);
	detours_leave(t->left);
	t->left = image;
}

/* What nobody is about to execute is taken away; the rest stays for now, since nothing leads there. */
static void store_unused(struct changes *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nafter; i++) {
		const struct isa_patch *p = &c->after[i].patch;
		const struct code_range range = { p->addr, p->addr + p->len };
		struct target *t = c->after[i].target;

		leave_padding(t, t->kind == TARGET_NONE ? t->left : t->detours[t->kind].image);
		if (!live_busy(&range, 1))
			c->after[n++] = c->after[i];
	}
	if (store(c, c->after, n))
		return;
	for (size_t i = 0; i < n; i++)
		leave_padding(c->after[i].target, NULL);
}

static void set_kind(struct target *t, enum target_kind kind)
{
	detours_use(t->detours[kind].image);
	detours_leave(t->detours[t->kind].image);
	t->kind = kind;
	if (kind != TARGET_NONE)
		leave_padding(t, NULL); /* it has been written over */
}

static const char *describe(int err)
{
	switch (err) {
	case -EBUSY:
		return "a thread does not leave its first instructions";
	case -ENOMEM:
		return "no memory";
	default:
		return "its code cannot be written";
	}
}

/* Patch all of @list whose detours are there, or none. */
static int change(struct target *const *list, size_t n, const void *frame)
{
	struct changes c = { .frame = frame };
	int err;

	c.now = arena_alloc(&c.arena, 2 * n * sizeof(*c.now));
	c.after = arena_alloc(&c.arena, n * sizeof(*c.after));
	err = c.now && c.after ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < n; i++) {
		enum target_kind kind = kind_needed(list[i]);

		if (list[i]->module->gone)
			set_kind(list[i], TARGET_NONE);
		if (list[i]->module->gone || kind == list[i]->kind)
			continue;
		if (kind == TARGET_NONE)
			take_back(&c, list[i]);
		else if (is_missing(list[i]))
			err = -ENOMEM; /* there was none for it */
		else
			err = lead_to(&c, list[i], kind);
	}
	if (!err)
		err = store(&c, c.now, c.nnow);
	if (!err)
		store_unused(&c);
	for (size_t i = 0; !err && i < n; i++)
		if (!list[i]->module->gone)
			set_kind(list[i], kind_needed(list[i]));
	arena_free(&c.arena);
	return err;
}

void target_each(void (*visit)(struct target *t, void *arg), void *arg)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct target *t = targets.buckets[i]; t; t = t->next)
			visit(t, arg);
}

static void count_left(struct target *t, void *arg)
{
	struct changes *c = arg;

	if (t->left && t->module->gone)
		leave_padding(t, NULL);
	c->nafter += t->left != NULL;
}

static void take_left(struct target *t, void *arg)
{
	if (t->left)
		take_padding(arg, t);
}

void target_tidy(void)
{
	struct changes c = { .nafter = 0 };

	target_each(count_left, &c);
	if (!c.nafter)
		return;
	c.after = arena_alloc(&c.arena, c.nafter * sizeof(*c.after));
	c.nafter = 0;
	if (c.after) {
		target_each(take_left, &c);
		store_unused(&c);
	}
	arena_free(&c.arena);
}

int target_lead(
	struct target *const *list, size_t n, const void *frame, bool partial, const char **why)
{
	size_t done = 0;
	int err;

	for (size_t i = 0; i < n; i++)
		list[i]->busy = false;
	err = change(list, n, frame);
	for (size_t i = 0; err == -EBUSY && partial && i < n; i++) {
		list[i]->busy = change(&list[i], 1, frame);
		done += !list[i]->busy;
	}
	*why = describe(err);
	return done ? 0 : err;
}
