/* SPDX-License-Identifier: MIT */
/*
 * A signal handler throws, and the exception crosses the signal frame into the code that faulted.
 *
 * flags: -O0 -fnon-call-exceptions
 * flags: -O2 -fnon-call-exceptions
 * flags: -O2 -fnon-call-exceptions -fno-pie -no-pie
 * needs: x86_64 gcc
 * expect: on_signal calls=50 returned=0 unwound=50
 * expect: fault calls=50 returned=0 unwound=50
 * expect: catch_fault calls=50
 * expect: plain calls=50
 */
#include "target.h"

#include <signal.h>

static int *volatile nowhere;

static NOIPA void plain(void)
{
	HIT();
}

static NOIPA void on_signal(int number)
{
	sigset_t set;

	HIT();
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	throw number;
}

static NOIPA int fault(int x)
{
	HIT();
	return *nowhere + x;
}

static NOIPA int catch_fault(void)
{
	HIT();
	try {
		return fault(1);
	} catch (int number) {
		plain();
		return number;
	}
}

int main()
{
	struct sigaction action = {};
	int sum = 0;

	action.sa_handler = on_signal;
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 50; i++)
		sum += catch_fault();
	printf("%d\n", sum);
	hits("");
	return 0;
}
