/* SPDX-License-Identifier: MIT */
#include "start.h"
#include "config.h"
#include "plan.h"
#include "record.h"
#include "tables.h"
#include "trap.h"
#include "watch.h"
#include "../arch/sys.h"
#include "../rethook/mirror.h"
#include "../rethook/shadow.h"
#include "../rethook/unwind.h"
#include "../trampolines/image.h"
#include "../trampolines/patch.h"
#include <elf.h>
#include <errno.h>
#include <sys/resource.h>

struct run {
	struct config config;
	struct arena arena;
	struct maps maps;
	struct modules modules;
	struct filter module_filter, function_filter;
	struct plan_settings settings;
	struct isa_env env;
	struct plan *plans;
	size_t nplans;
	struct plan *watch_plan; /* libc's, for what we watch; NULL: that is in one of the plans */
	uint32_t traced, skipped;
};

static uint64_t auxiliary(char *const *envp, uint64_t type)
{
	const Elf64_auxv_t *aux;

	while (*envp)
		envp++;
	for (aux = (const void *)(envp + 1); aux->a_type != AT_NULL; aux++)
		if (aux->a_type == type)
			return aux->a_un.a_val;
	return 0;
}

static int64_t tls_offset(const void *variable)
{
	return (int64_t)((uintptr_t)variable - arch_thread_pointer());
}

static void set_env(struct run *run)
{
	mirror_setup(run->config.mode);
	run->env = (struct isa_env){
		.mode = run->config.mode,
		.tls_mirror = tls_offset(&shadow_mirror),
		.tls_records = tls_offset(&shadow_records),
		.tls_current = tls_offset(&shadow_current),
		.mask = shadow_root.mask,
		.slow_entry = (uint64_t)shadow_slow_entry,
		.slow_exit = (uint64_t)shadow_slow_exit,
		.slow_unwind = (uint64_t)shadow_slow_unwind,
		.slow_release = (uint64_t)shadow_slow_release,
		.personality = (uint64_t)unwind_personality,
	};
	shadow_hooks = (struct shadow_hooks){
		.mode = run->config.mode,
		.attach = record_attach,
		.renew = record_renew,
		.lost_call = record_lost_call,
		.borrowed = record_borrowed,
		.watch = watch_entered,
	};
	unwind_find = unwinders_find;
}

static void set_settings(struct run *run, char *const *envp)
{
	struct rlimit stack = { 0, 0 };
	const char *functions = run->config.functions;

	sys_call(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &stack);
	run->settings = (struct plan_settings){
		.env = &run->env,
		.functions = &run->function_filter,
		.demangle = functions != NULL,
		.trap = run->config.trap && trap_possible(),
		.root = (uint64_t)&shadow_root,
		.page = auxiliary(envp, AT_PAGESZ),
		.place = { .page = auxiliary(envp, AT_PAGESZ),
			.program = auxiliary(envp, AT_PHDR),
			.loader = auxiliary(envp, AT_BASE),
			.brk = (uint64_t)sys_call(SYS_brk, 0),
			.stack_limit = stack.rlim_cur },
	};
}

static bool module_wanted(const struct run *run, const struct module *m)
{
	const char *names[2] = { m->path, m->path };

	for (const char *p = m->path; *p; p++)
		names[1] = *p == '/' ? p + 1 : names[1];
	if (m->ours)
		return false;
	return run->config.modules ? filter_match(&run->module_filter, names, 2) : m->main;
}

/*
 * A few functions of libc are always hooked (watch.h): by a plan for ourselves when libc is not
 * wanted. It stands behind the others.
 */
static void plan_watch(struct run *run)
{
	struct plan_settings settings = run->settings;
	const char *why;

	for (size_t i = 0; i < run->nplans; i++)
		for (size_t k = 0; k < run->plans[i].count; k++)
			if (run->plans[i].functions[k].watch)
				return;
	settings.watch_only = true;
	run->watch_plan = &run->plans[run->nplans];
	for (size_t i = 0; i < run->modules.count; i++) {
		if (!plan_module(run->watch_plan, &run->modules.list[i], &settings, &run->arena, &why)
			&& run->watch_plan->count)
			return;
		plan_close(run->watch_plan);
	}
	run->watch_plan = NULL;
}

/* A problem with one module leaves the others alone. */
static void plan_all(struct run *run)
{
	const char *why;

	run->plans = arena_alloc(&run->arena, (run->modules.count + 1) * sizeof(*run->plans));
	for (size_t i = 0; run->plans && i < run->modules.count; i++) {
		const struct module *m = &run->modules.list[i];
		struct plan *plan = &run->plans[run->nplans];

		if (!module_wanted(run, m))
			continue;
		if (plan_module(plan, m, &run->settings, &run->arena, &why))
			config_complain("%s: not traced: %s", m->path, why);
		else if (plan->count)
			run->nplans++;
		else
			plan_close(plan);
	}
}

