/* SPDX-License-Identifier: MIT */
/*
 * Timer signals while functions jump to each other. Handlers do so, too, and return or jump out of wherever the
 * program is. Which calls are interrupted is up to chance, the numbers of those made after it are not.
 *
 * flags: -O2
 * flags: -O2 -fno-pie -no-pie
 * expect: whole calls=2000
 * expect: jumps calls>=4000
 * expect: after calls>=4000
 */
#define _GNU_SOURCE
#include "target.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf env;
static volatile int spin = 1, leave;

static NOIPA long after(long x)
{
	return x + 1;
}

static NOIPA long jumps(long x)
{
	return after(2 * x);
}

static NOIPA long whole(long x)
{
	HIT();
	return OPAQUE(jumps)(x) + OPAQUE(jumps)(x + 1);
}

static void on_timer(int number)
{
	(void)number;
	spin = 0;
	CHECK(OPAQUE(jumps)(7) == 15);
	if (leave)
		siglongjmp(env, 1);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval soon = { { 0, 0 }, { 0, 0 } };

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	for (volatile int i = 0; i < 2000; i++) {
		spin = 1;
		leave = i & 1;
		if (!sigsetjmp(env, 1)) {
			soon.it_value.tv_usec = 20 + i % 17;
			CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
			while (spin)
				CHECK(OPAQUE(jumps)(5) == 11);
		}
		CHECK(whole(3) == 16);
	}
	hits("");
	return 0;
}
