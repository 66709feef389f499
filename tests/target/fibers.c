/* SPDX-License-Identifier: MIT */
/*
 * Fibers switched by hand, with stacks carved out of the thread's own stack (above live frames and
 * below them), out of static memory and out of the heap; and a signal stack inside the own stack.
 * Fibers inside the own stack are gone when the frame that held them returns.
 *
 * flags: -O2
 * flags: -O0
 * flags: clang -O2
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
#include <string.h>

#define STACK 32768
#define TURNS 100

/*
 * Save callee-saved registers, store the stack pointer in *from, go on with the stack @to. What is on
 * a stack meanwhile: FRAME words, and behind them those that were the caller's; word ENTRY is where
 * it goes on. Vectors and floating-point registers are not in use here.
 */
void switch_stack(void **from, void *to);
#if defined(__x86_64__)
#define FRAME  6
#define BEHIND 2
#define ENTRY  6
__asm__(".text\n.globl switch_stack\n.type switch_stack, @function\nswitch_stack:\n\t"
	"push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
	"mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n"
	".size switch_stack, .-switch_stack\n");
#elif defined(__aarch64__)
#define FRAME  12
#define BEHIND 0
#define ENTRY  1
__asm__(".text\n.globl switch_stack\n.type switch_stack, %function\nswitch_stack:\n\t"
	"stp x29, x30, [sp, #-96]!\n\tstp x19, x20, [sp, #16]\n\tstp x21, x22, [sp, #32]\n\t"
	"stp x23, x24, [sp, #48]\n\tstp x25, x26, [sp, #64]\n\tstp x27, x28, [sp, #80]\n\t"
	"mov x9, sp\n\tstr x9, [x0]\n\tmov sp, x1\n\t"
	"ldp x27, x28, [sp, #80]\n\tldp x25, x26, [sp, #64]\n\tldp x23, x24, [sp, #48]\n\t"
	"ldp x21, x22, [sp, #32]\n\tldp x19, x20, [sp, #16]\n\tldp x29, x30, [sp], #96\n\tret\n"
	".size switch_stack, .-switch_stack\n");
#else
#define FRAME  22
#define BEHIND 12
#define ENTRY  (FRAME + 2)
/* r12: a function that is entered so computes r2 from it. */
__asm__(".text\n.globl switch_stack\n.type switch_stack, @function\nswitch_stack:\n\t"
	"mflr 0\n\tstd 0, 16(1)\n\tmfcr 0\n\tstd 0, 8(1)\n\tstdu 1, -176(1)\n\t"
	".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
	"std \\n, (\\n - 10) * 8(1)\n\t.endr\n\t"
	"std 1, 0(3)\n\tmr 1, 4\n\t"
	".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
	"ld \\n, (\\n - 10) * 8(1)\n\t.endr\n\t"
	"addi 1, 1, 176\n\tld 0, 8(1)\n\tmtcrf 0x38, 0\n\tld 0, 16(1)\n\tmtlr 0\n\tmr 12, 0\n\tblr\n"
	".size switch_stack, .-switch_stack\n");
#endif

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
	void **top = (void **)(((unsigned long)memory + STACK) & ~63ul) - FRAME - BEHIND;

	memset(top, 0, (FRAME + BEHIND) * sizeof(*top));
	top[ENTRY] = (void *)fiber_main; /* the first switch returns into it */
	fiber_stack[number] = top;
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
