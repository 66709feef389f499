/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous cancellation that hits threads while they call traced functions all the time, so
 * also inside entries, detours and return points. How often they called is up to chance: the
 * program's own count and the report's must only both be there and add up.
 *
 * flags: -O2 -pthread
 * expect: thread_main calls=200 returned=0 unwound=200
 * expect: cleanup calls=200 returned=200
 * expect: leaf open=0
 * expect: middle open=0
 * expect: after calls=200 returned=200
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned long turns;
static atomic_int tid;

static NOIPA void after(void)
{
	HIT();
}

static NOIPA void cleanup(void *arg)
{
	HIT();
}

static NOIPA long leaf(long x)
{
	turns++;
	return x + 1;
}

static NOIPA long middle(long x)
{
	return OPAQUE(leaf)(x) + OPAQUE(leaf)(x + 1);
}

static NOIPA void *thread_main(void *arg)
{
	HIT();
	tid = (int)syscall(SYS_gettid);
	pthread_cleanup_push(cleanup, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (long i = 0;; i++)
		middle(i);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	void *result;

	for (int i = 0; i < 200; i++) {
		turns = 0;
		pthread_create(&thread, NULL, thread_main, NULL);
		while (turns < 1000)
			usleep(i % 7 * 10);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED);
		after();
	}
	/* Where no unwinder came past its frames, they are known to have ended when it has. */
	while (!syscall(SYS_tgkill, getpid(), tid, 0))
		usleep(100);
	hits("");
	return 0;
}
