/* SPDX-License-Identifier: MIT */
/*
 * A handler that changes where the program goes on: it lets the interrupted code call a traced
 * function, as preemptive run-time systems do, or skips the faulting instruction.
 *
 * flags: -O2 -mno-red-zone
 * flags: -O0 -mno-red-zone
 * needs: x86_64
 * expect: injected calls=50
 * expect: on_signal calls=100
 * expect: faults calls=100
 */
#define _GNU_SOURCE
#include "target.h"

#include <signal.h>
#include <ucontext.h>

static volatile int inject;

/* Called with nothing saved: keeps every register itself. */
void injected(void);
extern unsigned long injected_calls;
__asm__(".text\n.globl injected\n.type injected, @function\n"
	"injected:\n\tpushf\n\tincq injected_calls(%rip)\n\tpopf\n\tret\n.size injected, .-injected\n"
	".bss\n.globl injected_calls\ninjected_calls: .zero 8\n.text\n");

static NOIPA void on_signal(int number, siginfo_t *info, void *arg)
{
	ucontext_t *context = arg;
	greg_t *regs = context->uc_mcontext.gregs;

	HIT();
	regs[REG_RIP] += 2; /* the length of ud2 */
	if (inject) {
		/* a call from there; there is no red zone */
		regs[REG_RSP] -= 8;
		*(greg_t *)regs[REG_RSP] = regs[REG_RIP];
		regs[REG_RIP] = (greg_t)injected;
	}
}

static NOIPA int faults(int x)
{
	HIT();
	__asm__ volatile("ud2");
	return x + 1;
}

int main(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};
	long sum = 0;

	action.sa_sigaction = on_signal;
	sigaction(SIGILL, &action, NULL);
	for (int i = 0; i < 100; i++) {
		inject = i % 2;
		sum += faults(i);
	}
	printf("%ld\ncalls injected %lu\n", sum, injected_calls);
	hits("");
	return 0;
}
