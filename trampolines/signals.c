/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "signals.h"
#include "../arch/arch.h"
#include <ucontext.h>

#define SA_RESTORER 0x04000000

static int signal_set(int signal, const struct signal_action *action, struct signal_action *old)
{
	return (int)sys_call(SYS_rt_sigaction, signal, action, old, sizeof(action->mask));
}

int signal_look(int signal, struct signal_action *action)
{
	return signal_set(signal, NULL, action);
}

int signal_take(int signal, void (*handler)(int, siginfo_t *, void *),
	struct signal_action *program)
{
	struct signal_action ours = { .handler = handler, .restorer = arch_signal_return,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART | SA_RESTORER,
		/* A handler of the program's could leave ours by a longjmp. */
		.mask = ~SIGNAL_BIT(SIGTRAP) };
	struct signal_action now;
	int err = signal_look(signal, &now);

	if (err || now.handler == handler)
		return err;
	*program = now;
	return signal_set(signal, &ours, NULL);
}

void signal_give_back(int signal, void (*handler)(int, siginfo_t *, void *),
	const struct signal_action *program)
{
	struct signal_action now;

	if (!signal_set(signal, program, &now) && now.handler != handler)
		signal_set(signal, &now, NULL);
}

static uint64_t signals_before(const void *context)
{
	uint64_t mask;

	memcpy(&mask, &((const ucontext_t *)context)->uc_sigmask, sizeof(mask));
	return mask;
}

void signal_pass_on(const struct signal_action *program, int signal, siginfo_t *info, void *context)
{
	const struct signal_action dfl = { 0 };
	bool forced = info->si_code > 0; /* by an instruction: cannot be ignored */

	if (program->handler != (void *)SIG_DFL && program->handler != (void *)SIG_IGN) {
		signals_block(signals_before(context) | program->mask);
		program->handler(signal, info, context);
	} else if (forced || program->handler == (void *)SIG_DFL) {
		signal_set(signal, &dfl, NULL);
		sys_call(SYS_tgkill, sys_getpid(), sys_gettid(), signal);
	}
}

uint64_t signals_block(uint64_t mask)
{
	uint64_t before = 0;

	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof(mask));
	return before;
}
