/* SPDX-License-Identifier: MIT */
/*
 * Forty million calls from two threads as fast as they can: exact.
 *
 * flags: -O2 -pthread
 * expect: leaf calls=40000000
 */
#include "target.h"

#include <pthread.h>

static __thread unsigned long mine;
static unsigned long leaf_calls;

static NOIPA void leaf(void)
{
	mine++;
}

static void *thread_main(void *arg)
{
	for (int i = 0; i < 20 * 1000 * 1000; i++)
		leaf();
	__atomic_fetch_add(&leaf_calls, mine, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, thread_main, NULL);
	thread_main(NULL);
	pthread_join(thread, NULL);
	printf("calls leaf %lu\n", leaf_calls);
	return 0;
}
