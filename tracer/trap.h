/* SPDX-License-Identifier: MIT */
/*
 * Functions patched by a breakpoint instruction (SITE_TRAP), only when FTR_PATCH=trap asks for it.
 * The program must leave SIGTRAP alone: a thread that blocks it would be killed by the first
 * breakpoint, a handler of the program's own replaces ours.
 */
#ifndef TRACER_TRAP_H
#define TRACER_TRAP_H

#include "../arch/arch.h"

/* May breakpoints be used in this process? (Nothing blocks, ignores or handles SIGTRAP now.) */
bool trap_possible(void);

/*
 * Send a thread that runs into a breakpoint at @site on to @detour. Before the site is patched;
 * trap_ready() completes the table and installs the handler. 0 or -ENOMEM.
 */
int trap_add(uint64_t site, uint64_t detour);
int trap_ready(void);

#endif
