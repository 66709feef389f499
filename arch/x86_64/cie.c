/* SPDX-License-Identifier: MIT */
/* The initial unwind rows of x86_64 images. Register numbers: AMD64 psABI, figure 3.36. */
#include "x86.h"
#include "../expression.h"

#define DW_CFA_def_cfa	  0x0c
#define DW_CFA_expression 0x10
#define DW_CFA_offset	  0x80
#define RSP		  7
#define RA		  16

size_t x86_cie(enum isa_cie which, uint64_t root, uint8_t *out, size_t room)
{
	static const uint8_t plain[] = { DW_CFA_def_cfa, RSP, 8, DW_CFA_offset | RA, 1 };
	uint8_t expression[EXPRESSION_MAX];
	const struct expression_input in = { .root = root, .slot_below = 8 };
	size_t len, n = 0;

	if (which == CIE_PLAIN) {
		if (room < sizeof(plain))
			return 0;
		memcpy(out, plain, sizeof(plain));
		return sizeof(plain);
	}
	len = expression_write(&in, expression);
	if (room < len + 7)
		return 0;
	out[n++] = DW_CFA_def_cfa;
	out[n++] = RSP;
	out[n++] = 0;
	out[n++] = DW_CFA_expression;
	out[n++] = RA;
	out[n++] = (uint8_t)(len | 0x80); /* two bytes of ULEB128 */
	out[n++] = (uint8_t)(len >> 7);
	memcpy(out + n, expression, len);
	return n + len;
}
