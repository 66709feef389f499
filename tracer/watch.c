/* SPDX-License-Identifier: MIT */
#include "watch.h"
#include "late.h"
#include "record.h"
#include "session.h"
#include "../rethook/shadow.h"
#include "../rethook/thread.h"
#include "../trampolines/signals.h"
#include "../trampolines/trap.h"
#include <errno.h>
#include <signal.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum watch {
	WATCH_NONE,
	WATCH_EXIT,
	WATCH_PRCTL,
	WATCH_SYSCALL,
	WATCH_CLONE,
	WATCH_LOADER,
	/* only where there may be breakpoints */
	WATCH_SIGACTION,
	WATCH_SIGMASK,
	WATCH_SIGSUSPEND,
	WATCH_PPOLL,
	WATCH_PSELECT,
	WATCH_EPOLL_PWAIT,
	WATCH_EPOLL_PWAIT2,
	WATCH_ATTR_SIGMASK,
	WATCH_COUNT
};

static const char *const names[WATCH_COUNT] = {
	[WATCH_EXIT] = "_exit",
	[WATCH_PRCTL] = "prctl",
	[WATCH_SYSCALL] = "syscall",
	[WATCH_CLONE] = "clone",
	[WATCH_LOADER] = "_dl_debug_state",
	[WATCH_SIGACTION] = "sigaction",
	[WATCH_SIGMASK] = "pthread_sigmask",
	[WATCH_SIGSUSPEND] = "sigsuspend",
	[WATCH_PPOLL] = "ppoll",
	[WATCH_PSELECT] = "pselect",
	[WATCH_EPOLL_PWAIT] = "epoll_pwait",
	[WATCH_EPOLL_PWAIT2] = "epoll_pwait2",
	[WATCH_ATTR_SIGMASK] = "pthread_attr_setsigmask_np",
};

uint32_t watch_name(const char *name, bool loader)
{
	uint32_t end = session.config.trap ? WATCH_COUNT : WATCH_SIGACTION;

	for (uint32_t i = WATCH_EXIT; i < end; i++)
		if (str_eq(name, names[i]))
			return (i == WATCH_LOADER) == loader ? i : WATCH_NONE;
	return WATCH_NONE;
}

/* seccomp(2): the strict mode forbids rdtsc too. */
static void seccomp_set(bool strict)
{
	shadow_seal();
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

/* A breakpoint ends a thread that blocks SIGTRAP, and the program's own handler knows none. */
static void breakpoints_go(void)
{
	uint64_t signals;

	thread_block_signals(&signals);
	record_let_go(trap_give_up(&session.settings.patch));
	thread_restore_signals(&signals);
}

/* clone(2): a child that goes on beside its parent, with the same memory and thread pointer. */
static void clone_called(uint64_t flags)
{
	if ((flags & CLONE_VM) && !(flags & (CLONE_VFORK | CLONE_SETTLS)))
		shadow_share();
}

static bool may_have_breakpoints(void)
{
	return session.config.trap && !trap_given_up() && !shadow_hooks.sealed;
}

/* The mask at @set, which need not be a good address, is about to be in force, on this thread or on
 * another: SIGTRAP blocked? */
static void mask_set(uint64_t set)
{
	uint64_t mask = SIGNAL_BIT(SIGTRAP);
	struct iovec to = { &mask, sizeof(mask) }, from = { (void *)set, sizeof(mask) };

	if (!set || !may_have_breakpoints()
		|| sys_call(SYS_process_vm_readv, sys_getpid(), &to, 1, &from, 1, 0) == -EFAULT)
		return;
	if (mask & SIGNAL_BIT(SIGTRAP)) /* or it cannot be read, which is not allowed everywhere */
		breakpoints_go();
}

/* sigaction(2); in its structure the mask is at @offset. */
static void action_set(uint64_t signal, uint64_t action, size_t offset)
{
	if (!action)
		return;
	if (signal != SIGTRAP)
		mask_set(action + offset);
	else if (may_have_breakpoints())
		breakpoints_go();
}

/* The same by syscall(2). */
static void raw_call(uint64_t number, const struct slow_frame *f)
{
	uint64_t first = arch_argument(f, 1), second = arch_argument(f, 2);

	if (number == SYS_rt_sigprocmask && first != SIG_UNBLOCK)
		mask_set(second);
	if (number == SYS_rt_sigaction)
		action_set(first, second, offsetof(struct signal_action, mask));
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
		raw_call(first, f);
		break;
	case WATCH_CLONE:
		clone_called(arch_argument(f, 2));
		break;
	case WATCH_LOADER:
		late_changed();
		break;
	case WATCH_SIGACTION:
		action_set(first, second, offsetof(struct sigaction, sa_mask));
		break;
	case WATCH_SIGMASK:
		if (first != SIG_UNBLOCK)
			mask_set(second);
		break;
	case WATCH_SIGSUSPEND:
		mask_set(first);
		break;
	case WATCH_ATTR_SIGMASK:
		mask_set(second);
		break;
	case WATCH_PPOLL:
		mask_set(arch_argument(f, 3));
		break;
	case WATCH_EPOLL_PWAIT:
	case WATCH_EPOLL_PWAIT2:
		mask_set(arch_argument(f, 4));
		break;
	case WATCH_PSELECT:
		mask_set(arch_argument(f, 5));
		break;
	}
}
