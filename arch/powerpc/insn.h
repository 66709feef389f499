/* SPDX-License-Identifier: MIT */
/*
 * The instructions of Power ISA 3.1 as far as tracing needs to know them: where they branch to,
 * which registers they read and write, and what of them is relative to their own address.
 */
#ifndef ARCH_POWERPC_INSN_H
#define ARCH_POWERPC_INSN_H

#include "../mem.h"

enum ppc_kind {
	PPC_PLAIN,	/* does the same everywhere */
	PPC_B,		/* b, bl: I-form */
	PPC_BC,		/* bc, bcl, bdnz ...: B-form */
	PPC_BCLR,	/* to LR */
	PPC_BCCTR,	/* to CTR */
	PPC_BCTAR,	/* to TAR */
	PPC_ADDPCIS,
	PPC_PCREL,	/* prefixed, relative to its own address */
	PPC_FIXED,	/* leaves its own address behind and cannot be made to leave another */
};

/* Bits of insn.reads and insn.writes; bit n: general register n. */
#define PPC_CR0	(1ull << 32) /* all of the field */
#define PPC_XER	(1ull << 33)
#define PPC_LR	(1ull << 34)
#define PPC_ALL	(~0ull)

struct ppc_insn {
	uint32_t word, suffix; /* suffix: of prefixed instructions */
	uint8_t len;	       /* 4 or 8 */
	uint8_t kind;	       /* enum ppc_kind */
	bool link;	       /* branches: LR = the address behind */
	bool conditional;      /* branches: may go on behind */
	bool absolute;	       /* branches: rel is the target itself */
	int64_t rel;	       /* PPC_B, PPC_BC, PPC_PCREL: target minus own address */
	/*
	 * What is not known for certain is read and not written. A branch's own reads are those of
	 * its condition.
	 */
	uint64_t reads, writes;
};

/* Decode the instruction at @code. False: there are not @room bytes for it. */
bool ppc_insn_read(const uint8_t *code, size_t room, struct ppc_insn *insn);

/* Does control never go on behind it? */
static inline bool ppc_insn_ends(const struct ppc_insn *insn)
{
	return insn->kind >= PPC_B && insn->kind <= PPC_BCTAR && !insn->conditional && !insn->link;
}

static inline uint64_t ppc_insn_target(const struct ppc_insn *insn, uint64_t addr)
{
	return insn->absolute ? (uint64_t)insn->rel : addr + (uint64_t)insn->rel;
}

#endif
