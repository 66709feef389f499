/* SPDX-License-Identifier: MIT */
/* Instruction words. Operands are in the assembler's order; displacements are not checked. */
#ifndef ARCH_POWERPC_ENCODE_H
#define ARCH_POWERPC_ENCODE_H

#include <stdint.h>

enum ppc_reg { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13,
	R31 = 31 };
enum ppc_spr { SPR_XER = 1, SPR_LR = 8, SPR_CTR = 9, SPR_TB = 268 };
/* BO and BI of conditional branches on CR0 */
enum ppc_condition { COND_GE = 4 << 5 | 0, COND_LE = 4 << 5 | 1, COND_NE = 4 << 5 | 2,
	COND_LT = 12 << 5 | 0, COND_GT = 12 << 5 | 1, COND_EQ = 12 << 5 | 2 };

#define PPC_NOP	   0x60000000u
#define PPC_BLR	   0x4e800020u
#define PPC_BCTR   0x4e800420u
#define PPC_BCTRL  0x4e800421u
#define PPC_TRAP   0x7fe00008u
#define PPC_LD_TOC 0xe8410018u /* ld r2,24(r1) */

static inline uint32_t ppc_d(unsigned opcode, unsigned rt, unsigned ra, int64_t d)
{
	return opcode << 26 | rt << 21 | ra << 16 | (uint32_t)(d & 0xffff);
}

/* rt, ra and rb are the fields in this order; logical instructions have their result in ra. */
static inline uint32_t ppc_x(unsigned xo, unsigned rt, unsigned ra, unsigned rb)
{
	return 31u << 26 | rt << 21 | ra << 16 | rb << 11 | xo << 1;
}
#define PPC_RECORD 1u /* or'ed in: set CR0 */

static inline uint32_t ppc_ld(enum ppc_reg rt, int64_t d, enum ppc_reg ra)
{
	return ppc_d(58, rt, ra, d);
}

static inline uint32_t ppc_std(enum ppc_reg rs, int64_t d, enum ppc_reg ra)
{
	return ppc_d(62, rs, ra, d);
}

/* Without displacement, so that r0 can be the base: ra = 0. */
static inline uint32_t ppc_ldx(enum ppc_reg rt, unsigned ra, enum ppc_reg rb)
{
	return ppc_x(21, rt, ra, rb);
}

static inline uint32_t ppc_ldarx(enum ppc_reg rt, unsigned ra, enum ppc_reg rb)
{
	return ppc_x(84, rt, ra, rb);
}

static inline uint32_t ppc_stdcx_(enum ppc_reg rs, unsigned ra, enum ppc_reg rb) /* stdcx. */
{
	return ppc_x(214, rs, ra, rb) | 1;
}

#define PPC_BNE_BACK_12 0x4082fff4u

static inline uint32_t ppc_stdu(enum ppc_reg rs, int64_t d, enum ppc_reg ra)
{
	return ppc_d(62, rs, ra, d) | 1;
}

static inline uint32_t ppc_stdux(enum ppc_reg rs, enum ppc_reg ra, enum ppc_reg rb)
{
	return ppc_x(181, rs, ra, rb);
}

/* ra = rs with the lowest 6 bits cleared */
static inline uint32_t ppc_clrrdi6(enum ppc_reg ra, enum ppc_reg rs)
{
	return ppc_d(30, rs, ra, 25 << 6 | 1 << 5 | 1 << 2);
}

static inline uint32_t ppc_lwz(enum ppc_reg rt, int64_t d, enum ppc_reg ra)
{
	return ppc_d(32, rt, ra, d);
}

static inline uint32_t ppc_lwa(enum ppc_reg rt, int64_t d, enum ppc_reg ra)
{
	return ppc_d(58, rt, ra, d) | 2;
}

static inline uint32_t ppc_addi(enum ppc_reg rt, enum ppc_reg ra, int64_t value)
{
	return ppc_d(14, rt, ra, value);
}

static inline uint32_t ppc_li(enum ppc_reg rt, int64_t value)
{
	return ppc_d(14, rt, 0, value);
}

static inline uint32_t ppc_addis(enum ppc_reg rt, enum ppc_reg ra, int64_t value)
{
	return ppc_d(15, rt, ra, value);
}

static inline uint32_t ppc_addic(enum ppc_reg rt, enum ppc_reg ra, int64_t value)
{
	return ppc_d(12, rt, ra, value);
}

static inline uint32_t ppc_addic_(enum ppc_reg rt, enum ppc_reg ra, int64_t value) /* addic. */
{
	return ppc_d(13, rt, ra, value);
}

static inline uint32_t ppc_cmpdi(enum ppc_reg ra, int64_t value)
{
	return ppc_d(11, 1, ra, value);
}

