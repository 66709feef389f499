/* SPDX-License-Identifier: MIT */
/* The half of the port that runs. */
#define _GNU_SOURCE 1
#include "x86.h"
#include <ucontext.h>

const struct isa *const arch_isa = &isa_x86_64;

uint64_t arch_clock(void)
{
	return __builtin_ia32_rdtsc();
}

uintptr_t arch_thread_pointer(void)
{
	uintptr_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp)); /* psABI: the first word of the TCB is its address */
	return tp;
}

const bool arch_slot_in_memory = true;
const unsigned arch_saved_return = 0;

bool arch_is_return_point(const void *code)
{
	uint64_t first;

	memcpy(&first, code, sizeof(first));
	return first == X86_RETURN_MARK;
}

uint64_t arch_argument(const struct slow_frame *frame, unsigned n)
{
	return ((const uint64_t *)(frame + 1))[n ? X86_SAVED_RSI : X86_SAVED_RDI];
}

uint64_t arch_trap_site(const void *context)
{
	const ucontext_t *uc = context;

	return (uint64_t)uc->uc_mcontext.gregs[REG_RIP] - 1; /* behind the int3 */
}

void arch_set_pc(void *context, uint64_t pc)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}

/* Unwinders and gdb know a signal frame by these very instructions. */
__asm__(".text\n.globl arch_signal_return\n.hidden arch_signal_return\n"
	".type arch_signal_return, @function\narch_signal_return:\n"
	"\tmov $15, %rax\n\tsyscall\n.size arch_signal_return, . - arch_signal_return\n");
