/* SPDX-License-Identifier: MIT */
/*
 * The registers of a call while its handlers run. Vector and floating-point registers are either all
 * put aside (arch_call_vectors()): vs0 to vs31, whose first doublewords are f0 to f31, then v0 to
 * v31; or stay where they are. When one is asked for, those that hold arguments come to
 * ftr_call.spill, where a float is by itself what its register holds as a double.
 */
#include "powerpc.h"

_Static_assert(offsetof(struct ftr_call, vectors) == 248
		&& offsetof(struct ftr_call, state.apart) == 257, "native_vectors.S knows the layout");

#define FLOATS	14 /* f1 to f13, the first one is not used */
#define VECTORS 12 /* v2 to v13 */
#define ASIDE	16 /* bytes of a register that is put aside */

/* What is in ftr_call.spill. */
struct ppc_vectors {
	uint64_t floats[FLOATS + 2];
	uint8_t vectors[VECTORS][16]; /* unless they are put aside */
	uint32_t singles[FLOATS];
	uint32_t single; /* a bit for each that is in use */
};

_Static_assert(sizeof(struct ppc_vectors) <= sizeof(((struct ftr_call *)0)->spill)
		&& offsetof(struct ppc_vectors, vectors) == 96 + 2 * 16, "the spilled registers");

/* native_vectors.S */
void ppc_save_vectors(struct ppc_vectors *to);
void ppc_load_vectors(const struct ppc_vectors *from);
void ppc_to_single(const uint64_t *from, uint32_t *to);
void ppc_to_double(const uint32_t *from, uint64_t *to);

const bool arch_calls_handlers = true;

void arch_call_prepare(void)
{
}

static struct ppc_vectors *spilled(struct ftr_call *call)
{
	struct ppc_vectors *s = (struct ppc_vectors *)call->spill;

	if (call->state.spilled)
		return s;
	call->state.spilled = 1;
	s->single = 0;
	if (call->state.apart)
		for (unsigned n = 1; n < FLOATS; n++)
			memcpy(&s->floats[n], call->vectors + n * ASIDE, 8);
	else
		ppc_save_vectors(s);
	return s;
}

static void *float_of(struct ftr_call *call, unsigned n, bool single)
{
	struct ppc_vectors *s = spilled(call);

	if (!single)
		return &s->floats[n];
	if (!(s->single >> n & 1))
		ppc_to_single(&s->floats[n], &s->singles[n]);
	s->single |= 1u << n;
	return &s->singles[n];
}

static void *vector_of(struct ftr_call *call, struct isa_place place)
{
	unsigned n = place.index - PPC_VECTORS;

	if (place.index < PPC_VECTORS)
		return float_of(call, place.index, place.single);
	if (call->state.apart)
		return call->vectors + place.index * ASIDE;
	return spilled(call)->vectors[n - 2];
}

void *arch_call_argument(struct ftr_call *call, struct isa_place place)
{
	switch (place.kind) {
	case PLACE_GENERAL:
		return &call->regs[place.index];
	case PLACE_VECTOR:
		return vector_of(call, place);
	case PLACE_STACK:
		return (uint8_t *)call->frame.slot + place.offset;
	default:
		return NULL;
	}
}

static uint64_t part_of(struct isa_place place)
{
	if (place.kind != PLACE_VECTOR)
		return place.wide ? RESULT_GENERAL | RESULT_GENERAL_2 : RESULT_GENERAL;
	if (place.index >= PPC_VECTORS)
		return RESULT_VECTOR;
	if (place.single)
		return RESULT_FLOAT | RESULT_SINGLE;
	return place.wide ? RESULT_FLOAT | RESULT_FLOAT_2 : RESULT_FLOAT;
}

void *arch_call_result(struct ftr_call *call, struct isa_place place)
{
	bool answer = call->state.answered;

	if (answer && place.kind != PLACE_NONE)
		call->result.asked |= part_of(place);
	switch (place.kind) {
	case PLACE_GENERAL:
		return answer ? call->result.general : call->regs;
	case PLACE_VECTOR:
		return answer ? call->result.vectors : vector_of(call, place);
	case PLACE_MEMORY: /* its address is the first argument, and returned */
		if (answer)
			call->result.general[0] = call->regs[0];
		return (void *)call->regs[0];
	default:
		return NULL;
	}
}

static void answer_float(struct ftr_call *call, uint64_t asked)
{
	struct ppc_vectors *s = spilled(call);
	uint32_t single;

	s->single &= ~2u;
	memcpy(&s->floats[1], call->result.vectors, 8);
	if (asked & RESULT_FLOAT_2) {
		s->single &= ~4u;
		memcpy(&s->floats[2], call->result.vectors + 8, 8);
	}
	if (asked & RESULT_SINGLE) {
		memcpy(&single, call->result.vectors, sizeof(single));
		ppc_to_double(&single, &s->floats[1]);
	}
}

static void answer(struct ftr_call *call)
{
	const struct isa_place v2 = { .kind = PLACE_VECTOR, .index = PPC_VECTORS + 2 };
	uint64_t asked = call->result.asked;

	if (asked & RESULT_FLOAT)
		answer_float(call, asked);
	if (asked & RESULT_VECTOR)
		memcpy(vector_of(call, v2), call->result.vectors, 16);
	if (!asked || asked & RESULT_GENERAL)
		call->regs[0] = call->result.general[0];
	if (asked & RESULT_GENERAL_2)
		call->regs[1] = call->result.general[1];
}

/* Floats that were changed become doubles. */
static void widen(struct ppc_vectors *s)
{
	for (unsigned n = 1; n < FLOATS; n++) {
		uint32_t was;

		if (!(s->single >> n & 1))
			continue;
		ppc_to_single(&s->floats[n], &was);
		if (was != s->singles[n])
			ppc_to_double(&s->singles[n], &s->floats[n]);
	}
}

void arch_call_finish(struct ftr_call *call, bool skip)
{
	struct ppc_vectors *s = (struct ppc_vectors *)call->spill;

	if (skip)
		answer(call);
	if (!call->state.spilled)
		return;
	widen(s);
	if (call->state.apart)
		for (unsigned n = 1; n < FLOATS; n++)
			memcpy(call->vectors + n * ASIDE, &s->floats[n], 8);
	else
		ppc_load_vectors(s);
}

bool arch_call_context(const struct ftr_call *call, void *context)
{
	(void)call;
	(void)context;
	return false;
}

void arch_call_owed(struct ftr_call *call)
{
	(void)call; /* results are where arguments were */
}
