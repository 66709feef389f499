/* SPDX-License-Identifier: MIT */
/*
 * Timer signals whose handlers jump out of wherever the program is, so also out of half-made
 * entries and exits; some handlers run on an alternate stack. The calls interrupted are up to
 * chance, those made after each jump are not.
 *
 * expect: after calls=4000 returned=4000
 * expect: on_timer calls=2000 left=2000
 */
#define _GNU_SOURCE
#include "target.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf env;
static char alt_stack[65536];
static volatile int spin = 1;

static NOIPA void after(void)
{
	HIT();
}

static NOIPA void on_timer(int number)
{
	HIT();
	siglongjmp(env, 1);
}

static NOIPA long leaf(long x)
{
	return x + spin;
}

static NOIPA long middle(long x)
{
	return OPAQUE(leaf)(x) + OPAQUE(leaf)(x + 2);
}

static NOIPA long outer(long x)
{
	return x ? OPAQUE(outer)(x - 1) + OPAQUE(middle)(x) : 0;
}

static NOIPA void round_of(int flags)
{
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = flags};
	struct itimerval soon = {{0, 0}, {0, 0}};

	sigaction(SIGALRM, &action, NULL);
	for (volatile int i = 0; i < 1000; i++) {
		if (sigsetjmp(env, 1) == 0) {
			soon.it_value.tv_usec = 20 + i % 17;
			setitimer(ITIMER_REAL, &soon, NULL);
			while (spin)
				outer(20);
		}
		after();
		after();
	}
}

int main(void)
{
	stack_t stack = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};

	CHECK(sigaltstack(&stack, NULL) == 0);
	round_of(0);
	round_of(SA_ONSTACK);
	hits("");
	return 0;
}
