/* SPDX-License-Identifier: MIT */
#ifndef TRACER_DEMANGLE_H
#define TRACER_DEMANGLE_H

#include "../arch/mem.h"

/* The C++ or Rust name behind @symbol into @out (cut off at @size); false when it is neither.
 * Calls no allocator. Only at start, before anything is patched. */
bool demangle(const char *symbol, char *out, size_t size);

/* The same without parameters and return types. */
bool demangle_name(const char *symbol, char *out, size_t size);

#endif
