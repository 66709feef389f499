/* SPDX-License-Identifier: MIT */
/*
 * Nested functions: the static chain in r10, called directly and through a trampoline on the
 * stack.
 *
 * flags: -O0 -Wl,-z,execstack
 * flags: -O2 -Wl,-z,execstack
 * flags: -Os -Wl,-z,execstack
 * needs: gcc
 * expect: outer calls=5
 * expect: apply calls=5
 */
#include "target.h"

static NOIPA long apply(long (*f)(long), long x)
{
	HIT();
	return f(x) + 1;
}

static NOIPA long outer(long a, long b)
{
	long times = 0;

	NOIPA long inner(long x)
	{
		times++;
		return a * x + b;
	}
	NOIPA long deeper(long x)
	{
		NOIPA long deepest(long y)
		{
			return inner(y) + times * 1000;
		}
		return deepest(x) + a;
	}
	HIT();
	return inner(1) + apply(inner, 10) + deeper(3) + times;
}

int main(void)
{
	for (long i = 0; i < 5; i++)
		printf("%ld\n", outer(i, i * 100));
	hits("");
	return 0;
}
