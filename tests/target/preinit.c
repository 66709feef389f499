/* SPDX-License-Identifier: MIT */
/*
 * Calls made before any constructor of the program.
 *
 * flags: -O2
 * expect: first calls=1
 * expect: work calls=3
 */
#include "target.h"

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void first(int argc, char **argv, char **env)
{
	HIT();
	work();
	work();
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(
	int, char **, char **) = first;

int main(void)
{
	work();
	hits("");
	return 0;
}
