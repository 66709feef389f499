/* SPDX-License-Identifier: MIT */
/* The initial unwind rows of powerpc images. Register numbers: 64-bit ELFv2 ABI, table 2.26. */
#include "powerpc.h"
#include "../expression.h"

#define DW_CFA_def_cfa	  0x0c
#define DW_CFA_expression 0x10
#define R1		  1
#define LR		  65

size_t ppc_cie(enum isa_cie which, uint64_t root, uint8_t *out, size_t room)
{
	static const uint8_t plain[] = { DW_CFA_def_cfa, R1, 0 }; /* LR is where it is */
	uint8_t expression[EXPRESSION_MAX];
	const struct expression_input in = { .root = root, .slot_below = 0 };
	size_t len = which == CIE_PLAIN ? 0 : expression_write(&in, expression);
	size_t n = sizeof(plain);

	if (room < n + (len ? len + 4 : 0))
		return 0;
	memcpy(out, plain, n);
	if (!len)
		return n;
	out[n++] = DW_CFA_expression;
	out[n++] = LR;
	out[n++] = (uint8_t)(len | 0x80); /* two bytes of ULEB128 */
	out[n++] = (uint8_t)(len >> 7);
	memcpy(out + n, expression, len);
	return n + len;
}
