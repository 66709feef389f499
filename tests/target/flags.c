/* SPDX-License-Identifier: MIT */
/*
 * Condition flags as arguments and as results of hand-written functions.
 *
 * flags: -O2 flags.S
 * flags: -O0 -fno-pie -no-pie flags.S
 * needs: x86_64
 * expect: add_with_carry calls=20
 * expect: branch_on_entry calls=30
 * expect: read_overflow calls=20
 * expect: give_carry calls=20
 * expect: carry_through calls=30
 * expect: add_192 calls=10
 */
#include "target.h"

#include <string.h>

long use_add_with_carry(long a, long b);
long use_branch_on_entry(long a, long b);
long use_read_overflow(int a, int b);
long use_give_carry(unsigned long a, unsigned long b);
void add_192(unsigned long *to, const unsigned long *from);
extern unsigned long add_with_carry_calls, branch_on_entry_calls, read_overflow_calls,
	give_carry_calls;

int main(void)
{
	for (int i = 0; i < 10; i++) {
		unsigned long a[3] = {~0ul - i, ~0ul, i}, b[3] = {i + 1, 0, 1};

		CHECK(use_add_with_carry(i, 7) == (i + 7 + 1) * 1000 + 110);
		CHECK(use_branch_on_entry(i, i) == 1);
		CHECK(use_branch_on_entry(i, i + 1) == 2);
		CHECK(use_branch_on_entry(i + 1, i) == 3);
		CHECK(use_read_overflow(0x7fffffff, i + 1) == 1);
		CHECK(use_read_overflow(-5, i) == 0);
		CHECK(use_give_carry(i + 1, i) == 1);
		CHECK(use_give_carry(i, i + 1) == 0);
		add_192(a, b);
		CHECK(a[0] == 0 && a[1] == 0 && a[2] == (unsigned long)i + 2);
	}
	printf("calls add_with_carry %lu\n", add_with_carry_calls);
	printf("calls branch_on_entry %lu\n", branch_on_entry_calls);
	printf("calls read_overflow %lu\n", read_overflow_calls);
	printf("calls give_carry %lu\n", give_carry_calls);
	return 0;
}
