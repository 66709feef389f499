/* SPDX-License-Identifier: MIT */
/*
 * Threads that end by pthread_exit deep inside, by deferred and by asynchronous cancellation, with
 * clean-up handlers and key destructors that call traced functions.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * flags: x86_64,arm64: -O2 -pthread -fexceptions
 * flags: clang -O2 -pthread
 * expect: exits calls=20 returned=0 unwound=20
 * expect: deeper calls=400 returned=0 unwound=400
 * expect: waits calls=20 returned=0 unwound=20
 * expect: spins calls=20 returned=0 unwound=20
 * expect: cleanup calls=60 returned=60
 * expect: key_destructor calls=60 returned=60
 * expect: exiting calls=20 returned=0 unwound=20
 * expect: cancelled calls=20 returned=0 unwound=20
 * expect: cancelled_anywhere calls=20 returned=0 unwound=20
 */
#include "target.h"

#include <pthread.h>
#include <unistd.h>

static pthread_key_t key;
static volatile int spinning;

static NOIPA void cleanup(void *arg)
{
	HIT();
}

static NOIPA void key_destructor(void *arg)
{
	HIT();
}

static NOIPA void exits(void)
{
	HIT();
	pthread_exit((void *)5);
}

static NOIPA int deeper(int n)
{
	HIT();
	if (n > 1)
		return OPAQUE(deeper)(n - 1) + 1;
	OPAQUE(exits)();
	return 0;
}

static NOIPA void *exiting(void *arg)
{
	int value;

	HIT();
	pthread_setspecific(key, &key);
	pthread_cleanup_push(cleanup, NULL);
	value = deeper(20);
	pthread_cleanup_pop(0);
	return (void *)(long)value;
}

static NOIPA int waits(void)
{
	HIT();
	spinning = 1;
	for (;;)
		pause();
	return 0;
}

static NOIPA void *cancelled(void *arg)
{
	int value;

	HIT();
	pthread_setspecific(key, &key);
	pthread_cleanup_push(cleanup, NULL);
	value = OPAQUE(waits)();
	pthread_cleanup_pop(0);
	return (void *)(long)value;
}

static NOIPA int spins(void)
{
	HIT();
	spinning = 1;
	while (spinning)
		;
	return 0;
}

static NOIPA void *cancelled_anywhere(void *arg)
{
	int value;

	HIT();
	pthread_setspecific(key, &key);
	pthread_cleanup_push(cleanup, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	value = OPAQUE(spins)();
	pthread_cleanup_pop(0);
	return (void *)(long)value;
}

int main(void)
{
	pthread_t thread;
	void *result;

	pthread_key_create(&key, key_destructor);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, exiting, NULL);
		pthread_join(thread, &result);
		CHECK(result == (void *)5);
		spinning = 0;
		pthread_create(&thread, NULL, cancelled, NULL);
		while (!spinning)
			usleep(100);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED);
		spinning = 0;
		pthread_create(&thread, NULL, cancelled_anywhere, NULL);
		while (!spinning)
			usleep(100);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED);
	}
	hits("");
	return 0;
}
