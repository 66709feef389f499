/* SPDX-License-Identifier: MIT */
/*
 * main leaves by pthread_exit, other threads go on, the last one ends the process.
 *
 * flags: -O2 -pthread
 * expect: main calls=1 returned=0
 * expect: leaves calls=1 returned=0
 * expect: work calls=40000 returned=40000
 * expect: thread_main calls=4 returned=4
 */
#include "target.h"

#include <pthread.h>
#include <unistd.h>

static volatile long sum;

static NOIPA void work(void)
{
	HIT();
	__atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
}

static NOIPA void *thread_main(void *arg)
{
	HIT();
	for (int i = 0; i < 10000; i++)
		work();
	return NULL;
}

static NOIPA void leaves(void)
{
	HIT();
	pthread_exit(NULL);
}

__attribute__((destructor)) static void at_end(void)
{
	printf("%ld\n", sum);
	hits("");
}

int main(void)
{
	pthread_t thread;

	HIT();
	for (int i = 0; i < 4; i++) {
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_detach(thread);
	}
	OPAQUE(leaves)();
	return 1;
}
