/* SPDX-License-Identifier: MIT */
#include "start.h"
#include "batch.h"
#include "late.h"
#include "record.h"
#include "trap.h"
#include "watch.h"
#include "../arch/sys.h"
#include "../rethook/mirror.h"
#include "../rethook/shadow.h"
#include "../rethook/unwind.h"
#include <elf.h>
#include <sys/resource.h>

#define LATER_IDS 131072 /* functions of modules that may be loaded later */

/* Stays: later modules need it. The environment may change, so nothing refers to it. */
static struct session session;
static struct arena session_arena;

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

static void set_env(void)
{
	mirror_setup(session.config.mode);
	session.env = (struct isa_env){
		.mode = session.config.mode,
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
		.mode = session.config.mode,
		.attach = record_attach,
		.renew = record_renew,
		.lost_call = record_lost_call,
		.borrowed = record_borrowed,
		.watch = watch_entered,
	};
	unwind_find = unwinders_find;
}

static void set_settings(char *const *envp)
{
	struct rlimit stack = { 0, 0 };

	sys_call(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &stack);
	session.phdr = auxiliary(envp, AT_PHDR);
	session.phnum = auxiliary(envp, AT_PHNUM);
	session.settings = (struct plan_settings){
		.env = &session.env,
		.functions = &session.function_filter,
		.demangle = session.config.functions != NULL,
		.trap = session.config.trap && trap_possible(),
		.later = session.config.modules != NULL,
		.root = (uint64_t)&shadow_root,
		.page = auxiliary(envp, AT_PAGESZ),
		.place = { .page = auxiliary(envp, AT_PAGESZ),
			.program = session.phdr,
			.loader = auxiliary(envp, AT_BASE),
			.brk = (uint64_t)sys_call(SYS_brk, 0),
			.stack_limit = stack.rlim_cur },
	};
}

static void exit_hook(int status, void *unused)
{
	(void)unused;
	record_end(status);
}

/* glibc's; a C library that has none leaves the end of the process to _exit. */
int on_exit(void (*function)(int, void *), void *arg) __attribute__((weak));

/* The detours are loaded but nothing leads to them yet. */
static int prepare(struct batch *batch, char *const *argv, const char **why)
{
	int err = record_begin(&session.config, argv, why);

	if (err)
		return err;
	batch_load(batch, &session);
	err = batch_record(batch, 0, why);
	if (!err)
		err = record_open(
			batch->next_id, session.settings.later ? LATER_IDS : 0, why);
	if (err)
		return err;
	*why = "SIGTRAP cannot be handled";
	return trap_ready();
}

static void trace(struct batch *batch, const struct modules *modules, char *const *argv)
{
	const char *why;
	int err;

	batch_plan(batch, &session, modules);
	if (!batch->nplans && !session.settings.later)
		return;
	batch_plan_watched(batch, &session, modules);
	err = prepare(batch, argv, &why);
	if (err) {
		config_complain(
			"%s: %s (error %d): nothing is traced", session.config.data, why, -err);
		record_abandon();
		return;
	}
	if (on_exit)
		on_exit(exit_hook, NULL);
	if (session.settings.later)
		late_start(&session, modules);
	batch_patch(batch, &session);
}

static bool read_settings(struct modules *modules, char *const *envp, struct arena *arena)
{
	struct maps maps;

	config_read(&session.config, envp);
	set_settings(envp);
	return !filter_parse(&session.module_filter, session.config.modules, &session_arena)
		&& !filter_parse(
			&session.function_filter, session.config.functions, &session_arena)
		&& !maps_read(&maps, "/proc/self/maps", arena)
		&& !modules_find(modules, &maps, session.phdr, session.phnum, arena);
}

void start(char *const *argv, char *const *envp)
{
	struct batch batch = { .first_id = 1 };
	uint64_t begin = arch_clock();
	struct arena arena = { 0 };
	struct modules modules;

	if (!read_settings(&modules, envp, &arena)) {
		config_complain("the loaded modules cannot be found: nothing is traced");
		return;
	}
	set_env();
	trace(&batch, &modules, argv);
	if (session.config.verbose)
		config_complain("%u functions traced in %u modules, %u skipped (%lu M ticks)",
			batch.traced, (uint32_t)batch.nplans, batch.skipped,
			(arch_clock() - begin) / 1000000);
	batch_free(&batch);
	arena_free(&arena);
}
