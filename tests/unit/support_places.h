/* SPDX-License-Identifier: MIT */
/* The places of the stack below @frame, in the calling thread's mirror, become another stack's, or
 * free again. */
#ifndef SUPPORT_PLACES_H
#define SUPPORT_PLACES_H

#include "rethook/mirror.h"
#include "rethook/shadow.h"

static inline void take_places(uint64_t frame, bool take)
{
	struct shadow_thread *t = shadow_self();

	for (uint64_t slot = (frame & -16) - 8192; slot < frame; slot += 8) {
		struct shadow_entry *e = mirror_place(&t->node, slot);

		e->slot = take ? slot + shadow_root.mask + 8 : 0;
		e->owner = take ? (uint64_t)shadow_records_of(t) : 0;
	}
}

#endif