static size_t all_plans(const struct run *run)
{
	return run->nplans + (run->watch_plan != NULL);
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

/* The loader's calls as libc has them, whatever the program calls by these names. */
static void find_loader(const struct run *run)
{
	for (size_t i = 0; i < all_plans(run); i++) {
		const struct plan *plan = &run->plans[i];
		struct image_loader found;

		if (!plan->is_libc)
			continue;
		found.open = (void *(*)(const char *, int))address_of(plan, "dlopen");
		found.close = (int (*)(void *))address_of(plan, "dlclose");
		found.info = (int (*)(void *, int, void *))address_of(plan, "dlinfo");
		found.error = (char *(*)(void))address_of(plan, "dlerror");
		if (found.open && found.close && found.info && found.error)
			image_loader = found;
	}
}

static void load_all(struct run *run, uint32_t *next_id)
{
	char path[CONFIG_PATH_MAX + 128];
	const char *why;

	for (uint32_t i = 0; i < all_plans(run); i++) {
		struct plan *plan = &run->plans[i];
		struct plan_settings settings = run->settings;

		if (!plan->patchable)
			continue;
		settings.watch_only = plan == run->watch_plan;
		record_image_name(path, sizeof(path));
		if (plan_image(plan, &settings, path, next_id, &run->arena, &why))
			config_complain("%s: not traced: %s", plan->module->path, why);
	}
}

static void patch_all(struct run *run)
{
	const struct patch_how how = { .page = run->settings.page };

	for (size_t i = 0; i < all_plans(run); i++) {
		struct plan *plan = &run->plans[i];
		int err = plan->npatches
			? patch_store(plan->patches, plan->npatches, NULL, &how)
			: 0;

		if (err)
			config_complain("%s: not traced: its code cannot be written (error %d)",
				plan->module->path, -err);
	}
}

static int record_all(struct run *run, uint32_t next_id, const char **why)
{
	size_t size;
	const void *tables = tables_build(run->plans, run->nplans, 1, &run->arena, &size);
	int err;

	*why = "no memory";
	if (!tables)
		return -ENOMEM;
	*why = "the symbols file cannot be written";
	err = record_symbols(tables, size, 0, 1, next_id - 1);
	return err ? err : record_open(next_id, why);
}

static void count_all(struct run *run)
{
	for (size_t i = 0; i < run->nplans; i++)
		for (size_t k = 0; k < run->plans[i].count; k++)
			if (run->plans[i].functions[k].id)
				run->traced++;
			else
				run->skipped++;
}

static void exit_hook(int status, void *unused)
{
	(void)unused;
	record_end(status);
}

/* glibc's; a C library that has none leaves the end of the process to _exit. */
int on_exit(void (*function)(int, void *), void *arg) __attribute__((weak));

/* The detours are loaded but nothing leads to them yet. */
static int prepare(struct run *run, char *const *argv, const char **why)
{
	uint32_t next_id = 1;
	int err = record_begin(&run->config, argv, why);

	if (err)
		return err;
	find_loader(run);
	load_all(run, &next_id);
	err = record_all(run, next_id, why);
	if (err)
		return err;
	*why = "SIGTRAP cannot be handled";
	return trap_ready();
}

static void trace(struct run *run, char *const *argv)
{
	const char *why;
	int err;

	plan_all(run);
	if (!run->nplans)
		return;
	plan_watch(run);
	err = prepare(run, argv, &why);
	if (err) {
		config_complain("%s: %s (error %d): nothing is traced", run->config.data, why, -err);
		record_abandon();
		return;
	}
	if (on_exit)
		on_exit(exit_hook, NULL);
	patch_all(run);
	count_all(run);
}

void start(char *const *argv, char *const *envp)
{
	static struct run run;
	uint64_t begin, ticks;

	begin = arch_clock();
	config_read(&run.config, envp);
	if (filter_parse(&run.module_filter, run.config.modules, &run.arena)
		|| filter_parse(&run.function_filter, run.config.functions, &run.arena)
		|| maps_read(&run.maps, "/proc/self/maps", &run.arena)
		|| modules_find(&run.modules, &run.maps, auxiliary(envp, AT_PHDR),
			auxiliary(envp, AT_PHNUM), &run.arena)) {
		config_complain("the loaded modules cannot be found: nothing is traced");
		return;
	}
	set_env(&run);
	set_settings(&run, envp);
	trace(&run, argv);
	for (size_t i = 0; i < all_plans(&run); i++)
		plan_close(&run.plans[i]);
	ticks = arch_clock() - begin;
	if (run.config.verbose)
		config_complain("%u functions traced in %u modules, %u skipped (%lu M ticks)",
			run.traced, (uint32_t)run.nplans, run.skipped, ticks / 1000000);
	arena_free(&run.arena);
}
