/* SPDX-License-Identifier: MIT */
/* Walks over the descriptions of parameters that ftr_argument() is given, for the ports' abi.c. */
#ifndef ARCH_TYPES_H
#define ARCH_TYPES_H

#include "arch.h"

/* What earlier parameters have taken. */
struct types_walk {
	uint8_t general, vector; /* registers */
	uint32_t stack;		 /* bytes; powerpc: doublewords of the parameter save area */
	bool variadic;		 /* what follows is */
};

/* The next place in memory, for @size bytes. */
struct isa_place types_on_stack(struct types_walk *walk, uint32_t size, uint32_t align);

/*
 * The place of parameter @n. @next: of one parameter, by its letter and, of an 's', its size, else 0.
 * @hidden: the address of a result in memory comes first, as an integer.
 */
struct isa_place types_find(const char *types, unsigned n, bool hidden,
	struct isa_place (*next)(struct types_walk *walk, char type, uint32_t size));

#endif
