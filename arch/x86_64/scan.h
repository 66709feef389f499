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
	FACT_FLAGS_JUMP = 1 << 3, /* jumps, not calls, to where @flows says */
	FACT_SWITCHES = 1 << 4,	  /* has an indirect jump through a register */
	FACT_REFERRED = 1 << 5,	  /* called directly, or its address is taken */
	FACT_BRANCHED_TO = 1 << 6, /* by a conditional jump of another function */
	FACT_PADDED = 1 << 7,	  /* nothing but nops or int3 up to the limit */
	FACT_PAD_TAKEN = 1 << 8,
	FACT_CALLS_INSIDE = 1 << 9, /* calls its own middle, which finds the return address there */
};

/* Window offsets count from start + offset. */
struct x86_func {
	uint64_t hop;	 /* address of the padding used */
	uint64_t flows;	 /* address of a function that it calls or jumps to while the flags are still
			  * its caller's; 0: none */
	uint32_t landed; /* bit n: a branch or pointer goes to window offset n */
	uint32_t tabled; /* same, by a jump table */
	uint16_t facts;	 /* enum x86_fact */
	uint8_t offset;	 /* of the patch: behind endbr64 */
	uint8_t len;	 /* window of a 5-byte patch, shorter for SITE_PADDING; 0: none */
	uint8_t hop_len; /* window of a 2-byte patch; 0: none */
	uint8_t first;	 /* length of the first instruction */
	uint8_t choice;	 /* enum site_choice: what the function's own bytes allow, then the final */
	uint8_t reason;	 /* enum site_reason of a refusal */
	uint8_t keeps;	 /* enum site_reason: why its return address must be its caller's; 0 */
};

/* One bit per byte of a text. */
struct x86_map {
	uint8_t *windows;   /* inside a window, not at its first byte: nothing may land there */
	uint8_t *anonymous; /* start of an anonymous function that is not FACT_REFERRED yet */
	uint8_t *marked;    /* flow.c cares for who goes here */
};

/* A place in funcs[index] that may be a branch to another function. */
struct x86_link {
	uint64_t field; /* address of its displacement */
	uint64_t target;
	uint32_t index;
};

#define X86_LINKS 1024
struct x86_links {
	struct x86_links *next;
	size_t n;
	struct x86_link list[X86_LINKS];
};

struct x86_scan {
	struct x86_func *funcs; /* one per isa_module.funcs */
	struct x86_map *maps;	/* one per isa_module.texts */
	struct x86_links *links, *last_links;
	bool no_memory; /* for links */
};

/* The text that holds @addr, or NULL. */
const struct isa_text *x86_text_at(const struct isa_module *module, uint64_t addr);

/* The last function that starts at or before @addr; module->nfuncs: none. */
size_t x86_func_at(const struct isa_module *module, uint64_t addr);

/* Does funcs[index] look like a part of another function: conditional jumps of others go there, and
 * nothing calls it or takes its address? */
bool x86_scan_jumped_to(const struct isa_module *module, size_t index);

/* Length of the nop that begins at @code, or 0. */
size_t x86_nop_len(const uint8_t *code, size_t room);

/* Are these @n bytes nothing but whole nops and int3? True for none. */
bool x86_is_padding(const uint8_t *code, size_t n);

/* Look at the first instructions of funcs[index]: what could be patched, and which flags live. */
void x86_site_probe(const struct isa_module *module, size_t index);

/* Once all functions are probed: mark what the scan is to look out for. */
void x86_flow_begin(const struct isa_module *module);

/* jmp *slot(%rip) at offset @at: why no return point may be handed to the slot's function, or 0. */
uint8_t x86_flow_stub(const struct isa_module *module, const struct isa_text *text, size_t at);

void x86_flow_add(const struct isa_module *module, const struct x86_link *link);

/* Once all text is scanned: what functions get from those they jump to. 0 or -ENOMEM. */
int x86_flow_settle(const struct isa_module *module);

/* Settle the choice of all functions, once everything that lands in windows is known. */
void x86_site_settle(const struct isa_module *module);

#endif
