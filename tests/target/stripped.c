/* SPDX-License-Identifier: MIT */
/*
 * A stripped program: its functions are found by their unwind tables and named by address.
 * How many calls there are at least is known; which address is which is not.
 *
 * flags: -O2 -rdynamic
 * flags: -O2 -rdynamic -fno-pie -no-pie
 * strip: yes
 * expect: exported calls=300
 * expect: stripped+0x* calls>=601
 */
#include "target.h"

NOIPA void exported(void);

static NOIPA void hidden(void)
{
	HIT();
}

NOIPA void exported(void)
{
	HIT();
	hidden();
	hidden();
}

int main(void)
{
	for (int i = 0; i < 300; i++)
		exported();
	hits("");
	return 0;
}
