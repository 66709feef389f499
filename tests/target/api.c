/* SPDX-License-Identifier: MIT */
/*
 * The program reads its own counts, by include/ftr/ftr.h: during calls, on several threads, in a
 * forked child, of functions that are not traced.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * flags: clang -O2 -pthread
 * expect: work calls=4001
 * expect: leaves calls=10 unwound=10
 * expect: child:work calls=5
 */
#include "target.h"

#define FTR_WEAK
#include "../../include/ftr/ftr.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static jmp_buf env;

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void leaves(void)
{
	HIT();
	longjmp(env, 1);
}

static void *thread_main(void *arg)
{
	for (int i = 0; i < 1000; i++)
		work();
	return arg;
}

/* Untraced the functions are not there, and everything is as it should be. */
static int counted(const void *function, uint64_t calls, uint64_t unwound)
{
	struct ftr_counts c;

	if (!ftr_read_counts)
		return 1;
	return ftr_read_counts(function, &c) == 0 && c.calls == calls && c.unwound == unwound
		&& c.returned == calls - unwound;
}

int main(void)
{
	struct ftr_counts c;
	pthread_t threads[4];
	int status;

	CHECK(counted((void *)work, 0, 0));
	work();
	CHECK(counted((void *)work, 1, 0));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, thread_main, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(counted((void *)work, 4001, 0));
	for (volatile int i = 0; i < 10; i++)
		if (!setjmp(env))
			leaves();
	if (fork() == 0) {
		for (int i = 0; i < 5; i++)
			work();
		_exit(counted((void *)work, 5, 0) ? 0 : 1);
	}
	CHECK(wait(&status) > 0 && status == 0);
	if (ftr_read_counts) {
		CHECK(ftr_read_counts(&env, &c) == -ENOENT && c.calls == 0);
		CHECK(ftr_read_counts((void *)work, NULL) == -EINVAL);
		CHECK(ftr_version && ftr_version()[0]);
	}
	hits("");
	return 0;
}
