/* SPDX-License-Identifier: MIT */
/*
 * A million open frames, then all of them returned; and the same left by a longjmp.
 *
 * flags: -O2
 * flags: -O0
 * limit: stack 1073741824
 * expect: down calls=2000002 returned=1000001 unwound=1000001
 * expect: after calls=10
 */
#include "target.h"

#include <setjmp.h>

static jmp_buf start;
static volatile long deepest;

static NOIPA long down(long n, int leave)
{
	long below;

	HIT();
	if (!n && leave)
		longjmp(start, 1);
	below = n ? OPAQUE(down)(n - 1, leave) : 0;
	deepest = deepest > below ? deepest : below;
	return below + 1;
}

static NOIPA void after(void)
{
	HIT();
}

int main(void)
{
	printf("%ld\n", down(1000 * 1000, 0));
	if (!setjmp(start))
		down(1000 * 1000, 1);
	for (int i = 0; i < 10; i++)
		after();
	hits("");
	return 0;
}
