/* SPDX-License-Identifier: MIT */
/*
 * Where arguments and results are: AAPCS64, 6.8 and 6.9. Variadic arguments are passed like others.
 * A structure of more than 16 bytes is passed by its address, a smaller one like integers.
 */
#include "a64.h"
#include "insn.h"
#include "../types.h"

#define REGISTERS 8 /* x0 to x7, v0 to v7 */

/* What does not fit ends the use of registers. */
static struct isa_place general(struct types_walk *w, uint32_t size, uint32_t align)
{
	uint8_t n = (uint8_t)((size + 7) / 8);
	struct isa_place place = { .kind = PLACE_GENERAL };

	if (align == 16)
		w->general = (uint8_t)((w->general + 1) & ~1);
	if (w->general + n > REGISTERS) {
		w->general = REGISTERS;
		return types_on_stack(w, size, align);
	}
	place.index = w->general;
	w->general = (uint8_t)(w->general + n);
	return place;
}

static struct isa_place vector(struct types_walk *w, uint32_t size)
{
	if (w->vector == REGISTERS)
		return types_on_stack(w, size, size);
	return (struct isa_place){ .kind = PLACE_VECTOR, .index = w->vector++ };
}

static struct isa_place structure(struct types_walk *w, uint32_t size)
{
	struct isa_place place = general(w, size > 16 ? 8 : size, 8);

	place.indirect = size > 16;
	return place;
}

static struct isa_place next(struct types_walk *w, char type, uint32_t size)
{
	switch (type) {
	case 'i':
		return general(w, 8, 8);
	case 'x':
		return general(w, 16, 16);
	case 'f':
	case 'd':
		return vector(w, 8);
	case 'v':
	case 'D':
		return vector(w, 16);
	case 's':
		return structure(w, size);
	}
	return (struct isa_place){ .kind = PLACE_NONE };
}

/* The address of a result in memory has a register of its own. */
struct isa_place a64_argument(const char *types, unsigned n)
{
	return types_find(types, n, false, next);
}

struct isa_place a64_result(char type)
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
	case 'v':
		place.kind = PLACE_VECTOR;
		break;
	case 's':
		place.kind = PLACE_MEMORY;
	}
	return place;
}

/* ---- code ---- */

/* SIMD, floating-point, SVE and SME instructions; loads and stores of their registers; what may
 * change their modes, and system calls, which leave nothing of the upper parts of SVE registers. */
static bool touches_vectors(uint32_t insn)
{
	uint32_t group = insn >> 25 & 15;

	if (group == 0 || group == 2 || (group & 7) == 7)
		return true;
	if ((group & 5) == 4)
		return insn >> 26 & 1;
	return (insn & 0xfff00000) == 0xd5100000 || (insn & 0xff00001f) == 0xd4000001
		|| (insn & 0xfffff0ff) == 0xd503407f; /* smstart, smstop */
}

/* Goes through all of it from the start to its last return, jumps included. */
bool a64_uses_vectors(const uint8_t *code, size_t size)
{
	size_t end = 0; /* some jump goes there */

	for (size_t at = 0; at + 4 <= size; at += 4) {
		uint32_t insn = insn_read(code + at);
		enum insn_kind kind = insn_kind(insn);
		uint64_t target;

		if (touches_vectors(insn) || kind == INSN_BL || kind == INSN_BLR || kind == INSN_BR)
			return true;
		if (insn_is_direct(kind)) {
			target = insn_target(kind, insn, at);
			if (target >= size)
				return true;
			if (target > end)
				end = target;
		}
		if (insn_ends(kind, insn) && at + 4 > end)
			return false;
	}
	return true;
}
