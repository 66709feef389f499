/* SPDX-License-Identifier: MIT */
/* Builds a symbols file (tracer/format.h) from the plans of a batch of modules. */
#ifndef TRACER_TABLES_H
#define TRACER_TABLES_H

#include "plan.h"

/* The file's bytes, from @arena. NULL when memory is out. */
const void *tables_build(const struct plan *plans, size_t nplans, uint32_t first_id,
	struct arena *arena, size_t *size);

#endif
