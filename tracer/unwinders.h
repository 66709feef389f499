/* SPDX-License-Identifier: MIT */
/* Finds the _Unwind_* functions of modules, for rethook/unwind.h. */
#ifndef TRACER_UNWINDERS_H
#define TRACER_UNWINDERS_H

#include "elffile.h"
#include "../rethook/unwind.h"

/* The unwinder in a parsed module; [lo, hi) is where it is mapped. False when it has none whose
 * functions have names. */
bool unwinders_read(const struct elffile *elf, uint64_t bias, uint64_t lo, uint64_t hi,
	struct unwinder *out);

/* The same for the module that @addr lies in, now: reads its file. */
bool unwinders_find(uint64_t addr, struct unwinder *out);

#endif
