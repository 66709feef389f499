/* SPDX-License-Identifier: MIT */
/* The half of the port that runs. */
#define _GNU_SOURCE 1
#include "powerpc.h"
#include <asm/ptrace.h>
#include <errno.h>
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

bool arch_has_saved(uint64_t slot, uint64_t point, struct arch_frames *frames)
{
	(void)frames;
	return ((const uint64_t *)slot)[2] == point; /* ELFv2 ABI, 2.2.2.1 */
}

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

uint64_t arch_pc(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.gp_regs[PT_NIP];
}

uint64_t arch_sp(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.gp_regs[PT_R1];
}

void arch_set_pc(void *context, uint64_t pc)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gp_regs[PT_NIP] = pc;
}

/* ---- places inside functions: hit.S ---- */

_Static_assert(sizeof(struct arch_hit) == 288 && offsetof(struct arch_hit, site) == 272,
	"hit.S knows the layout");

void hit_stub(void);
void (*const arch_hit_stub)(void) = hit_stub;

bool arch_hit_prepare(void)
{
	return true;
}

/* f0 to f31 are the first halves of vs0 to vs31. */
bool arch_hit_vector(const void *kept, unsigned number, uint64_t *value)
{
	if (number < 32)
		memcpy(value, (const uint8_t *)kept + 16 * number, sizeof(*value));
	return number < 32;
}

const uint8_t arch_code_unit = 4;
const uint8_t arch_breakpoint[] = { 0x08, 0x00, 0xe0, 0x7f }; /* trap */

/* Branches of I form and the preferred nop: Power ISA, Book II, 1.8.1, the "patch class". */
static bool may_change(const uint8_t *code)
{
	uint32_t insn;

	memcpy(&insn, code, sizeof(insn));
	return (insn & 0xfc000000) == 0x48000000 || insn == 0x60000000;
}

bool arch_may_replace(const struct isa_patch *patch, const uint8_t *old)
{
	return patch->len == arch_code_unit && may_change(patch->bytes) && may_change(old);
}

const bool arch_flushes = true;

/* gcc 12's __builtin___clear_cache does nothing here. */
void arch_flush(uint64_t lo, uint64_t hi)
{
	const uint64_t line = 32; /* none is shorter */

	lo &= -line;
	for (uint64_t at = lo; at < hi; at += line)
		__asm__ volatile("dcbst 0,%0" : : "r"(at) : "memory");
	__asm__ volatile("sync" : : : "memory");
	for (uint64_t at = lo; at < hi; at += line)
		__asm__ volatile("icbi 0,%0" : : "r"(at) : "memory");
	__asm__ volatile("sync; isync" : : : "memory");
}

bool arch_call_ends(const uint8_t *code, unsigned n)
{
	(void)code;
	(void)n;
	return true;
}

/* gp_regs: r1, then NIP, MSR (64-bit, user, little-endian), the trap's number. */
uint64_t arch_saved_sp(const uint64_t *words)
{
	const uint64_t user = 0x8000000000004001;
	bool is_msr = (words[PT_MSR - PT_R1] & user) == user;

	return is_msr && words[PT_TRAP - PT_R1] < 0x1000 ? words[0] : 0;
}

/* sc says that it failed in CR0.SO; scv gives a negative result. */
bool arch_ended_call(const void *context, uint64_t state[ARCH_CALL_STATE])
{
	const mcontext_t *mc = &((const ucontext_t *)context)->uc_mcontext;
	int64_t result = (int64_t)mc->gp_regs[PT_R3];

	for (unsigned i = 0; i < 6; i++)
		state[i] = mc->gp_regs[PT_R3 + i];
	state[6] = mc->gp_regs[PT_R1];
	state[7] = mc->gp_regs[PT_NIP];
	return result == -EINTR || (result == EINTR && mc->gp_regs[PT_CCR] & 0x10000000);
}

void arch_restart_call(void *context, long number, uint64_t first_argument)
{
	mcontext_t *mc = &((ucontext_t *)context)->uc_mcontext;

	mc->gp_regs[PT_R0] = (unsigned long)number;
	mc->gp_regs[PT_R3] = first_argument;
	mc->gp_regs[PT_NIP] -= 4;
}

/* The kernel has handlers return to code of its own; this is for completeness. */
__asm__(".text\n.globl arch_signal_return\n.hidden arch_signal_return\n"
	".type arch_signal_return, @function\narch_signal_return:\n"
	"\tli 0, 172\n\tsc\n.size arch_signal_return, . - arch_signal_return\n");
