/* SPDX-License-Identifier: MIT */
/*
 * What a function does with its return address and with x16 and x17, seen in the order of its
 * instructions.
 *
 * At the entry x30 holds the return address, and still does until the first instruction that
 * changes it; also wherever unwind rows say that it is in no stack slot. There it may be stored in
 * the frame, signed, and returned to; a function that does anything else with it depends on whom
 * it was called by. Once it is in the frame, as unwind rows say, only x30 is loaded from there.
 */
#include "scan.h"

#define LR_BIT	   (1u << INSN_LR)
#define SCRATCH	   (1u << 16 | 1u << 17)
#define ROW_UNKNOWN 0xff

struct look {
	const struct isa_func *func;
	uint32_t row;	/* of func->rows */
	bool fresh;	/* x30 holds the return address */
	bool framed;	/* x29 was set to point to a saved x29 and x30 */
	uint32_t seen;	/* registers that have been written */
};

/* The row that holds at @at, or NULL. */
static const struct isa_row *row_at(struct look *l, uint32_t at)
{
	const struct isa_func *func = l->func;

	if (!func->nrows || func->rows[0].from > at)
		return NULL;
	while (l->row + 1 < func->nrows && func->rows[l->row + 1].from <= at)
		l->row++;
	return &func->rows[l->row];
}

/* Is the word at [base, #offset] the one of the return address? */
static bool is_home(const struct look *l, const struct isa_row *row, uint8_t base, int32_t offset)
{
	if (l->framed && base == INSN_FP && offset == 8)
		return true;
	return row && row->base != ROW_UNKNOWN && row->base == base && row->offset == offset;
}

/* Does it load the saved return address into another register, or replace it? */
static bool uses_home(const struct look *l, const struct isa_row *row,
	const struct insn_access *access)
{
	for (int i = 0; i < access->n; i++)
		if (access->regs[i] != INSN_LR && access->size == 8
			&& is_home(l, row, access->base, access->offset + 8 * i))
			return true;
	return false;
}

/* A store into the frame, or on a shadow call stack: str x30, [x18], #8. */
static bool saves(const struct insn_access *access)
{
	return access->n && !access->load
		&& (access->base == INSN_SP || access->base == INSN_FP
			|| (access->base == 18 && access->writeback));
}

/* Does it use x30, which holds the return address, other than by the rules? */
static bool misuses(uint32_t insn, enum insn_kind kind, const struct insn_access *access)
{
	if (!(insn_uses(insn).reads & LR_BIT) || saves(access))
		return false;
	if (kind == INSN_RET || kind == INSN_BR)
		return false;
	/* paciasp and its kin; not xpaclri, for which somebody wants to look at it */
	return (insn & 0xfffff01f) != 0xd503201f || insn == INSN_XPACLRI;
}

static bool sets_frame(uint32_t insn)
{
	return (insn & 0xff8003ff) == 0x910003fd; /* add x29, sp, #n */
}

static bool is_svc(uint32_t insn)
{
	return (insn & 0xffe0001f) == 0xd4000001;
}

static void look_at(struct look *l, uint32_t insn, uint32_t at, uint16_t *facts)
{
	enum insn_kind kind = insn_kind(insn);
	struct insn_access access = insn_access(insn);
	const struct isa_row *row = row_at(l, at);
	struct insn_uses uses = insn_uses(insn);

	if (row && row->base == ROW_UNKNOWN)
		l->fresh = true;
	if ((l->fresh && misuses(insn, kind, &access)) || uses_home(l, row, &access)
		|| (kind == INSN_RET && insn_rn(insn) < INSN_LR))
		*facts |= FACT_READS_RETURN;
	if (uses.reads & ~l->seen & SCRATCH)
		*facts |= FACT_SCRATCH_IN;
	if (kind == INSN_BR)
		*facts |= FACT_SWITCHES;
	if (kind == INSN_BL || kind == INSN_BLR || kind == INSN_BR || is_svc(insn)
		|| (insn_is_direct(kind)
			&& insn_target(kind, insn, at) >= l->func->end - l->func->start))
		*facts |= FACT_CALLS;
	l->framed |= sets_frame(insn);
	l->seen |= uses.writes;
	if (kind == INSN_BL || kind == INSN_BLR)
		l->seen |= SCRATCH;
	if (uses.writes & LR_BIT && (insn & 0xfffff01f) != 0xd503201f)
		l->fresh = false;
}

uint16_t a64_look(const struct a64_code *code, const struct isa_func *func)
{
	struct look l = { .func = func, .fresh = true };
	uint16_t facts = 0;

	for (uint32_t i = 0; i < code->n; i++)
		look_at(&l, insn_read(code->bytes + 4 * i), 4 * i, &facts);
	return facts;
}

uint8_t a64_patch_offset(const struct a64_code *code)
{
	uint32_t first = code->n ? insn_read(code->bytes) : 0;

	return (first & ~0xc0u) == INSN_BTI || first == INSN_PACIASP || first == INSN_PACIBSP ? 4
											     : 0;
}
