/* SPDX-License-Identifier: MIT */
/*
 * The unwind expression, evaluated by a small interpreter of DWARF's stack machine (DWARF 5, 2.5)
 * over random shadow stacks. The interpreter is as strict as the strictest unwinder known.
 */
#include "arch/expression.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define STACK_MAX   64 /* libgcc's and nongnu libunwind's */
#define STEPS_MAX   4096 /* elfutils gives up after these */
#define SLOT_BASE   0x7ffc00000000ull
#define ENTRIES_MAX 600
#define NODES_MAX   8
#define SEED	    20250301u

/* ---- the interpreter ---- */

struct machine {
	const uint8_t *code;
	size_t len, at;
	uint64_t stack[STACK_MAX];
	unsigned depth, deepest, steps;
	const char *broken;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_MAX) {
		m->broken = "the stack overflows";
		return;
	}
	m->stack[m->depth++] = value;
	if (m->depth > m->deepest)
		m->deepest = m->depth;
}

static uint64_t pop(struct machine *m)
{
	if (!m->depth) {
		m->broken = "the stack is empty";
		return 0;
	}
	return m->stack[--m->depth];
}

/* Older libgcc refuses to pick the bottom element. */
static void pick(struct machine *m, unsigned index)
{
	if (index + 1 >= m->depth)
		m->broken = "picks the bottom element or one below it";
	else
		push(m, m->stack[m->depth - 1 - index]);
}

static uint64_t operand(struct machine *m, unsigned size)
{
	uint64_t value = 0;

	if (m->len - m->at < size) {
		m->broken = "an operand is cut off";
		return 0;
	}
	memcpy(&value, m->code + m->at, size);
	m->at += size;
	return value;
}

static uint64_t uleb(struct machine *m)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)operand(m, 1);
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 64);
	return value;
}

/* elfutils takes no branch to the end of the expression. */
static void jump(struct machine *m, bool taken)
{
	int16_t distance = (int16_t)operand(m, 2);
	int64_t to = (int64_t)m->at + distance;

	if (to < 0 || to >= (int64_t)m->len)
		m->broken = "a branch leads out";
	else if (taken)
		m->at = (size_t)to;
}

static void operate(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case 0x06: /* deref */
		a = pop(m);
		if (a & 7 || !a)
			m->broken = "reads from no word";
		else
			push(m, *(const uint64_t *)a);
		break;
	case 0x08: /* const1u */
		push(m, operand(m, 1));
		break;
	case 0x0a: /* const2u */
		push(m, operand(m, 2));
		break;
	case 0x0c: /* const4u */
		push(m, operand(m, 4));
		break;
	case 0x0e: /* const8u */
		push(m, operand(m, 8));
		break;
	case 0x12: /* dup */
		a = pop(m);
		push(m, a);
		push(m, a);
		break;
	case 0x13: /* drop */
		pop(m);
		break;
	case 0x14: /* over */
		pick(m, 1);
		break;
	case 0x15: /* pick */
		pick(m, (unsigned)operand(m, 1));
		break;
	case 0x16: /* swap */
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		break;
	case 0x23: /* plus_uconst */
		a = pop(m);
		push(m, a + uleb(m));
		break;
	case 0x28: /* bra */
		jump(m, pop(m));
		break;
	case 0x2f: /* skip */
		jump(m, true);
		break;
	case 0x1a: /* and */
		a = pop(m);
		push(m, pop(m) & a);
		break;
	case 0x1c: /* minus */
		a = pop(m);
		push(m, pop(m) - a);
		break;
	case 0x1e: /* mul */
		a = pop(m);
		push(m, pop(m) * a);
		break;
	case 0x22: /* plus */
		a = pop(m);
		push(m, pop(m) + a);
		break;
	case 0x29: /* eq */
		a = pop(m);
		push(m, pop(m) == a);
		break;
	default: /* LLVM has no nop, for one */
		m->broken = "an operation that not every unwinder has";
	}
}

