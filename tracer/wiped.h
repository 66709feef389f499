/* SPDX-License-Identifier: MIT */
/*
 * Memory that a fork wipes: in the child it is all zero. What a process has counted belongs there,
 * and locks: a child begins at 0, and no lock is held by a thread that it does not have.
 */
#ifndef TRACER_WIPED_H
#define TRACER_WIPED_H

#include "../arch/mem.h"

/* Zeroed; NULL: out of memory, or the system cannot do that. */
void *wiped_alloc(size_t size);
void wiped_free(void *memory, size_t size);

/* What pthread_atfork(3) calls, in glibc; NULL where there is none. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
	void *object) __attribute__((weak));

/* In a forked child of a system that accepts the request to no effect, as qemu-user does. */
void wiped_forked(void);

#endif
