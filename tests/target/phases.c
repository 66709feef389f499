/* SPDX-License-Identifier: MIT */
/*
 * Everything for which the tracer makes system calls, once: start, a thread, deep recursion on
 * another window's worth of stack, a library loaded later, a fork and a thread there, the end.
 * tests/faults lets each of these calls fail.
 *
 * flags: -O2 -pthread -ldl
 * env: FTR_MODULES=phases,phases_lib.so
 * library: phases_lib.c -O1
 * stacks: several
 * exit: 3
 * expect: work calls=41
 * expect: thread_main calls=1
 * expect: deep_main calls=1
 * expect: sink calls=40000
 * expect: phases_late calls=20
 * expect: child:work calls=20
 * expect: child:thread_main calls=1
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
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
	return arg;
}

static NOIPA void run_thread(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, thread_main, NULL));
	CHECK(!pthread_join(thread, NULL));
}

/* 400 bytes a frame: more than the window of a thread's shadow stack. */
static NOIPA int sink(int depth)
{
	volatile char pad[360];

	HIT();
	pad[0] = (char)depth;
	return depth ? OPAQUE(sink)(depth - 1) + pad[0] : pad[0];
}

static NOIPA void *deep_main(void *arg)
{
	HIT();
	sink(39999);
	return arg;
}

static NOIPA void run_deep(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32 << 20);
	CHECK(!pthread_create(&thread, &attr, deep_main, NULL));
	CHECK(!pthread_join(thread, NULL));
}

static NOIPA void use_library(void)
{
	char path[500];
	int (*late)(int);
	void *library;

	snprintf(path, sizeof(path), "%s/phases_lib.so", getenv("TARGET_DIR"));
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	late = (int (*)(int))dlsym(library, "phases_late");
	for (int i = 0; i < 20; i++)
		CHECK(late(i) == 2 * i + 1);
	CHECK(dlclose(library) == 0);
}

int main(void)
{
	int status;
	pid_t pid;

	for (int i = 0; i < 10; i++)
		work();
	run_thread();
	run_deep();
	use_library();
	for (int i = 0; i < 20; i++)
		work();
	pid = fork();
	if (pid == 0) {
		hits_reset();
		for (int i = 0; i < 10; i++)
			work();
		run_thread();
		hits("child:");
		exit(7);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	work();
	hits("");
	return 3;
}
