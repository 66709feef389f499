/* SPDX-License-Identifier: MIT */
/*
 * Children made by clone with their parent's memory and thread pointer, on stacks of their own,
 * that run beside it: each calls its own function, so that even counters that are not atomic are
 * exact.
 *
 * flags: -O2
 * flags: -O0
 * stacks: several
 * needs: kernel
 * timeout: 300
 * expect: climb calls=8160000
 * expect: child_climb calls=8160000
 * expect: child calls=40
 */
#define _GNU_SOURCE
#include "target.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 40, CLIMBS = 8000 };

static char stack[1 << 18] __attribute__((aligned(16)));

static NOIPA int climb(int depth)
{
	HIT();
	return depth ? OPAQUE(climb)(depth - 1) + 1 : 0;
}

static NOIPA int child_climb(int depth)
{
	HIT();
	return depth ? OPAQUE(child_climb)(depth - 1) + 1 : 0;
}

static NOIPA int child(void *arg)
{
	int wrong = 0;

	HIT();
	for (int i = 0; i < CLIMBS; i++)
		wrong |= child_climb(i % 50) != i % 50;
	return wrong;
}

int main(void)
{
	int status;

	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

		for (int i = 0; i < CLIMBS; i++)
			CHECK(climb(i % 50) == i % 50);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	}
	hits("");
	return 0;
}
