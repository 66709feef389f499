/* SPDX-License-Identifier: MIT */
/*
 * The one SIGTRAP handler. It has three customers: functions that are patched by a breakpoint for
 * good (SITE_TRAP, only when FTR_PATCH=trap asks for it), static probes that are as long as they are
 * attached to (places.h), and code that is being replaced (live.h), where a breakpoint stands for a
 * moment. What belongs to none goes to the program.
 *
 * A thread that blocks SIGTRAP would be killed by a breakpoint: its users look before.
 */
#ifndef TRAMPOLINES_TRAP_H
#define TRAMPOLINES_TRAP_H

#include "patch.h"

/*
 * Nothing ignores or handles SIGTRAP now, and @blocked, the signals that the calling thread blocks for
 * the program, is without it. May breakpoints be used for functions: that, and they were not given up.
 */
bool trap_is_free(uint64_t blocked);
bool trap_possible(uint64_t blocked);

/*
 * Send a thread that runs into a breakpoint at @site on to @detour. Before the site is patched;
 * trap_ready() completes the table and installs the handler. @module: a number that the sites of a
 * module have in common. One thread at a time. 0, -ENOMEM or the kernel's reason.
 */
int trap_add(uint64_t site, uint64_t detour, uint32_t module);
int trap_ready(void);

/*
 * The sites of @module in [@lo, @hi) are gone with their text, or have come back. What lies there
 * meanwhile is somebody else's. False: it has come back, and breakpoints are no longer used.
 */
bool trap_present(uint32_t module, uint64_t lo, uint64_t hi, bool present);

/*
 * The program is about to block SIGTRAP or to handle it: its text gets its own bytes back at all
 * sites, for good. Any thread; again by who has patched meanwhile. How many functions are let go.
 */
uint32_t trap_give_up(const struct patch_how *how);
bool trap_given_up(void);

/*
 * Install the handler, unless it is there; again after the program has replaced it. What the
 * program had stays in force for its own signals. One thread at a time. 0 or -errno.
 */
int trap_install(void);

/* Are there breakpoints that stay? */
bool trap_is_used(void);

/*
 * Give SIGTRAP back to the program, unless it is used. Only when no thread can have hit a
 * breakpoint of ours without having reached the handler: see live_release().
 */
void trap_remove(void);

#endif
