/* SPDX-License-Identifier: MIT */
/*
 * A signal after each instruction of a call that ends in a jump to another function, in turn. Its
 * handler makes such a call, too; and in a second series leaves by a longjmp. A third series
 * checks that nothing is left behind.
 *
 * flags: -O2
 * flags: clang -O2
 * needs: x86_64 kernel
 * expect: outer calls>=3000 returned>=2400 unwound>=10
 * expect: jumps calls>=2700 returned>=2400 unwound>=10
 * expect: after calls>=2700 returned>=2400 unwound>=10
 * expect: whole calls=600 returned=600
 */
#define _GNU_SOURCE
#include "target.h"

#include <setjmp.h>
#include <signal.h>

enum { ROUNDS = 600 };

static int steps; /* until the handler acts; negative: it does not */
static int leave; /* how: by a longjmp */
static sigjmp_buf back;

static NOIPA int after(int x)
{
	return x + 1;
}

static NOIPA int jumps(int x)
{
	return after(2 * x);
}

static NOIPA int outer(int x)
{
	return jumps(x + 3);
}

/* From start to end: its record tells what the series are about. */
static NOIPA int whole(int x)
{
	HIT();
	return OPAQUE(outer)(x) + 1;
}

static void on_step(int signal)
{
	(void)signal;
	if (steps < 0 || steps-- > 0)
		return;
	if (leave)
		siglongjmp(back, 1);
	CHECK(OPAQUE(outer)(7) == 21);
}

#define TRAP 0x100ul /* EFLAGS.TF: a SIGTRAP after each instruction */

static NOIPA void stepped_call(unsigned long trap)
{
	int (*call)(int) = OPAQUE(outer), result, x = 5;

	__asm__ volatile(
		"subq $128, %%rsp; pushfq; orq %2, (%%rsp); popfq; call *%3; pushfq; andq $~0x100, (%%rsp); "
		"popfq; addq $128, %%rsp"
		: "=a"(result), "+D"(x)
		: "r"(trap), "r"(call)
		: "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	CHECK(result == 17);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_step };

	sigaction(SIGTRAP, &action, NULL);
	for (leave = 0; leave < 2; leave++)
		for (volatile int round = 0; round < ROUNDS; round++) {
			steps = round;
			if (!sigsetjmp(back, 1))
				stepped_call(TRAP);
			steps = -1;
			stepped_call(0); /* takes the place of what was left, in as many steps as it needs */
		}
	for (int i = 0; i < ROUNDS; i++)
		CHECK(whole(1) == 10);
	hits("");
	return 0;
}
