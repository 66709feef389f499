/* SPDX-License-Identifier: MIT */
/*
 * One pass over all functions finds what branches to an entry, and what is expected of registers
 * behind calls. Instructions are words, so no branch lands inside one.
 *
 * The ABI leaves r0, r8 to r12, CR0 and XER to callees, and compilers rely on nothing in them
 * behind a call, whatever they know of the callee: gcc's -fipa-ra is without effect on this CPU.
 * Code written by hand may, between functions of one module. It is told by reading one of them
 * before writing it, right at the entry or soon behind a call.
 */
#include "scan.h"
#include "encode.h"
#include <errno.h>

#define BEHIND_MAX 12 /* instructions looked at behind a call */

const uint8_t *ppc_code_at(const struct isa_module *module, uint64_t addr, size_t size)
{
	for (size_t i = 0; i < module->ntexts; i++) {
		const struct isa_text *text = &module->texts[i];

		if (addr - text->addr < text->size && text->size - (addr - text->addr) >= size)
			return text->bytes + (addr - text->addr);
	}
	return NULL;
}

const uint8_t *ppc_func_code(
	const struct isa_module *module, const struct isa_func *func, size_t *size)
{
	for (size_t i = 0; i < module->ntexts; i++) {
		const struct isa_text *text = &module->texts[i];
		uint64_t at = func->start - text->addr;

		if (at >= text->size || func->end <= func->start)
			continue;
		*size = func->end - func->start;
		if (*size > text->size - at)
			*size = text->size - at;
		return text->bytes + at;
	}
	*size = 0;
	return NULL;
}

/* The function that is entered at @addr; module->nfuncs: none. */
static size_t entered_at(const struct isa_module *module, uint64_t addr)
{
	const struct ppc_scan *scan = module->scan;
	size_t low = 0, high = module->nfuncs;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (module->funcs[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && module->funcs[low - 1].start + scan->funcs[low - 1].offset == addr)
		return low - 1;
	return low && module->funcs[low - 1].start == addr ? low - 1 : module->nfuncs;
}

/* One function's code, being walked. */
struct walk {
	const struct isa_module *module;
	size_t index;
	const uint8_t *code;
	size_t size;
};

/* Of the registers that the ABI leaves to callees: those read behind @at before they are written.
 */
static uint64_t relied_on(const struct walk *walk, size_t at)
{
	const struct ppc_scan *scan = walk->module->scan;
	uint64_t left = PPC_FREE_OUT, relied = 0;
	struct ppc_insn insn;

	for (int n = 0; n < BEHIND_MAX && left; n++, at += insn.len) {
		if (at >= walk->size || !ppc_insn_read(walk->code + at, walk->size - at, &insn))
			break;
		relied |= insn.reads & left;
		left &= ~insn.writes;
		if (insn.kind == PPC_B && insn.link) {
			size_t callee = entered_at(walk->module,
				ppc_insn_target(&insn, walk->module->funcs[walk->index].start + at));

			if (callee < walk->module->nfuncs)
				relied |= scan->funcs[callee].in & left;
		}
		if (insn.link || ppc_insn_ends(&insn))
			break;
	}
	return relied;
}

/*
 * pld r12,slot(0),1; mtctr r12; bctr: a jump to whatever the loader finds for a slot, as code that
 * does not use r2 makes it, or the linker's stub for it. Why no return point may be handed to the
 * slot's function, or 0.
 */
static uint8_t slot_keeps(const struct isa_module *module, uint64_t addr)
{
	const uint8_t *code = ppc_code_at(module, addr, 16);
	size_t low = 0, high = module->nslots;
	struct ppc_insn insn;
	uint32_t behind[2];

	if (!code || !ppc_insn_read(code, 8, &insn) || insn.kind != PPC_PCREL
		|| insn.suffix >> 21 != (57 << 5 | R12))
		return 0;
	memcpy(behind, code + 8, sizeof(behind));
	if (behind[0] != ppc_mtspr(SPR_CTR, R12) || behind[1] != PPC_BCTR)
		return 0;
	addr = ppc_insn_target(&insn, addr);
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (module->slots[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < module->nslots && module->slots[low].addr == addr ? module->slots[low].keeps
								       : 0;
}

/* The walked function jumps to one that must have its caller's own return address, if @keeps. */
static void keep(const struct walk *walk, uint8_t keeps)
{
	if (keeps)
		((struct ppc_scan *)walk->module->scan)->funcs[walk->index].keeps = keeps;
}

static void scan_branch(const struct walk *walk, const struct ppc_insn *insn, size_t at)
{
	const struct isa_func *self = &walk->module->funcs[walk->index];
	struct ppc_scan *scan = walk->module->scan;
	size_t to = entered_at(walk->module, ppc_insn_target(insn, self->start + at));
	struct ppc_func *target = to < walk->module->nfuncs ? &scan->funcs[to] : NULL;

	if (!target) {
		if (!insn->link)
			keep(walk, slot_keeps(walk->module,
					   ppc_insn_target(insn, self->start + at)));
		return;
	}
	if (insn->link) {
		if (relied_on(walk, at + insn->len))
			target->facts |= FACT_OWN_RULES;
	} else if (to == walk->index) {
		target->facts |= FACT_LOOPS;
	} else {
		keep(walk, walk->module->funcs[to].keeps);
	}
}

static void scan_function(const struct isa_module *module, size_t index)
{
	struct walk walk = { .module = module, .index = index };
	struct ppc_scan *scan = module->scan;
	struct ppc_insn insn;

	walk.code = ppc_func_code(module, &module->funcs[index], &walk.size);
	for (size_t at = 0; at < walk.size; at += insn.len) {
		if (!ppc_insn_read(walk.code + at, walk.size - at, &insn))
			break;
		if (insn.kind == PPC_B || insn.kind == PPC_BC)
			scan_branch(&walk, &insn, at);
		else if (insn.kind == PPC_PCREL)
			keep(&walk, slot_keeps(module, module->funcs[index].start + at));
		else if (insn.kind == PPC_BCCTR && insn.link && !scan->indirect_own_rules)
			scan->indirect_own_rules = relied_on(&walk, at + insn.len) != 0;
	}
}

int ppc_scan(struct isa_module *module)
{
	struct ppc_scan *scan = arena_alloc(module->arena, sizeof(*scan));

	module->scan = scan;
	if (!scan)
		return -ENOMEM;
	scan->funcs = arena_alloc(module->arena, (module->nfuncs + 1) * sizeof(*scan->funcs));
	if (!scan->funcs)
		return -ENOMEM;
	for (size_t i = 0; i < module->nfuncs; i++)
		ppc_site_probe(module, i, &scan->funcs[i]);
	for (size_t i = 0; i < module->nfuncs; i++)
		scan_function(module, i);
	return 0;
}