/* The unwinder has pushed the CFA. */
static uint64_t evaluate(struct machine *m, const uint8_t *code, size_t len, uint64_t cfa)
{
	*m = (struct machine){ .code = code, .len = len };
	push(m, cfa);
	while (m->at < m->len && !m->broken) {
		if (++m->steps > STEPS_MAX)
			m->broken = "too many steps";
		else
			operate(m, m->code[m->at++]);
	}
	return m->depth ? m->stack[m->depth - 1] : 0;
}

/* ---- random shadow stacks ---- */

struct call {
	uint64_t slot;
	struct shadow_entry *entry;
	unsigned node;
};

struct world {
	struct shadow_root root;
	struct shadow_node nodes[NODES_MAX];
	struct call calls[ENTRIES_MAX];
	unsigned ncalls, novers;
	uint8_t *spare;
};

struct shape {
	const char *name;
	unsigned nodes, calls;
	uint64_t mask, scale;
	uint64_t spread; /* bytes of stack that calls are in */
	bool holes;
};

static const struct shape shapes[] = {
	{ "no thread at all", 0, 0, 0xff8, 8, 0x1000, false },
	{ "a thread without calls", 1, 0, 0xff8, 8, 0x1000, false },
	{ "one thread, count mode", 1, 60, 0xff8, 4, 0x1000, false },
	{ "one thread, profile mode", 1, 60, 0xff8, 8, 0x1000, false },
	{ "three threads", 3, 200, 0xff8, 8, 0x4000, false },
	{ "most places are taken", 1, 200, 0xf8, 8, 0x4000, false },
	{ "most places are taken, count mode", 1, 200, 0xf8, 4, 0x4000, false },
	{ "eight threads, many taken, with holes", 8, 600, 0x1f8, 8, 0x10000, true },
	{ "chains of many: slots that share a bucket", 2, 60, 0x78, 8, 0x10000000, true },
};

static bool is_used(const struct world *w, uint64_t slot)
{
	for (unsigned i = 0; i < w->ncalls; i++)
		if (w->calls[i].slot == slot)
			return true;
	return false;
}

/* As mirror_overflow() does it: the newest is the first of its chain. */
static struct shadow_entry *in_chain(struct shadow_node *node, uint64_t slot)
{
	struct shadow_entry *e = calloc(1, sizeof(*e));
	uint64_t *bucket;

	if (!node->buckets)
		node->buckets = (uint64_t)calloc(1, SHADOW_BUCKETS + 8);
	bucket = (uint64_t *)(node->buckets + (slot & SHADOW_BUCKETS));
	e->link = *bucket;
	*bucket = (uint64_t)e;
	return e;
}

static void add_call(struct world *w, const struct shape *shape)
{
	unsigned n = (unsigned)(random64() % shape->nodes);
	struct shadow_node *node = &w->nodes[n];
	uint64_t step = shape->spread > 0x1000000 ? SHADOW_BUCKETS + 8 : 8;
	uint64_t slot = SLOT_BASE + random64() % (shape->spread / step) * step;
	struct shadow_entry *e = (struct shadow_entry *)(node->mirror
		+ (slot & shape->mask) * shape->scale);

	if (is_used(w, slot))
		return;
	if (e->slot) {
		e = in_chain(node, slot);
		w->novers++;
		if (shape->holes && random64() % 4 == 0)
			return; /* freed: in its chain with slot 0 */
	}
	e->slot = slot;
	e->ret = random64();
	e->func = (uint32_t)random64();
	w->calls[w->ncalls++] = (struct call){ slot, e, n };
}

static void make_world(struct world *w, const struct shape *shape)
{
	memset(w, 0, sizeof(*w));
	w->root.mask = shape->mask;
	w->root.scale = shape->scale;
	for (unsigned i = 0; i < shape->nodes; i++) {
		w->nodes[i].mirror = (uint64_t)calloc(1, (shape->mask + 8) * shape->scale);
		w->nodes[i].next = w->root.nodes;
		w->root.nodes = (uint64_t)&w->nodes[i];
	}
	for (unsigned i = 0; i < shape->calls; i++)
		add_call(w, shape);
}

