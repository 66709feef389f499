/* SPDX-License-Identifier: MIT */
/*
 * Eight threads call the same functions at the same time; every call is counted.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * flags: clang -O2 -pthread
 * flags: x86_64: clang -O1 -pthread -fsanitize=thread
 * cross: yes
 * expect: leaf calls=1600000
 * expect: middle calls=800000
 * expect: thread_main calls=8
 */
#include "target.h"

#include <pthread.h>

#define NTHREADS 8

static pthread_barrier_t barrier;

static NOIPA long leaf(long x)
{
	HIT();
	return x ^ 1;
}

static NOIPA long middle(long x)
{
	HIT();
	return leaf(x) + leaf(x + 1);
}

static NOIPA void *thread_main(void *arg)
{
	long sum = 0;

	HIT();
	pthread_barrier_wait(&barrier);
	for (long i = 0; i < 100000; i++)
		sum += middle(i);
	return (void *)sum;
}

int main(void)
{
	pthread_t threads[NTHREADS];
	void *sum;

	pthread_barrier_init(&barrier, NULL, NTHREADS);
	for (int i = 0; i < NTHREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, thread_main, NULL));
	for (int i = 0; i < NTHREADS; i++) {
		pthread_join(threads[i], &sum);
		printf("%ld\n", (long)sum);
	}
	hits("");
	return 0;
}
