/* SPDX-License-Identifier: MIT */
/* What scan.c and site.c know of a module between them. */
#ifndef ARCH_POWERPC_SCAN_H
#define ARCH_POWERPC_SCAN_H

#include "powerpc.h"
#include "insn.h"

enum ppc_fact {
	FACT_LOOPS = 1 << 0,	    /* branches to its own entry */
	FACT_READS_RETURN = 1 << 1, /* uses its return address other than by returning */
	/*
	 * It, or who calls it, relies on registers that the ABI leaves to callees: written by hand,
	 * with rules of its own. Detours keep every register for it.
	 */
	FACT_OWN_RULES = 1 << 2,
	FACT_LEAF = 1 << 3, /* see isa_site.leaf */
};

struct ppc_func {
	uint64_t in;	/* registers read before written, of those the ABI leaves to callees */
	uint8_t facts;	/* enum ppc_fact */
	uint8_t offset; /* of the local entry */
	uint8_t len;	/* of the first instruction there; 0: none */
	uint8_t choice; /* enum site_choice */
	uint8_t reason; /* enum site_reason of a refusal */
	uint8_t keeps;	/* enum site_reason: why its return address must be its caller's; 0 */
};

/* funcs[from] may go on in funcs[to] with its own caller's return address. */
struct ppc_link {
	struct ppc_link *next;
	uint32_t from, to;
};

struct ppc_scan {
	struct ppc_func *funcs; /* one per isa_module.funcs */
	struct ppc_link *links;
	struct ppc_pad *pads; /* island.c's, by address; made when first needed */
	size_t npads;
	bool indirect_own_rules; /* who calls through a pointer relies on such registers */
};

/* At a function's entry these are nobody's, and so they are behind its return. */
#define PPC_FREE_IN  (1ull << 0 | 1ull << 12 | PPC_CR0 | PPC_XER)
#define PPC_FREE_OUT (PPC_FREE_IN | 0xfull << 8)

/* Look at the instructions of funcs[index] alone. */
void ppc_site_probe(const struct isa_module *module, size_t index, struct ppc_func *func);

/* The bytes of a function; at most those that are in the text. */
const uint8_t *ppc_func_code(const struct isa_module *module, const struct isa_func *func,
	size_t *size);

#endif
