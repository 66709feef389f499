/* SPDX-License-Identifier: MIT */
/*
 * Two thousand threads with the smallest stacks, in turns of eight.
 *
 * flags: -O2 -pthread
 * expect: leaf calls=20000
 * expect: thread_main calls=2000
 */
#include "target.h"

#include <limits.h>
#include <pthread.h>

static NOIPA long leaf(long x)
{
	HIT();
	return x ^ 1;
}

static NOIPA void *thread_main(void *arg)
{
	long sum = 0;

	HIT();
	for (long i = 0; i < 10; i++)
		sum += leaf(i);
	return (void *)sum;
}

int main(void)
{
	pthread_t threads[8];
	pthread_attr_t attr;
	void *result;
	long sum = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	for (int turn = 0; turn < 250; turn++) {
		for (int i = 0; i < 8; i++)
			CHECK(!pthread_create(&threads[i], &attr, thread_main, NULL));
		for (int i = 0; i < 8; i++) {
			pthread_join(threads[i], &result);
			sum += (long)result;
		}
	}
	printf("%ld\n", sum);
	hits("");
	return 0;
}
