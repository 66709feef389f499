/* SPDX-License-Identifier: MIT */
/*
 * longjmp over one frame and over a hundred, many times, in all its names; the calls after it are
 * right, and so are the frames that were not left.
 *
 * expect: jump calls=300 returned=0 unwound=300
 * expect: jump_over_100 calls=100000 returned=0 unwound=100000
 * expect: around calls=100 returned=100
 * expect: catcher calls=100 returned=100
 * expect: plain calls=500 returned=500
 */
#include "target.h"

#include <setjmp.h>

static jmp_buf env;
static sigjmp_buf sigenv;

static NOIPA long plain(long x)
{
	HIT();
	return x + 1;
}

static NOIPA void jump(int how)
{
	HIT();
	plain(how);
	if (how == 0)
		longjmp(env, 7);
	if (how == 1)
		_longjmp(env, 7);
	siglongjmp(sigenv, 7);
}

static NOIPA int jump_over_100(int n)
{
	HIT();
	if (n == 1)
		longjmp(env, 3);
	return OPAQUE(jump_over_100)(n - 1) + 1;
}

static NOIPA int catcher(void)
{
	HIT();
	if (!setjmp(env))
		return jump_over_100(1000);
	return (int)plain(1);
}

static NOIPA long around(void)
{
	volatile long sum = 0;
	int value;

	HIT();
	if ((value = setjmp(env)) == 0)
		jump(0);
	sum += value;
	if ((value = _setjmp(env)) == 0)
		jump(1);
	sum += value;
	if ((value = sigsetjmp(sigenv, 1)) == 0)
		jump(2);
	sum += value;
	return sum + plain(catcher());
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum += around();
	printf("%ld\n", sum);
	hits("");
	return 0;
}
