/* SPDX-License-Identifier: MIT */
/*
 * Rights dropped and the root directory changed; then new threads and children.
 *
 * flags: -O2 -pthread
 * needs: root
 * expect: work calls=110
 * expect: thread_main calls=10
 * expect: child:work calls=1
 * lost: possible
 */
#define _GNU_SOURCE
#include "target.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void *thread_main(void *arg)
{
	HIT();
	for (int i = 0; i < 10; i++)
		work();
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	CHECK(chroot("/proc/self/fdinfo") == 0 && chdir("/") == 0);
	CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	for (int i = 0; i < 10; i++) {
		work();
		CHECK(!pthread_create(&thread, NULL, thread_main, NULL));
		pthread_join(thread, NULL);
	}
	pid = fork();
	if (pid == 0) {
		work();
		_exit(7);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	hits("");
	return 0;
}
