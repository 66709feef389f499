/* SPDX-License-Identifier: MIT */
#include "start.h"
#include "batch.h"
#include "late.h"
#include "record.h"
#include "session.h"
#include "../arch/sys.h"
#include "../trampolines/reserve.h"
#include "../trampolines/trap.h"
#include <errno.h>
#include <signal.h>

/* Functions that may come later: */
#define LATER_IDS 262144 /* with modules, */
#define PROBE_IDS 4096	 /* with probes */

/* Of the filters. */
static struct arena session_arena;

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
	static char unwatched[sizeof(batch->why) + 32];
	int err = record_begin(&session.config, argv, why);

	if (err)
		return err;
	batch_load(batch);
	str_print(unwatched, sizeof(unwatched), "libc cannot be watched: %s", batch->why);
	*why = unwatched;
	err = batch->unguarded ? -EPERM : batch_record(batch, 0, why);
	if (!err)
		err = record_open(batch->next_id,
			session.settings.later ? LATER_IDS : PROBE_IDS, why);
	if (err)
		return err;
	*why = "SIGTRAP cannot be handled";
	return trap_ready();
}

static void trace(struct batch *batch, const struct modules *modules, char *const *argv)
{
	const char *why;
	int err;

	batch_reserve(batch, modules);
	batch_plan(batch, modules);
	if (!batch->nplans && !session.settings.later) {
		batch_tell(batch);
		return;
	}
	batch_plan_watched(batch, modules);
	err = prepare(batch, argv, &why);
	if (!err && on_exit)
		on_exit(exit_hook, NULL);
	if (!err)
		err = batch_patch(batch, &why);
	if (err) {
		config_complain(
			"%s: %s (error %d): nothing is traced", session.config.data, why, -err);
		record_abandon();
		return;
	}
	session_start();
	if (session.settings.later)
		late_start(modules);
	batch_tell(batch);
}

static bool read_settings(struct modules *modules, char *const *envp, struct arena *arena)
{
	struct maps maps;
	uint64_t blocked = 0;

	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof(blocked));
	config_read(&session.config, envp);
	session.settings.demangle = session.config.functions != NULL;
	session.settings.trap = session.config.trap && trap_possible(blocked);
	session.settings.later = session.config.modules != NULL;
	return !filter_parse(&session.module_filter, session.config.modules, &session_arena)
		&& !filter_parse(
			&session.function_filter, session.config.functions, &session_arena)
		&& !maps_read(&maps, "/proc/self/maps", arena)
		&& !modules_find(modules, &maps, session.phdr, session.phnum, arena);
}

void start(char *const *argv, char *const *envp)
{
	struct batch batch = { .first_id = 1, .max_ids = UINT32_MAX };
	uint64_t begin = arch_clock();
	struct arena arena = { 0 };
	struct modules modules;

	if (!read_settings(&modules, envp, &arena)) {
		config_complain("the loaded modules cannot be found: nothing is traced");
		return;
	}
	session_set_env();
	trace(&batch, &modules, argv);
	if (session.config.verbose)
		config_complain("%u functions traced (%u by way of islands) in %u modules, "
				"%u skipped (%u out of reach; %lu M ticks)",
			batch.traced, batch.islands, (uint32_t)batch.nplans, batch.skipped, batch.far,
			(arch_clock() - begin) / 1000000);
	reserve_end();
	batch_free(&batch);
	arena_free(&arena);
}
