/* SPDX-License-Identifier: MIT */
/* Power ISA 3.1, book I; instruction tables of appendix D. */
#include "insn.h"
#include "encode.h"

#define RT(word)  ((word) >> 21 & 31)
#define RA(word)  ((word) >> 16 & 31)
#define RB(word)  ((word) >> 11 & 31)
#define GPR(n)	  (1ull << (n))
#define RECORD	  1u /* the Rc bit */

/* What an instruction does with its register fields. */
enum use {
	T = 1 << 0, /* writes RT */
	S = 1 << 1, /* reads RT */
	A = 1 << 2, /* reads RA */
	Z = 1 << 3, /* RA; 0 stands for the number 0 */
	W = 1 << 4, /* writes RA */
	B = 1 << 5, /* reads RB */
	R = 1 << 6, /* bit 31: sets CR0 */
	C = 1 << 7, /* reads CA */
	D = 1 << 8, /* sets CR0 always */
	N = 1 << 9, /* none at all: the row exists */
};

static void apply(struct ppc_insn *insn, uint32_t word, unsigned use)
{
	if (use & T)
		insn->writes |= GPR(RT(word));
	if (use & S)
		insn->reads |= GPR(RT(word));
	if (use & A || (use & Z && RA(word)))
		insn->reads |= GPR(RA(word));
	if (use & W)
		insn->writes |= GPR(RA(word));
	if (use & B)
		insn->reads |= GPR(RB(word));
	if (use & C)
		insn->reads |= PPC_XER;
	if (use & D || (use & R && word & RECORD))
		insn->writes |= PPC_CR0;
}

/* By primary opcode. What has no row is looked at further, or unknown. */
static const uint16_t primary[64] = {
	[2] = A, [3] = A, /* tdi twi */
	[7] = T | A, [8] = T | A, /* mulli subfic */
	[12] = T | A, [13] = T | A | D, /* addic addic. */
	[14] = T | Z, [15] = T | Z, /* addi addis */
	[20] = S | A | W | R, [21] = S | W | R, [23] = S | W | B | R, /* rlwimi rlwinm rlwnm */
	[24] = S | W, [25] = S | W, [26] = S | W, [27] = S | W, /* ori oris xori xoris */
	[28] = S | W | D, [29] = S | W | D, /* andi. andis. */
	[32] = T | Z, [33] = T | A | W, [34] = T | Z, [35] = T | A | W, /* lwz lbz */
	[36] = S | Z, [37] = S | A | W, [38] = S | Z, [39] = S | A | W, /* stw stb */
	[40] = T | Z, [41] = T | A | W, [42] = T | Z, [43] = T | A | W, /* lhz lha */
	[44] = S | Z, [45] = S | A | W, /* sth */
	[48] = Z, [49] = A | W, [50] = Z, [51] = A | W, /* lfs lfd */
	[52] = Z, [53] = A | W, [54] = Z, [55] = A | W, /* stfs stfd */
	[57] = Z, [61] = Z, /* lfdp lxsd lxssp; lxv stxv stfdp */
	[59] = N, [60] = N, [63] = N, /* floating point and vector-scalar registers only */
};

