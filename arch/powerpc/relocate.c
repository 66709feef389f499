/* SPDX-License-Identifier: MIT */
/*
 * Moves the first instruction of a function to another address.
 *
 *   in the function          in the copy
 *   b                        b
 *   bc, bdnz ...             bc taken; b behind; taken: b target
 *   bl, bcl, bctrl, bctarl   LR = the original return address; the same without link
 *   addpcis                  the constant that it makes
 *   prefixed                 the same, not across 64 bytes; displacement re-based
 *   everything else          the same
 *
 * Refused: bcl 20,31 and other means to learn the own address in LR that go on right behind, scv,
 * and bclrl, which needs the old LR and the new one.
 */
#include "powerpc.h"
#include "encode.h"
#include "insn.h"

#include <errno.h>

struct copy {
	uint32_t words[PPC_COPY_MAX / 4];
	uint32_t n;
	uint64_t at; /* run-time address of words[0] */
	bool unreachable;
};

static void put(struct copy *copy, uint32_t word)
{
	copy->words[copy->n++] = word;
}

static void put_branch(struct copy *copy, uint64_t target)
{
	int64_t distance = (int64_t)(target - (copy->at + 4 * copy->n));

	copy->unreachable |= !ppc_in_reach(distance);
	put(copy, ppc_b(distance, false));
}

static void put_constant(struct copy *copy, enum ppc_reg reg, uint64_t value)
{
	ppc_constant(copy->words + copy->n, reg, value);
	copy->n += PPC_CONSTANT_WORDS;
}

/* What lies below the stack pointer is the function's own. */
static void put_link(struct copy *copy, uint64_t address)
{
	put(copy, ppc_std(R12, -8, R1));
	put_constant(copy, R12, address);
	put(copy, ppc_mtspr(SPR_LR, R12));
	put(copy, ppc_ld(R12, -8, R1));
}

static void put_conditional(struct copy *copy, uint32_t word, uint64_t target, uint64_t behind)
{
	put(copy, (word & ~0xffffu) | 8);
	put_branch(copy, behind);
	put_branch(copy, target);
}

/* A prefixed instruction in a block of 64 bytes. */
static void put_prefixed(struct copy *copy, const struct ppc_insn *insn, uint64_t target)
{
	int64_t rel;

	if ((copy->at + 4 * copy->n) % 64 == 60)
		put(copy, PPC_NOP);
	rel = (int64_t)(target - (copy->at + 4 * copy->n));
	if (insn->kind != PPC_PCREL) {
		put(copy, insn->word);
		put(copy, insn->suffix);
		return;
	}
	copy->unreachable |= rel >> 33 != 0 && rel >> 33 != -1;
	put(copy, (insn->word & ~0x3ffffu) | ((uint32_t)(rel >> 16) & 0x3ffff));
	put(copy, (insn->suffix & ~0xffffu) | ((uint32_t)rel & 0xffff));
}

static int put_insn(struct copy *copy, const struct ppc_insn *insn, uint64_t from)
{
	uint64_t target = ppc_insn_target(insn, from), behind = from + insn->len;
	uint32_t d = (insn->word >> 6 & 0x3ff) << 6 | (insn->word >> 16 & 31) << 1
		| (insn->word & 1);

	if (insn->kind == PPC_FIXED || (insn->link && insn->kind == PPC_BCLR)
		|| (insn->link && insn->kind == PPC_BC && target == behind))
		return -EINVAL;
	if (insn->link)
		put_link(copy, behind);
	if (insn->len == 8)
		put_prefixed(copy, insn, target);
	else if (insn->kind == PPC_B && !insn->absolute)
		put_branch(copy, target);
	else if (insn->kind == PPC_BC)
		put_conditional(copy, insn->word, target, behind);
	else if (insn->kind == PPC_ADDPCIS)
		put_constant(copy, insn->word >> 21 & 31,
			behind + (uint64_t)((int64_t)(int16_t)d * 65536));
	else
		put(copy, insn->link ? insn->word & ~1u : insn->word);
	return copy->unreachable ? -ERANGE : 0;
}

int ppc_relocate(const uint8_t *code, size_t len, uint64_t from, uint64_t at, uint8_t *out,
	bool *ends)
{
	struct copy copy = { .at = at };
	struct ppc_insn insn;
	int err;

	if (!ppc_insn_read(code, len, &insn) || insn.len != len)
		return -EINVAL;
	err = put_insn(&copy, &insn, from);
	if (err)
		return err;
	*ends = insn.kind == PPC_B || insn.kind == PPC_BC
		|| (insn.kind >= PPC_BCLR && insn.kind <= PPC_BCTAR && !insn.conditional);
	memcpy(out, copy.words, 4 * copy.n);
	return (int)(4 * copy.n);
}
