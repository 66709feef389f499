/* SPDX-License-Identifier: MIT */
/* What may be replaced while it may be executed, where the architecture lets that be only some instructions. */
#ifndef UNIT_SUPPORT_REPLACED_H
#define UNIT_SUPPORT_REPLACED_H

#include "arch/mem.h"
#include "arch/arch.h"
#include <criterion/criterion.h>

struct replaced_row {
	const char *name;
	uint32_t insn;
	bool may;
};

static inline bool may_replace(uint32_t old, uint32_t new, uint8_t len)
{
	struct isa_patch patch = { .len = len };

	memcpy(patch.bytes, &new, sizeof(new));
	return arch_may_replace(&patch, (const uint8_t *)&old);
}

/* Each of @rows by @branch, and the other way round. */
static inline void check_replaced(const struct replaced_row *rows, size_t n, uint32_t branch)
{
	for (size_t i = 0; i < n; i++) {
		cr_expect_eq(may_replace(rows[i].insn, branch, 4), rows[i].may, "%s by b", rows[i].name);
		cr_expect_eq(may_replace(branch, rows[i].insn, 4), rows[i].may, "b by %s", rows[i].name);
	}
}

#endif
