/* SPDX-License-Identifier: MIT */
/*
 * Exceptions through calls that push their arguments: the stack pointer in the handler must be the
 * one the compiler expects.
 *
 * flags: -O2
 * flags: -Os
 * flags: -O0
 * flags: clang -O2
 * flags: clang -Os
 * flags: clang -O0
 * flags: x86_64: -O2 -mno-accumulate-outgoing-args -fomit-frame-pointer
 * expect: ten calls=100 returned=0 unwound=100
 * expect: struct_on_stack calls=100 returned=0 unwound=100
 * expect: catch_ten calls=100
 * expect: catch_struct calls=100
 */
#include "target.h"

struct Big {
	long word[12];
};

static NOIPA long ten(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	HIT();
	throw a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10;
}

static NOIPA long struct_on_stack(Big big, long x, double y)
{
	HIT();
	throw big.word[11] + x + (long)y;
}

static NOIPA long catch_ten(long x)
{
	volatile long before = x * 3, after = x * 5;

	HIT();
	try {
		return ten(1, 2, 3, 4, 5, 6, 7, 8, x, x + 1);
	} catch (long value) {
		return value * 2 + before + after;
	}
}

static NOIPA long catch_struct(long x)
{
	Big big = {{x, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, x}};
	long local = x * 7;

	HIT();
	try {
		return struct_on_stack(big, x, 2.5);
	} catch (long value) {
		return value + local + big.word[10];
	}
}

int main()
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum += catch_ten(i) + catch_struct(i);
	printf("%ld\n", sum);
	hits("");
	return 0;
}
