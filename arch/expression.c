/* SPDX-License-Identifier: MIT */
/*
 * The search, in words: in every thread's mirror the slot has one place; an entry there that names
 * this very slot is the one. Else it may be in a chain of those whose place was taken.
 *
 * Only operations that libgcc, LLVM libunwind, nongnu libunwind, gdb and elfutils share are used.
 * The slot is duplicated first, as older libgcc cannot pick the bottom element. No branch goes to
 * the end, which elfutils does not take, and there is no nop, which LLVM does not know.
 */
#include "expression.h"

enum op {
	OP_deref = 0x06,
	OP_const1u = 0x08,
	OP_const8u = 0x0e,
	OP_dup = 0x12,
	OP_drop = 0x13,
	OP_pick = 0x15,
	OP_and = 0x1a,
	OP_minus = 0x1c,
	OP_mul = 0x1e,
	OP_plus = 0x22,
	OP_plus_uconst = 0x23,
	OP_bra = 0x28,
	OP_eq = 0x29,
	OP_skip = 0x2f,
};

enum label { THREAD, HAVE, TAKEN, TAKEN_HAVE, BUCKET, SCAN, SCANNED, COMPARE, FOUND, MISS,
	LABELS };

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
#define ROOT(field)  (in->root + offsetof(struct shadow_root, field))

static void op_word_at(struct writer *w, uint64_t address)
{
	op_word(w, address);
	op(w, OP_deref);
}

/* Comments show the stack, its top at the right: s spare, S the slot, n a node, e an entry. */
static void write_all(struct writer *w, const struct expression_input *in)
{
	w->len = 0;
	op_byte(w, OP_const1u, in->slot_below);
	op(w, OP_minus);
	op(w, OP_dup); /* s S */
	op_word_at(w, ROOT(nodes));

	op_label(w, THREAD); /* s S n */
	op(w, OP_dup);
	op_jump(w, OP_bra, HAVE);
	op(w, OP_drop);
	op_word_at(w, ROOT(nodes));
	op_jump(w, OP_skip, TAKEN);
	op_label(w, HAVE);
	op(w, OP_dup);
	op_field(w, NODE(mirror));
	op_byte(w, OP_pick, 2);
	op_word_at(w, ROOT(mask));
	op(w, OP_and);
	op_word_at(w, ROOT(scale));
	op(w, OP_mul);
	op(w, OP_plus); /* s S n e */
	op(w, OP_dup);
	op_field(w, ENTRY(slot));
	op_byte(w, OP_pick, 3);
	op(w, OP_eq);
	op_jump(w, OP_bra, FOUND);
	op(w, OP_drop);
	op_field(w, NODE(next));
	op_jump(w, OP_skip, THREAD);

	op_label(w, TAKEN); /* s S n */
	op(w, OP_dup);
	op_jump(w, OP_bra, TAKEN_HAVE);
	op_jump(w, OP_skip, MISS);
	op_label(w, TAKEN_HAVE);
	op(w, OP_dup);
	op_field(w, NODE(buckets));
	op(w, OP_dup);
	op_jump(w, OP_bra, BUCKET);
	op_jump(w, OP_skip, SCANNED);
	op_label(w, BUCKET); /* s S n buckets */
	op_byte(w, OP_pick, 2);
	op_word(w, SHADOW_BUCKETS);
	op(w, OP_and);
	op(w, OP_plus);
	op(w, OP_deref);
	op_label(w, SCAN); /* s S n e */
	op(w, OP_dup);
	op_jump(w, OP_bra, COMPARE);
	op_label(w, SCANNED); /* s S n 0 */
	op(w, OP_drop);
	op_field(w, NODE(next));
	op_jump(w, OP_skip, TAKEN);
	op_label(w, COMPARE);
	op(w, OP_dup);
	op_field(w, ENTRY(slot));
	op_byte(w, OP_pick, 3);
	op(w, OP_eq);
	op_jump(w, OP_bra, FOUND);
	op_field(w, ENTRY(link));
	op_jump(w, OP_skip, SCAN);

	op_label(w, MISS);
	op_word(w, ROOT(zero) - ENTRY(ret));
	op_label(w, FOUND); /* s S n e */
	op_byte(w, OP_plus_uconst, ENTRY(ret));
}

size_t expression_write(const struct expression_input *in, uint8_t *out)
{
	struct writer w = { .out = out };

	write_all(&w, in); /* finds the labels */
	write_all(&w, in);
	return w.len;
}
