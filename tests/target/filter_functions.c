/* SPDX-License-Identifier: MIT */
/*
 * Only the functions asked for are counted.
 *
 * flags: -O2
 * env: FTR_FUNCTIONS=wanted*
 * expect: wanted_one calls=10
 * expect: wanted_two calls=20
 * absent: other main
 */
#include "target.h"

static NOIPA void wanted_one(void)
{
	HIT();
}

static NOIPA void wanted_two(void)
{
	HIT();
}

static NOIPA void other(void)
{
	wanted_two();
	wanted_two();
}

int main(void)
{
	for (int i = 0; i < 10; i++) {
		wanted_one();
		other();
	}
	hits("");
	return 0;
}
