/* SPDX-License-Identifier: MIT */
/*
 * A64 instructions, as far as it matters here: where they go, what of them depends on their place,
 * and which general registers they use. Arm ARM (DDI 0487), C4, "A64 Instruction Set Encoding".
 */
#ifndef ARCH_ARM64_INSN_H
#define ARCH_ARM64_INSN_H

#include "../arch.h"

enum insn_kind {
	INSN_OTHER, /* does the same wherever it is */
	INSN_UNDEFINED, /* udf: zeroed memory */
	INSN_B,
	INSN_BL,
	INSN_B_COND,
	INSN_CBZ, /* cbz, cbnz */
	INSN_TBZ, /* tbz, tbnz */
	INSN_BR,  /* br, braa ... through a register */
	INSN_BLR,
	INSN_RET,
	INSN_ADR,
	INSN_ADRP,
	INSN_LDR,      /* a literal into a general register, ldrsw too */
	INSN_LDR_SIMD, /* into a vector register */
	INSN_PRFM,     /* a literal */
};

#define INSN_NOP     0xd503201fu
#define INSN_BTI     0xd503241fu /* with a target in bits 7:6 */
#define INSN_BTI_C   0xd503245fu
#define INSN_BTI_J   0xd503249fu
#define INSN_PACIASP 0xd503233fu
#define INSN_PACIBSP 0xd503237fu
#define INSN_AUTIASP 0xd50323bfu
#define INSN_AUTIBSP 0xd50323ffu
#define INSN_XPACLRI 0xd50320ffu

#define INSN_SP 31 /* or xzr */
#define INSN_FP 29
#define INSN_LR 30

static inline unsigned insn_rd(uint32_t insn) /* Rt, too */
{
	return insn & 31;
}

static inline unsigned insn_rn(uint32_t insn)
{
	return insn >> 5 & 31;
}

static inline uint32_t insn_read(const uint8_t *code)
{
	uint32_t insn;

	memcpy(&insn, code, 4);
	return insn;
}

enum insn_kind insn_kind(uint32_t insn);

/* A branch with its target in the instruction? */
bool insn_is_direct(enum insn_kind kind);

/* Does it never go on behind itself? Calls do. */
bool insn_ends(enum insn_kind kind, uint32_t insn);

/* Where the one at @at goes or refers to; only for kinds that say so in themselves. */
uint64_t insn_target(enum insn_kind kind, uint32_t insn, uint64_t at);

/*
 * The general registers it reads and writes, one bit each; sp and xzr never. Rather too many that
 * are read than too few, and of those written only what is certain.
 */
struct insn_uses {
	uint32_t reads, writes;
};
struct insn_uses insn_uses(uint32_t insn);

/* A load or store of general registers at [base, #offset]. */
struct insn_access {
	uint8_t base, n;   /* n: registers, 1 or 2; 0: it is something else */
	uint8_t size;	   /* bytes of each */
	uint8_t regs[2];
	bool load, writeback;
	int32_t offset;	 /* of the first one, from what base is before */
};
struct insn_access insn_access(uint32_t insn);

#endif