/* Opcode 31 by its ten-bit extended opcode, sorted. Arithmetic is in a table of its own. */
static const struct {
	uint16_t xo, use;
} extended[] = {
	{ 4, A | B }, { 6, Z | B }, { 7, Z | B }, { 12, Z | B }, { 20, T | Z | B },
	{ 21, T | Z | B }, { 22, Z | B }, { 23, T | Z | B }, { 24, S | B | W | R },
	{ 26, S | W | R }, { 27, S | B | W | R }, { 28, S | B | W | R }, { 30, N }, { 38, Z | B },
	{ 39, Z | B }, { 51, W }, { 52, T | Z | B }, { 53, T | A | W | B }, { 54, Z | B },
	{ 55, T | A | W | B }, { 58, S | W | R }, { 60, S | B | W | R }, { 68, A | B },
	{ 71, Z | B }, { 76, Z | B }, { 84, T | Z | B }, { 86, Z | B }, { 87, T | Z | B },
	{ 103, Z | B }, { 115, W }, { 116, T | Z | B }, { 119, T | A | W | B }, { 122, S | W },
	{ 124, S | B | W | R }, { 135, Z | B }, { 140, Z | B }, { 149, S | Z | B },
	{ 150, S | Z | B | D }, { 151, S | Z | B }, { 154, S | W }, { 155, S | W },
	{ 167, Z | B }, { 179, A }, { 181, S | A | W | B }, { 183, S | A | W | B },
	{ 186, S | W }, { 187, S | W }, { 199, Z | B }, { 211, A }, { 214, S | Z | B | D },
	{ 215, S | Z | B }, { 219, S | W }, { 231, Z | B }, { 243, A }, { 246, Z | B },
	{ 247, S | A | W | B }, { 252, S | B | W }, { 268, Z | B }, { 269, A | B },
	{ 278, Z | B }, { 279, T | Z | B }, { 284, S | B | W | R }, { 301, A | B }, { 307, W },
	{ 311, T | A | W | B }, { 316, S | B | W | R }, { 332, Z | B }, { 333, Z | B },
	{ 341, T | Z | B }, { 343, T | Z | B }, { 359, Z | B }, { 364, Z | B }, { 371, T },
	{ 373, T | A | W | B }, { 375, T | A | W | B }, { 378, S | W }, { 396, Z | B },
	{ 397, A | B }, { 403, A }, { 407, S | Z | B }, { 412, S | B | W | R }, { 429, A | B },
	{ 435, Z | B }, { 439, S | A | W | B }, { 444, S | B | W | R }, { 461, Z | B },
	{ 476, S | B | W | R }, { 487, Z | B }, { 506, S | W }, { 508, S | B | W },
	{ 524, Z | B }, { 532, T | Z | B }, { 534, T | Z | B }, { 535, Z | B },
	{ 536, S | B | W | R }, { 538, S | W | R }, { 539, S | B | W | R }, { 567, A | W | B },
	{ 570, S | W | R }, { 588, Z | B }, { 598, N }, { 599, Z | B }, { 631, A | W | B },
	{ 652, Z | B }, { 658, A | B }, { 660, S | Z | B }, { 662, S | Z | B }, { 663, Z | B },
	{ 690, A | B }, { 694, S | Z | B | D }, { 695, A | W | B }, { 716, Z | B },
	{ 722, A | B }, { 726, S | Z | B | D }, { 727, Z | B }, { 754, A | B },
	{ 759, A | W | B }, { 780, Z | B }, { 790, T | Z | B }, { 792, S | B | W | R },
	{ 794, S | B | W | R }, { 812, Z | B }, { 824, S | W | R }, { 826, S | W | R },
	{ 827, S | W | R }, { 844, Z | B }, { 854, N }, { 855, Z | B }, { 876, Z | B },
	{ 887, Z | B }, { 890, S | W | R }, { 891, S | W | R }, { 908, Z | B },
	{ 918, S | Z | B }, { 922, S | W | R }, { 940, Z | B }, { 954, S | W | R },
	{ 972, Z | B }, { 982, Z | B }, { 983, Z | B }, { 986, S | W | R }, { 1004, Z | B },
	{ 1014, Z | B },
};

/* XO-form, by nine bits; the tenth asks for the overflow flags as well. */
static unsigned arithmetic(unsigned xo)
{
	switch (xo & 0x1ff) {
	case 8: case 9: case 10: case 11: case 40: case 73: case 75: /* subfc mulh addc subf */
	case 233: case 235: case 265: case 266: case 267: /* mull mod add */
	case 393: case 395: case 425: case 427: case 457: case 459: case 489: case 491: /* div */
		return T | A | B | R;
	case 104: /* neg */
		return T | A | R;
	case 136: case 138: /* subfe adde */
		return T | A | B | R | C;
	case 200: case 202: case 232: case 234: /* with zero or minus one */
		return T | A | R | C;
	}
	return 0;
}

