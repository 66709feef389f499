/* SPDX-License-Identifier: MIT */
/* What emit.c and hook.c write code and its unwind rows with. */
#ifndef ARCH_POWERPC_EMITTER_H
#define ARCH_POWERPC_EMITTER_H

#include "powerpc.h"
#include "encode.h"

struct emitter {
	uint8_t *start, *p;
	uint64_t at; /* run-time address of start */
	bool unreachable;
	struct isa_range *range;
	uint8_t *row; /* code position of the newest row */
};

static inline void put(struct emitter *e, uint32_t word)
{
	memcpy(e->p, &word, 4);
	e->p += 4;
}

static inline uint32_t here(const struct emitter *e)
{
	return (uint32_t)(e->p - e->start);
}

static inline void constant(struct emitter *e, enum ppc_reg reg, uint64_t value)
{
	uint32_t words[PPC_CONSTANT_WORDS];

	ppc_constant(words, reg, value);
	memcpy(e->p, words, sizeof(words));
	e->p += sizeof(words);
}

/* b or bl to a run-time address */
static inline void branch(struct emitter *e, uint64_t target, bool link)
{
	int64_t distance = (int64_t)(target - (e->at + here(e)));

	e->unreachable |= !ppc_in_reach(distance);
	put(e, ppc_b(distance, link));
}

/* ---- unwind rows ---- */

#define LR			  65

#define ROW_UNIT 4
#include "../rows.h"

/* The return address is in LR from here on. */
static inline void row_in_lr(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_same_value);
	cfi_byte(e, LR);
}

/* The return address is where the slow stubs keep it. */
static inline void row_kept(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset_extended);
	cfi_byte(e, LR);
	cfi_uleb(e, -PPC_KEPT_RETURN / 8);
}

/* hook.c: the stubs that call handlers */
void ppc_emit_hooks(struct emitter *e, const struct isa_env *env, struct isa_common *common,
	struct isa_range *range);

#endif
