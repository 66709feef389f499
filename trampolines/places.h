/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints that come and go, at places inside functions: those of static probes that have no
 * room for a jump. The SIGTRAP handler (trap.h) sends who runs into one on to its detour.
 *
 * All but places_detour() and places_any() are for one thread at a time. The code stays mapped while a place is in
 * the table.
 */
#ifndef TRAMPOLINES_PLACES_H
#define TRAMPOLINES_PLACES_H

#include "patch.h"

struct places_entry {
	uint64_t site, detour;
	uint8_t original; /* the byte that the breakpoint replaces */
	bool gone;
};

/*
 * Let these be all places; before the breakpoints of new ones are stored. Sorts @list. 0, -ENOMEM or
 * what trap_install() answers.
 */
int places_set(struct places_entry *list, size_t n);

/* There is no breakpoint at @site any more. Who has run into it just before finds it gone, and goes
 * on there. */
void places_end(uint64_t site);

/* Store over all breakpoints what was there, and end them. */
void places_restore(const struct patch_how *how);

bool places_any(void);

/* For the SIGTRAP handler: where to go on; 0: not from here. */
uint64_t places_detour(uint64_t site);

#endif
