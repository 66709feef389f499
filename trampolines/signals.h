/* SPDX-License-Identifier: MIT */
/*
 * Handlers of ours for signals that are the program's.
 */
#ifndef TRAMPOLINES_SIGNALS_H
#define TRAMPOLINES_SIGNALS_H

#include "../arch/sys.h"
#include <signal.h>

#define SIGNALS_ALL		(~0ull)
#define SIGNAL_BIT(signal)	(1ull << ((signal) - 1))

/* The kernel's struct sigaction: rt_sigaction(2). */
struct signal_action {
	void (*handler)(int, siginfo_t *, void *);
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* What the program wants of @signal. 0 or -errno. */
int signal_look(int signal, struct signal_action *action);

/*
 * Make @handler the handler of @signal. It runs with all signals blocked but SIGTRAP. *@program
 * receives what was there; it is left alone when @handler was there already. 0 or -errno.
 */
int signal_take(int signal, void (*handler)(int, siginfo_t *, void *),
	struct signal_action *program);

/* Put *@program back, unless the program has set something else since. */
void signal_give_back(int signal, void (*handler)(int, siginfo_t *, void *),
	const struct signal_action *program);

/* In our handler, of a signal that is not ours: do what would have happened without us. */
void signal_pass_on(const struct signal_action *program, int signal, siginfo_t *info,
	void *context);

/* Set the calling thread's mask of blocked signals; returns the former one. */
uint64_t signals_block(uint64_t mask);

#endif