static inline uint32_t ppc_cmpldi(enum ppc_reg ra, int64_t value)
{
	return ppc_d(10, 1, ra, value);
}

static inline uint32_t ppc_cmpd(enum ppc_reg ra, enum ppc_reg rb)
{
	return ppc_x(0, 1, ra, rb);
}

static inline uint32_t ppc_cmpld(enum ppc_reg ra, enum ppc_reg rb)
{
	return ppc_x(32, 1, ra, rb);
}

static inline uint32_t ppc_add(enum ppc_reg rt, enum ppc_reg ra, enum ppc_reg rb)
{
	return ppc_x(266, rt, ra, rb);
}

static inline uint32_t ppc_sub(enum ppc_reg rt, enum ppc_reg ra, enum ppc_reg rb) /* ra - rb */
{
	return ppc_x(40, rt, rb, ra);
}

static inline uint32_t ppc_not(enum ppc_reg ra, enum ppc_reg rs)
{
	return ppc_x(124, rs, ra, rs);
}

static inline uint32_t ppc_mr(enum ppc_reg ra, enum ppc_reg rs)
{
	return ppc_x(444, rs, ra, rs);
}

static inline uint32_t ppc_mfspr(enum ppc_reg rt, enum ppc_spr spr)
{
	return ppc_x(339, rt, spr & 31, spr >> 5);
}

static inline uint32_t ppc_mtspr(enum ppc_spr spr, enum ppc_reg rs)
{
	return ppc_x(467, rs, spr & 31, spr >> 5);
}

/* mfocrf, mtocrf: CR0 alone is read, or written */
static inline uint32_t ppc_mfcr0(enum ppc_reg rt)
{
	return ppc_x(19, rt, 0, 0) | 1u << 20 | 0x80u << 12;
}

static inline uint32_t ppc_mtcr0(enum ppc_reg rs)
{
	return ppc_x(144, rs, 0, 0) | 1u << 20 | 0x80u << 12;
}

static inline uint32_t ppc_mfcr(enum ppc_reg rt)
{
	return ppc_x(19, rt, 0, 0);
}

static inline uint32_t ppc_mtcr(enum ppc_reg rs)
{
	return ppc_x(144, rs, 0, 0) | 0xffu << 12;
}

/* rldicr and rldicl: the upper bit of a number of 6 bits is apart from the others */
static inline uint32_t ppc_sldi(enum ppc_reg ra, enum ppc_reg rs, unsigned n)
{
	unsigned me = 63 - n;

	return ppc_d(30, rs, ra, 0) | (n & 31) << 11 | (me & 31) << 6 | (me & 32) | 1 << 2 | n >> 5 << 1;
}

static inline uint32_t ppc_srdi(enum ppc_reg ra, enum ppc_reg rs, unsigned n)
{
	unsigned sh = 64 - n;

	return ppc_d(30, rs, ra, 0) | (sh & 31) << 11 | (n & 31) << 6 | (n & 32) | sh >> 5 << 1;
}

/* Bits @mb to @me of ra's low word, counted from the left, are those of rs's rotated by @shift. */
static inline uint32_t ppc_rlwimi(
	enum ppc_reg ra, enum ppc_reg rs, unsigned shift, unsigned mb, unsigned me)
{
	return ppc_d(20, rs, ra, 0) | shift << 11 | mb << 6 | me << 1;
}

static inline uint32_t ppc_b(int64_t distance, bool link)
{
	return 18u << 26 | ((uint32_t)distance & 0x3fffffc) | link;
}

static inline uint32_t ppc_bc(enum ppc_condition condition, int64_t distance)
{
	return 16u << 26 | (uint32_t)condition << 16 | ((uint32_t)distance & 0xfffc);
}

#define PPC_CONSTANT_WORDS 5
/* Load any 64 bits, with no other register changed. */
static inline void ppc_constant(uint32_t *out, enum ppc_reg rt, uint64_t value)
{
	out[0] = ppc_addis(rt, 0, (int64_t)(value >> 48));
	out[1] = ppc_d(24, rt, rt, (int64_t)(value >> 32));			   /* ori */
	out[2] = 30u << 26 | (unsigned)rt << 21 | (unsigned)rt << 16 | 0x7c6; /* sldi 32 */
	out[3] = ppc_d(25, rt, rt, (int64_t)(value >> 16));			   /* oris */
	out[4] = ppc_d(24, rt, rt, (int64_t)value);
}

/* Is @distance, a multiple of 4, in reach of b and bl? */
static inline bool ppc_in_reach(int64_t distance)
{
	return distance >= -0x2000000 && distance < 0x2000000;
}

#endif
