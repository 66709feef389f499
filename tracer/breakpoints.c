/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "breakpoints.h"
#include "record.h"
#include "session.h"
#include "usdt.h"
#include "../rethook/shadow.h"
#include "../rethook/thread.h"
#include "../trampolines/signals.h"
#include "../trampolines/trap.h"
#include <errno.h>
#include <sys/uio.h>
#include <ucontext.h>

enum { SIGACTION = 1, SIGMASK, FUNCTIONS = 10 };

/* Where the mask is: at an offset from an argument. */
static const struct {
	const char *name;
	uint8_t argument;
	uint16_t offset;
	bool entry_only; /* it need not return */
} functions[FUNCTIONS] = {
	{ "sigaction", 1, offsetof(struct sigaction, sa_mask), false },
	{ "pthread_sigmask", 1, 0, false },
	{ "sigsuspend", 0, 0, false },
	{ "ppoll", 3, 0, false },
	{ "pselect", 5, 0, false },
	{ "epoll_pwait", 4, 0, false },
	{ "epoll_pwait2", 4, 0, false },
	{ "pthread_attr_setsigmask_np", 1, 0, false },
	{ "setcontext", 0, offsetof(ucontext_t, uc_sigmask), true },
	{ "swapcontext", 1, offsetof(ucontext_t, uc_sigmask), true },
};

static struct {
	struct ftr_probe *probe;
	bool returns; /* and that is seen */
} watched[FUNCTIONS];
static bool guarded;

uint32_t breakpoints_name(const char *name)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		if (str_eq(name, functions[i].name))
			return i + 1;
	return 0;
}

static bool functions_have(void)
{
	return session.config.trap && !trap_given_up();
}

void breakpoints_go(void)
{
	uint64_t signals;

	if (functions_have()) {
		thread_block_signals(&signals);
		record_let_go(trap_give_up(&session.settings.patch));
		thread_restore_signals(&signals);
	}
	usdt_give_up();
}

static bool may_have_any(void)
{
	return !shadow_hooks.sealed && (functions_have() || usdt_has_breakpoints());
}

/* The mask at @set, which need not be a good address, is about to be in force, on this thread or on
 * another: SIGTRAP blocked? Yes if it cannot be read, which is not allowed everywhere. */
static bool is_blocked_by(uint64_t set)
{
	uint64_t mask = SIGNAL_BIT(SIGTRAP);
	struct iovec to = { &mask, sizeof(mask) }, from = { (void *)set, sizeof(mask) };

	return sys_call(SYS_process_vm_readv, sys_getpid(), &to, 1, &from, 1, 0) != -EFAULT
		&& mask & SIGNAL_BIT(SIGTRAP);
}

static bool action_matters(uint64_t signal, uint64_t action, size_t offset)
{
	return action && (signal == SIGTRAP || is_blocked_by(action + offset));
}

/* Will SIGTRAP be blocked, or handled? */
static bool matters(uint32_t which, const uint64_t arguments[BREAKPOINTS_ARGUMENTS])
{
	uint64_t from = arguments[functions[which - 1].argument];

	if (which == SIGACTION)
		return action_matters(arguments[0], from, functions[which - 1].offset);
	if (!from || (which == SIGMASK && arguments[0] == SIG_UNBLOCK))
		return false;
	return is_blocked_by(from + functions[which - 1].offset);
}

void breakpoints_entered(uint32_t which, const uint64_t arguments[BREAKPOINTS_ARGUMENTS])
{
	if (may_have_any() && matters(which, arguments))
		breakpoints_go();
}

/* The same by syscall(2). */
void breakpoints_called(const uint64_t arguments[BREAKPOINTS_ARGUMENTS])
{
	uint64_t first = arguments[1], second = arguments[2];

	if (!may_have_any())
		return;
	if ((arguments[0] == SYS_rt_sigprocmask && first != SIG_UNBLOCK && second && is_blocked_by(second))
		|| (arguments[0] == SYS_rt_sigaction
			&& action_matters(first, second, offsetof(struct signal_action, mask))))
		breakpoints_go();
}

/* ---- probes ---- */

/*
 * Between here and the return it is not seen anywhere that the thread blocks SIGTRAP: it is counted
 * before the breakpoints are looked for, which are announced before the count is looked at.
 */
static void on_entry(struct ftr_call *call, void *data)
{
	uint64_t arguments[BREAKPOINTS_ARGUMENTS];
	uint32_t which = (uint32_t)(uint64_t)data;

	if (shadow_hooks.sealed)
		return;
	for (unsigned i = 0; i < BREAKPOINTS_ARGUMENTS; i++)
		arguments[i] = ftr_argument_word(call, i);
	if (!matters(which, arguments))
		return;
	usdt_blocking(1);
	if (watched[which - 1].returns)
		*ftr_call_word(call) = 1;
	breakpoints_go();
}

static void on_return(struct ftr_call *call, void *data)
{
	(void)data;
	if (*ftr_call_word(call))
		usdt_blocking(-1);
}

static int watch(uint32_t i, bool returns)
{
	const struct ftr_probe_spec spec = { .name = functions[i].name, .module = "libc.so*",
		.entry = on_entry, .ret = returns ? on_return : NULL,
		.data = (void *)(uint64_t)(i + 1), .flags = FTR_GENERAL_REGS };

	watched[i].returns = returns;
	return ftr_attach(&spec, &watched[i].probe);
}

/* Of those that the tracer watches itself the return is not seen. What an old libc has not, nobody
 * calls. */
int breakpoints_guard(void)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		int got = watched[i].probe ? 1 : watch(i, !functions[i].entry_only);

		if (got == -ENODATA)
			got = watch(i, false);
		if (got < 0 && (got != -ENOENT || i + 1 == SIGACTION || i + 1 == SIGMASK))
			return got == -ENOMEM || got == -EPERM ? got : -ENOTSUP;
	}
	__atomic_store_n(&guarded, true, __ATOMIC_RELEASE);
	return 0;
}

bool breakpoints_guarded(void)
{
	return __atomic_load_n(&guarded, __ATOMIC_ACQUIRE);
}

bool breakpoints_masked(void)
{
	for (int signal = 1; signal <= 64; signal++) {
		struct signal_action now = { 0 };

		if (!signal_look(signal, &now) && (uint64_t)now.handler > (uint64_t)SIG_IGN
			&& now.mask & SIGNAL_BIT(SIGTRAP))
			return true;
	}
	return false;
}
