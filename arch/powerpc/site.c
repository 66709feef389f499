/* SPDX-License-Identifier: MIT */
/*
 * Chooses where a function is patched: its first instruction at the local entry, which calls by
 * way of the global one come to as well. One instruction is always enough.
 */
#include "scan.h"
#include "encode.h"

#define IN_WALK_MAX	16 /* instructions looked at for registers read at the entry */
#define RETURN_WALK_MAX 256
#define SAVED_LR	16 /* in the caller's frame. ELFv2 ABI, 2.2.2.1 */

/* A function's own bytes. */
struct code {
	const uint8_t *bytes;
	size_t size;
};

static uint32_t word_at(const struct code *code, size_t at)
{
	uint32_t word = 0;

	if (at + 4 <= code->size)
		memcpy(&word, code->bytes + at, 4);
	return word;
}

#define HALF(word) ((word) >> 16)
#define ADDIS_R2_R12 0x3c4c
#define LIS_R2	     0x3c40
#define ADDI_R2_R2   0x3842
#define LD_R2_R12    0xe84c
#define ADD_R2	     0x7c426214u /* add r2,r2,r12 */
#define STD_TOC	     0xf8410018u /* std r2,24(r1) */

/* Where the instructions end that a global entry computes the TOC pointer with. */
static uint8_t behind_toc(const struct code *code)
{
	uint32_t first = word_at(code, 0), second = word_at(code, 4);
	bool two = HALF(first) == ADDIS_R2_R12 || HALF(first) == LIS_R2;

	if ((two && HALF(second) == ADDI_R2_R2)
		|| (HALF(first) == LD_R2_R12 && second == ADD_R2))
		return 8;
	return 0;
}

/* The linker's stubs have unwind tables, and so look like functions where names are missing. */
static bool is_stub(const struct code *code)
{
	uint32_t words[4];

	for (int i = 0; i < 4; i++)
		words[i] = word_at(code, 4 * (size_t)i);
	return words[0] == STD_TOC
		|| ((words[0] >> 26 == 15 || words[0] >> 26 == 1) && HALF(words[1]) >> 5 == 0x74c
			&& words[2] == ppc_mtspr(SPR_CTR, R12) && words[3] == PPC_BCTR)
		|| (words[0] == ppc_mfspr(R0, SPR_LR) && words[1] == 0x429f0005);
}

/* li r0,172; sc: the kernel lets signal handlers return to such code. */
static bool is_restorer(const struct code *code)
{
	return word_at(code, 0) == ppc_li(R0, 172) && word_at(code, 4) == 0x44000002;
}

static uint64_t registers_in(const struct code *code, size_t at)
{
	uint64_t left = PPC_FREE_IN | 1ull << R11, in = 0;
	struct ppc_insn insn;

	for (int n = 0; n < IN_WALK_MAX && left; n++, at += insn.len) {
		if (at >= code->size || !ppc_insn_read(code->bytes + at, code->size - at, &insn))
			break;
		in |= insn.reads & left;
		left &= ~insn.writes;
		if (insn.link || ppc_insn_ends(&insn))
			break;
	}
	return in;
}

/*
 * From the local entry to its end: nothing but instructions that stay in the function, and returns;
 * what compilers put behind them begins with a zero word. r11 may be used where no branch leads
 * past its being written.
 */
static bool is_leaf(const struct code *code, size_t at)
{
	const uint64_t chain = 1ull << R11;
	bool branches = false, used = false, written = false;
	struct ppc_insn insn;

	for (; at < code->size; at += insn.len) {
		if (!ppc_insn_read(code->bytes + at, code->size - at, &insn))
			return false;
		if (!insn.word)
			break;
		if (insn.link || (insn.reads & chain && !written) || insn.word >> 26 == 17 /* sc */
			|| insn.kind == PPC_BCCTR || insn.kind == PPC_BCTAR)
			return false;
		if (insn.kind == PPC_B || insn.kind == PPC_BC) {
			if (ppc_insn_target(&insn, at) >= code->size)
				return false;
			branches = true;
		}
		used |= insn.reads & chain;
		written |= insn.writes & chain;
	}
	return !(used && branches);
}

