/* SPDX-License-Identifier: MIT */
/* Call stacks by libunwind, which is opened where the program does not see it. */
#ifndef TRACER_CALLSTACK_H
#define TRACER_CALLSTACK_H

#include "../include/ftr/ftr.h"
#include "../arch/mem.h"

/* What is used of libunwind; <libunwind.h>. */
struct callstack_unwinder {
	int (*get_context)(void *context);
	int (*init)(void *cursor, void *context);
	int (*step)(void *cursor);
	int (*get_register)(void *cursor, int which, uint64_t *value);
};

/*
 * The frames above that of @call, without detours. Stores up to @n return addresses and returns how
 * many.
 */
unsigned callstack_walk(const struct callstack_unwinder *unwinder, const struct ftr_call *call,
	const void **addresses, unsigned n);

#endif
