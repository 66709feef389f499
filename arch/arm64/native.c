/* SPDX-License-Identifier: MIT */
/* The half of the port that runs. */
#define _GNU_SOURCE 1
#include "a64.h"
#include <ucontext.h>

const struct isa *const arch_isa = &isa_arm64;

uint64_t arch_clock(void)
{
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
}

uintptr_t arch_thread_pointer(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

const bool arch_slot_in_memory = false;
const unsigned arch_saved_return = 0;

bool arch_is_return_point(const void *code)
{
	uint64_t first;

	memcpy(&first, code, sizeof(first));
	return first == A64_RETURN_MARK;
}

uint64_t arch_argument(const struct slow_frame *frame, unsigned n)
{
	return ((const uint64_t *)(frame + 1))[n];
}

uint64_t arch_trap_site(const void *context)
{
	const ucontext_t *uc = context;

	return uc->uc_mcontext.pc; /* of the brk itself */
}

void arch_set_pc(void *context, uint64_t pc)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.pc = pc;
}

/* Unwinders know a signal frame by these very instructions. */
__asm__(".text\n.globl arch_signal_return\n.hidden arch_signal_return\n"
	".type arch_signal_return, @function\n"
	"\tnop\n" /* unwinders look up the address before */
	"arch_signal_return:\n"
	"\tmov x8, #139\n\tsvc #0\n.size arch_signal_return, . - arch_signal_return\n");
