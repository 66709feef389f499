/* SPDX-License-Identifier: MIT */
/* Small blocks that come and go, from memory that stays. One caller at a time. */
#ifndef TRACER_POOL_H
#define TRACER_POOL_H

#include "../arch/mem.h"

void *pool_alloc(size_t size); /* zeroed; NULL: no memory */
void pool_free(void *block, size_t size); /* @block may be NULL */

#endif
