/* SPDX-License-Identifier: MIT */
/*
 * The functions of libc and of the loader that the tracer itself wants to see, whatever is traced:
 *
 *   _exit           the process ends: says so in the data, so that a report can tell it from death
 *   prctl, syscall  may install a filter of system calls (seccomp): we make none from then on;
 *                   or forbid the clock: we take no times from then on
 *   _dl_debug_state the loader's list of modules has changed
 *   sigaction and what blocks signals, when FTR_PATCH=trap: breakpoints cannot stay where SIGTRAP
 *                   is blocked or handled by the program
 */
#ifndef TRACER_WATCH_H
#define TRACER_WATCH_H

#include "../arch/arch.h"

/* Which watched function of libc, or of the loader, has this name; 0: none. */
uint32_t watch_name(const char *name, bool loader);

/* struct shadow_hooks.watch */
void watch_entered(const struct slow_frame *frame);

#endif
