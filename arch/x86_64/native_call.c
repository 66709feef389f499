/* SPDX-License-Identifier: MIT */
/*
 * The registers of a call while its handlers run. Vector and floating-point registers are either
 * all put aside (arch_call_vectors()), in the format of XSAVE, or stay where they are until one of
 * them is asked for, and then come to ftr_call.spill in the format of FXSAVE; the two begin alike
 * (Intel SDM volume 1, 10.5 and 13.4).
 */
#include "x86.h"
#include <cpuid.h>

/* In the legacy region. */
#define FX_CONTROL 0  /* x87 control word */
#define FX_STATUS  2  /* x87 status word: TOP in bits 11 to 13 */
#define FX_TAGS	   4  /* a bit for each register in use */
#define FX_MXCSR   24
#define FX_STACK   32 /* st0 to st7, 16 bytes each */
#define FX_VECTORS 160 /* xmm0 to xmm15 */
#define FX_SIZE	   512
#define XSTATE_BV  512 /* the header: which components are not in their initial state */

#define STATE_X87 1
#define STATE_SSE 2
#define STATE_ALL 0xe7 /* x87, SSE, AVX, and the three of AVX-512 */

#define INITIAL_CONTROL 0x37f
#define INITIAL_MXCSR	0x1f80

#define SPILLED_VECTORS 1
#define SPILLED_ALL	2

_Static_assert(offsetof(struct ftr_call, vectors) == 248
		&& offsetof(struct ftr_call, state.apart) == 257, "native_vectors.S knows the layout");

/* What native_vectors.S saves with. */
uint64_t x86_state_mask __attribute__((visibility("hidden"))); /* 0: FXSAVE */
uint64_t x86_state_size __attribute__((visibility("hidden"))) = FX_SIZE + 64;
uint64_t x86_state_compact __attribute__((visibility("hidden"))); /* XSAVEC is there */

static uint64_t enabled_states(void)
{
	uint32_t low, high;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low & STATE_ALL;
}

const bool arch_calls_handlers = true;

void arch_call_prepare(void)
{
	uint32_t a, b, c, d, end = FX_SIZE + 64;
	uint64_t mask;

	if (x86_state_mask || !__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	mask = enabled_states();
	for (uint32_t i = 2; i < 8; i++) {
		if (!(mask >> i & 1) || !__get_cpuid_count(0xd, i, &a, &b, &c, &d))
			continue;
		if (a + b > end) /* size and offset; compacted it is smaller */
			end = a + b;
	}
	x86_state_size = (end + 63) & ~63u;
	if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d))
		x86_state_compact = a >> 1 & 1;
	x86_state_mask = mask;
}

static void save_vectors(uint8_t *fx)
{
	__asm__ volatile("movups %%xmm0, 160(%0); movups %%xmm1, 176(%0)\n\t"
			 "movups %%xmm2, 192(%0); movups %%xmm3, 208(%0)\n\t"
			 "movups %%xmm4, 224(%0); movups %%xmm5, 240(%0)\n\t"
			 "movups %%xmm6, 256(%0); movups %%xmm7, 272(%0)" ::"r"(fx)
			 : "memory");
}

/* Upper halves stay as they are. */
static void load_vectors(const uint8_t *fx)
{
	__asm__ volatile("movups 160(%0), %%xmm0; movups 176(%0), %%xmm1\n\t"
			 "movups 192(%0), %%xmm2; movups 208(%0), %%xmm3\n\t"
			 "movups 224(%0), %%xmm4; movups 240(%0), %%xmm5\n\t"
			 "movups 256(%0), %%xmm6; movups 272(%0), %%xmm7" ::"r"(fx)
			 : "memory");
}

static void save_all(uint8_t *fx)
{
	__asm__ volatile("fxsave64 (%0)" ::"r"(fx) : "memory");
}

static void load_all(const uint8_t *fx)
{
	__asm__ volatile("fxrstor64 (%0)" ::"r"(fx) : "memory");
}

/* In a saved state: what is in its initial state is not in memory yet. True: it was not. */
static bool make_present(struct ftr_call *call, uint64_t state)
{
	uint64_t *present = (uint64_t *)(call->vectors + XSTATE_BV);

	if (*present & state)
		return false;
	*present |= state;
	return true;
}

/* The image that has xmm0 to xmm7. */
static uint8_t *vectors_of(struct ftr_call *call)
{
	if (call->state.apart) {
		if (make_present(call, STATE_SSE)) {
			uint32_t mxcsr = INITIAL_MXCSR;

			memset(call->vectors + FX_VECTORS, 0, 16 * 16);
			memcpy(call->vectors + FX_MXCSR, &mxcsr, 4);
		}
		return call->vectors;
	}
	if (!call->state.spilled)
		save_vectors(call->spill);
	call->state.spilled |= SPILLED_VECTORS;
	return call->spill;
}

