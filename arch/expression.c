/* SPDX-License-Identifier: MIT */
/*
 * The search, in words (key = -slot; keys grow with newer entries on one stack; 0 is a hole):
 *
 *   1. In the node whose stack bounds hold the slot: binary search. The last entry with
 *      0 < key <= K is looked for by halving steps; `key - 1 < K`, signed, says both at once.
 *   2. Else, and where holes or entries of other stacks misled the search: every entry of every
 *      node, newest first.
 *   3. An entry whose return address is itself a return point was made by a tail call that went
 *      unnoticed: the older entry of the same slot counts, go on below.
 *
 * Only operations that libgcc, LLVM libunwind, nongnu libunwind, gdb and elfutils share are used.
 * The CFA is duplicated first, as older libgcc cannot pick the bottom element, and the expression
 * ends with a nop, as elfutils takes no branch to its end.
 */
#include "expression.h"

enum op {
	OP_deref = 0x06,
	OP_const1u = 0x08,
	OP_const8u = 0x0e,
	OP_dup = 0x12,
	OP_drop = 0x13,
	OP_over = 0x14,
	OP_pick = 0x15,
	OP_swap = 0x16,
	OP_rot = 0x17,
	OP_minus = 0x1c,
	OP_mul = 0x1e,
	OP_neg = 0x1f,
	OP_plus = 0x22,
	OP_plus_uconst = 0x23,
	OP_shr = 0x25,
	OP_bra = 0x28,
	OP_eq = 0x29,
	OP_le = 0x2c,
	OP_lt = 0x2d,
	OP_skip = 0x2f,
	OP_nop = 0x96,
};

enum label { THREAD, HAVE, UPPER, SEARCH, HALVE, HALVED, NEXT, ALL, ALL_HAVE, SCAN, SCANNED, HIT,
	FOUND, OLDER, MISS, DONE, LABELS };

struct writer {
	uint8_t *out;
	size_t len;
	size_t labels[LABELS];
};

static void op(struct writer *w, enum op code)
{
	w->out[w->len++] = (uint8_t)code;
}

static void op_byte(struct writer *w, enum op code, size_t operand)
{
	op(w, code);
	w->out[w->len++] = (uint8_t)operand;
}

static void op_word(struct writer *w, uint64_t value)
{
	op(w, OP_const8u);
	memcpy(w->out + w->len, &value, 8);
	w->len += 8;
}

static void op_jump(struct writer *w, enum op code, enum label to)
{
	int16_t distance;

	op(w, code);
	distance = (int16_t)(w->labels[to] - (w->len + 2));
	memcpy(w->out + w->len, &distance, 2);
	w->len += 2;
}

static void op_label(struct writer *w, enum label label)
{
	w->labels[label] = w->len;
}

static void op_field(struct writer *w, size_t offset) /* address -> the word at + offset */
{
	if (offset)
		op_byte(w, OP_plus_uconst, offset);
	op(w, OP_deref);
}

#define NODE(field)  offsetof(struct shadow_node, field)
#define ENTRY(field) offsetof(struct shadow_entry, field)

