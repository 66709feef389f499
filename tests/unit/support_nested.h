/* SPDX-License-Identifier: MIT */
/*
 * Records of a function that is called once more: only the outermost call's time is in the total. What has
 * ended without a return is not active.
 */
#ifndef UNIT_SUPPORT_NESTED_H
#define UNIT_SUPPORT_NESTED_H

#include "arch/arch.h"
#include <criterion/criterion.h>

static const struct func_record nested_before[] = {
	{ .calls = 6, .returned = 3, .left = 3 },
	{ .calls = 6, .returned = 3, .left = 2 },
	{ .calls = 6, .returned = 6 },
	{ .calls = 7, .returned = 6 },
};
#define NESTED_ROWS (sizeof(nested_before) / sizeof(nested_before[0]))

/* @r was nested_before[@i], and has seen @rounds calls, one after the other. */
static inline void check_nested(const struct func_record *r, unsigned i, unsigned rounds)
{
	const struct func_record *before = &nested_before[i];
	uint64_t self = r->total - r->callees;
	bool inner = before->calls - before->returned - before->left;

	cr_assert_eq(r->calls - before->calls, rounds, "%u", i);
	cr_assert_eq(r->returned - before->returned, rounds, "%u", i);
	cr_assert(self && r->total == (inner ? 0 : self), "%u", i);
}

#endif
