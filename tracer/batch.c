/* SPDX-License-Identifier: MIT */
#include "batch.h"
#include "record.h"
#include "tables.h"
#include "watch.h"
#include "where.h"
#include "../arch/sys.h"
#include "../trampolines/image.h"
#include "../trampolines/patch.h"
#include "../trampolines/reserve.h"
#include <errno.h>

#define OWN_PLANS 2 /* libc's and the loader's */

static bool module_wanted(const struct module *m)
{
	const char *names[2] = { m->path, str_base(m->path) };

	if (m->ours)
		return false;
	return session.config.modules ? filter_match(&session.module_filter, names, 2) : m->main;
}

void batch_reserve(struct batch *batch, const struct modules *modules)
{
	struct gap_request place = session.settings.place;

	place.reach = arch_isa->reach;
	for (size_t i = 0; i < modules->count && place.reach < RESERVE_REACH; i++) {
		const struct module *m = &modules->list[i];

		place.text_lo = m->lo;
		place.text_hi = m->hi;
		if (module_wanted(m))
			reserve_near(&place, &batch->arena);
	}
}

/* A problem with one module leaves the others alone. */
static void failed(struct batch *batch, const struct module *module, const char *why)
{
	if (batch->nfailed++)
		return;
	str_print(batch->module, sizeof(batch->module), "%s", module->path);
	str_print(batch->why, sizeof(batch->why), "%s", why);
}

static void no_memory(struct batch *batch, const struct module *module)
{
	failed(batch, module, "no memory");
	batch->unguarded = true;
}

static bool have_plans(struct batch *batch, const struct modules *modules)
{
	size_t size = (modules->count + OWN_PLANS) * sizeof(*batch->plans);

	if (!batch->plans)
		batch->plans = arena_alloc(&batch->arena, size);
	if (!batch->plans)
		no_memory(batch, modules->list);
	return batch->plans;
}

/* Without a watch on libc it is not known when system calls are to be avoided. */
static void unwatched(struct batch *batch, const struct plan *plan, const char *why)
{
	failed(batch, plan->module, why);
	batch->unguarded |= plan->is_libc;
}

void batch_tell(const struct batch *batch)
{
	static char told[sizeof(batch->why)]; /* by the same fault all later modules may fail */

	if (!batch->nfailed || str_eq(told, batch->why))
		return;
	if (batch->nfailed == 1)
		config_complain("%s: not traced: %s", batch->module, batch->why);
	else
		config_complain("%s and %u others: not traced: %s", batch->module,
			batch->nfailed - 1, batch->why);
	memcpy(told, batch->why, sizeof(told));
}

void batch_plan(struct batch *batch, const struct modules *modules)
{
	const char *why;

	for (size_t i = 0; have_plans(batch, modules) && i < modules->count; i++) {
		const struct module *m = &modules->list[i];
		struct plan *plan = &batch->plans[batch->nplans];

		if (!module_wanted(m))
			continue;
		if (plan_module(plan, m, &session.settings, &batch->arena, &why))
			failed(batch, m, why);
		else if (plan->count)
			batch->nplans++;
		else
			plan_close(plan);
	}
	batch->nall = batch->nplans;
}

static bool is_planned(const struct batch *batch, const struct module *m)
{
	for (size_t i = 0; i < batch->nplans; i++)
		if (batch->plans[i].module == m)
			return true;
	return false;
}

/* A module that is wanted anyway has them in its own plan. */
void batch_plan_watched(struct batch *batch, const struct modules *modules)
{
	struct plan_settings settings = session.settings;
	const char *why;

	settings.watch_only = true;
	if (!have_plans(batch, modules))
		return;
	for (size_t i = 0; i < modules->count && batch->nall < batch->nplans + OWN_PLANS; i++) {
		const struct module *m = &modules->list[i];
		struct plan *plan = &batch->plans[batch->nall];

		if (is_planned(batch, m))
			continue;
		if (plan_module(plan, m, &settings, &batch->arena, &why))
			unwatched(batch, plan, why);
		else if (plan->count)
			batch->nall++;
		else
			plan_close(plan);
	}
}

