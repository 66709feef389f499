/* SPDX-License-Identifier: MIT */
/* What may be replaced while it may be executed: the architecture lets both be only some instructions. */
#include "support_replaced.h"

#define NOP 0x60000000
#define B   0x48000400

Test(native, what_may_be_replaced_while_it_is_executed)
{
	static const struct replaced_row rows[] = {
		{ "nop", NOP, true },
		{ "b", B, true },
		{ "b backwards", 0x4bffff00, true },
		{ "bl", 0x48000401, true },
		{ "ba", 0x48000402, true },
		{ "another nop: ori r1,r1,0", 0x60210000, false },
		{ "a nop that sets the priority", 0x7c210b78, false }, /* or r1,r1,r1 */
		{ "trap", 0x7fe00008, false },
		{ "beq", 0x41820008, false },
		{ "blr", 0x4e800020, false },
		{ "bctr", 0x4e800420, false },
		{ "mflr r0", 0x7c0802a6, false },
		{ "stdu r1,-32(r1)", 0xf821ffe1, false },
		{ "addis r2,r12,0", 0x3c4c0000, false },
		{ "sc", 0x44000002, false },
		{ "a prefix", 0x06000000, false },
		{ "zeros", 0, false },
	};

	check_replaced(rows, sizeof(rows) / sizeof(rows[0]), B);
	cr_expect(!may_replace(NOP, B, 8), "two instructions");
}
