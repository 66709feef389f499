/* SPDX-License-Identifier: MIT */
/*
 * The functions of a module, from everything its file says: .symtab, else .dynsym, joined with the
 * function starts of .eh_frame, so that stripped programs are covered too.
 */
#ifndef TRACER_SYMBOLS_H
#define TRACER_SYMBOLS_H

#include "ehframe.h"

struct symbol {
	uint64_t start, end;  /* [start, end), link-time; end by symbol size, else by unwind range,
			       * else limit */
	uint64_t limit;	      /* see isa_func */
	const char *name;     /* raw; NULL: known from .eh_frame only */
	const char **aliases; /* further names of the same address */
	uint16_t naliases;
	uint8_t reason; /* enum site_reason: REASON_NONE; REASON_FRAGMENT, REASON_SIGNAL_FRAME,
			 * REASON_RESOLVER (to be refused), or REASON_RETURNS_TWICE,
			 * REASON_READS_RETURN, REASON_NO_RETURN (entry only, by name or by row) */
	uint8_t local;	/* powerpc: offset of the local entry */
	bool ifunc;	/* STT_GNU_IFUNC: this is the resolver */
	bool inside;	/* see isa_func; not by symbols_read() */
	bool exported;	/* in .dynsym */
	const struct eh_fde *fde; /* the one that starts here; NULL: none */
};

struct symbols {
	struct symbol *list; /* sorted by start, one per address */
	size_t count;
	struct eh_fde *fdes; /* all, sorted */
	size_t nfdes;
	size_t damaged_fdes;
};

/* Everything lives in @arena; names point into the file's bytes. 0 or -ENOMEM. */
int symbols_read(struct symbols *symbols, const struct elffile *elf, const struct isa *isa,
	struct arena *arena);

/* By name: REASON_RETURNS_TWICE or REASON_READS_RETURN where a function that jumps here must not
 * have replaced its return address either; else REASON_NONE. */
uint8_t symbols_keeps_return(const struct symbol *symbol);

/* The words that dynamic relocations fill with addresses of such functions; sorted, in @arena.
 * Returns their number or -ENOMEM. */
long symbols_slots(const struct elffile *elf, struct arena *arena, struct isa_slot **slots);

/* The word that the loader fills with what the STT_GNU_IFUNC at @resolver returns; 0: there is none. */
uint64_t symbols_resolved_at(const struct elffile *elf, uint64_t resolver);

#endif
