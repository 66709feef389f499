/* SPDX-License-Identifier: MIT */
/*
 * Moves instructions to another place.
 *
 *   b                      b
 *   bl, blr                x30 = the original return address; b or br
 *   b.cond cbz tbz         the opposite over a b
 *   br                     br x16, so that a landing pad takes it from any page
 *   adr adrp               adrp and add, or mov and movk
 *   ldr ldrsw (literal)    the address in the register, then a load from it
 *   ... of a vector        the same with x16
 *   prfm (literal)         nop: a hint
 *   everything else        itself
 *
 * The rest does not depend on where it is. Signing a return address (paciasp) depends on the stack
 * pointer, which is the same.
 */
#include "a64.h"
#include "insn.h"

#include <errno.h>

#define MOV_X16 0xaa0003f0u /* mov x16, x? with the source in bits 20:16 */
#define BR_X16	0xd61f0200u

struct piece {
	uint32_t *out;
	unsigned n;
	uint64_t at; /* run-time address of out[0] */
	bool unreachable;
};

static void put(struct piece *p, uint32_t insn)
{
	p->out[p->n++] = insn;
}

bool a64_branch(uint32_t insn, uint64_t at, uint64_t target, uint32_t *out)
{
	int64_t distance = (int64_t)(target - at);

	*out = insn | ((uint32_t)(distance >> 2) & 0x3ffffff);
	return distance >= -(1 << 27) && distance < 1 << 27 && !(distance & 3);
}

static void put_branch(struct piece *p, uint64_t target)
{
	uint32_t insn;

	p->unreachable |= !a64_branch(A64_B, p->at + 4 * p->n, target, &insn);
	put(p, insn);
}

unsigned a64_load_number(unsigned rd, uint64_t value, uint32_t *out)
{
	unsigned n = 0;

	for (unsigned part = 0; part < 4; part++) {
		uint32_t bits = value >> 16 * part & 0xffff;
		bool last = value >> 16 * part >> 16 == 0;

		if (bits || (last && !n)) /* movz, then movk */
			out[n] = (n ? 0xf2800000u : 0xd2800000u) | part << 21 | bits << 5 | rd, n++;
		if (last)
			break;
	}
	return n;
}

/* x@rd = @address */
static void put_address(struct piece *p, unsigned rd, uint64_t address)
{
	int64_t pages = (int64_t)((address >> 12) - ((p->at + 4 * p->n) >> 12));
	uint32_t low = address & 0xfff;

	if (pages < -(1 << 20) || pages >= 1 << 20) {
		p->n += a64_load_number(rd, address, p->out + p->n);
		return;
	}
	put(p, 0x90000000u | (uint32_t)(pages & 3) << 29 | ((uint32_t)(pages >> 2) & 0x7ffff) << 5
			| rd);
	if (low)
		put(p, 0x91000000u | low << 10 | rd << 5 | rd);
}

/* A conditional branch of @kind becomes the opposite one over a branch. */
static void put_conditional(struct piece *p, enum insn_kind kind, uint32_t insn, uint64_t target)
{
	bool tests = kind == INSN_TBZ;

	if (kind == INSN_B_COND && (insn & 14) == 14) { /* always */
		put_branch(p, target);
		return;
	}
	insn ^= kind == INSN_B_COND ? 1 : 1u << 24;
	insn &= tests ? ~(0x3fffu << 5) : ~(0x7ffffu << 5);
	put(p, insn | 2 << 5);
	put_branch(p, target);
}

/* opc of a literal load to the load from [xn]: ldr w, ldr x, ldrsw; of vectors s, d, q. */
static void put_load(struct piece *p, enum insn_kind kind, uint32_t insn, unsigned rn)
{
	static const uint32_t general[] = { 0xb9400000u, 0xf9400000u, 0xb9800000u };
	static const uint32_t vector[] = { 0xbd400000u, 0xfd400000u, 0x3dc00000u };
	unsigned opc = insn >> 30;

	put(p, (kind == INSN_LDR ? general : vector)[opc] | rn << 5 | insn_rd(insn));
}

/* br and blr: their registers may be x30, which is loaded first. */
static int put_indirect(struct piece *p, enum insn_kind kind, uint32_t insn, uint64_t next,
	bool free16)
{
	bool signed_target = insn & 1u << 11;
	unsigned rn = insn_rn(insn);

	if (signed_target)
		return -EINVAL;
	if (kind == INSN_BR && (rn == 16 || rn == 17)) {
		put(p, insn);
		return 0;
	}
	if (rn != 16 && !free16)
		return -EINVAL;
	if (rn != 16)
		put(p, MOV_X16 | rn << 16);
	if (kind == INSN_BLR)
		put_address(p, INSN_LR, next);
	put(p, BR_X16);
	return 0;
}

/* Copy one instruction, which is at run-time address @from. */
static int put_insn(struct piece *p, uint32_t insn, uint64_t from, bool free16)
{
	enum insn_kind kind = insn_kind(insn);
	uint64_t target = insn_target(kind, insn, from);
	unsigned rd = insn_rd(insn);

	switch (kind) {
	case INSN_UNDEFINED:
		return -EINVAL;
	case INSN_BL:
		put_address(p, INSN_LR, from + 4);
		put_branch(p, target);
		return 0;
	case INSN_B:
		put_branch(p, target);
		return 0;
	case INSN_B_COND:
	case INSN_CBZ:
	case INSN_TBZ:
		put_conditional(p, kind, insn, target);
		return 0;
	case INSN_BR:
	case INSN_BLR:
		return put_indirect(p, kind, insn, from + 4, free16);
	case INSN_ADR:
	case INSN_ADRP:
		if (rd == INSN_SP) /* xzr; where an address is added to it is sp */
			put(p, INSN_NOP);
		else
			put_address(p, rd, target);
		return 0;
	case INSN_LDR:
	case INSN_LDR_SIMD:
		if (kind == INSN_LDR_SIMD || rd == INSN_SP) {
			if (!free16)
				return -EINVAL;
			rd = 16;
		}
		put_address(p, rd, target);
		put_load(p, kind, insn, rd);
		return 0;
	case INSN_PRFM:
		put(p, INSN_NOP);
		return 0;
	default:
		put(p, insn);
		return 0;
	}
}

int a64_relocate(const uint8_t *code, uint32_t n, uint64_t from, uint64_t at, bool free16,
	uint8_t *out, struct a64_moved *moved)
{
	*moved = (struct a64_moved){ 0 };
	if (n == 0 || n > A64_WINDOW_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t insn = insn_read(code + 4 * i), copy[A64_PIECE_MAX];
		enum insn_kind kind = insn_kind(insn);
		bool call = kind == INSN_BL || kind == INSN_BLR;
		struct piece p = { .out = copy, .at = at + moved->size };
		int err;

		/* It would return into the patch, or go to an instruction that is not there. */
		if ((call && i + 1 < n)
			|| (insn_is_direct(kind)
				&& insn_target(kind, insn, from + 4 * i) - from < 4 * n))
			return -EINVAL;
		err = put_insn(&p, insn, from + 4 * i, free16);
		if (err || p.unreachable)
			return err ? err : -ERANGE;
		memcpy(out + moved->size, copy, 4 * p.n);
		moved->to[i] = (uint8_t)moved->size;
		moved->size += 4 * p.n;
		moved->ends = call || insn_ends(kind, insn);
	}
	moved->to[n] = (uint8_t)moved->size;
	return 0;
}
