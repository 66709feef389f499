/* SPDX-License-Identifier: MIT */
/*
 * Fibers that switch by _setjmp and _longjmp: a jump to another stack leaves nobody's frames.
 *
 * flags: -O2 -U_FORTIFY_SOURCE
 * flags: -O0
 * flags: clang -O2
 * stacks: several
 * expect: fiber calls=3 open=3
 * expect: deep calls=900 returned=891 open=9
 * expect: outside calls=300
 * expect: switch_to calls=300
 */
#include "target.h"

#include <setjmp.h>
#include <ucontext.h>

static jmp_buf main_env, env[3];
static ucontext_t main_context, context[3];
static char stacks[3][65536];

/* Go to the fiber and come back. */
static NOIPA void switch_to(int number)
{
	HIT();
	if (!_setjmp(main_env))
		_longjmp(env[number], 1);
}

static NOIPA int deep(int number, int n)
{
	int below;

	HIT();
	if (!n) {
		if (!_setjmp(env[number]))
			_longjmp(main_env, 1);
		return 0;
	}
	below = OPAQUE(deep)(number, n - 1) + 1;
	return below;
}

static NOIPA void fiber(int number)
{
	HIT();
	if (!_setjmp(env[number]))
		swapcontext(&context[number], &main_context);
	for (;;)
		deep(number, 2);
}

static NOIPA void outside(void)
{
	HIT();
}

int main(void)
{
	for (volatile int i = 0; i < 3; i++) {
		getcontext(&context[i]);
		context[i].uc_stack.ss_sp = stacks[i];
		context[i].uc_stack.ss_size = sizeof(stacks[i]);
		makecontext(&context[i], (void (*)(void))fiber, 1, i);
		swapcontext(&main_context, &context[i]);
	}
	for (volatile int i = 0; i < 100; i++)
		for (volatile int j = 0; j < 3; j++) {
			switch_to(j);
			outside();
		}
	hits("");
	return 0;
}
