/* SPDX-License-Identifier: MIT */
/*
 * Landing pads: where unwinders enter a function other than by a call. Itanium C++ ABI, Exception
 * Handling Tables (the layout that gcc and clang share).
 */
#ifndef TRACER_LSDA_H
#define TRACER_LSDA_H

#include "ehframe.h"

/*
 * The link-time addresses of the landing pads of @fde that lie in [@from, @to) into @pads, at most
 * @max. Returns their number; a damaged or unknown table ends early.
 */
size_t lsda_pads(const struct elffile *elf, const struct eh_fde *fde, uint64_t from, uint64_t to,
	uint64_t *pads, size_t max);

#endif
