/* SPDX-License-Identifier: MIT */
/*
 * FTR_PATCH=trap in a program that has a SIGTRAP handler of its own before it calls anything: its
 * breakpoints reach its handler; functions that are hooked by ours may not be called any more.
 *
 * flags: -O2
 * env: FTR_PATCH=trap
 * needs: x86_64
 * expect: work calls=100
 * expect: on_trap calls=100
 */
#define _GNU_SOURCE
#include "target.h"

#include <signal.h>

static NOIPA void work(void)
{
	HIT();
	__asm__ volatile("int3");
}

static NOIPA void on_trap(int signal)
{
	HIT();
}

int main(void)
{
	signal(SIGTRAP, on_trap);
	for (int i = 0; i < 100; i++)
		work();
	hits("");
	return 0;
}
