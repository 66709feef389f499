/* SPDX-License-Identifier: MIT */
/* What scan.c and site.c know of a module between them. */
#ifndef ARCH_ARM64_SCAN_H
#define ARCH_ARM64_SCAN_H

#include "a64.h"
#include "insn.h"

enum a64_fact {
	FACT_LOOPS = 1 << 0,	    /* branches to its own entry */
	FACT_READS_RETURN = 1 << 1, /* uses its return address other than by returning */
	FACT_SCRATCH_IN = 1 << 2,   /* x16 or x17 hold something at the entry */
	FACT_SWITCHES = 1 << 3,	    /* branches through a register */
	FACT_LANDED = 1 << 4,	    /* something goes into a long window, behind its start */
	FACT_REFERRED = 1 << 5,	    /* called directly, or its address is taken */
	FACT_BRANCHED_TO = 1 << 6,  /* by a conditional branch of another function */
	FACT_CALLS = 1 << 7,	    /* or makes system calls, or goes on elsewhere */
	FACT_SCRATCH_OUT = 1 << 8,  /* x16 or x17 are read behind a call of it */
};

struct a64_func {
	uint16_t facts; /* enum a64_fact */
	uint8_t offset; /* of the patch: behind a landing pad */
	uint8_t keeps;	/* enum site_reason: why its return address must be its caller's; 0 */
};

/* funcs[from] may go on in funcs[to] with its own caller's return address. */
struct a64_link {
	uint32_t from, to;
};

struct a64_scan {
	struct a64_func *funcs; /* one per isa_module.funcs */
	struct a64_link *links;
	size_t nlinks;
	bool indirect_out; /* x16 or x17 are read behind a call through a register */
};

/* The text that holds the instruction at @addr, or NULL. */
const struct isa_text *a64_text_at(const struct isa_module *module, uint64_t addr);

/* A function's own instructions. n is 0 when it is not in any text. */
struct a64_code {
	const uint8_t *bytes;
	size_t n;
};
struct a64_code a64_code_of(const struct isa_module *module, const struct isa_func *func);

/* What the function's own instructions tell: FACT_READS_RETURN, FACT_SCRATCH_IN, FACT_SWITCHES,
 * FACT_CALLS. */
uint16_t a64_look(const struct a64_code *code, const struct isa_func *func);

/* Where the patch goes: behind a landing pad. */
uint8_t a64_patch_offset(const struct a64_code *code);

#endif
