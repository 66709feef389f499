/* SPDX-License-Identifier: MIT */
/*
 * Where arguments and results are: System V ABI, AMD64 supplement, 3.2.3. A value is in registers
 * or in memory as a whole.
 */
#include "decoder.h"
#include "x86.h"
#include "../types.h"

#define GENERAL_ARGUMENTS 6 /* rdi rsi rdx rcx r8 r9 */
#define VECTOR_ARGUMENTS  8 /* xmm0 to xmm7 */

static struct isa_place in_registers(uint8_t kind, uint8_t *used, uint8_t n)
{
	struct isa_place place = { .kind = kind, .index = *used };

	*used += n;
	return place;
}

static struct isa_place general(struct types_walk *w, uint8_t n)
{
	if (w->general + n > GENERAL_ARGUMENTS)
		return types_on_stack(w, n * 8u, n * 8u);
	return in_registers(PLACE_GENERAL, &w->general, n);
}

static struct isa_place vector(struct types_walk *w, uint32_t size)
{
	if (w->vector == VECTOR_ARGUMENTS)
		return types_on_stack(w, size, size);
	return in_registers(PLACE_VECTOR, &w->vector, 1);
}

static struct isa_place next(struct types_walk *w, char type, uint32_t size)
{
	switch (type) {
	case 'i':
		return general(w, 1);
	case 'x':
		return general(w, 2);
	case 'f':
	case 'd':
		return vector(w, 8);
	case 'v':
		return vector(w, 16);
	case 'D':
		return types_on_stack(w, 16, 16);
	case 's':
		return types_on_stack(w, size, 8);
	}
	return (struct isa_place){ .kind = PLACE_NONE };
}

struct isa_place x86_argument(const char *types, unsigned n)
{
	return types_find(types, n, true, next);
}

struct isa_place x86_result(char type)
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
	case 'v':
		place.kind = PLACE_VECTOR;
		break;
	case 'D':
		place.kind = PLACE_EXTENDED;
		break;
	case 's':
		place.kind = PLACE_MEMORY;
	}
	return place;
}

/* Goes through all of it from the start to its last return, jumps included. */
bool x86_uses_vectors(const uint8_t *code, size_t size)
{
	size_t end = 0; /* some jump goes there */
	struct insn insn;

	for (size_t at = 0; at < size; at += insn.len) {
		int64_t target;

		if (!decoder_read(code + at, size - at, &insn) || insn.extended)
			return true;
		target = (int64_t)(at + insn.len) + insn.rel;
		switch (insn.kind) {
		case INSN_JUMP:
		case INSN_BRANCH:
		case INSN_LOOP:
			if (target < 0 || target >= (int64_t)size)
				return true;
			if ((size_t)target > end)
				end = (size_t)target;
			break;
		case INSN_PLAIN:
		case INSN_RETURN:
		case INSN_STOP:
			break;
		default:
			return true;
		}
		if (insn_ends(&insn) && at + insn.len > end)
			return false;
	}
	return true;
}
