/* SPDX-License-Identifier: MIT */
/*
 * abort() from deep inside.
 *
 * exit: signal 6
 * expect: main calls=1 returned=0 open=1
 * expect: ends calls=10 returned=0 open=10
 * expect: work calls=1000
 */
#include "target.h"

static NOIPA void work(void)
{
	HIT();
}

static NOIPA int ends(int n)
{
	HIT();
	if (n > 1)
		return OPAQUE(ends)(n - 1) + 1;
	hits("");
	abort();
}

int main(void)
{
	HIT();
	for (int i = 0; i < 1000; i++)
		work();
	return ends(10) + 1;
}
