/* SPDX-License-Identifier: MIT */
/* What emit.c and hook.c write code and its unwind rows with. */
#ifndef ARCH_ARM64_EMITTER_H
#define ARCH_ARM64_EMITTER_H

#include "a64.h"
#include "insn.h"

enum { X0, X8 = 8, X9, X10, X11, X12, X13, X14, X16 = 16, X17, X18, X29 = 29, X30, SP, XZR = 31 };

/* The frame of D and T: x9, x10; x11, x12 with times; x16, x17 where they hold something. */
#define SAVE 48

struct emitter {
	uint8_t *start, *p;
	uint64_t at; /* run-time address of start */
	bool unreachable;
	bool times, keep16;
	const struct isa_env *env;
	struct isa_range *range;
	uint8_t *row; /* code position of the newest row */
};

static inline void put(struct emitter *e, uint32_t insn)
{
	memcpy(e->p, &insn, 4);
	e->p += 4;
}

static inline uint32_t here(const struct emitter *e)
{
	return (uint32_t)(e->p - e->start);
}

/* ---- instructions ---- */

static inline void load(struct emitter *e, unsigned rt, unsigned rn, unsigned offset)
{
	put(e, 0xf9400000u | offset / 8 << 10 | rn << 5 | rt);
}

static inline void store(struct emitter *e, unsigned rt, unsigned rn, unsigned offset)
{
	put(e, 0xf9000000u | offset / 8 << 10 | rn << 5 | rt);
}

enum pair { STORE_PAIR = 0x29000000, LOAD_PAIR = 0x29400000, PUSH_PAIR = 0x29800000,
	POP_PAIR = 0x28c00000 };

static inline void pair(struct emitter *e, enum pair op, unsigned rt, unsigned rt2, unsigned rn, int offset)
{
	put(e, 0x80000000u | (uint32_t)op | ((uint32_t)(offset / 8) & 0x7f) << 15 | rt2 << 10
			| rn << 5 | rt);
}

enum operation { ADD = 0x0b000000, SUB = 0x4b000000 };

static inline void operate(struct emitter *e, enum operation op, unsigned rd, unsigned rn, unsigned rm)
{
	put(e, 0x80000000u | (uint32_t)op | rm << 16 | rn << 5 | rd);
}

#define SHIFT_12 (1u << 22)
static inline void add_number(struct emitter *e, unsigned rd, unsigned rn, unsigned number, uint32_t shift)
{
	put(e, 0x91000000u | shift | number << 10 | rn << 5 | rd);
}

static inline void sub_number(struct emitter *e, unsigned rd, unsigned rn, unsigned number, uint32_t shift)
{
	put(e, 0xd1000000u | shift | number << 10 | rn << 5 | rd);
}

static inline void load_number(struct emitter *e, unsigned rd, uint64_t value)
{
	uint32_t insns[4];
	unsigned n = a64_load_number(rd, value, insns);

	for (unsigned i = 0; i < n; i++)
		put(e, insns[i]);
}

#define LDUR  0xf8400000u
#define LDR_W 0xb9400000u
#define STR_W 0xb9000000u
#define LDRSW 0xb9800000u
#define LDR_LITERAL 0x58000000u
#define LSR_20	    0xd354fc00u
#define MOVK_32	    0xf2c00000u /* bits 32 to 47 */
#define STADD 0xf820001fu /* [xn] += xs */
#define LDXR  0xc85f7c00u
#define STXR  0xc8007c00u
#define CBNZ_W 0x35000000u

/*
 * The counter at [rn] += 1, in one piece: the handler of a signal in between may count there, too. @rt is
 * changed, and @rs where the CPU has no atomic additions.
 */
static inline void count(struct emitter *e, unsigned rt, unsigned rs, unsigned rn)
{
	if (e->env->features & A64_FEATURE_ATOMICS) {
		load_number(e, rt, 1);
		put(e, STADD | rt << 16 | rn << 5);
		return;
	}
	put(e, LDXR | rn << 5 | rt);
	add_number(e, rt, rt, 1, 0);
	put(e, STXR | rs << 16 | rn << 5 | rt);
	put(e, CBNZ_W | (0x7ffffu & (unsigned)-3) << 5 | rs);
}

#define MRS_TPIDR  0xd53bd040u
#define MRS_CNTVCT 0xd53be040u
#define MRS_NZCV   0xd53b4200u
#define MSR_NZCV   0xd51b4200u
#define BR	   0xd61f0000u
#define BLR	   0xd63f0000u
#define RET	   0xd65f03c0u
#define BRK	   0xd4200000u
#define CHKFEAT_X16 0xd503251fu
#define GCSPOPM	   0xd52b7720u
#define ADR	   0x10000000u
#define CBZ	   0xb4000000u
#define CBNZ	   0xb5000000u
#define TBZ_SIGN   0xb6f80000u /* tbz x?, #63: not negative */
#define TBNZ_SIGN  0xb7f80000u

/* b or bl to a run-time address */
static inline void branch(struct emitter *e, uint32_t opcode, uint64_t target)
{
	uint32_t insn;

	e->unreachable |= !a64_branch(opcode, e->at + here(e), target, &insn);
	put(e, insn);
}

/* Make the branch, adr or ldr at @from refer to @to; both are in this detour. */
static inline void refer(uint8_t *from, const uint8_t *to)
{
	uint32_t insn = insn_read(from);
	uint32_t words = (uint32_t)((to - from) / 4);
	enum insn_kind kind = insn_kind(insn);

	if (kind == INSN_B || kind == INSN_BL)
		insn |= words & 0x3ffffff;
	else if (kind == INSN_TBZ)
		insn |= (words & 0x3fff) << 5;
	else
		insn |= (words & 0x7ffff) << 5;
	memcpy(from, &insn, 4);
}

/* A branch whose place is given later, by refer(). */
static inline uint8_t *branch_ahead(struct emitter *e, uint32_t insn)
{
	put(e, insn);
	return e->p - 4;
}

static inline void branch_back(struct emitter *e, uint32_t insn, const uint8_t *to)
{
	put(e, insn);
	refer(e->p - 4, to);
}

/* ---- unwind rows ---- */

#define DW_CFA_AARCH64_negate_ra_state 0x2d

#define ROW_UNIT 4
#include "../rows.h"

/* The return address is in x30 from here on. */
static inline void row_in_link(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_same_value);
	cfi_byte(e, X30);
}

/* x30 is signed from here on, or no longer. */
static inline void row_signed(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_AARCH64_negate_ra_state);
}

/* hook.c: the stubs that call handlers */
void a64_emit_hooks(struct emitter *e, struct isa_common *common, struct isa_range *range);

#endif
