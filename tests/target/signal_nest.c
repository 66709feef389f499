/* SPDX-License-Identifier: MIT */
/*
 * A handler that is interrupted by its own signal, a thousand deep.
 *
 * expect: on_signal calls=3000
 * expect: inner calls=6000
 */
#define _GNU_SOURCE
#include "target.h"

#include <signal.h>

static volatile int depth;

static NOIPA void inner(void)
{
	HIT();
}

static NOIPA void on_signal(int number)
{
	HIT();
	inner();
	if (--depth > 0)
		raise(number);
	inner();
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 3; i++) {
		depth = 1000;
		raise(SIGUSR1);
	}
	hits("");
	return 0;
}
