/* SPDX-License-Identifier: MIT */
/*
 * A program that closes every descriptor, reuses their numbers, changes directory, empties its
 * environment, forbids itself files, and then makes threads and children that call traced
 * functions.
 *
 * flags: -O2 -pthread
 * expect: work calls=1100
 * expect: new_function calls=1
 * expect: thread_main calls=10
 * expect: child:work calls=1
 * needs: kernel
 * lost: possible
 */
#define _GNU_SOURCE
#include "target.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void new_function(void)
{
	HIT();
}

static NOIPA void *thread_main(void *arg)
{
	HIT();
	for (int i = 0; i < 100; i++)
		work();
	return NULL;
}

int main(void)
{
	struct rlimit none = {0, 0}, few = {20, 20};
	pthread_t thread;
	pid_t pid;
	int fds[16], status;

	for (int i = 0; i < 100; i++)
		work();
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	for (int i = 0; i < 16; i++) {
		fds[i] = open("/dev/null", O_RDWR);
		CHECK(fds[i] == 3 + i);
	}
	CHECK(chdir("/") == 0);
	umask(0777);
	clearenv();
	CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	new_function();
	for (int i = 0; i < 10; i++) {
		CHECK(!pthread_create(&thread, NULL, thread_main, NULL));
		pthread_join(thread, NULL);
	}
	pid = fork();
	if (pid == 0) {
		work();
		_exit(7);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	for (int i = 0; i < 16; i++)
		CHECK(write(fds[i], "x", 1) == 1);
	hits("");
	return 0;
}
