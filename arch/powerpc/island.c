/* SPDX-License-Identifier: MIT */
/*
 * Islands: two words in the padding between functions, one that branches on to a detour and one
 * that branches back. Padding is used only when nothing but nops are there, up to whatever comes
 * next; and when the function before it neither runs nor branches into it.
 */
#include "scan.h"
#include "encode.h"

#define ISLAND_SIZE 8

/* A free place, or where to look for the next one. */
struct ppc_pad {
	uint64_t addr;
	size_t next; /* itself: free; else a later one, npads: none */
};

static bool is_padding(const uint8_t *code, size_t size)
{
	for (size_t at = 0; at < size; at += 4) {
		uint32_t word;

		memcpy(&word, code + at, 4);
		/* nop, and those that end a group of instructions */
		if (word != PPC_NOP && word != 0x60420000 && word != 0x60210000)
			return false;
	}
	return true;
}

/* Does control never get behind the function, but by a call? A zero word begins the description
 * of the function that compilers put behind its code. */
static bool is_closed(const struct isa_module *module, const struct isa_func *func)
{
	uint64_t room = func->limit - func->start;
	bool ends = false;
	struct ppc_insn insn;
	size_t size;
	const uint8_t *code = ppc_func_code(module, func, &size);

	for (size_t at = 0; at < size; at += insn.len) {
		uint64_t to;

		if (!ppc_insn_read(code + at, size - at, &insn))
			return false;
		if (!insn.word)
			break;
		ends = ppc_insn_ends(&insn);
		to = ppc_insn_target(&insn, func->start + at) - func->start;
		if ((insn.kind == PPC_B || insn.kind == PPC_BC) && to >= size && to < room)
			return false;
	}
	return ends;
}

/* The number of islands behind @func; @pads: NULL, or where to note them. */
static size_t pads_behind(
	const struct isa_module *module, const struct isa_func *func, struct ppc_pad *pads)
{
	uint64_t at = (func->end + 3) & ~3ull, size = func->limit - at;
	const uint8_t *code;
	size_t n = 0;

	if (func->limit < at + ISLAND_SIZE)
		return 0;
	code = ppc_code_at(module, at, size & ~3ull);
	if (!code || !is_padding(code, size & ~3ull) || !is_closed(module, func))
		return 0;
	for (; size >= ISLAND_SIZE; size -= ISLAND_SIZE, at += ISLAND_SIZE, n++)
		if (pads)
			pads[n].addr = at;
	return n;
}

static void find_pads(const struct isa_module *module, struct ppc_scan *scan)
{
	size_t n = 0;

	for (size_t i = 0; i < module->nfuncs; i++)
		n += pads_behind(module, &module->funcs[i], NULL);
	scan->pads = arena_alloc(module->arena, (n + 1) * sizeof(*scan->pads));
	if (!scan->pads)
		return;
	for (size_t i = 0; i < module->nfuncs; i++)
		scan->npads += pads_behind(module, &module->funcs[i], scan->pads + scan->npads);
	for (size_t i = 0; i <= n; i++)
		scan->pads[i].next = i;
}

/* The first free one from @i on. */
static size_t free_from(struct ppc_pad *pads, size_t i)
{
	size_t found = i;

	while (pads[found].next != found)
		found = pads[found].next;
	while (i != found) {
		size_t next = pads[i].next;

		pads[i].next = found;
		i = next;
	}
	return found;
}

bool ppc_island(const struct isa_module *module, size_t index, uint64_t lo, uint64_t hi,
	struct isa_site *site)
{
	uint64_t from = module->funcs[index].start + site->offset;
	struct ppc_scan *scan = module->scan;
	size_t low = 0, high;

	if (!scan->pads)
		find_pads(module, scan);
	if (!scan->pads)
		return false;
	if (from > PPC_REACH && lo < from - PPC_REACH + ISLAND_SIZE)
		lo = from - PPC_REACH + ISLAND_SIZE;
	if (hi > from + PPC_REACH - ISLAND_SIZE)
		hi = from + PPC_REACH - ISLAND_SIZE;
	for (high = scan->npads; low < high;) {
		size_t middle = (low + high) / 2;

		if (scan->pads[middle].addr < lo)
			low = middle + 1;
		else
			high = middle;
	}
	low = free_from(scan->pads, low);
	if (low == scan->npads || scan->pads[low].addr >= hi)
		return false;
	scan->pads[low].next = low + 1;
	site->choice = SITE_ISLAND;
	site->hop = scan->pads[low].addr;
	return true;
}
