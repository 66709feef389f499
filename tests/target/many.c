/* SPDX-License-Identifier: MIT */
/*
 * Four thousand functions back to back, all different, each called twice by a table: what a patch
 * does to a neighbour would show.
 *
 * flags: -O2
 * flags: -Os -falign-functions=1
 * flags: -O0
 * flags: -O1 -fno-align-functions -fno-pie -no-pie
 * flags: clang -O2
 * expect: check calls=8192
 * expect: f_0x000 calls=2
 * expect: f_0xfff calls=2
 */
#include "target.h"

static volatile long state = 1;
static long results[2][4096];

static NOIPA long check(long x)
{
	HIT();
	return x ^ state;
}

/* Seven shapes of function, by number. */
#define BODY(n)                                                                                    \
	switch (n % 7) {                                                                           \
	case 0:                                                                                    \
		return check(x) + n;                                                               \
	case 1:                                                                                    \
		state = state + n;                                                                 \
		return check(state);                                                               \
	case 2:                                                                                    \
		for (long i = 0; i < x % 5; i++)                                                   \
			state ^= i * n;                                                            \
		return check(x);                                                                   \
	case 3:                                                                                    \
		return x > n ? check(x * n) : check(x - n);                                        \
	case 4: {                                                                                  \
		volatile long local[n % 13 + 1];                                                   \
		local[0] = check(n);                                                               \
		return local[0];                                                                   \
	}                                                                                          \
	case 5:                                                                                    \
		return (long)((double)check(x & 0xffff) * n);                                      \
	default:                                                                                   \
		return check((x << n % 31) | n);                                                   \
	}

#define ONE(n)                                                                                     \
	static NOIPA long f_##n(long x)                                                            \
	{                                                                                          \
		BODY(n)                                                                            \
	}
#define ROW(n)                                                                                     \
	ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8)  \
	ONE(n##9) ONE(n##a) ONE(n##b) ONE(n##c) ONE(n##d) ONE(n##e) ONE(n##f)
#define PAGE(n)                                                                                    \
	ROW(n##0) ROW(n##1) ROW(n##2) ROW(n##3) ROW(n##4) ROW(n##5) ROW(n##6) ROW(n##7) ROW(n##8)  \
	ROW(n##9) ROW(n##a) ROW(n##b) ROW(n##c) ROW(n##d) ROW(n##e) ROW(n##f)
#define ALL                                                                                        \
	PAGE(0x0) PAGE(0x1) PAGE(0x2) PAGE(0x3) PAGE(0x4) PAGE(0x5) PAGE(0x6) PAGE(0x7) PAGE(0x8)  \
	PAGE(0x9) PAGE(0xa) PAGE(0xb) PAGE(0xc) PAGE(0xd) PAGE(0xe) PAGE(0xf)

ALL

#undef ONE
#define ONE(n) f_##n,

static long (*const table[4096])(long) = {ALL};

int main(void)
{
	unsigned long sum = 0;

	for (int turn = 0; turn < 2; turn++)
		for (int i = 0; i < 4096; i++) {
			results[turn][i] = table[i](i * 1000003L + turn);
			sum = sum * 31 + (unsigned long)results[turn][i];
		}
	printf("%lx\n", sum);
	hits("");
	return 0;
}
