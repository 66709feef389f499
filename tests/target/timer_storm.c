/* SPDX-License-Identifier: MIT */
/*
 * A timer signal every few microseconds whose handler calls traced functions, over a main program
 * that does nothing but call traced functions.
 *
 * expect: leaf calls=6000000
 * expect: middle calls=3000000
 * expect: in_handler calls=2000
 * expect: on_timer calls>=2000
 * expect: below_handler calls=12000
 */
#define _GNU_SOURCE
#include "target.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define SIGNALS 2000

static volatile int taken;

static NOIPA int below_handler(int n)
{
	HIT();
	return n ? OPAQUE(below_handler)(n - 1) + 1 : 0;
}

static NOIPA void in_handler(void)
{
	HIT();
	below_handler(5);
}

static NOIPA void on_timer(int number)
{
	struct itimerval off = {{0, 0}, {0, 0}};

	/* one more may have been pending when the timer was stopped */
	if (taken == SIGNALS)
		return;
	in_handler();
	if (++taken == SIGNALS)
		setitimer(ITIMER_REAL, &off, NULL);
}

static NOIPA long leaf(long x)
{
	HIT();
	return x + 1;
}

static NOIPA long middle(long x)
{
	HIT();
	return leaf(x) + leaf(x + 2);
}

int main(void)
{
	struct itimerval soon = {{0, 20}, {0, 20}};
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	long sum = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (long i = 0; i < 3000000; i++)
		sum += middle(i);
	while (taken < SIGNALS)
		pause();
	printf("%ld\n", sum);
	hits("");
	return 0;
}
