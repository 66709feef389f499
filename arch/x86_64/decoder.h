/* SPDX-License-Identifier: MIT */
/*
 * The only door to Zydis. The library is linked, not opened by dlopen: that would make the loader
 * run libc's constructors at our start, too early and with an empty environment.
 */
#ifndef ARCH_X86_64_DECODER_H
#define ARCH_X86_64_DECODER_H

#include "../mem.h"

enum insn_kind {
	INSN_PLAIN,	    /* goes on behind itself */
	INSN_JUMP,	    /* jmp rel8, rel32 */
	INSN_BRANCH,	    /* jcc rel8, rel32 */
	INSN_LOOP,	    /* loop, loope, loopne, jrcxz, jecxz: rel8 only */
	INSN_CALL,	    /* call rel32 */
	INSN_JUMP_INDIRECT, /* jmp through a register or memory */
	INSN_CALL_INDIRECT,
	INSN_RETURN, /* near ret */
	INSN_STOP,   /* ud2, hlt: does not go on */
	INSN_FIXED,  /* cannot be imitated elsewhere */
};

#define INSN_NO_BASE 0xff
#define INSN_FLAGS   0x8d5 /* CF PF AF ZF SF OF, at their places in rflags */

struct insn {
	uint8_t len;
	uint8_t kind;	  /* enum insn_kind */
	uint8_t map;	  /* 0: one-byte opcodes, 1: 0f xx, 0xff: any other encoding */
	uint8_t opcode;
	uint8_t modrm;	  /* 0 when there is none */
	uint8_t modrm_at; /* offsets in the instruction; 0: there is none */
	uint8_t rip_at;	  /* RIP-relative disp32 */
	uint8_t rel_at;	  /* displacement of a branch, rel_size bytes */
	uint8_t rel_size;
	uint8_t imm_size; /* bytes */
	bool rex_b, rex_r;
	bool extended;	/* may use other than general registers and flags */
	uint8_t base;	/* of a memory operand without index: register number as encoded */
	int32_t disp;	/* of that operand */
	int32_t imm;
	int32_t rel; /* branch target - (address + len) */
	uint16_t reads, writes; /* INSN_FLAGS; writes: in every case */
};

/* 0; -ENOENT: the library is of another version. May be called again, by one thread at a time. */
int decoder_open(void);

/* One instruction of at most @room bytes. False: there is none. Needs decoder_open(). */
bool decoder_read(const uint8_t *code, size_t room, struct insn *insn);

/* May the instruction go on behind itself? (calls do) */
static inline bool insn_ends(const struct insn *insn)
{
	return insn->kind == INSN_JUMP || insn->kind == INSN_JUMP_INDIRECT ||
		insn->kind == INSN_RETURN || insn->kind == INSN_STOP;
}

/* Does it use the word at @disp(%reg), as memory or for its address? A lea of (%reg) is only a copy
 * of the register. */
static inline bool insn_uses_word(const struct insn *insn, uint8_t reg, int32_t disp)
{
	bool copies = insn->map == 0 && insn->opcode == 0x8d && disp == 0;

	return insn->base == reg && insn->disp == disp && !copies;
}

#endif
