/* SPDX-License-Identifier: MIT */
#include "watch.h"
#include "breakpoints.h"
#include "late.h"
#include "record.h"
#include "session.h"
#include "../rethook/shadow.h"
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

enum watch {
	WATCH_NONE,
	WATCH_EXIT,
	WATCH_PRCTL,
	WATCH_SYSCALL,
	WATCH_CLONE,
	WATCH_LOADER,
	WATCH_SIGNALS, /* and above: breakpoints.h, only where functions may have some */
};

static const char *const names[WATCH_SIGNALS] = {
	[WATCH_EXIT] = "_exit",
	[WATCH_PRCTL] = "prctl",
	[WATCH_SYSCALL] = "syscall",
	[WATCH_CLONE] = "clone",
	[WATCH_LOADER] = "_dl_debug_state",
};

uint32_t watch_name(const char *name, bool loader)
{
	uint32_t which;

	for (uint32_t i = WATCH_EXIT; i < WATCH_SIGNALS; i++)
		if (str_eq(name, names[i]))
			return (i == WATCH_LOADER) == loader ? i : WATCH_NONE;
	which = session.config.trap && !loader ? breakpoints_name(name) : 0;
	return which ? WATCH_SIGNALS + which : WATCH_NONE;
}

/* seccomp(2): the strict mode forbids rdtsc too. */
static void seccomp_set(bool strict)
{
	bool before = shadow_hooks.sealed;

	shadow_seal();
	if (!before) /* no new ones from here on; and the filter is not in force yet */
		breakpoints_go();
	arena_seal();
	if (strict)
		shadow_stop_clock();
}

static void prctl_called(uint64_t option, uint64_t argument)
{
	if (option == PR_SET_SECCOMP)
		seccomp_set(argument == SECCOMP_MODE_STRICT);
	if (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV)
		shadow_stop_clock();
}

/* clone(2): a child that goes on beside its parent, with the same memory and thread pointer. */
static void clone_called(uint64_t flags)
{
	if ((flags & CLONE_VM) && !(flags & (CLONE_VFORK | CLONE_SETTLS)))
		shadow_share();
}

static void signals_called(const struct slow_frame *f)
{
	uint64_t arguments[BREAKPOINTS_ARGUMENTS];

	for (unsigned i = 0; i < BREAKPOINTS_ARGUMENTS; i++)
		arguments[i] = arch_argument(f, i);
	if (f->info->watch == WATCH_SYSCALL)
		breakpoints_called(arguments);
	else
		breakpoints_entered(f->info->watch - WATCH_SIGNALS, arguments);
}

void watch_entered(const struct slow_frame *f)
{
	uint64_t first = arch_argument(f, 0), second = arch_argument(f, 1);

	switch (f->info->watch) {
	case WATCH_EXIT:
		record_end((int)first);
		break;
	case WATCH_PRCTL:
		prctl_called(first, second);
		break;
	case WATCH_SYSCALL:
		if (first == SYS_seccomp)
			seccomp_set(second == SECCOMP_SET_MODE_STRICT);
		if (first == SYS_prctl)
			prctl_called(second, arch_argument(f, 2));
		if (first == SYS_clone)
			clone_called(second);
		if (first == SYS_exit_group)
			record_end((int)second);
		signals_called(f);
		break;
	case WATCH_CLONE:
		clone_called(arch_argument(f, 2));
		break;
	case WATCH_LOADER:
		late_changed();
		break;
	default:
		signals_called(f);
		break;
	}
}
