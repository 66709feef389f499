/* SPDX-License-Identifier: MIT */
/*
 * siglongjmp out of a handler that runs on an alternate stack, out of a handler of a fault, and out
 * of nested handlers. A frame left on an alternate stack is known to be gone when its place is used
 * again: the last one of each may be open at the end.
 *
 * expect: fault calls=40 returned=0 unwound=40
 * expect: on_segv calls=40 returned=0 left=40
 * expect: on_segv unwound>=39
 * expect: on_usr1 calls=20 returned=0 left=20
 * expect: on_usr2 calls=20 returned=0 left=20
 * expect: in_handler calls=80 returned=80
 * expect: plain calls=60 returned=60
 */
#define _GNU_SOURCE
#include "target.h"

#include <setjmp.h>
#include <signal.h>

static sigjmp_buf env;
static char alt_stack[65536];
static int *volatile nowhere;

static NOIPA void plain(void)
{
	HIT();
}

static NOIPA void in_handler(void)
{
	HIT();
}

static NOIPA void on_segv(int number)
{
	HIT();
	in_handler();
	siglongjmp(env, number);
}

static NOIPA void on_usr2(int number)
{
	HIT();
	in_handler();
	siglongjmp(env, number);
}

static NOIPA void on_usr1(int number)
{
	HIT();
	in_handler();
	raise(SIGUSR2);
}

static NOIPA int fault(int depth)
{
	HIT();
	return depth ? OPAQUE(fault)(depth - 1) + 1 : *nowhere;
}

int main(void)
{
	stack_t stack = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};
	struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};

	CHECK(sigaltstack(&stack, NULL) == 0);
	sigaction(SIGSEGV, &action, NULL);
	action.sa_handler = on_usr1;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = on_usr2;
	action.sa_flags = 0;
	sigaction(SIGUSR2, &action, NULL);
	for (volatile int i = 0; i < 40; i++) {
		if (sigsetjmp(env, 1) == 0)
			fault(0);
		plain();
	}
	for (volatile int i = 0; i < 20; i++) {
		if (sigsetjmp(env, 1) == 0)
			raise(SIGUSR1);
		plain();
	}
	hits("");
	return 0;
}
