/* SPDX-License-Identifier: MIT */
/*
 * The one SIGTRAP handler. It has two customers: functions that are patched by a breakpoint for
 * good (SITE_TRAP, only when FTR_PATCH=trap asks for it), and code that is being replaced
 * (live.h), where a breakpoint stands for a moment. What belongs to neither goes to the program.
 *
 * A thread that blocks SIGTRAP would be killed by a breakpoint: its users look before.
 */
#ifndef TRAMPOLINES_TRAP_H
#define TRAMPOLINES_TRAP_H

#include "../arch/arch.h"

/* May breakpoints be used in this process? (Nothing blocks, ignores or handles SIGTRAP now.) */
bool trap_possible(void);

/*
 * Send a thread that runs into a breakpoint at @site on to @detour. Before the site is patched;
 * trap_ready() completes the table and installs the handler. 0 or -ENOMEM.
 */
int trap_add(uint64_t site, uint64_t detour);
int trap_ready(void);

/*
 * Install the handler, unless it is there; again after the program has replaced it. What the
 * program had stays in force for its own signals. One thread at a time. 0 or -errno.
 */
int trap_install(void);

/*
 * Give SIGTRAP back to the program, unless sites were added. Only when no thread can have hit a
 * breakpoint of ours without having reached the handler: see live_release().
 */
void trap_remove(void);

#endif
