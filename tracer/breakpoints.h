/* SPDX-License-Identifier: MIT */
/*
 * A breakpoint ends a thread that blocks SIGTRAP, and a program that handles SIGTRAP itself knows
 * none. The functions of libc by which a program blocks or handles signals are seen at their entry;
 * all breakpoints are given up before what they ask for is in force. When the program is about to
 * forbid system calls they go as well: they could not be taken away later, and returning from the
 * signal is a system call.
 *
 * Seen are those functions by the tracer (watch.h) when FTR_PATCH=trap, else by probes of our own
 * from the first static probe on that needs a breakpoint.
 */
#ifndef TRACER_BREAKPOINTS_H
#define TRACER_BREAKPOINTS_H

#include "../arch/mem.h"

/* Which of these functions has this name, from 1 on; 0: none. */
uint32_t breakpoints_name(const char *name);

/* It is entered, with these arguments. */
#define BREAKPOINTS_ARGUMENTS 6
void breakpoints_entered(uint32_t which, const uint64_t arguments[BREAKPOINTS_ARGUMENTS]);

/* syscall(2) is. */
void breakpoints_called(const uint64_t arguments[BREAKPOINTS_ARGUMENTS]);

void breakpoints_go(void);

/* Attach the probes, unless they are there. Not with a lock held. 0; -ENOTSUP: it cannot be done. */
int breakpoints_guard(void);
bool breakpoints_guarded(void);

/* Does a signal handler of the program's block SIGTRAP while it runs? */
bool breakpoints_masked(void);

#endif
