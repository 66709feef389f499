/* SPDX-License-Identifier: MIT */
/* What scan.c and site.c know of a module between them. */
#ifndef ARCH_X86_64_SCAN_H
#define ARCH_X86_64_SCAN_H

#include "x86.h"
#include "decoder.h"

#define X86_HOP_SIZE 2 /* eb rel8 */

enum x86_fact {
	FACT_LOOPS = 1 << 0,	    /* jumps to its own entry */
	FACT_READS_RETURN = 1 << 1, /* uses its return address other than by returning */
	FACT_FLAGS_IN = 1 << 2,
	FACT_FLAGS_OUT = 1 << 3,
	FACT_SWITCHES = 1 << 4,	  /* has an indirect jump through a register */
	FACT_REFERRED = 1 << 5,	  /* called directly, or its address is taken */
	FACT_BRANCHED_TO = 1 << 6, /* by a conditional jump of another function */
	FACT_PADDED = 1 << 7,	  /* nothing but nops or int3 up to the limit */
	FACT_PAD_TAKEN = 1 << 8,
};

/* Window offsets count from start + offset. */
struct x86_func {
	uint64_t hop;	 /* address of the padding used */
	uint32_t landed; /* bit n: a branch or pointer goes to window offset n */
	uint32_t tabled; /* same, by a jump table */
	uint16_t facts;	 /* enum x86_fact */
	uint8_t offset;	 /* of the patch: behind endbr64 */
	uint8_t len;	 /* window of a 5-byte patch, shorter for SITE_PADDING; 0: none */
	uint8_t hop_len; /* window of a 2-byte patch; 0: none */
	uint8_t first;	 /* length of the first instruction */
	uint8_t choice;	 /* enum site_choice: what the function's own bytes allow, then the final */
	uint8_t reason;	 /* enum site_reason of a refusal */
};

/* One bit per byte of a text. */
struct x86_map {
	uint8_t *windows;   /* inside a window, not at its first byte: nothing may land there */
	uint8_t *anonymous; /* start of an anonymous function that is not FACT_REFERRED yet */
};

struct x86_scan {
	struct x86_func *funcs; /* one per isa_module.funcs */
	struct x86_map *maps;	/* one per isa_module.texts */
};

/* The text that holds @addr, or NULL. */
const struct isa_text *x86_text_at(const struct isa_module *module, uint64_t addr);

/* The last function that starts at or before @addr; module->nfuncs: none. */
size_t x86_func_at(const struct isa_module *module, uint64_t addr);

/* Does funcs[index] look like a part of another function: conditional jumps of others go there, and
 * nothing calls it or takes its address? */
bool x86_scan_jumped_to(const struct isa_module *module, size_t index);

/* Length of a ModRM byte with its SIB byte and displacement, or 0 when @room does not hold them. */
size_t x86_modrm_len(const uint8_t *modrm, size_t room);

/* Length of the nop that begins at @code, or 0. */
size_t x86_nop_len(const uint8_t *code, size_t room);

/* Are these @n bytes nothing but whole nops and int3? True for none. */
bool x86_is_padding(const uint8_t *code, size_t n);

/* Look at the first instructions of funcs[index]: what could be patched, and which flags live. */
void x86_site_probe(const struct isa_module *module, size_t index);

/* Settle the choice of all functions, once everything that lands in windows is known. */
void x86_site_settle(const struct isa_module *module);

#endif