static uint64_t address_of(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->symbols.count; i++) {
		const struct symbol *s = &plan->symbols.list[i];
		bool found = s->name && str_eq(s->name, name);

		for (size_t k = 0; k < s->naliases; k++)
			found |= str_eq(s->aliases[k], name);
		if (found)
			return s->start + plan->module->bias;
	}
	return 0;
}

/* ThreadSanitizer's runtime, which has the program's malloc and has not been started yet. */
void __tsan_init(void) __attribute__((weak));

/*
 * The loader's calls as libc has them, whatever the program calls by these names. The first libc:
 * link namespaces may have others, which go away.
 */
static void find_loader(const struct batch *batch)
{
	static bool known;

	if (__tsan_init)
		__tsan_init();
	for (size_t i = 0; i < batch->nall && !known; i++) {
		const struct plan *plan = &batch->plans[i];
		struct image_loader found;

		if (!plan->is_libc)
			continue;
		found.open = (void *(*)(const char *, int))address_of(plan, "dlopen");
		found.close = (int (*)(void *))address_of(plan, "dlclose");
		found.info = (int (*)(void *, int, void *))address_of(plan, "dlinfo");
		found.error = (char *(*)(void))address_of(plan, "dlerror");
		known = found.open && found.close && found.info && found.error;
		if (known)
			image_loader = found;
	}
}

void batch_load(struct batch *batch)
{
	const char *why;

	find_loader(batch);
	batch->next_id = batch->first_id;
	for (size_t i = 0; i < batch->nall; i++) {
		struct plan *plan = &batch->plans[i];
		struct plan_settings settings = session.settings;

		if (!plan->patchable)
			continue;
		settings.watch_only = i >= batch->nplans;
		settings.max_ids = batch->max_ids;
		if (plan_image(plan, &settings, &batch->next_id, &batch->arena, &why))
			unwatched(batch, plan, why);
	}
}

int batch_record(struct batch *batch, uint32_t number, const char **why)
{
	size_t size;
	const void *tables = tables_build(
		batch->plans, batch->nplans, batch->first_id, &batch->arena, &size);

	*why = "no memory";
	if (!tables)
		return -ENOMEM;
	*why = "the symbols file cannot be written";
	return record_symbols(
		tables, size, number, batch->first_id, batch->next_id - batch->first_id);
}

static void count_functions(struct batch *batch)
{
	for (size_t i = 0; i < batch->nplans; i++)
		for (size_t k = 0; k < batch->plans[i].count; k++) {
			const struct plan_function *f = &batch->plans[i].functions[k];

			if (f->id)
				batch->traced++;
			else
				batch->skipped++;
			batch->islands += f->site.choice == SITE_ISLAND;
			batch->far += f->site.reason == REASON_OUT_OF_REACH;
		}
}

static int patch(struct batch *batch, const struct plan *plan)
{
	struct patch_how how = session.settings.patch;
	int err = 0;

	if (plan->elf.guarded && session.guards)
		how.exec_prot = PATCH_GUARDED;
	if (plan->npatches)
		err = patch_store(plan->patches, plan->npatches, NULL, &how);

	if (err)
		failed(batch, plan->module, "its code cannot be written");
	else
		where_add(plan);
	if (plan->has_unwinder)
		unwind_add(&plan->unwinder);
	return err;
}

int batch_patch(struct batch *batch, const char **why)
{
	int err = 0;

	*why = "libc's code cannot be written";
	for (size_t i = 0; i < batch->nall && !err; i++)
		if (batch->plans[i].is_libc)
			err = patch(batch, &batch->plans[i]);
	if (err)
		return err;
	for (size_t i = 0; i < batch->nall; i++)
		if (!batch->plans[i].is_libc)
			patch(batch, &batch->plans[i]);
	count_functions(batch);
	return 0;
}

void batch_free(struct batch *batch)
{
	for (size_t i = 0; i < batch->nall; i++)
		plan_close(&batch->plans[i]);
	arena_free(&batch->arena);
}
