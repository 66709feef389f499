/* SPDX-License-Identifier: MIT */
/*
 * fork, by the library and by the raw system call, while other threads call traced functions.
 * Emulators do not tell of a raw one.
 *
 * flags: -O2 -pthread
 * flags: x86_64: -O2 -pthread -DRAW
 * expect: child:work calls=5000
 * expect: after calls=10
 */
#define _GNU_SOURCE
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef RAW
#define FORK(n) ((n) % 2 ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))
#else
#define FORK(n) fork()
#endif

static volatile int stop;

static NOIPA void noise(void)
{
	__asm__ volatile("");
}

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void after(void)
{
	HIT();
}

static void *thread_main(void *arg)
{
	while (!stop)
		noise();
	return NULL;
}

int main(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread_main, NULL);
	for (int i = 0; i < 10; i++) {
		pid_t pid = FORK(i);

		if (pid == 0) {
			for (int j = 0; j < 500; j++)
				work();
			_exit(0);
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
		after();
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	hits("");
	return 0;
}
