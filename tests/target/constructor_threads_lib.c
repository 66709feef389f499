/* SPDX-License-Identifier: MIT */
/* The library of constructor_threads.c. */
#include <pthread.h>

int early_total(void);
void early_work(void);

static pthread_t threads[4];
static int total;

__attribute__((noinline)) void early_work(void)
{
	__atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void *early_thread(void *arg)
{
	for (int i = 0; i < 100; i++)
		early_work();
	return arg;
}

__attribute__((constructor, noinline)) static void starts(void)
{
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, early_thread, NULL);
}

int early_total(void)
{
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return total;
}
