/* SPDX-License-Identifier: MIT */
/*
 * Unwind rows of code as it is written: what the ports' emitter.h have in common. The includer has a
 * struct emitter with the place that is written next (p), the place that the newest row begins at (row) and
 * the range that rows are for (range); here(); and ROW_UNIT, the CIEs' code alignment factor.
 */
#ifndef ARCH_ROWS_H
#define ARCH_ROWS_H

/* DWARF 5, section 7.24 */
#define DW_CFA_advance_loc1   0x02
#define DW_CFA_advance_loc2   0x03
#define DW_CFA_offset_extended 0x05
#define DW_CFA_same_value     0x08
#define DW_CFA_remember_state 0x0a
#define DW_CFA_restore_state  0x0b
#define DW_CFA_def_cfa	      0x0c
#define DW_CFA_def_cfa_offset 0x0e
#define DW_CFA_val_expression 0x16
#define DW_CFA_advance_loc    0x40
#define DW_CFA_offset	      0x80
#define DW_CFA_restore	      0xc0
#define DW_OP_const8u	      0x0e

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
	uint32_t delta = (uint32_t)(e->p - e->row) / ROW_UNIT;

	if (!delta)
		return;
	if (delta < 0x40) {
		cfi_byte(e, DW_CFA_advance_loc | delta);
	} else if (delta <= 0xff) {
		cfi_byte(e, DW_CFA_advance_loc1);
		cfi_byte(e, delta);
	} else {
		cfi_byte(e, DW_CFA_advance_loc2);
		cfi_byte(e, delta & 0xff);
		cfi_byte(e, delta >> 8);
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

/* CFA = stack pointer + @offset from here on. */
static inline void row_cfa(struct emitter *e, unsigned offset)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa_offset);
	cfi_uleb(e, offset);
}

/*
 * CFA = stack pointer and the return address is in the shadow stack from here on: the CIE's own row, which
 * range_begin() has put aside. (DW_CFA_restore would do, but libgcc takes it for "not saved".)
 */
static inline void row_in_shadow(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_restore_state);
	cfi_byte(e, DW_CFA_remember_state);
}

#endif
