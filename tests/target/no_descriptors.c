/* SPDX-License-Identifier: MIT */
/*
 * RLIMIT_NOFILE is zero from some point on: threads, deep recursion, a child and its threads.
 *
 * needs: kernel
 * flags: -O2 -pthread
 * expect: work calls=1010
 * expect: thread_main calls=10
 * expect: deep calls=30001
 * expect: child:work calls=110
 * expect: child:thread_main calls=1
 * expect: run_thread calls=10
 * expect: child:run_thread calls=1
 * lost: possible
 */
#include "target.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void *thread_main(void *arg)
{
	HIT();
	for (int i = 0; i < 100; i++)
		work();
	return arg;
}

static NOIPA int deep(int n)
{
	HIT();
	return n ? OPAQUE(deep)(n - 1) + 1 : 0;
}

static NOIPA void run_thread(void)
{
	pthread_t thread;

	HIT();
	CHECK(!pthread_create(&thread, NULL, thread_main, NULL));
	CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
	struct rlimit none = {0, 0};
	int status;
	pid_t pid;

	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	for (int i = 0; i < 10; i++) {
		work();
		run_thread();
	}
	CHECK(deep(30000) == 30000);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 10; i++)
			work();
		run_thread();
		_exit(7);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	hits("");
	return 0;
}
