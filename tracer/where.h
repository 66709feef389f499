/* SPDX-License-Identifier: MIT */
/* Which function that the tracer has patched begins at an address of this process. */
#ifndef TRACER_WHERE_H
#define TRACER_WHERE_H

#include "../arch/mem.h"

struct where_entry {
	uint64_t addr; /* run-time */
	uint64_t detour; /* run-time */
	uint32_t id; /* ID_NONE: it is not traced, only watched (watch.h) */
	bool entry_only;
};

struct plan;

/* Add the functions of a module. Not by two threads at a time. 0 or -ENOMEM. */
int where_add(const struct plan *plan);

/* See struct shadow_hooks. */
uint64_t where_point(uint32_t id);

/* A probe has made another detour for the function: it has several points. */
void where_forget(uint32_t id);

/* The entry of @addr, NULL when there is none; the second one looks for traced functions alone. May
 * be called at any time. */
const struct where_entry *where_find(uint64_t addr);
const struct where_entry *where_traced(uint64_t addr);

#endif
