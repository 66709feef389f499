/* SPDX-License-Identifier: MIT */
/*
 * Reads call frame information (.eh_frame) from memory, without trusting it. Sources: LSB 5.0
 * core, "Exception Frames"; DWARF 5, section 6.4. See elffile.h for who may call what where.
 */
#ifndef TRACER_EHFRAME_H
#define TRACER_EHFRAME_H

#include "elffile.h"
#include "../arch/arch.h"

struct eh_fde {
	uint64_t start, end;	/* link-time range */
	uint64_t lsda;		/* address; 0: none */
	uint64_t personality;	/* address of the routine, or of the word that holds its address when
				 * personality_indirect; 0: none */
	bool personality_indirect;
	bool signal_frame;	/* 'S' */
	bool b_key;		/* 'B' (arm64) */
	uint8_t ra_column;
	uint64_t code_align;
	int64_t data_align;
	const uint8_t *initial, *initial_end; /* the CIE's instructions */
	const uint8_t *insns, *insns_end;     /* the FDE's */
};

/* All FDEs, sorted by start, into @arena. Damaged ones are left out and counted in *@damaged
 * (may be NULL). Returns their number, or -ENOMEM. */
long ehframe_read(const struct elffile *elf, struct arena *arena, struct eh_fde **fdes,
	size_t *damaged);

/* Where the return address is, as seen from the CFA. */
enum eh_ra {
	EH_RA_REGISTER,	 /* still in its own register: no rule, or "same value" */
	EH_RA_AT_CFA,	 /* in memory, at CFA + ra_offset */
	EH_RA_UNDEFINED, /* there is none: an outermost frame */
	EH_RA_OTHER,	 /* an expression, another register ... */
};

struct eh_row {
	uint64_t from, to; /* [from, to), offsets from the FDE's start */
	uint64_t cfa_base; /* DWARF number of the base register; EH_CFA_OTHER: an expression */
	int64_t cfa_offset;
	int64_t ra_offset;
	enum eh_ra ra;
};
#define EH_CFA_OTHER UINT64_MAX
#define EH_SAVED_MAX 8 /* nested remember_state; compilers nest one */

/*
 * Goes through an FDE's rows: begin with ehframe_walk(), then ehframe_next() sets `row` until it
 * returns false: at the end of the range, or early where something cannot be interpreted.
 */
struct eh_walk {
	const struct eh_fde *fde;
	const uint8_t *next;
	struct eh_row row;
	struct eh_row state, initial, saved[EH_SAVED_MAX]; /* rules only, no range */
	size_t nsaved;
	bool damaged;
};
void ehframe_walk(struct eh_walk *walk, const struct eh_fde *fde);
bool ehframe_next(struct eh_walk *walk);

/* True when the row is as at a function's entry on this CPU: see ehframe_entry_row(). */
bool ehframe_row_is_entry(const struct eh_walk *walk, const struct isa *isa);

/*
 * What the first row says: true when it is a function's entry row for this CPU: the CFA is
 * isa->entry_cfa_base + entry_cfa_offset, and the return address where isa says.
 * *@undefined_ra: the return address is marked undefined (an outermost frame such as _start).
 */
bool ehframe_entry_row(const struct eh_fde *fde, const struct isa *isa, bool *undefined_ra);

/*
 * Where the return address is, by offset from the start: isa_row per change of the CFA rule,
 * coalesced; base 0xff where the CFA or the return address's rule is an expression or
 * not "saved at CFA + n". Returns the number of rows (allocated from @arena), 0 when no row is
 * known, or -ENOMEM.
 */
long ehframe_rows(const struct eh_fde *fde, struct arena *arena, struct isa_row **rows);

/*
 * The raw instructions in force up to (not including) offset @upto from the start: the CIE's
 * initial ones with at = 0, then the FDE's with the offset at which each takes effect. The bytes
 * point into the file. Returns how many were stored in @cfi (at most @max), or -EINVAL when the
 * FDE cannot be taken apart, or its data_align is not the usual -8 (code_align matters to
 * advance_loc only), or @max does not suffice.
 */
long ehframe_cfi(const struct eh_fde *fde, uint64_t upto, struct isa_cfi *cfi, size_t max);

#endif
