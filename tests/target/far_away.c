/* SPDX-License-Identifier: MIT */
/*
 * No free memory within reach of the code: below it is the lowest address there is, above it three
 * gigabytes of the program's own. Nothing of it is traced, and that is said.
 *
 * flags: -O2 -fno-pie -no-pie -mcmodel=large -Wl,-Ttext-segment=0x11000
 * needs: x86_64 kernel
 * says: no free memory near enough
 * expect: work calls=0
 * skipped: work reason=out-of-reach
 */
#include "target.h"

static char room[3ul << 30];

static NOIPA void work(void)
{
	HIT_AS("untraced");
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		work();
	room[sizeof(room) / 2] = 1;
	hits("");
	return room[5];
}
