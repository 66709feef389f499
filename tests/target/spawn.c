/* SPDX-License-Identifier: MIT */
/*
 * vfork and exec, vfork and _exit, posix_spawn, system, clone with shared memory: children on the
 * parent's memory leave nothing behind.
 *
 * needs: /bin/true
 * expect: before_exec calls=100
 * expect: parent calls=300
 * expect: spawns calls=100
 * expect: spawns_properly calls=100
 * expect: cloned calls=50
 */
#define _GNU_SOURCE
#include "target.h"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

static NOIPA void parent(void)
{
	HIT();
}

static NOIPA void before_exec(void)
{
	HIT();
}

static NOIPA void spawns(void)
{
	char *args[] = {"true", NULL}, *env[] = {NULL};
	int status;
	pid_t pid;

	HIT();
	pid = vfork();
	if (pid == 0) {
		before_exec();
		execve("/bin/true", args, env);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static NOIPA void spawns_properly(void)
{
	char *args[] = {"true", NULL}, *env[] = {NULL};
	int status;
	pid_t pid;

	HIT_AS("spawns_properly");
	CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, args, env) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static NOIPA int cloned(void *arg)
{
	HIT();
	return *(int *)arg;
}

static NOIPA void clones(int number)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status;
	pid_t pid = clone(cloned, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &number);

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WEXITSTATUS(status) == number);
}

int main(void)
{
	int status;
	pid_t pid;

	for (int i = 0; i < 100; i++) {
		spawns();
		spawns_properly();
		parent();
	}
	for (int i = 0; i < 100; i++) {
		pid = vfork();
		if (pid == 0)
			_exit(i);
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == i);
		parent();
		parent();
	}
	for (int i = 0; i < 50; i++)
		clones(i);
	CHECK(system("exit 3") >> 8 == 3);
	hits("");
	return 0;
}
