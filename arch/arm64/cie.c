/* SPDX-License-Identifier: MIT */
/* The initial unwind rows of arm64 images. Register numbers: AADWARF64, 4.1. */
#include "a64.h"
#include "../expression.h"

#define DW_CFA_def_cfa	  0x0c
#define DW_CFA_expression 0x10
#define SP		  31
#define LR		  30

size_t a64_cie(enum isa_cie which, uint64_t root, uint8_t *out, size_t room)
{
	static const uint8_t plain[] = { DW_CFA_def_cfa, SP, 0 };
	uint8_t expression[EXPRESSION_MAX];
	const struct expression_input in = { .root = root, .slot_below = 0 };
	size_t len = which == CIE_PLAIN ? 0 : expression_write(&in, expression);
	size_t n = sizeof(plain);

	if (room < sizeof(plain) + 4 + len)
		return 0;
	memcpy(out, plain, sizeof(plain));
	if (which == CIE_PLAIN)
		return n;
	out[n++] = DW_CFA_expression;
	out[n++] = LR;
	out[n++] = (uint8_t)(len | 0x80); /* two bytes of ULEB128 */
	out[n++] = (uint8_t)(len >> 7);
	memcpy(out + n, expression, len);
	return n + len;
}
