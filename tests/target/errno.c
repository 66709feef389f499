/* SPDX-License-Identifier: MIT */
/*
 * errno, the floating-point environment, the signal mask and the direction of things stay as they
 * were over traced calls, the first of each thread included.
 *
 * flags: -O2 -pthread -frounding-math -lm
 * flags: -O0 -pthread -frounding-math -lm
 * expect: touch calls=5000
 * expect: check calls=50
 */
#include "target.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

static NOIPA void touch(void)
{
	HIT();
}

static NOIPA void check(void)
{
	sigset_t before, after;
	volatile double one = 1, ten = 10;
	double up;

	HIT();
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	fesetround(FE_UPWARD);
	feclearexcept(FE_ALL_EXCEPT);
	up = one / ten;
	feclearexcept(FE_ALL_EXCEPT);
	for (int i = 0; i < 100; i++) {
		errno = 1000 + i;
		touch();
		CHECK(errno == 1000 + i);
	}
	CHECK(fetestexcept(FE_ALL_EXCEPT) == 0);
	CHECK(fegetround() == FE_UPWARD && one / ten == up);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	CHECK(sigismember(&after, SIGUSR2) && !sigismember(&after, SIGSEGV) &&
		!sigismember(&after, SIGTRAP));
	fesetround(FE_TONEAREST);
}

static void *thread_main(void *arg)
{
	check();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	check();
	for (int i = 0; i < 49; i++) {
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_join(thread, NULL);
	}
	hits("");
	return 0;
}
