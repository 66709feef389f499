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
#define ROUNDS	   32 /* longer rows of jumps than this are no compiler's */

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

/* The last function that starts at or before @addr; module->nfuncs: none. */
static size_t func_at(const struct isa_module *module, uint64_t addr)
{
	size_t low = 0, high = module->nfuncs;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (module->funcs[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : module->nfuncs;
}

/* Is the function entered at @addr? */
static bool is_entry(const struct isa_module *module, size_t index, uint64_t addr)
{
	const struct ppc_scan *scan = module->scan;
	uint64_t at = addr - module->funcs[index].start;

	return at == 0 || at == scan->funcs[index].offset;
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
			uint64_t to = ppc_insn_target(
				&insn, walk->module->funcs[walk->index].start + at);
			size_t callee = func_at(walk->module, to);

			if (callee < walk->module->nfuncs && is_entry(walk->module, callee, to))
				relied |= scan->funcs[callee].in & left;
		}
		if (insn.link || ppc_insn_ends(&insn))
			break;
	}
	return relied;
}

/*
 * pld r12,slot(0),1; mtctr r12; bctr: a jump to whatever the loader finds for a slot, as code that
 * does not use r2 makes it, or the linker's stub for it. The slot's address, or 0.
 */
static uint64_t slot_of(const struct isa_module *module, uint64_t addr)
{
	const uint8_t *code = ppc_code_at(module, addr, 16);
	struct ppc_insn insn;
	uint32_t behind[2];

	if (!code || !ppc_insn_read(code, 8, &insn) || insn.kind != PPC_PCREL
		|| insn.suffix >> 21 != (57 << 5 | R12))
		return 0;
	memcpy(behind, code + 8, sizeof(behind));
	if (behind[0] != ppc_mtspr(SPR_CTR, R12) || behind[1] != PPC_BCTR)
		return 0;
	return ppc_insn_target(&insn, addr);
}

/* Why no return point may be handed to the function of the slot at @addr, or 0. */
static uint8_t slot_keeps(const struct isa_module *module, uint64_t addr)
{
	size_t low = 0, high = module->nslots;

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

static int add_link(const struct isa_module *module, size_t from, size_t to)
{
	struct ppc_link *link = arena_alloc(module->arena, sizeof(*link));
	struct ppc_scan *scan = module->scan;

	if (!link)
		return -ENOMEM;
	*link = (struct ppc_link){ scan->links, (uint32_t)from, (uint32_t)to };
	scan->links = link;
	return 0;
}

static int scan_branch(const struct walk *walk, const struct ppc_insn *insn, size_t at)
{
	const struct isa_module *module = walk->module;
	uint64_t addr = ppc_insn_target(insn, module->funcs[walk->index].start + at);
	uint64_t slot = insn->link ? 0 : slot_of(module, addr);
	struct ppc_scan *scan = module->scan;
	size_t to = func_at(module, addr);

	if (slot) { /* stubs may be one function for all slots: they have unwind tables */
		keep(walk, slot_keeps(module, slot));
		return 0;
	}
	if (to == module->nfuncs || addr >= module->funcs[to].end)
		return 0;
	if (insn->link) {
		if (is_entry(module, to, addr) && relied_on(walk, at + insn->len))
			scan->funcs[to].facts |= FACT_OWN_RULES;
		return 0;
	}
	if (to != walk->index)
		return add_link(module, walk->index, to);
	if (is_entry(module, to, addr))
		scan->funcs[to].facts |= FACT_LOOPS;
	return 0;
}

/* Does the function run into the next one? What ends with a call does not expect it to return. */
static bool runs_on(const struct walk *walk, const struct ppc_insn *last)
{
	const struct isa_func *func = &walk->module->funcs[walk->index];

	return walk->index + 1 < walk->module->nfuncs && func[1].start == func->end
		&& last->word != PPC_NOP && !last->link && !ppc_insn_ends(last);
}

static int scan_function(const struct isa_module *module, size_t index)
{
	struct walk walk = { .module = module, .index = index };
	struct ppc_scan *scan = module->scan;
	struct ppc_insn insn = { 0 };
	bool described = false; /* what compilers put behind the code begins with a zero word */
	int err = 0;

	walk.code = ppc_func_code(module, &module->funcs[index], &walk.size);
	for (size_t at = 0; at < walk.size && !err; at += insn.len) {
		if (!ppc_insn_read(walk.code + at, walk.size - at, &insn))
			break;
		described |= !insn.word;
		if (insn.kind == PPC_B || insn.kind == PPC_BC)
			err = scan_branch(&walk, &insn, at);
		else if (insn.kind == PPC_PCREL)
			keep(&walk, slot_keeps(module, slot_of(module, module->funcs[index].start + at)));
		else if (insn.kind == PPC_BCCTR && insn.link && !scan->indirect_own_rules)
			scan->indirect_own_rules = relied_on(&walk, at + insn.len) != 0;
	}
	return !err && !described && runs_on(&walk, &insn) ? add_link(module, index, index + 1) : err;
}

/* Whoever goes on in a function that keeps its caller's return address does so too; and who is gone on
 * in returns to the same callers, with their rules. */
static bool settle_link(struct ppc_func *from, struct ppc_func *to)
{
	bool keeps = to->keeps && !from->keeps;
	uint8_t rules = from->facts & ~to->facts & FACT_OWN_RULES;

	if (keeps)
		from->keeps = to->keeps;
	to->facts |= rules;
	return keeps || rules;
}

static void settle_links(const struct isa_module *module)
{
	const struct ppc_scan *scan = module->scan;
	bool news = true;

	for (size_t i = 0; i < module->nfuncs; i++)
		if (scan->funcs[i].facts & FACT_READS_RETURN && !scan->funcs[i].keeps)
			scan->funcs[i].keeps = REASON_READS_RETURN;
	for (int round = 0; news && round < ROUNDS; round++) {
		news = false;
		for (const struct ppc_link *link = scan->links; link; link = link->next)
			news |= settle_link(&scan->funcs[link->from], &scan->funcs[link->to]);
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
	for (size_t i = 0; i < module->nfuncs; i++) {
		int err = scan_function(module, i);

		if (err)
			return err;
	}
	settle_links(module);
	return 0;
}
