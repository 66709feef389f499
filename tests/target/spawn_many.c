/* SPDX-License-Identifier: MIT */
/*
 * Ten thousand children on their parent's memory and thread: by vfork, posix_spawn, and clone with
 * a stack of their own, which call traced functions, many of them at once, and leave frames behind
 * when they end or become another program. Between them the parent recurses over the same stack.
 *
 * flags: -O2
 * flags: -O0
 * needs: /bin/true execve
 * timeout: 300
 * expect: in_child calls=30000
 * expect: on_own_stack calls=10000
 * expect: climb calls=240000
 * expect: left_behind calls=10000 left=10000
 */
#define _GNU_SOURCE
#include "target.h"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5000, VFORK_EXECS = 500 };

static char stack[65536] __attribute__((aligned(16)));

static NOIPA void in_child(void)
{
	HIT();
}

/* Ends the child, or is gone when it becomes another program. */
static NOIPA void left_behind(int depth, int number)
{
	char *args[] = {"true", NULL}, *env[] = {NULL};

	HIT();
	in_child();
	if (depth)
		OPAQUE(left_behind)(depth - 1, number);
	if (number < VFORK_EXECS)
		execve("/bin/true", args, env);
	_exit(0);
}

static NOIPA int climb(int depth)
{
	HIT();
	return depth ? OPAQUE(climb)(depth - 1) + 1 : 0;
}

static NOIPA int on_own_stack(void *arg)
{
	HIT();
	in_child();
	in_child();
	return *(int *)arg & 63;
}

static int ended(pid_t pid)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, __WALL) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static NOIPA void by_vfork(int i)
{
	pid_t pid = vfork();

	if (!pid)
		left_behind(1, i);
	CHECK(ended(pid) == 0);
}

static NOIPA void by_clone(int i, int flags)
{
	CHECK(ended(clone(on_own_stack, stack + sizeof(stack), CLONE_VM | flags | SIGCHLD, &i))
		== (i & 63));
}

static NOIPA void by_spawn(void)
{
	char *args[] = {"true", NULL}, *env[] = {NULL};
	pid_t pid;

	CHECK(!posix_spawn(&pid, "/bin/true", NULL, NULL, args, env));
	CHECK(ended(pid) == 0);
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		by_vfork(i);
		CHECK(climb(23) == 23);
		by_clone(i, CLONE_VFORK);
		by_clone(i, 0); /* the parent waits, but the kernel does not make it */
		CHECK(climb(23) == 23);
		if (i < VFORK_EXECS)
			by_spawn();
	}
	hits("");
	return 0;
}
