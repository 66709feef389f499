/* SPDX-License-Identifier: MIT */
/*
 * Vector arguments and results of 16 and 32 bytes.
 *
 * flags: -O2 -mavx2
 * flags: -O0 -mavx2
 * flags: clang -O2 -mavx2
 * needs: x86_64 avx2
 * expect: add16 calls=3
 * expect: add32 calls=3
 * expect: many32 calls=3
 * expect: after_zeroupper calls=3
 */
#include "target.h"

typedef double v2 __attribute__((vector_size(16)));
typedef double v4 __attribute__((vector_size(32)));

static NOIPA v2 add16(v2 a, v2 b)
{
	HIT();
	return a + b;
}

static NOIPA v4 add32(v4 a, v4 b)
{
	HIT();
	return a + b;
}

static NOIPA v4 many32(v4 a, v4 b, v4 c, v4 d, v4 e, v4 f, v4 g, v4 h, v4 i, v4 j)
{
	HIT();
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

static NOIPA double after_zeroupper(v4 a)
{
	HIT();
	return a[0] + a[3];
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		v2 two = {i, i + 1};
		v4 x = {i, i + 1, i + 2, i + 3};

		two = add16(two, two);
		x = add32(x, x);
		x = many32(x, x, x, x, x, x, x, x, x, x);
		printf("%g %g  %g %g %g %g  %g\n", two[0], two[1], x[0], x[1], x[2], x[3],
			after_zeroupper(x));
	}
	hits("");
	return 0;
}
