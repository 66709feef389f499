/* SPDX-License-Identifier: MIT */
/*
 * Recursion until the stack is full, caught on an alternate stack and left by siglongjmp; the fault
 * may come inside an entry as well.
 *
 * flags: -O0
 * flags: -O2
 * limit: stack 1048576
 * expect: after calls=20
 * expect: overflows calls=20
 * expect: on_segv calls=20 left=20
 */
#define _GNU_SOURCE
#include "target.h"

#include <setjmp.h>
#include <signal.h>

static sigjmp_buf env;
static char alt_stack[65536];

static NOIPA void after(void)
{
	HIT();
}

static NOIPA void on_segv(int number)
{
	HIT();
	siglongjmp(env, 1);
}

static NOIPA long down(long n)
{
	return OPAQUE(down)(n + 1) + n;
}

static NOIPA void overflows(void)
{
	HIT();
	if (sigsetjmp(env, 1) == 0)
		down(0);
}

int main(void)
{
	stack_t stack = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};
	struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};

	CHECK(sigaltstack(&stack, NULL) == 0);
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 20; i++) {
		overflows();
		after();
	}
	hits("");
	return 0;
}
