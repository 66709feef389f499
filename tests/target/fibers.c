/* SPDX-License-Identifier: MIT */
/*
 * Fibers switched by hand, with stacks carved out of the thread's own stack (above live frames and
 * below them), out of static memory and out of the heap; and a signal stack inside the own stack.
 * Fibers inside the own stack are gone when the frame that held them returns.
 *
 * flags: -O2
 * flags: -O0
 * flags: clang -O2
 * needs: x86_64
 * stacks: several
 * expect: fiber_main calls=4 returned=0
 * expect: pass calls=400 returned=396
 * expect: inner calls=796
 * expect: outside calls=404
 * expect: on_signal calls=100
 * expect: frame_between calls=1
 */
#include "target.h"

#include <signal.h>

#define STACK 32768
#define TURNS 100

/* Save callee-saved registers, store the stack pointer in *from, go on with the stack @to. */
void switch_stack(void **from, void *to);
__asm__(".text\n.globl switch_stack\n.type switch_stack, @function\nswitch_stack:\n\t"
	"push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
	"mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n"
	".size switch_stack, .-switch_stack\n");

static void *main_stack, *fiber_stack[4];
static int current;

static NOIPA long inner(long x)
{
	HIT();
	return x + current;
}

static NOIPA void pass(void)
{
	HIT();
	switch_stack(&fiber_stack[current], main_stack);
	inner(1);
}

static NOIPA void fiber_main(void)
{
	HIT();
	for (;;) {
		inner(2);
		OPAQUE(pass)();
	}
}

static NOIPA void outside(void)
{
	HIT();
}

static void make(int number, char *memory)
{
	void **top = (void **)(((unsigned long)memory + STACK) & ~63ul);

	*--top = NULL;
	*--top = (void *)fiber_main; /* the first switch returns into it */
	fiber_stack[number] = top - 6;
}

static void run(int number)
{
	current = number;
	switch_stack(&main_stack, fiber_stack[number]);
	outside();
}

static NOIPA void on_signal(int number)
{
	HIT();
}

static NOIPA void frame_between(char *above)
{
	char below[STACK], signals[STACK];
	static char fixed[STACK];
	char *heap = malloc(STACK);
	stack_t stack = {.ss_sp = signals, .ss_size = sizeof(signals)};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	HIT();
	CHECK(sigaltstack(&stack, NULL) == 0);
	sigaction(SIGUSR1, &action, NULL);
	make(0, above);
	make(1, below);
	make(2, fixed);
	make(3, heap);
	for (int i = 0; i < TURNS; i++) {
		for (int j = 0; j < 4; j++)
			run((j + i) % 4);
		raise(SIGUSR1);
	}
	stack.ss_flags = SS_DISABLE;
	CHECK(sigaltstack(&stack, NULL) == 0);
}

int main(void)
{
	char above[STACK];

	OPAQUE(frame_between)(above);
	for (int i = 0; i < 4; i++)
		outside();
	hits("");
	return 0;
}
