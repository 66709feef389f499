/* SPDX-License-Identifier: MIT */
/* What may be replaced while it may be executed: the architecture lets both be only some instructions. */
#include "support_replaced.h"

#define NOP 0xd503201f
#define B   0x14000400

Test(native, what_may_be_replaced_while_it_is_executed)
{
	static const struct replaced_row rows[] = {
		{ "nop", NOP, true },
		{ "b", B, true },
		{ "b backwards", 0x17ffff00, true },
		{ "bl", 0x94000400, true },
		{ "brk #0", 0xd4200000, true },
		{ "svc #0", 0xd4000001, true },
		{ "hvc #1", 0xd4000022, true },
		{ "smc #0", 0xd4000003, true },
		{ "stp x29, x30, [sp, #-16]!", 0xa9bf7bfd, false },
		{ "paciasp", 0xd503233f, false },
		{ "bti c", 0xd503245f, false },
		{ "yield", 0xd503203f, false },
		{ "ret", 0xd65f03c0, false },
		{ "b.eq", 0x54000040, false },
		{ "cbz x0", 0xb4000040, false },
		{ "adrp x0", 0x90000000, false },
		{ "br x16", 0xd61f0200, false },
		{ "isb", 0xd5033fdf, false },
		{ "udf #0", 0, false },
	};

	check_replaced(rows, sizeof(rows) / sizeof(rows[0]), B);
	cr_expect(!may_replace(NOP, B, 12), "three instructions");
}
