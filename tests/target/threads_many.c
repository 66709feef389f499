/* SPDX-License-Identifier: MIT */
/*
 * Five thousand threads that end at once, a few at a time and all joined late.
 *
 * flags: -O2 -pthread
 * timeout: 300
 * expect: leaf calls=15000
 * expect: thread_main calls=5000
 */
#include "target.h"

#include <pthread.h>

enum { THREADS = 5000, AT_ONCE = 50 };

static NOIPA void leaf(void)
{
	HIT();
}

static NOIPA void *thread_main(void *arg)
{
	HIT();
	leaf();
	leaf();
	leaf();
	return arg;
}

int main(void)
{
	pthread_t threads[AT_ONCE];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	for (int i = 0; i < THREADS; i += AT_ONCE) {
		for (int k = 0; k < AT_ONCE; k++)
			CHECK(!pthread_create(&threads[k], &attr, thread_main, NULL));
		for (int k = 0; k < AT_ONCE; k++)
			CHECK(!pthread_join(threads[k], NULL));
	}
	hits("");
	return 0;
}
