/* SPDX-License-Identifier: MIT */
/* The half of the port that runs. */
#define _GNU_SOURCE 1
#include "a64.h"
#include <errno.h>
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

/* A return address without what it may have been signed with. */
static uint64_t plain(uint64_t address)
{
	register uint64_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri */
	return x30;
}

/* Does it look like the x29 of a frame record at @record? */
static bool leads_up(uint64_t x29, uint64_t record, const struct arch_frames *f)
{
	return x29 > record && x29 < f->top && x29 % 8 == 0;
}

/*
 * A function may save it anywhere in its frame. So that what frames have left behind is not taken for
 * it: with an x29 beside it it is a frame record (AAPCS64, 6.4.6), and counts if that is in the chain.
 */
bool arch_has_saved(uint64_t slot, uint64_t point, struct arch_frames *f)
{
	for (uint64_t word = f->from; word < slot; word += 8) {
		uint64_t record = word - 8, x29 = *(const uint64_t *)record;

		if (!f->steps--)
			return true;
		if (plain(*(const uint64_t *)word) != point)
			continue;
		while (f->frame < record) {
			uint64_t next = *(const uint64_t *)f->frame;

			if (!leads_up(next, f->frame, f))
				return true; /* somebody uses x29 for something else */
			f->frame = next;
		}
		if (f->frame == record || !leads_up(x29, record, f)) {
			f->from = word;
			return true;
		}
	}
	return false;
}

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

uint64_t arch_pc(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.pc;
}

uint64_t arch_sp(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.sp;
}

void arch_set_pc(void *context, uint64_t pc)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.pc = pc;
}

/* ---- places inside functions: hit.S ---- */

_Static_assert(sizeof(struct arch_hit) == 288 && offsetof(struct arch_hit, site) == 272,
	"hit.S knows the layout");

size_t a64_vector_size(void); /* native_vectors.S */
void hit_stub(void);
void (*const arch_hit_stub)(void) = hit_stub;

bool arch_hit_prepare(void)
{
	arch_call_prepare();
	return true;
}

bool arch_hit_vector(const void *kept, unsigned number, uint64_t *value)
{
	if (number < 32)
		memcpy(value, (const uint8_t *)kept + number * a64_vector_size(), sizeof(*value));
	return number < 32;
}

const uint8_t arch_code_unit = 4;
const uint8_t arch_breakpoint[] = { 0x00, 0x00, 0x20, 0xd4 }; /* brk #0 */

/* B, BL, SVC, HVC, SMC, BRK, NOP: Arm ARM, on concurrent modification and execution. */
static bool may_change(const uint8_t *code)
{
	uint32_t insn;

	memcpy(&insn, code, sizeof(insn));
	return (insn & 0x7c000000) == 0x14000000 || (insn & 0xff000000) == 0xd4000000
		|| insn == 0xd503201f;
}

bool arch_may_replace(const struct isa_patch *patch, const uint8_t *old)
{
	return patch->len == arch_code_unit && may_change(patch->bytes) && may_change(old);
}

const bool arch_flushes = true;

void arch_flush(uint64_t lo, uint64_t hi)
{
	__builtin___clear_cache((char *)lo, (char *)hi);
}

bool arch_call_ends(const uint8_t *code, unsigned n)
{
	(void)code;
	(void)n;
	return true;
}

/* struct sigcontext: sp, pc, pstate, then on the next 16 bytes the head of the FPSIMD record. */
uint64_t arch_saved_sp(const uint64_t *words)
{
	return words[4] == 0x21046508001 ? words[0] : 0;
}

bool arch_ended_call(const void *context, uint64_t state[ARCH_CALL_STATE])
{
	const mcontext_t *mc = &((const ucontext_t *)context)->uc_mcontext;

	memcpy(state, mc->regs, 6 * sizeof(*state));
	state[6] = mc->sp;
	state[7] = mc->pc;
	return (int64_t)mc->regs[0] == -EINTR;
}

void arch_restart_call(void *context, long number, uint64_t first_argument)
{
	mcontext_t *mc = &((ucontext_t *)context)->uc_mcontext;

	mc->regs[0] = first_argument;
	mc->regs[8] = (uint64_t)number;
	mc->pc -= 4; /* back to the svc */
}

/* Unwinders know a signal frame by these very instructions. */
__asm__(".text\n.globl arch_signal_return\n.hidden arch_signal_return\n"
	".type arch_signal_return, @function\n"
	"\tnop\n" /* unwinders look up the address before */
	"arch_signal_return:\n"
	"\tmov x8, #139\n\tsvc #0\n.size arch_signal_return, . - arch_signal_return\n");
