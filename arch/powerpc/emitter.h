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

#define DW_CFA_advance_loc1	  0x02
#define DW_CFA_advance_loc2	  0x03
#define DW_CFA_offset_extended	  0x05
#define DW_CFA_same_value	  0x08
#define DW_CFA_remember_state	  0x0a
#define DW_CFA_restore_state	  0x0b
#define DW_CFA_def_cfa_offset	  0x0e
#define LR			  65

static inline void cfi_byte(struct emitter *e, unsigned b)
{
	e->range->cfi[e->range->cfi_len++] = (uint8_t)b;
}

static inline void cfi_uleb(struct emitter *e, unsigned v)
{
	for (; v >= 0x80; v >>= 7)
		cfi_byte(e, (v & 0x7f) | 0x80);
	cfi_byte(e, v);
}

/* The rows that follow begin at this place in the code. */
static inline void cfi_here(struct emitter *e)
{
	uint32_t words = (uint32_t)(e->p - e->row) / 4;

	if (!words)
		return;
	if (words < 0x40) {
		cfi_byte(e, 0x40 | words);
	} else if (words <= 0xff) {
		cfi_byte(e, DW_CFA_advance_loc1);
		cfi_byte(e, words);
	} else {
		cfi_byte(e, DW_CFA_advance_loc2);
		cfi_byte(e, words & 0xff);
		cfi_byte(e, words >> 8);
	}
	e->row = e->p;
}

static inline void range_begin(struct emitter *e, struct isa_range *range, enum isa_cie cie)
{
	e->range = range;
	e->row = e->p;
	range->start = here(e);
	range->cie = (uint8_t)cie;
	range->cfi_len = 0;
	if (cie != CIE_PLAIN)
		cfi_byte(e, DW_CFA_remember_state);
}

static inline void range_end(struct emitter *e)
{
	e->range->size = here(e) - e->range->start;
}

/* CFA = r1 + @offset from here on. */
static inline void row_cfa(struct emitter *e, unsigned offset)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa_offset);
	cfi_uleb(e, offset);
}

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

/* CFA = r1 and the return address is in the shadow stack: the CIE's own row, which range_begin()
 * has put aside. */
static inline void row_in_shadow(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_restore_state);
	cfi_byte(e, DW_CFA_remember_state);
}

/* hook.c: the stubs that call handlers */
void ppc_emit_hooks(struct emitter *e, const struct isa_env *env, struct isa_common *common,
	struct isa_range *range);

#endif
