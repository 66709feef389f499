/* SPDX-License-Identifier: MIT */
#include "insn.h"

#define BIT(n) (1u << (n))
#define LR     BIT(INSN_LR)

static int64_t field(uint32_t insn, unsigned low, unsigned width) /* signed */
{
	return (int64_t)((uint64_t)insn << (64 - low - width)) >> (64 - width);
}

/* C4.1.65 (branches), C4.1.64 (adr), C4.1.66 (load register, literal) */
enum insn_kind insn_kind(uint32_t insn)
{
	if ((insn & 0xffff0000) == 0)
		return INSN_UNDEFINED;
	switch (insn >> 24 & 0xfc) {
	case 0x14:
		return INSN_B;
	case 0x94:
		return INSN_BL;
	}
	if ((insn & 0xff000000) == 0x54000000)
		return INSN_B_COND;
	if ((insn & 0x7e000000) == 0x34000000)
		return INSN_CBZ;
	if ((insn & 0x7e000000) == 0x36000000)
		return INSN_TBZ;
	if ((insn & 0x9f000000) == 0x10000000)
		return INSN_ADR;
	if ((insn & 0x9f000000) == 0x90000000)
		return INSN_ADRP;
	if ((insn & 0x3b000000) == 0x18000000)
		return insn >> 30 == 3 ? insn & BIT(26) ? INSN_UNDEFINED : INSN_PRFM
		     : insn & BIT(26)  ? INSN_LDR_SIMD
				       : INSN_LDR;
	if ((insn & 0xfe000000) != 0xd6000000)
		return INSN_OTHER;
	switch (insn >> 21 & 7) {
	case 0:
		return INSN_BR;
	case 1:
		return INSN_BLR;
	case 2:
		return INSN_RET;
	}
	return INSN_OTHER;
}

bool insn_is_direct(enum insn_kind kind)
{
	return kind >= INSN_B && kind <= INSN_TBZ;
}

bool insn_ends(enum insn_kind kind, uint32_t insn)
{
	return kind == INSN_B || kind == INSN_BR || kind == INSN_RET || kind == INSN_UNDEFINED
		|| (insn & 0xffe0001f) == 0xd4200000; /* brk */
}

uint64_t insn_target(enum insn_kind kind, uint32_t insn, uint64_t at)
{
	int64_t adr = field(insn, 5, 19) * 4 + (insn >> 29 & 3);

	switch (kind) {
	case INSN_B:
	case INSN_BL:
		return at + (uint64_t)(field(insn, 0, 26) * 4);
	case INSN_TBZ:
		return at + (uint64_t)(field(insn, 5, 14) * 4);
	case INSN_ADR:
		return at + (uint64_t)adr;
	case INSN_ADRP:
		return (at & ~0xfffull) + (uint64_t)(adr * 4096);
	default:
		return at + (uint64_t)(field(insn, 5, 19) * 4);
	}
}

/* ---- registers ---- */

static uint32_t rd(uint32_t insn)
{
	return BIT(insn_rd(insn));
}

static uint32_t rn(uint32_t insn)
{
	return BIT(insn_rn(insn));
}

static uint32_t ra(uint32_t insn)
{
	return BIT(insn >> 10 & 31);
}

static uint32_t rm(uint32_t insn)
{
	return BIT(insn >> 16 & 31);
}

/* Hints that touch x30, or x17 and x16; C6.2, PACIA, AUTIA, XPACD. */
static struct insn_uses hint_uses(unsigned hint)
{
	if (hint == 7 || (hint >= 24 && hint <= 31))
		return (struct insn_uses){ LR, LR };
	if (hint == 8 || hint == 10 || hint == 12 || hint == 14)
		return (struct insn_uses){ BIT(16) | BIT(17), BIT(17) };
	return (struct insn_uses){ 0, 0 };
}

static struct insn_uses branch_uses(uint32_t insn)
{
	switch (insn_kind(insn)) {
	case INSN_BL:
		return (struct insn_uses){ 0, LR };
	case INSN_CBZ:
	case INSN_TBZ:
		return (struct insn_uses){ rd(insn), 0 };
	case INSN_BR:
	case INSN_RET: /* the authenticating ones have a modifier in Rd's place */
		return (struct insn_uses){ rn(insn) | rd(insn), 0 };
	case INSN_BLR:
		return (struct insn_uses){ rn(insn) | rd(insn), LR };
	default:
		break;
	}
	if ((insn & 0xfffff01f) == 0xd503201f)
		return hint_uses(insn >> 5 & 0x7f);
	if ((insn & 0xffc00000) == 0xd5000000 && (insn >> 19 & 3) != 0)
		return insn & BIT(21) ? (struct insn_uses){ 0, rd(insn) }
				      : (struct insn_uses){ rd(insn), 0 };
	return (struct insn_uses){ 0, 0 };
}

static struct insn_uses immediate_uses(uint32_t insn)
{
	bool keeps = (insn & 0x7f800000) == 0x72800000	  /* movk */
		|| (insn & 0x7f800000) == 0x33000000;	  /* bfm */

	switch (insn >> 23 & 7) {
	case 0:
	case 1: /* adr, adrp */
		return (struct insn_uses){ 0, rd(insn) };
	case 5: /* mov wide */
		return (struct insn_uses){ keeps ? rd(insn) : 0, rd(insn) };
	case 7: /* extr */
		return (struct insn_uses){ rn(insn) | rm(insn), rd(insn) };
	default:
		return (struct insn_uses){ rn(insn) | (keeps ? rd(insn) : 0), rd(insn) };
	}
}

static struct insn_uses register_uses(uint32_t insn)
{
	struct insn_uses uses = { rn(insn) | rm(insn), rd(insn) };
	unsigned op = insn >> 21 & 15;

