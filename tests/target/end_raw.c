/* SPDX-License-Identifier: MIT */
/*
 * The exit_group system call by hand.
 *
 * exit: 44
 * end: unseen
 * expect: main calls=1 returned=0 open=1
 * expect: ends calls=10 returned=0 open=10
 * expect: work calls=1000
 */
#define _GNU_SOURCE
#include "target.h"

#include <sys/syscall.h>
#include <unistd.h>

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
	syscall(SYS_exit_group, 44);
	abort();
}

int main(void)
{
	HIT();
	for (int i = 0; i < 1000; i++)
		work();
	return ends(10) + 1;
}
