/* SPDX-License-Identifier: MIT */
/*
 * Where an image of detours goes: a free range of addresses near the text that it serves, where
 * it is in nobody's way later. Pure: computes from a list of mappings.
 */
#ifndef TRAMPOLINES_GAPS_H
#define TRAMPOLINES_GAPS_H

#include "maps.h"

struct gap_request {
	uint64_t text_lo, text_hi; /* every byte of the image must be within reach of these */
	uint64_t reach;		   /* isa->reach */
	uint64_t size;		   /* of the image */
	uint64_t page;		   /* AT_PAGESZ, a power of two */
	uint64_t program;	   /* an address in the main program, e.g. AT_PHDR */
	uint64_t loader;	   /* AT_BASE; 0: none */
	uint64_t brk;		   /* the break as brk(0) tells; the end of "[heap]" is asked too */
	uint64_t stack_limit;	   /* RLIMIT_STACK, soft; less than 8 MiB counts as 8 MiB */
	const uint64_t *refused;   /* answers given before that turned out to be of no use */
	size_t nrefused;
};

/*
 * The address for an image, a multiple of the page size, or 0 when there is none (left). To get
 * the next best one, add the answer to ->refused and ask again (with fresh mappings).
 *
 * In this order: right below the main program; above the loader and below the room of the stack;
 * right below the lowest library; between other mappings, the hole between the program and where
 * its break begins included; and where all these are out of reach (large programs at fixed low
 * addresses) as far above the break as reach allows. The reach/4 bytes above the break are never
 * taken: it has to be able to grow.
 */
uint64_t gap_find(const struct maps *maps, const struct gap_request *request);

#endif
