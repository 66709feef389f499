/* SPDX-License-Identifier: MIT */
/*
 * A program that nothing can be preloaded into, and one that is its own loader's business: neither
 * notices anything.
 *
 * flags: -O2 -static
 * flags: -O2 -static-pie
 */
#include "target.h"

int main(void)
{
	puts("static");
	return 3 - 3;
}
