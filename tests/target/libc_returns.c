/* SPDX-License-Identifier: MIT */
/*
 * The C library has a personality routine and opens its unwinder at run time: the returns of its
 * functions are seen, and forced unwinding passes them.
 *
 * env: FTR_MODULES=libc.so*
 * env: FTR_FUNCTIONS=getppid,qsort,pause
 * flags: -O2 -pthread
 * expect: getppid calls=3 returned=3
 * expect: qsort calls=1 returned=1
 * expect: pause calls=1 unwound=1
 */
#include "target.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long getppid_calls, qsort_calls, pause_calls;
static int ready[2], cancelled[2];

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *wait_to_be_cancelled(void *unused)
{
	char byte;

	(void)unused;
	/*
	 * The request is there before the call: one that comes during the call comes as a signal, whose
	 * frame not every emulator lays out so that unwinders know it.
	 */
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	CHECK(write(ready[1], "", 1) == 1 && read(cancelled[0], &byte, 1) == 1);
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	pause_calls++;
	pause();
	return NULL;
}

int main(void)
{
	int numbers[] = { 3, 1, 2 };
	pthread_t thread;
	void *result;
	char byte;

	for (int i = 0; i < 3; i++) {
		getppid_calls++;
		CHECK(getppid() > 0);
	}
	qsort_calls++;
	qsort(numbers, 3, sizeof(int), by_value);
	CHECK(numbers[0] == 1 && numbers[2] == 3);
	CHECK(!pipe(ready) && !pipe(cancelled));
	CHECK(!pthread_create(&thread, NULL, wait_to_be_cancelled, NULL));
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(!pthread_cancel(thread) && write(cancelled[1], "", 1) == 1);
	CHECK(!pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
	printf("calls getppid %lu\ncalls qsort %lu\ncalls pause %lu\n", getppid_calls, qsort_calls,
		pause_calls);
	return 0;
}