	if (insn & BIT(28) && insn & BIT(24)) { /* three sources */
		uses.reads |= ra(insn);
	} else if (insn & BIT(28) && op == 2) { /* conditional compare; bit 11: immediate */
		uses.writes = 0;
		uses.reads = rn(insn) | (insn & BIT(11) ? 0 : rm(insn));
	} else if (insn & BIT(28) && op == 6 && insn & BIT(30)) { /* one source, pac* */
		uses.reads = rn(insn) | (insn & BIT(16) ? rd(insn) : 0);
	}
	return uses;
}

static struct insn_uses access_uses(const struct insn_access *access)
{
	struct insn_uses uses = { BIT(access->base), 0 };

	for (int i = 0; i < access->n; i++)
		if (access->load)
			uses.writes |= BIT(access->regs[i]);
		else
			uses.reads |= BIT(access->regs[i]);
	if (access->writeback)
		uses.writes |= BIT(access->base);
	return uses;
}

static struct insn_uses memory_uses(uint32_t insn)
{
	struct insn_access access = insn_access(insn);
	struct insn_uses uses;

	if (access.n)
		return access_uses(&access);
	if (insn_kind(insn) == INSN_LDR)
		return (struct insn_uses){ 0, rd(insn) };
	if (insn_kind(insn) != INSN_OTHER)
		return (struct insn_uses){ 0, 0 };
	if ((insn & 0x3b200c00) == 0x38200800) { /* [xn, xm] */
		bool load = insn & 0x00c00000, general = !(insn & BIT(26));

		uses = (struct insn_uses){ rn(insn) | rm(insn), 0 };
		if (general && load && insn >> 22 != 0x3e2) /* not prfm */
			uses.writes = rd(insn);
		else if (general && !load)
			uses.reads |= rd(insn);
		return uses;
	}
	if (insn & BIT(26)) /* vector registers; structures may have an index */
		return (struct insn_uses){ rn(insn) | (insn & BIT(29) ? 0 : rm(insn)), 0 };
	/* exclusive, ordered, atomic ...: all they name */
	return (struct insn_uses){ rd(insn) | rn(insn) | ra(insn) | rm(insn), 0 };
}

/* Between general and vector registers: conversions, fmov, dup, ins, umov. */
static struct insn_uses vector_uses(uint32_t insn)
{
	unsigned opcode = insn >> 16 & 7, imm4 = insn >> 11 & 15;
	const struct insn_uses from = { rn(insn), 0 }, to = { 0, rd(insn) }, none = { 0, 0 };

	if ((insn & 0x5f20fc00) == 0x1e200000 || (insn & 0x5f200000) == 0x1e000000)
		return opcode == 2 || opcode == 3 || opcode == 7 ? from : to;
	if ((insn & 0x9fe08400) != 0x0e000400) /* copy */
		return none;
	if (imm4 == 1 || imm4 == 3)
		return from;
	return imm4 == 5 || imm4 == 7 ? to : none;
}

struct insn_uses insn_uses(uint32_t insn)
{
	struct insn_uses uses;

	switch (insn >> 25 & 15) {
	case 8:
	case 9:
		uses = immediate_uses(insn);
		break;
	case 10:
	case 11:
		uses = branch_uses(insn);
		break;
	case 5:
	case 13:
		uses = register_uses(insn);
		break;
	case 7:
	case 15:
		uses = vector_uses(insn);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		uses = memory_uses(insn);
		break;
	case 2: /* SVE: the fields may be vectors as well, and the link register is no operand */
		uses = (struct insn_uses){ (rd(insn) | rn(insn) | rm(insn)) & ~LR, 0 };
		break;
	default:
		uses = (struct insn_uses){ 0, 0 };
	}
	uses.reads &= ~BIT(INSN_SP);
	uses.writes &= ~BIT(INSN_SP);
	return uses;
}

/* C4.1.66, "Load/store register pair": 1 is post-indexed, 3 pre-indexed. */
static struct insn_access pair_access(uint32_t insn)
{
	unsigned mode = insn >> 23 & 3, opc = insn >> 30;
	struct insn_access a = { 0 };

	if (opc == 3 || (opc == 1 && !(insn & BIT(22))))
		return a;
	a = (struct insn_access){ .base = (uint8_t)insn_rn(insn), .n = 2,
		.size = opc == 2 ? 8 : 4,
		.regs = { (uint8_t)insn_rd(insn), (uint8_t)(insn >> 10 & 31) },
		.load = insn & BIT(22), .writeback = mode == 1 || mode == 3 };
	if (mode != 1)
		a.offset = (int32_t)(field(insn, 15, 7) * a.size);
	return a;
}

static struct insn_access single_access(uint32_t insn)
{
	unsigned size = insn >> 30, opc = insn >> 22 & 3, mode = insn >> 10 & 3;
	bool scaled = insn & BIT(24);
	struct insn_access a = { 0 };

	if ((size == 3 && opc >= 2) || (size == 2 && opc == 3) || (!scaled && insn & BIT(21)))
		return a;
	a = (struct insn_access){ .base = (uint8_t)insn_rn(insn), .n = 1,
		.size = (uint8_t)(1u << size), .regs = { (uint8_t)insn_rd(insn) }, .load = opc != 0,
		.writeback = !scaled && mode & 1 };
	if (scaled)
		a.offset = (int32_t)((insn >> 10 & 0xfff) << size);
	else if (mode != 1)
		a.offset = (int32_t)field(insn, 12, 9);
	return a;
}

struct insn_access insn_access(uint32_t insn)
{
	if ((insn & 0x3e000000) == 0x28000000)
		return pair_access(insn);
	if ((insn & 0x3e000000) == 0x38000000)
		return single_access(insn);
	return (struct insn_access){ 0 };
}
