/* SPDX-License-Identifier: MIT */
/*
 * The DWARF expression that finds a return address in the threads' shadow stacks: it is the
 * "return address is saved at" rule of every return point. Its only input is the CFA.
 */
#ifndef ARCH_EXPRESSION_H
#define ARCH_EXPRESSION_H

#include "arch.h"

#define EXPRESSION_MAX 192

struct expression_input {
	uint64_t root;	    /* run-time address of the struct shadow_root */
	uint8_t slot_below; /* slot = CFA - this */
};

/* Write the expression (without its length) to @out, EXPRESSION_MAX bytes. Returns its length. */
size_t expression_write(const struct expression_input *in, uint8_t *out);

#endif
