/* SPDX-License-Identifier: MIT */
/*
 * More code than branches reach: those in its middle are further from every free place.
 *
 * flags: arm64: -O2 far_text_arm64.S
 * needs: arm64
 * env: FTR_VERBOSE=1
 * says: out of reach
 * expect: once calls=1
 * expect: far_0 calls=10
 * expect: far_5 calls=10
 * expect: far_10 calls=10
 * expect: far_13 calls=10
 * expect: far_15 calls=10
 * expect: far_17 calls=10
 * expect: far_20 calls=10
 * expect: far_25 calls=10
 * expect: far_30 calls=10
 * skipped: far_short reason=out-of-reach
 */
#include "target.h"

#define EACH(X)                                                                                    \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)      \
	X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30)
#define DECLARE(n) int far_##n(int);
#define NAME(n)	   far_##n,

EACH(DECLARE)
void far_short(void);

static int (*const volatile functions[])(int) = { EACH(NAME) };
static void (*const volatile call_short)(void) = far_short;

static NOIPA void once(void)
{
	HIT();
}

int main(void)
{
	int sum = 0;

	once();
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i <= 30; i++)
			sum = functions[i](sum);
		call_short();
	}
	CHECK(sum == 10 * 30 * 31 / 2);
	hits("");
	return 0;
}