/* The image that has the x87 registers too. */
static uint8_t *x87_of(struct ftr_call *call)
{
	if (call->state.apart) {
		if (make_present(call, STATE_X87)) {
			uint16_t control = INITIAL_CONTROL;

			memset(call->vectors, 0, FX_MXCSR);
			memset(call->vectors + FX_STACK, 0, 8 * 16);
			memcpy(call->vectors + FX_CONTROL, &control, 2);
		}
		return call->vectors;
	}
	if (!(call->state.spilled & SPILLED_ALL)) {
		if (call->state.spilled) /* they may have been changed */
			load_vectors(call->spill);
		save_all(call->spill);
		call->state.spilled |= SPILLED_ALL;
	}
	return call->spill;
}

/* Where a general register is: not in call->regs, but where the detour keeps it anyway. */
static uint64_t *saved(const struct ftr_call *call, int where)
{
	return (uint64_t *)(call->frame.slot + (uint64_t)(int64_t)where);
}

void *arch_call_argument(struct ftr_call *call, struct isa_place place)
{
	uint8_t *above = (uint8_t *)call->frame.slot + 8;
	int where = X86_SAVE_RDI + 8 * place.index;

	switch (place.kind) {
	case PLACE_GENERAL:
		return saved(call, call->state.returning && where == X86_SAVE_RDX ? X86_SAVE_RESULT2
										  : where);
	case PLACE_VECTOR:
		return vectors_of(call) + FX_VECTORS + place.index * 16;
	case PLACE_STACK:
		return above + place.offset;
	default:
		return NULL;
	}
}

static uint64_t part_of(struct isa_place place)
{
	switch (place.kind) {
	case PLACE_VECTOR:
		return RESULT_VECTOR;
	case PLACE_EXTENDED:
		return RESULT_EXTENDED;
	default:
		return place.wide ? RESULT_GENERAL | RESULT_GENERAL_2 : RESULT_GENERAL;
	}
}

void *arch_call_result(struct ftr_call *call, struct isa_place place)
{
	bool answer = call->state.answered;

	if (answer && place.kind != PLACE_NONE)
		call->result.asked |= part_of(place);
	switch (place.kind) {
	case PLACE_GENERAL:
		return answer ? call->result.general : saved(call, X86_SAVE_RAX);
	case PLACE_VECTOR:
		return answer ? call->result.vectors : vectors_of(call) + FX_VECTORS;
	case PLACE_EXTENDED:
		return answer ? call->result.extended : x87_of(call) + FX_STACK;
	case PLACE_MEMORY:
		if (answer)
			call->result.general[0] = *saved(call, X86_SAVE_RDI);
		return (void *)*saved(call, answer ? X86_SAVE_RDI : X86_SAVE_RAX);
	default:
		return NULL;
	}
}

/* fld */
static void push_x87(uint8_t *fx, const uint8_t *value)
{
	uint16_t status;
	unsigned top;

	memcpy(&status, fx + FX_STATUS, 2);
	top = ((status >> 11) - 1u) & 7;
	status = (uint16_t)((status & ~0x3800u) | top << 11);
	memcpy(fx + FX_STATUS, &status, 2);
	fx[FX_TAGS] |= (uint8_t)(1u << top);
	memmove(fx + FX_STACK + 16, fx + FX_STACK, 7 * 16);
	memcpy(fx + FX_STACK, value, 10);
}

static void answer(struct ftr_call *call)
{
	uint64_t asked = call->result.asked;

	if (asked & RESULT_VECTOR)
		memcpy(vectors_of(call) + FX_VECTORS, call->result.vectors, 16);
	if (asked & RESULT_EXTENDED)
		push_x87(x87_of(call), call->result.extended);
	if (!asked || asked & RESULT_GENERAL)
		*saved(call, X86_SAVE_RAX) = call->result.general[0];
	*saved(call, X86_SAVE_RESULT2) =
		asked & RESULT_GENERAL_2 ? call->result.general[1] : *saved(call, X86_SAVE_RDX);
}

void arch_call_finish(struct ftr_call *call, bool skip)
{
	if (skip)
		answer(call);
	if (call->state.spilled & SPILLED_ALL)
		load_all(call->spill);
	else if (call->state.spilled)
		load_vectors(call->spill);
}

bool arch_call_context(const struct ftr_call *call, void *context)
{
	(void)call;
	(void)context;
	return false;
}

void arch_call_owed(struct ftr_call *call)
{
	(void)call; /* the return point has kept results as at any return */
}
