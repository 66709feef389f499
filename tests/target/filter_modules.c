/* SPDX-License-Identifier: MIT */
/*
 * A module pattern that fits nothing: the program runs and nothing of it is counted.
 *
 * flags: -O2
 * env: FTR_MODULES=no-such-module*
 * absent: work main
 */
#include "target.h"

static NOIPA void work(void)
{
	HIT();
}

int main(void)
{
	work();
	hits("");
	return 0;
}
