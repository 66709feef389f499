/* SPDX-License-Identifier: MIT */
/*
 * The strict mode of seccomp: all system calls but four kill. A traced function called for the first
 * time makes none. (It also makes rdtsc fault, so
 * that no time can be taken from then on.)
 *
 * end: unseen
 * needs: kernel
 * flags: -O2
 * flags: -O0
 * expect: before calls=10
 * expect: within calls=1000
 * expect: first_time calls=1
 */
#define _GNU_SOURCE
#include "target.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static NOIPA void before(void)
{
	HIT();
}

static NOIPA int within(int n)
{
	HIT();
	return n ? OPAQUE(within)(n - 1) + 1 : 0;
}

static NOIPA void first_time(void)
{
	HIT();
}

int main(void)
{
	for (int i = 0; i < 10; i++)
		before();
	hits("");
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	within(999);
	first_time();
	syscall(SYS_write, 1, "done\n", 5);
	syscall(SYS_exit, 0);
	return 1;
}