/* Comments show the stack, its top at the right; s is the spare element, n a node. */
static void write_all(struct writer *w, const struct expression_input *in)
{
	w->len = 0;
	op(w, OP_neg);
	if (in->slot_below)
		op_byte(w, OP_plus_uconst, in->slot_below);
	op(w, OP_dup); /* s K */
	op_word(w, in->nodes);
	op(w, OP_deref);

	op_label(w, THREAD); /* s K n */
	op(w, OP_dup);
	op_jump(w, OP_bra, HAVE);
	op(w, OP_drop);
	op_word(w, in->nodes);
	op(w, OP_deref);
	op_jump(w, OP_skip, ALL);
	op_label(w, HAVE);
	op(w, OP_dup);
	op_field(w, NODE(neg_hi));
	op_byte(w, OP_pick, 2);
	op(w, OP_lt); /* neg_hi < K */
	op_jump(w, OP_bra, UPPER);
	op_jump(w, OP_skip, NEXT);
	op_label(w, UPPER);
	op(w, OP_over);
	op_byte(w, OP_pick, 1);
	op_field(w, NODE(neg_lo));
	op(w, OP_le); /* K <= neg_lo */
	op_jump(w, OP_bra, SEARCH);
	op_label(w, NEXT);
	op(w, OP_deref);
	op_jump(w, OP_skip, THREAD);

	op_label(w, SEARCH);
	op(w, OP_dup);
	op_field(w, NODE(span));
	op_byte(w, OP_pick, 1);
	op_field(w, NODE(bottom)); /* s K n step pos */
	op_label(w, HALVE);
	op(w, OP_swap);
	op_byte(w, OP_const1u, 1);
	op(w, OP_shr);
	op(w, OP_dup);
	op_byte(w, OP_const1u, SHADOW_ENTRY_SIZE);
	op(w, OP_lt);
	op_jump(w, OP_bra, HALVED); /* s K n pos step */
	op(w, OP_dup);
	op_byte(w, OP_pick, 2);
	op(w, OP_plus);
	op(w, OP_deref);
	op_byte(w, OP_const1u, 1);
	op(w, OP_minus);
	op_byte(w, OP_pick, 4);
	op(w, OP_lt); /* s K n pos step flag */
	op(w, OP_over);
	op(w, OP_mul);
	op(w, OP_rot);
	op(w, OP_rot); /* s K n step add pos */
	op(w, OP_plus);
	op_jump(w, OP_skip, HALVE);
	op_label(w, HALVED);
	op(w, OP_drop);
	op(w, OP_dup);
	op(w, OP_deref);
	op_byte(w, OP_pick, 3);
	op(w, OP_eq);
	op_jump(w, OP_bra, FOUND); /* s K n e */
	op(w, OP_drop);
	op_jump(w, OP_skip, NEXT);

	op_label(w, ALL); /* s K n */
	op(w, OP_dup);
	op_jump(w, OP_bra, ALL_HAVE);
	op_jump(w, OP_skip, MISS);
	op_label(w, ALL_HAVE);
	op(w, OP_dup);
	op_field(w, NODE(bottom));
	op(w, OP_dup);
	op_byte(w, OP_pick, 2);
	op_field(w, NODE(span));
	op(w, OP_plus); /* s K n bottom end */
	op_label(w, SCAN);
	op_byte(w, OP_const1u, SHADOW_ENTRY_SIZE);
	op(w, OP_minus); /* s K n bottom e */
	op(w, OP_over);
	op(w, OP_over);
	op(w, OP_eq);
	op_jump(w, OP_bra, SCANNED);
	op(w, OP_dup);
	op(w, OP_deref);
	op_byte(w, OP_pick, 4);
	op(w, OP_eq);
	op_jump(w, OP_bra, HIT);
	op_jump(w, OP_skip, SCAN);
	op_label(w, SCANNED);
	op(w, OP_drop);
	op(w, OP_drop);
	op(w, OP_deref);
	op_jump(w, OP_skip, ALL);
	op_label(w, HIT);
	op(w, OP_swap);
	op(w, OP_drop);

	op_label(w, FOUND); /* s K n e */
	op(w, OP_dup);
	op_field(w, ENTRY(ret));
	op(w, OP_deref);
	op_word(w, in->mark);
	op(w, OP_eq);
	op_jump(w, OP_bra, OLDER);
	op_byte(w, OP_plus_uconst, ENTRY(ret));
	op_jump(w, OP_skip, DONE);
	op_label(w, OLDER);
	op(w, OP_over);
	op_field(w, NODE(bottom));
	op(w, OP_swap);
	op_jump(w, OP_skip, SCAN);

	op_label(w, MISS);
	op_word(w, in->zero);
	op_label(w, DONE);
	op(w, OP_nop);
}

size_t expression_write(const struct expression_input *in, uint8_t *out)
{
	struct writer w = { .out = out };

	write_all(&w, in); /* finds the labels */
	write_all(&w, in);
	return w.len;
}