static void free_world(struct world *w, const struct shape *shape)
{
	for (unsigned i = 0; i < shape->nodes; i++) {
		for (size_t b = 0; w->nodes[i].buckets && b <= SHADOW_BUCKETS; b += 8) {
			struct shadow_entry *e, *next;

			e = *(struct shadow_entry **)(w->nodes[i].buckets + b);
			for (; e; e = next) {
				next = (struct shadow_entry *)e->link;
				free(e);
			}
		}
		free((void *)w->nodes[i].buckets);
		free((void *)w->nodes[i].mirror);
	}
}

static size_t write_expression(const struct world *w, uint8_t below, uint8_t *code)
{
	struct expression_input in = { .root = (uint64_t)&w->root, .slot_below = below };
	size_t len = expression_write(&in, code);

	cr_assert(len > 0 && len <= EXPRESSION_MAX, "length %zu", len);
	return len;
}

static void check_calls(const struct world *w, const char *name, const uint8_t *code, size_t len,
	uint8_t below)
{
	struct machine m;

	for (unsigned i = 0; i < w->ncalls; i++) {
		const struct call *call = &w->calls[i];
		uint64_t at = evaluate(&m, code, len, call->slot + below);

		cr_assert_null(m.broken, "%s: call %u: %s", name, i, m.broken);
		cr_assert_eq(at, (uint64_t)&call->entry->ret, "%s: call %u of %u: another entry",
			name, i, w->ncalls);
	}
}

static void check_misses(const struct world *w, const struct shape *shape, const uint8_t *code,
	size_t len, uint8_t below)
{
	struct machine m;

	for (unsigned i = 0; i < 200; i++) {
		uint64_t slot = SLOT_BASE + random64() % (2 * shape->spread) / 8 * 8, at;

		if (is_used(w, slot))
			continue;
		at = evaluate(&m, code, len, slot + below);
		cr_assert_null(m.broken, "%s: a miss: %s", shape->name, m.broken);
		cr_assert_eq(at, (uint64_t)&w->root.zero, "%s: a slot without a call finds one",
			shape->name);
	}
}

Test(expression, finds_the_entry_of_every_slot_and_no_other)
{
	static struct world w;
	uint8_t code[EXPRESSION_MAX];

	random_state = SEED;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int round = 0; round < 8; round++) {
			uint8_t below = round & 1 ? 0 : 8;
			size_t len;

			make_world(&w, &shapes[i]);
			len = write_expression(&w, below, code);
			check_calls(&w, shapes[i].name, code, len, below);
			check_misses(&w, &shapes[i], code, len, below);
			if (i >= 5)
				cr_assert(w.novers > 10, "%s: nothing overflows", shapes[i].name);
			free_world(&w, &shapes[i]);
		}
}

/* Whoever is asked later must not see what has been freed. */
Test(expression, does_not_find_a_call_that_has_returned)
{
	static struct world w;
	const struct shape *shape = &shapes[7];
	uint8_t code[EXPRESSION_MAX];
	struct machine m;
	size_t len;

	random_state = SEED;
	make_world(&w, shape);
	len = write_expression(&w, 8, code);
	for (unsigned i = 0; i < w.ncalls; i++) {
		w.calls[i].entry->slot = 0;
		cr_assert_eq(evaluate(&m, code, len, w.calls[i].slot + 8), (uint64_t)&w.root.zero,
			"call %u", i);
		cr_assert_null(m.broken, "call %u: %s", i, m.broken);
	}
	free_world(&w, shape);
}

/* The cost of one frame depends on the number of threads, not on the depth of the stack. */
Test(expression, takes_few_steps)
{
	static struct world w;
	uint8_t code[EXPRESSION_MAX];
	struct machine m;
	size_t len;

	random_state = SEED;
	make_world(&w, &shapes[3]);
	len = write_expression(&w, 8, code);
	for (unsigned i = 0; i < w.ncalls; i++) {
		evaluate(&m, code, len, w.calls[i].slot + 8);
		cr_assert(m.steps < 40, "%u steps", m.steps);
		cr_assert(m.deepest < 10, "%u deep", m.deepest);
	}
	free_world(&w, &shapes[3]);
}
