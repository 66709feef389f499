/* SPDX-License-Identifier: MIT */
/*
 * Memory near modules that is kept free for images, on CPUs whose branches do not reach far: what
 * the tracer itself maps while it reads modules would take it. Used while the process starts, by
 * one thread.
 */
#ifndef TRAMPOLINES_RESERVE_H
#define TRAMPOLINES_RESERVE_H

#include "gaps.h"

#define RESERVE_REACH (1ull << 30) /* who reaches this far needs none */

/* Reserve memory below and above [@place->text_lo, @place->text_hi), as much as its functions may
 * need, or there is. */
void reserve_near(const struct gap_request *place, struct arena *arena);

/* Take what is reserved out of @maps: it is free for images. */
void reserve_hide(struct maps *maps);

/* [@lo, @hi) is about to be mapped: give it back. Does nothing where nothing is reserved. */
void reserve_open(uint64_t lo, uint64_t hi);

/* Give back all that is left. */
void reserve_end(void);

#endif
