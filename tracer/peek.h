/* SPDX-License-Identifier: MIT */
/*
 * Reads memory whose address the program gave to a function, which need not be good. A system call
 * tells; where none may be made, or the system has not that one, it is read directly. Safe in
 * handlers; does not touch errno.
 */
#ifndef TRACER_PEEK_H
#define TRACER_PEEK_H

#include "../arch/mem.h"

/* Copy @n bytes, up to 256, from @address. @to may hold the address. */
bool peek_bytes(void *to, uint64_t address, size_t n);

/* Are there @n bytes like @bytes at @address? */
bool peek_equal(uint64_t address, const void *bytes, size_t n);

/*
 * A terminated copy of the string at @address, cut off at @size. Returns its whole length as far as
 * it could be seen: @size or more means that it was cut off. -1: not a byte of it can be read.
 */
long peek_string(char *to, size_t size, uint64_t address);

#endif