/* ---- does it use its return address other than by returning? ---- */

struct tracker {
	uint64_t holders; /* registers with the return address */
	uint64_t frames;  /* registers with the address of the caller's frame */
	uint64_t copies;  /* of r1 */
	int64_t depth;	  /* r1 is this much below the caller's frame, */
	int64_t deepest;  /* and in the function's body */
	bool called;	  /* LR is no longer what it was */
};
#define ARGUMENTS 0x7f8ull /* r3 to r10 */
#define RESULTS	  0x18ull  /* r3, r4 */
#define VOLATILE  0x1ff9ull

static bool is_ld(uint32_t word)
{
	return word >> 26 == 58 && !(word & 3);
}

static bool is_std(uint32_t word)
{
	return word >> 26 == 62 && (word & 3) < 2;
}

/* How far from the caller's frame does a load or store go? */
static bool from_frame(const struct tracker *t, uint32_t word, int64_t *offset)
{
	uint64_t base = 1ull << (word >> 16 & 31);

	*offset = (int16_t)(word & 0xfffc);
	if (base & (t->copies | 1ull << R1))
		*offset -= t->depth;
	else if (!(base & t->frames))
		return false;
	return true;
}

/* An instruction that may read a holder. */
static bool is_returning(const struct tracker *t, const struct ppc_insn *insn)
{
	uint64_t holder = 1ull << (insn->word >> 21 & 31);
	unsigned xo = insn->word >> 1 & 0x3ff;
	int64_t offset;

	if (insn->word == ppc_mtspr(SPR_LR, insn->word >> 21 & 31))
		return true;
	if (insn->word >> 26 == 31 && (xo == 722 || xo == 754)) /* hashst hashchk */
		return true;
	return is_std(insn->word) && from_frame(t, insn->word, &offset) && offset == SAVED_LR
		&& !(t->holders & insn->reads & ~holder);
}

static void track_writes(struct tracker *t, const struct ppc_insn *insn)
{
	uint64_t to = 1ull << (insn->word >> 21 & 31);
	bool holder = false, frame = false, copy = false;
	int64_t offset;

	if (is_ld(insn->word) && from_frame(t, insn->word, &offset)) {
		holder = offset == SAVED_LR;
		frame = offset == -t->depth && t->depth; /* the back chain */
	}
	if (insn->word == ppc_mfspr(insn->word >> 21 & 31, SPR_LR))
		holder = !t->called;
	if (insn->word >> 26 == 31 && insn->word == ppc_mr(insn->word >> 16 & 31, R1)) {
		copy = true;
		to = 1ull << (insn->word >> 16 & 31);
	}
	if ((insn->word & 0xffff0003) == 0xf8210001) /* stdu r1,-n(r1) */
		t->deepest = t->depth -= (int16_t)(insn->word & 0xfffc);
	else if (insn->word >> 16 == 0x3821) /* addi r1,r1,n */
		t->depth -= (int16_t)insn->word;
	else if (ppc_insn_ends(insn))
		t->depth = t->deepest;
	if (insn->word == ppc_mtspr(SPR_LR, insn->word >> 21 & 31))
		t->holders &= ~to; /* what is left there is of no use */
	t->holders = (t->holders & ~insn->writes) | (holder ? to : 0);
	t->frames = (t->frames & ~insn->writes) | (frame ? to : 0);
	t->copies = (t->copies & ~insn->writes) | (copy ? to : 0);
}