static unsigned extended_use(unsigned xo)
{
	size_t low = 0, high = sizeof(extended) / sizeof(extended[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (extended[middle].xo < xo)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sizeof(extended) / sizeof(extended[0]) && extended[low].xo == xo
		? extended[low].use
		: arithmetic(xo);
}

static void unknown(struct ppc_insn *insn)
{
	insn->reads = PPC_ALL;
	insn->writes = 0;
}

#define SPR(word) (((word) >> 16 & 31) | ((word) >> 6 & 0x3e0))

static void special_register(struct ppc_insn *insn, bool to)
{
	uint64_t which = SPR(insn->word) == SPR_LR ? PPC_LR
		: SPR(insn->word) == SPR_XER	   ? PPC_XER
						   : 0;

	apply(insn, insn->word, to ? S : T);
	if (to)
		insn->writes |= which;
	else
		insn->reads |= which;
}

/* mfcr, mfocrf, mtcrf, mtocrf: a bit per field */
static void condition_register(struct ppc_insn *insn, bool to)
{
	bool cr0 = insn->word & 0x80000 || (!to && !(insn->word & 0x100000));

	apply(insn, insn->word, to ? S : T);
	if (to && cr0)
		insn->writes |= PPC_CR0;
	else if (cr0)
		insn->reads |= PPC_CR0;
}

static void compare(struct ppc_insn *insn)
{
	apply(insn, insn->word, insn->word >> 26 == 31 ? A | B : A);
	if (!(insn->word >> 23 & 7))
		insn->writes |= PPC_CR0;
}

static void decode_extended(struct ppc_insn *insn)
{
	unsigned xo = insn->word >> 1 & 0x3ff, use;

	switch (xo) {
	case 0: case 32: /* cmp cmpl */
		compare(insn);
		return;
	case 19: case 144:
		condition_register(insn, xo == 144);
		return;
	case 339: case 467:
		special_register(insn, xo == 467);
		return;
	}
	if ((xo & 31) == 15) { /* isel */
		apply(insn, insn->word, T | Z | B);
		insn->reads |= (insn->word >> 6 & 31) < 4 ? PPC_CR0 : 0;
		return;
	}
	use = extended_use(xo);
	if (use)
		apply(insn, insn->word, use);
	else
		unknown(insn);
}

/* A branch's condition. BO: Power ISA, book I, figure 40. */
static void condition(struct ppc_insn *insn)
{
	unsigned bo = RT(insn->word);

	insn->conditional = (bo & 0x14) != 0x14;
	if (!(bo & 0x10) && RA(insn->word) < 4)
		insn->reads |= PPC_CR0;
	insn->link = insn->word & 1;
}

static void decode_xl(struct ppc_insn *insn)
{
	unsigned xo = insn->word >> 1 & 0x3ff;

	if ((xo & 31) == 2) {
		insn->kind = PPC_ADDPCIS;
		insn->writes |= GPR(RT(insn->word));
		return;
	}
	switch (xo) {
	case 16:
		insn->kind = PPC_BCLR;
		break;
	case 528:
		insn->kind = PPC_BCCTR;
		break;
	case 560:
		insn->kind = PPC_BCTAR;
		break;
	case 150: /* isync */
		return;
	default: /* on condition bits, in any of three fields */
		if (RT(insn->word) < 4 || RA(insn->word) < 4 || RB(insn->word) < 4)
			insn->reads |= PPC_CR0;
		return;
	}
	condition(insn);
}

static int64_t sign_extend(uint64_t value, unsigned bits)
{
	return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static void decode_branch(struct ppc_insn *insn)
{
	insn->absolute = insn->word & 2;
	if (insn->word >> 26 == 18) {
		insn->kind = PPC_B;
		insn->link = insn->word & 1;
		insn->rel = sign_extend(insn->word & 0x3fffffc, 26);
		return;
	}
	insn->kind = PPC_BC;
	insn->rel = sign_extend(insn->word & 0xfffc, 16);
	condition(insn);
}

/* ld ldu lwa; std stdu stq */
static void decode_doubleword(struct ppc_insn *insn)
{
	bool store = insn->word >> 26 == 62;
	unsigned xo = insn->word & 3;

	if (xo == 3) {
		unknown(insn);
		return;
	}
	apply(insn, insn->word, (store ? S : T) | (xo == 1 ? A | W : Z));
	if (store && xo == 2)
		insn->reads |= GPR(RT(insn->word) | 1);
}

static void decode_word(struct ppc_insn *insn)
{
	unsigned opcode = insn->word >> 26;

	if (insn->word == PPC_NOP)
		return;
	switch (opcode) {
	case 4: /* vectors; a few read general registers in these places */
		apply(insn, insn->word, S | A | B);
		return;
	case 10: case 11:
		compare(insn);
		return;
	case 16: case 18:
		decode_branch(insn);
		return;
	case 17: /* sc; scv leaves its own address in LR */
		insn->kind = insn->word & 2 ? PPC_PLAIN : PPC_FIXED;
		insn->reads = GPR(0) | 0x3full * GPR(3); /* the number and six arguments */
		return;
	case 19:
		decode_xl(insn);
		return;
	case 30: /* rldimi reads what it writes to; rldcl and rldcr rotate by RB */
		apply(insn, insn->word, S | W | R | ((insn->word >> 2 & 7) == 3 ? A : 0)
				| (insn->word & 0x10 ? B : 0));
		return;
	case 31:
		decode_extended(insn);
		return;
	case 58: case 62:
		decode_doubleword(insn);
		return;
	}
	if (primary[opcode])
		apply(insn, insn->word, primary[opcode]);
	else
		unknown(insn);
}

/* Prefix: opcode 1, two bits of type, R in bit 11. Types 0 (8LS) and 2 (MLS) address memory. */
static void decode_prefixed(struct ppc_insn *insn)
{
	static const uint16_t wide[64] = { [41] = T | Z, [57] = T | Z, [61] = S | Z };
	unsigned type = insn->word >> 24 & 3, opcode = insn->suffix >> 26;

	if (type & 1)
		return; /* no general registers */
	apply(insn, insn->suffix, type == 2 ? primary[opcode] : wide[opcode] ? wide[opcode] : Z);
	if (type == 0 && (opcode == 56 || opcode == 60)) /* plq pstq */
		unknown(insn);
	if (!(insn->word & 0x100000))
		return;
	insn->kind = PPC_PCREL;
	insn->rel = sign_extend(
		(uint64_t)(insn->word & 0x3ffff) << 16 | (insn->suffix & 0xffff), 34);
}

bool ppc_insn_read(const uint8_t *code, size_t room, struct ppc_insn *insn)
{
	*insn = (struct ppc_insn){ .len = 4 };
	if (room < 4)
		return false;
	memcpy(&insn->word, code, 4);
	if (insn->word >> 26 != 1) {
		decode_word(insn);
		return true;
	}
	if (room < 8)
		return false;
	insn->len = 8;
	memcpy(&insn->suffix, code + 4, 4);
	decode_prefixed(insn);
	return true;
}
