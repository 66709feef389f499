/* SPDX-License-Identifier: MIT */
/* The half of the port that runs. */
#define _GNU_SOURCE 1
#include "x86.h"
#include <cpuid.h>
#include <errno.h>
#include <ucontext.h>

const struct isa *const arch_isa = &isa_x86_64;

uint64_t arch_clock(void)
{
	return __builtin_ia32_rdtsc();
}

const bool arch_slot_in_memory = true;

bool arch_has_saved(uint64_t slot, uint64_t point, struct arch_frames *frames)
{
	(void)slot;
	(void)point;
	(void)frames;
	return true;
}

bool arch_is_return_point(const void *code)
{
	uint64_t first;

	memcpy(&first, code, sizeof(first));
	return first == X86_RETURN_MARK;
}

uint64_t arch_argument(const struct slow_frame *frame, unsigned n)
{
	static const int places[] = { X86_SAVED_RDI, X86_SAVED_RSI, 0, 0, X86_SAVED_R8, X86_SAVED_R9 };

	if (n == 2 || n == 3)
		return *(const uint64_t *)(frame->slot + (n == 2 ? X86_SAVE_RDX : X86_SAVE_RCX));
	return ((const uint64_t *)(frame + 1))[places[n]];
}

uint64_t arch_trap_site(const void *context)
{
	const ucontext_t *uc = context;

	return (uint64_t)uc->uc_mcontext.gregs[REG_RIP] - 1; /* behind the int3 */
}

uint64_t arch_pc(const void *context)
{
	return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

uint64_t arch_sp(const void *context)
{
	return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
}

void arch_set_pc(void *context, uint64_t pc)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}

/* ---- places inside functions: hit.S ---- */

extern uint32_t hit_mask;
uint32_t hit_mask; /* state components that the stub keeps: x87, SSE, AVX, MPX, AVX-512 */
void hit_stub(void);
void (*const arch_hit_stub)(void) = hit_stub;

bool arch_hit_prepare(void)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	hit_mask = a & 0xff;
	return true;
}

/* XSAVE's area: XMM0 to 15 are in its legacy part, and all 0 where the header says so (SDM volume 1,
 * 13.4). */
bool arch_hit_vector(const void *kept, unsigned number, uint64_t *value)
{
	const uint8_t *area = kept;

	*value = 0;
	if (number < 16 && area[512] & 2)
		memcpy(value, area + 160 + 16 * number, sizeof(*value));
	return number < 16;
}

/* ---- replacing code ---- */

const uint8_t arch_code_unit = 1;
const uint8_t arch_breakpoint[] = { 0xcc };

bool arch_may_replace(const struct isa_patch *patch, const uint8_t *old)
{
	(void)patch;
	(void)old;
	return true;
}

const bool arch_flushes = false;

void arch_flush(uint64_t lo, uint64_t hi)
{
	(void)lo;
	(void)hi;
}

/* E8 with four bytes of displacement; FF /2 with up to five bytes behind (SDM volume 2, CALL). */
bool arch_call_ends(const uint8_t *code, unsigned n)
{
	if (n >= 5 && code[n - 5] == 0xe8)
		return true;
	for (unsigned size = 2; size <= 7 && size <= n; size++)
		if (code[n - size] == 0xff && (code[n - size + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

/* sigcontext: rsp, rip, eflags, then cs (0x33 in 64-bit mode), gs and fs (0), ss. */
uint64_t arch_saved_sp(const uint64_t *words)
{
	bool flags = (words[2] & 0xffffffffffc00202ull) == 0x202; /* bit 1 is always set, IF in user mode */
	bool segments = (words[3] & 0xffffffffffffull) == 0x33;

	return flags && segments ? words[0] : 0;
}

bool arch_ended_call(const void *context, uint64_t state[ARCH_CALL_STATE])
{
	static const uint8_t order[ARCH_CALL_STATE] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8,
		REG_R9, REG_RSP, REG_RIP };
	const greg_t *regs = ((const ucontext_t *)context)->uc_mcontext.gregs;

	for (unsigned i = 0; i < ARCH_CALL_STATE; i++)
		state[i] = (uint64_t)regs[order[i]];
	return regs[REG_RAX] == -EINTR;
}

void arch_restart_call(void *context, long number, uint64_t first_argument)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	regs[REG_RDI] = (greg_t)first_argument;
	regs[REG_RAX] = number;
	regs[REG_RIP] -= 2; /* back to the syscall instruction */
}

/* Unwinders and gdb know a signal frame by these very instructions. */
__asm__(".text\n.globl arch_signal_return\n.hidden arch_signal_return\n"
	".type arch_signal_return, @function\narch_signal_return:\n"
	"\tmov $15, %rax\n\tsyscall\n.size arch_signal_return, . - arch_signal_return\n");
