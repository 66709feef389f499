/* SPDX-License-Identifier: MIT */
/* The half of the port that runs. */
#define _GNU_SOURCE 1
#include "powerpc.h"
#include <asm/ptrace.h>
#include <ucontext.h>

const struct isa *const arch_isa = &isa_powerpc;

uint64_t arch_clock(void)
{
	uint64_t now;

	__asm__ volatile("mfspr %0, 268" : "=r"(now)); /* TB */
	return now;
}

uintptr_t arch_thread_pointer(void)
{
	uintptr_t tp;

	__asm__("mr %0, 13" : "=r"(tp));
	return tp;
}

/* The callee decides whether and when it stores LR in its caller's frame. */
const bool arch_slot_in_memory = false;
const unsigned arch_saved_return = 16; /* ELFv2 ABI, 2.2.2.1 */

/* Detours contain no other call than the one right before the return point. */
bool arch_is_return_point(const void *code)
{
	uint32_t before;

	memcpy(&before, (const uint8_t *)code - 4, sizeof(before));
	return (before & 0xfc000003) == 0x48000001;
}

uint64_t arch_argument(const struct slow_frame *frame, unsigned n)
{
	return ((const uint64_t *)(frame + 1))[PPC_SAVED_R3 + n];
}

uint64_t arch_trap_site(const void *context)
{
	const ucontext_t *uc = context;

	return uc->uc_mcontext.gp_regs[PT_NIP];
}

void arch_set_pc(void *context, uint64_t pc)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gp_regs[PT_NIP] = pc;
}

/* The kernel has handlers return to code of its own; this is for completeness. */
__asm__(".text\n.globl arch_signal_return\n.hidden arch_signal_return\n"
	".type arch_signal_return, @function\narch_signal_return:\n"
	"\tli 0, 172\n\tsc\n.size arch_signal_return, . - arch_signal_return\n");
