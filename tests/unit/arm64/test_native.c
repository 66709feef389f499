/* SPDX-License-Identifier: MIT */
/* What may be replaced while it may be executed: the architecture lets both be only some instructions. */
#include "arch/mem.h"
#include "arch/arch.h"
#include <criterion/criterion.h>

#define NOP 0xd503201f
#define B   0x14000400

static bool may_replace(uint32_t old, uint32_t new, uint8_t len)
{
	struct isa_patch patch = { .len = len };

	memcpy(patch.bytes, &new, sizeof(new));
	return arch_may_replace(&patch, (const uint8_t *)&old);
}

Test(native, what_may_be_replaced_while_it_is_executed)
{
	static const struct {
		const char *name;
		uint32_t insn;
		bool may;
	} rows[] = {
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

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(may_replace(rows[i].insn, B, 4), rows[i].may, "%s by b", rows[i].name);
		cr_expect_eq(may_replace(B, rows[i].insn, 4), rows[i].may, "b by %s", rows[i].name);
	}
	cr_expect(!may_replace(NOP, B, 12), "three instructions");
}
