/* SPDX-License-Identifier: MIT */
/*
 * Functions that others have jumped to are left in all ways: by return, longjmp, an exception, the end of the
 * thread. Those that have jumped had returned before.
 *
 * flags: -O2 -pthread
 * flags: -O2 -pthread -fno-pie -no-pie
 * expect: first calls=3020 returned=3020
 * expect: second calls=3020 returned=3020
 * expect: last calls=3020 returned=1000 unwound=2020
 * expect: catches calls=1000
 */
#include "target.h"

#include <pthread.h>
#include <setjmp.h>

enum kind { RETURNS, JUMPS, THROWS, EXITS };

static jmp_buf back;

static NOIPA long last(enum kind kind, long n)
{
	HIT();
	if (kind == JUMPS)
		longjmp(back, 1);
	if (kind == THROWS)
		throw n;
	if (kind == EXITS)
		pthread_exit((void *)n);
	return n + 1;
}

static NOIPA long second(enum kind kind, long n)
{
	HIT();
	return last(kind, n + 1);
}

static NOIPA long first(enum kind kind, long n)
{
	HIT();
	return second(kind, n + 1);
}

static NOIPA long catches(long n)
{
	HIT();
	try {
		return first(THROWS, n);
	} catch (long thrown) {
		return thrown;
	}
}

static void *thread(void *)
{
	return (void *)first(EXITS, 5);
}

int main(void)
{
	for (volatile long i = 0; i < 1000; i++) {
		CHECK(first(RETURNS, i) == i + 3);
		if (!setjmp(back))
			first(JUMPS, i);
		CHECK(catches(i) == i + 2);
	}
	for (int i = 0; i < 20; i++) {
		pthread_t id;
		void *result;

		CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
		CHECK(pthread_join(id, &result) == 0 && (long)result == 7);
	}
	hits("");
	return 0;
}
