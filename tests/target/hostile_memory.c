/* SPDX-License-Identifier: MIT */
/*
 * Little address space left: threads and deep recursion still work, or the report says what it
 * lost; the program does not notice.
 *
 * needs: kernel
 * flags: -O2 -pthread
 * expect: after calls=10
 * expect: work calls=2000
 * expect: thread_main calls=20
 * lost: possible
 */
#include "target.h"

#include <pthread.h>
#include <sys/resource.h>

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void after(void)
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
	struct rlimit limit;
	pthread_t threads[20];
	pthread_attr_t attr;

	after();
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = 1;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < 20; i++)
		CHECK(!pthread_create(&threads[i], &attr, thread_main, NULL));
	for (int i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	CHECK(!malloc(64 << 20));
	for (int i = 1; i < 10; i++)
		after();
	hits("");
	return 0;
}
