/* SPDX-License-Identifier: MIT */
/*
 * The registers of a call while its handlers run. Vector and floating-point registers are either all
 * put aside (arch_call_vectors()), one after the other, or stay where they are until one of them is
 * asked for; then v0 to v7 come to ftr_call.spill.
 */
#define _GNU_SOURCE 1
#include "a64.h"
#include "../../include/ftr/ftr.h"
#include "../sys.h"
#include <ucontext.h>

_Static_assert(offsetof(struct ftr_call, vectors) == 248
		&& offsetof(struct ftr_call, state.apart) == 257, "native_vectors.S knows the layout");

#define VECTOR 16 /* bytes of v0 */
#define PR_SVE_GET_VL 51

/* native_vectors.S */
extern uint32_t a64_has_sve __attribute__((visibility("hidden")));
size_t a64_vector_size(void);
void a64_save_vectors(uint8_t *spill);
void a64_load_vectors(const uint8_t *spill);

uint32_t a64_has_sve;

const bool arch_calls_handlers = true;

void arch_call_prepare(void)
{
	a64_has_sve = sys_call(SYS_prctl, PR_SVE_GET_VL) > 0;
}

static uint8_t *vector_of(struct ftr_call *call, unsigned n)
{
	if (call->state.apart)
		return call->vectors + n * a64_vector_size();
	if (!call->state.spilled)
		a64_save_vectors(call->spill);
	call->state.spilled = 1;
	return call->spill + n * VECTOR;
}

void *arch_call_argument(struct ftr_call *call, struct isa_place place)
{
	void *found = NULL;

	if (place.kind == PLACE_GENERAL)
		found = &call->regs[place.index];
	else if (place.kind == PLACE_VECTOR)
		found = vector_of(call, place.index);
	else if (place.kind == PLACE_STACK)
		found = (uint8_t *)call->frame.slot + place.offset;
	return found && place.indirect ? *(void **)found : found;
}

static uint64_t part_of(struct isa_place place)
{
	switch (place.kind) {
	case PLACE_VECTOR:
		return RESULT_VECTOR;
	case PLACE_MEMORY:
		return RESULT_ELSEWHERE;
	default:
		return place.wide ? RESULT_GENERAL | RESULT_GENERAL_2 : RESULT_GENERAL;
	}
}

/* Where a result in memory is, is known at the entry: nobody has to keep x8. */
void *arch_call_result(struct ftr_call *call, struct isa_place place)
{
	bool answer = call->state.answered;

	if (answer && place.kind != PLACE_NONE)
		call->result.asked |= part_of(place);
	switch (place.kind) {
	case PLACE_GENERAL:
		return answer ? call->result.general : call->regs;
	case PLACE_VECTOR:
		return answer ? call->result.vectors : vector_of(call, 0);
	case PLACE_MEMORY:
		return answer ? (void *)call->regs[A64_CALL_X8] : NULL;
	default:
		return NULL;
	}
}

static void answer(struct ftr_call *call)
{
	uint64_t asked = call->result.asked;

	if (asked & RESULT_VECTOR)
		memcpy(vector_of(call, 0), call->result.vectors, VECTOR);
	if (!asked || asked & RESULT_GENERAL)
		call->regs[0] = call->result.general[0];
	if (asked & RESULT_GENERAL_2)
		call->regs[1] = call->result.general[1];
}

void arch_call_finish(struct ftr_call *call, bool skip)
{
	if (skip)
		answer(call);
	if (call->state.spilled)
		a64_load_vectors(call->spill);
}

/* libunwind before 1.8 knows nothing of signed return addresses, which our frames have. */
bool arch_call_context(const struct ftr_call *call, void *context)
{
	mcontext_t *mc = &((ucontext_t *)context)->uc_mcontext;

	if (!call->frame.ret) /* made by no stub */
		return false;
	mc->pc = (uint64_t)ftr_call_caller(call);
	mc->sp = call->frame.slot;
	mc->regs[29] = *(const uint64_t *)(call->frame.slot - A64_HOOK_LINK);
	return true;
}

void arch_call_owed(struct ftr_call *call)
{
	(void)call; /* results are where arguments were */
}
