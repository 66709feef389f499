/* SPDX-License-Identifier: MIT */
/*
 * The same little of everything (calls of all kinds, a table of jumps, many arguments, large
 * results, a deep stack) as built by options that change what functions begin and end with.
 *
 * flags: x86_64: -O2 -mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none
 * flags: x86_64: -O2 -mindirect-branch=thunk-inline -mfunction-return=keep -fcf-protection=none
 * flags: x86_64: clang -O2 -mretpoline
 * flags: x86_64: -O2 -fcf-protection=full
 * flags: x86_64: -O0 -fcf-protection=full -Wl,-z,ibtplt
 * flags: x86_64: -O2 -fsplit-stack
 * flags: x86_64: -O2 -mfentry -pg
 * flags: x86_64: -O2 -mcmodel=large -fno-pie -no-pie
 * flags: x86_64: -O2 -mtune=atom -mno-red-zone -maccumulate-outgoing-args
 * flags: -O2 -pg
 * flags: -O2 -fno-pie -no-pie
 * flags: -O2 -fpatchable-function-entry=5
 * flags: -O2 -fstack-protector-all -fstack-clash-protection
 * flags: -O2 -fno-plt -Wl,-z,now
 * flags: -O3 -flto
 * flags: -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables
 * flags: -O2 -ffunction-sections -Wl,--gc-sections -falign-functions=1
 * flags: -O2 -fsanitize=undefined,address -static-libasan
 * flags: clang -O2 -fstack-protector-all -fno-pie -no-pie
 * expect: indirect calls=1000
 * expect: chooses calls=1000
 * expect: many_arguments calls=1000
 * expect: large_result calls=1000
 * expect: deep calls=101000
 * expect: uses_stack calls=1000
 * expect: sum calls=1000
 */
#include "target.h"

#include <stdarg.h>
#include <string.h>

struct large {
	long words[12];
};

static NOIPA long indirect(long x)
{
	HIT();
	return x * 3 + 1;
}

static NOIPA long chooses(int x)
{
	HIT();
	switch (x % 9) {
	case 0:
		return OPAQUE(indirect)(x);
	case 1:
		return x << 3;
	case 2:
		return x - 11;
	case 3:
		return ~x;
	case 4:
		return x * x;
	case 5:
		return x / 3;
	case 6:
		return -x;
	case 7:
		return x ^ 0x55;
	default:
		return 0;
	}
}

static NOIPA long many_arguments(
	int a, long b, double c, char d, int e, long f, int g, long h, float i, int j)
{
	HIT();
	return a + b + (long)c + d + e + f + g + h + (long)i + j;
}

static NOIPA struct large large_result(long x)
{
	struct large result;

	HIT();
	for (int i = 0; i < 12; i++)
		result.words[i] = x + i;
	return result;
}

static NOIPA long deep(int n)
{
	HIT();
	return n ? OPAQUE(deep)(n - 1) + 1 : 0;
}

static NOIPA long uses_stack(int n)
{
	char space[10000];

	HIT();
	memset(space, n, sizeof(space));
	__asm__ volatile("" : : "r"(space) : "memory");
	return space[n & 8191];
}

static NOIPA long sum(int n, ...)
{
	va_list ap;
	long total = 0;

	HIT();
	va_start(ap, n);
	for (int i = 0; i < n; i++)
		total += va_arg(ap, int);
	total += (long)va_arg(ap, double);
	va_end(ap);
	return total;
}

int main(void)
{
	long total = 0;
	int chosen = 0;

	for (int i = 0; i < 1000; i++) {
		struct large large = large_result(i);

		total += many_arguments(i, 2, 3.5, 4, 5, 6, 7, 8, 9.5f, 10) + large.words[i % 12];
		total += chooses(i) + deep(100) + uses_stack(i) + sum(3, 1, i, 2, 4.0);
		chosen += i % 9 == 0;
	}
	for (; chosen < 1000; chosen++)
		total += OPAQUE(indirect)(chosen);
	printf("%ld\n", total);
	hits("");
	return 0;
}