static bool reads_return(const struct code *code, size_t at)
{
	struct tracker t = { .holders = 0 };
	struct ppc_insn insn;

	for (int n = 0; n < RETURN_WALK_MAX; n++, at += insn.len) {
		bool leaves;

		if (at >= code->size || !ppc_insn_read(code->bytes + at, code->size - at, &insn))
			return false;
		leaves = insn.link
			|| (ppc_insn_ends(&insn)
				&& !(insn.kind == PPC_B && at + (uint64_t)insn.rel < code->size));
		if (leaves && t.holders & (insn.kind == PPC_BCLR ? RESULTS : ARGUMENTS))
			return true;
		if (insn.reads != PPC_ALL && insn.reads & t.holders && !is_returning(&t, &insn))
			return true;
		track_writes(&t, &insn);
		if (leaves) {
			t.holders &= ~VOLATILE;
			t.frames &= ~VOLATILE;
			t.called |= insn.link;
		}
	}
	return false;
}

/* ---- the site ---- */

static void refuse(struct ppc_func *func, enum site_reason reason)
{
	func->choice = SITE_REFUSED;
	func->reason = (uint8_t)reason;
}

static bool can_move(const struct ppc_insn *insn, const uint8_t *code)
{
	uint8_t copy[PPC_COPY_MAX];
	bool ends;

	/* at its own place: whether it can be reached from elsewhere is not for now */
	return ppc_relocate(code, insn->len, 0x40000000, 0x40000000, copy, &ends) >= 0;
}

/* The loader's entry for lazy binding: ELFv2 ABI, 4.2.5.3, what is wanted in r0 and r11. It jumps to
 * the function that it finds. */
#define RESOLVER_IN (1ull << R0 | 1ull << R11)

void ppc_site_probe(const struct isa_module *module, size_t index, struct ppc_func *func)
{
	const struct isa_func *self = &module->funcs[index];
	struct ppc_insn insn;
	struct code code;

	code.bytes = ppc_func_code(module, self, &code.size);
	func->keeps = self->keeps;
	func->offset = self->anonymous ? behind_toc(&code) : self->local;
	if (func->offset >= code.size || self->start & 3
		|| !ppc_insn_read(code.bytes + func->offset, code.size - func->offset, &insn)) {
		refuse(func, REASON_TOO_SHORT);
		return;
	}
	func->len = insn.len;
	func->in = registers_in(&code, func->offset);
	if (func->in & PPC_FREE_IN)
		func->facts |= FACT_OWN_RULES;
	if (is_leaf(&code, func->offset))
		func->facts |= FACT_LEAF;
	if (reads_return(&code, func->offset))
		func->facts |= FACT_READS_RETURN;
	if (self->anonymous && is_stub(&code))
		refuse(func, REASON_FRAGMENT);
	else if (self->anonymous && (func->in & RESOLVER_IN) == RESOLVER_IN)
		refuse(func, REASON_RESOLVER);
	else if (is_restorer(&code))
		refuse(func, REASON_SIGNAL_FRAME);
	else if (!insn.word)
		refuse(func, REASON_UNDECODABLE);
	else if (!can_move(&insn, code.bytes + func->offset))
		refuse(func, REASON_NOT_RELOCATABLE);
	else
		func->choice = insn.word == PPC_NOP ? SITE_NOPS : SITE_ONE;
}

void ppc_site(const struct isa_module *module, size_t index, struct isa_site *site)
{
	const struct ppc_scan *scan = module->scan;
	const struct ppc_func *func = &scan->funcs[index];

	*site = (struct isa_site){
		.choice = func->choice,
		.reason = func->reason,
		.scratch_in = scan->indirect_own_rules || func->facts & FACT_OWN_RULES,
		.leaf = func->facts & FACT_LEAF,
		.offset = func->offset,
		.len = func->len,
	};
	if (site->choice == SITE_REFUSED)
		return;
	if (func->facts & FACT_LOOPS) {
		site->choice = SITE_REFUSED;
		site->reason = REASON_LOOP_TO_ENTRY;
	} else if (func->keeps) {
		site->entry_only = true;
		site->reason = func->keeps;
	}
}
