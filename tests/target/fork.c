/* SPDX-License-Identifier: MIT */
/*
 * fork: parent, children and grandchildren all go on calling; frames that were open at the fork
 * return in both.
 *
 * expect: work calls=1000
 * expect: child:work calls=1500
 * expect: grandchild:work calls=700
 * expect: forks calls=3
 * expect: after_fork calls=3
 * expect: child:after_fork calls=3
 * expect: child:child_main calls=3
 */
#include "target.h"

#include <sys/wait.h>
#include <unistd.h>

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void after_fork(void)
{
	HIT();
}

static NOIPA void grandchild(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		hits_reset();
		for (int i = 0; i < 700; i++)
			work();
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static NOIPA pid_t forks(void)
{
	pid_t pid;

	HIT();
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		hits_reset();
	after_fork();
	return pid;
}

static NOIPA void child_main(int number)
{
	HIT();
	for (int i = 0; i < 500; i++)
		work();
	if (number == 0)
		grandchild();
}

int main(void)
{
	int status;

	for (int i = 0; i < 3; i++) {
		pid_t pid = forks();

		if (pid == 0) {
			child_main(i);
			exit(i);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
	}
	for (int i = 0; i < 1000; i++)
		work();
	hits("");
	return 0;
}
