/* SPDX-License-Identifier: MIT */
/*
 * Where arguments and results are: ELFv2 ABI, 2.2.3. Every parameter has a place in the parameter
 * save area of the caller's frame, the first eight doublewords of which are in r3 to r10 instead. Of
 * a prototyped function floating-point ones are in f1 to f13 and vectors in v2 to v13; they take
 * their place in the area all the same.
 */
#include "insn.h"
#include "powerpc.h"
#include "../types.h"

#define GENERAL	  8  /* doublewords in registers */
#define FLOATS	  13 /* f1 to f13 */
#define VECTORS	  12 /* v2 to v13 */
#define AREA	  32 /* from the stack pointer before the call */

/* The next @n doublewords of the area. A structure that is partly in registers has no place. */
static struct isa_place in_area(struct types_walk *w, uint32_t n)
{
	struct isa_place place = { .kind = PLACE_GENERAL, .index = (uint8_t)w->stack };

	if (w->stack >= GENERAL)
		place = (struct isa_place){ .kind = PLACE_STACK, .offset = AREA + 8 * w->stack };
	else if (w->stack + n > GENERAL)
		place.kind = PLACE_SPLIT;
	w->stack += n;
	return place;
}

static struct isa_place floating(struct types_walk *w, uint8_t n, bool single)
{
	struct isa_place place = in_area(w, n);

	if (!w->variadic && w->vector + n > FLOATS)
		w->vector = FLOATS; /* f13 is not for those behind half a long double */
	if (w->variadic || w->vector == FLOATS)
		return place;
	place = (struct isa_place){ .kind = PLACE_VECTOR, .index = (uint8_t)(w->vector + 1),
		.single = single };
	w->vector = (uint8_t)(w->vector + n);
	return place;
}

static struct isa_place vector(struct types_walk *w)
{
	struct isa_place place;

	w->stack = (w->stack + 1) & ~1u;
	place = in_area(w, 2);
	if (!w->variadic && w->general < VECTORS)
		place = (struct isa_place){ .kind = PLACE_VECTOR,
			.index = (uint8_t)(PPC_VECTORS + 2 + w->general++) };
	return place;
}

static struct isa_place next(struct types_walk *w, char type, uint32_t size)
{
	switch (type) {
	case 'i':
		return in_area(w, 1);
	case 'x':
		return in_area(w, 2);
	case 'f':
		return floating(w, 1, true);
	case 'd':
		return floating(w, 1, false);
	case 'D': /* two doubles */
		return floating(w, 2, false);
	case 'v':
		return vector(w);
	case 's':
		return in_area(w, (size + 7) / 8);
	}
	return (struct isa_place){ .kind = PLACE_NONE };
}

struct isa_place ppc_argument(const char *types, unsigned n)
{
	return types_find(types, n, true, next);
}

struct isa_place ppc_result(char type)
{
	struct isa_place place = { .kind = PLACE_NONE };

	switch (type) {
	case 'i':
	case 'x':
		place.kind = PLACE_GENERAL;
		place.wide = type == 'x';
		break;
	case 'f':
	case 'd':
	case 'D':
		place = (struct isa_place){ .kind = PLACE_VECTOR, .index = 1, .wide = type == 'D',
			.single = type == 'f' };
		break;
	case 'v':
		place = (struct isa_place){ .kind = PLACE_VECTOR, .index = PPC_VECTORS + 2 };
		break;
	case 's':
		place.kind = PLACE_MEMORY;
	}
	return place;
}

/* ---- code ---- */

/* Of those with primary opcode 31, which has loads and stores of all kinds of registers. */
static bool is_general(uint32_t extended)
{
	static const uint16_t known[] = { 0, 8, 10, 19, 20, 21, 23, 24, 26, 27, 28, 32, 40, 53, 54, 55,
		58, 60, 84, 86, 87, 104, 119, 124, 136, 138, 144, 149, 150, 151, 183, 202, 214, 215,
		233, 235, 266, 278, 279, 284, 316, 339, 341, 371, 407, 412, 444, 467, 476, 489, 491,
		536, 539, 598, 792, 794, 824, 826, 854, 922, 954, 986 };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i] == extended)
			return true;
	return (extended & 31) == 15; /* isel */
}

static bool touches_vectors(const struct ppc_insn *insn)
{
	uint32_t opcode = insn->word >> 26;

	if (insn->len == 8 || opcode <= 6 || opcode >= 48)
		return opcode != 58 && opcode != 62;
	return opcode == 31 && !is_general(insn->word >> 1 & 0x3ff);
}

/* Goes through all of it from the start to its last return, jumps included. */
bool ppc_uses_vectors(const uint8_t *code, size_t size)
{
	size_t end = 0; /* some jump goes there */
	struct ppc_insn insn;

	for (size_t at = 0; at < size; at += insn.len) {
		if (!ppc_insn_read(code + at, size - at, &insn) || touches_vectors(&insn) || insn.link
			|| insn.kind == PPC_BCCTR || insn.kind == PPC_BCTAR)
			return true;
		if (insn.kind == PPC_B || insn.kind == PPC_BC) {
			uint64_t target = ppc_insn_target(&insn, at);

			if (target >= size)
				return true;
			if (target > end)
				end = target;
		}
		if (ppc_insn_ends(&insn) && at + insn.len > end)
			return false;
	}
	return true;
}
