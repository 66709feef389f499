/* SPDX-License-Identifier: MIT */
/*
 * One pass over all instructions of a module. Every direct branch tells where it goes: to its own
 * function's entry (a loop, whose rounds are no calls), into a long window, or into another
 * function, which then may need this one's caller's return address. Addresses that are made
 * (adrp, add) or stored tell who may be called.
 *
 * Words that are data among the code may look like branches; then a function is refused that could
 * have been traced.
 */
#include "scan.h"

#include <errno.h>

#define PLT_WALK 4 /* instructions of an entry of the procedure linkage table */
#define ROUNDS	 32 /* longer rows of tail calls than this are no compiler's */
#define BEHIND_MAX 12 /* instructions looked at behind a call */
#define SCRATCH	 (1u << 16 | 1u << 17)

struct scanner {
	const struct isa_module *module;
	struct a64_scan *scan;
	bool filling; /* links: else they are counted */
	size_t index;	 /* of the function under the scan */
	uint64_t page[32];   /* what adrp has made, per register; 0: nothing */
};

const struct isa_text *a64_text_at(const struct isa_module *module, uint64_t addr)
{
	for (size_t i = 0; i < module->ntexts; i++) {
		const struct isa_text *text = &module->texts[i];

		if (addr - text->addr < text->size && text->size - (addr - text->addr) >= 4
			&& !(addr & 3))
			return text;
	}
	return NULL;
}

struct a64_code a64_code_of(const struct isa_module *module, const struct isa_func *func)
{
	const struct isa_text *text = a64_text_at(module, func->start);
	struct a64_code code = { NULL, 0 };
	uint64_t left;

	if (!text || func->end <= func->start)
		return code;
	left = text->addr + text->size - func->start;
	code.bytes = text->bytes + (func->start - text->addr);
	code.n = (func->end - func->start < left ? func->end - func->start : left) / 4;
	return code;
}

/* The last function that starts at or before @addr; module->nfuncs: none. */
static size_t func_at(const struct isa_module *module, uint64_t addr)
{
	size_t low = 0, high = module->nfuncs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (module->funcs[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : module->nfuncs;
}

/* ---- who needs the caller's own return address ---- */

static uint8_t slot_reason(const struct isa_module *module, uint64_t addr)
{
	size_t low = 0, high = module->nslots;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (module->slots[mid].addr == addr)
			return module->slots[mid].keeps;
		if (module->slots[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return REASON_NONE;
}

/* Of the entry of a procedure linkage table at @addr: adrp; ldr from the slot; add; br. */
static uint8_t stub_reason(const struct isa_module *module, uint64_t addr)
{
	const struct isa_text *text = a64_text_at(module, addr);
	uint64_t page = 0;

	if (!text || !module->nslots)
		return REASON_NONE;
	for (int i = 0; i < PLT_WALK && text->size - (addr - text->addr) >= 4; i++, addr += 4) {
		uint32_t insn = insn_read(text->bytes + (addr - text->addr));
		struct insn_access access = insn_access(insn);

		if (insn_kind(insn) == INSN_ADRP)
			page = insn_target(INSN_ADRP, insn, addr);
		else if (page && access.n == 1 && access.load && access.size == 8)
			return slot_reason(module, page + (uint64_t)access.offset);
	}
	return REASON_NONE;
}

static void set_keeps(struct scanner *s, uint8_t reason)
{
	struct a64_func *state = &s->scan->funcs[s->index];

	if (!state->keeps)
		state->keeps = reason;
}

static void add_link(struct scanner *s, size_t to)
{
	struct a64_scan *scan = s->scan;

	if (to == s->index || to >= s->module->nfuncs)
		return;
	if (s->filling)
		scan->links[scan->nlinks] = (struct a64_link){ (uint32_t)s->index, (uint32_t)to };
	scan->nlinks++;
}

/* ---- branches ---- */

/* Is offset @at of a function in a long window, behind its start? */
static bool in_window(const struct a64_func *state, uint64_t at)
{
	return at > state->offset && at < state->offset + 4ul * A64_WINDOW_MAX;
}

/* Something of another function, or of data, goes to @addr. @jump: a branch that is no call. */
static void meet_other(struct scanner *s, uint64_t addr, enum insn_kind kind)
{
	const struct isa_module *module = s->module;
	bool jump = insn_is_direct(kind) && kind != INSN_BL;
	size_t to = func_at(module, addr);
	struct a64_func *state = &s->scan->funcs[to];
	uint64_t at;

	if (to < module->nfuncs && addr < module->funcs[to].end) {
		at = addr - module->funcs[to].start;
		if (at == 0 && jump && kind != INSN_B)
			state->facts |= FACT_BRANCHED_TO;
		else if (at == 0 && !jump)
			state->facts |= FACT_REFERRED;
		else if (in_window(state, at))
			state->facts |= FACT_LANDED;
		if (jump)
			add_link(s, to);
	} else if (jump) {
		set_keeps(s, stub_reason(module, addr));
	}
}

static void meet_branch(struct scanner *s, enum insn_kind kind, uint64_t target)
{
	const struct isa_func *func = &s->module->funcs[s->index];
	struct a64_func *state = &s->scan->funcs[s->index];
	uint64_t at = target - func->start;

	if (at >= func->end - func->start) {
		meet_other(s, target, kind);
		return;
	}
	if (at <= state->offset && kind != INSN_BL)
		state->facts |= FACT_LOOPS;
	else if (at == 0)
		state->facts |= FACT_REFERRED;
	else if (in_window(state, at))
		state->facts |= FACT_LANDED;
}

/* adrp and add make an address, adr does alone; adrp and ldr, br take one from a slot. */
static void follow_address(struct scanner *s, enum insn_kind kind, uint32_t insn, uint64_t at)
{
	struct insn_access access = insn_access(insn);
	uint64_t base = s->page[insn_rn(insn)];

	if (kind == INSN_ADR)
		meet_other(s, insn_target(kind, insn, at), INSN_OTHER);
	else if ((insn & 0xffc00000) == 0x91000000 && base)
		meet_other(s, base + (insn >> 10 & 0xfff), INSN_OTHER);
	if (kind == INSN_ADRP)
		s->page[insn_rd(insn)] = insn_target(kind, insn, at);
	else if (access.n == 1 && access.load && access.size == 8 && base && s->module->nslots
		&& slot_reason(s->module, base + (uint64_t)access.offset))
		s->page[insn_rd(insn)] = base + (uint64_t)access.offset;
	else if (kind == INSN_BR && base)
		set_keeps(s, slot_reason(s->module, base));
}

/* Does a field for a register name x16 or x17? Hardly ever, and then it is worth a closer look. */
static bool names_scratch(uint32_t insn)
{
	return (insn & 0x1e) == 0x10 || (insn & 0x1e << 5) == 0x10 << 5
		|| (insn & 0x1e << 10) == 0x10 << 10 || (insn & 0x1e << 16) == 0x10 << 16;
}

/*
 * Does what is behind a call, at code[i], read x16 or x17 before it writes them? No compiler's code does: between
 * functions written by hand they may be results.
 */
static bool relies_on_scratch(const struct scanner *s, const struct a64_code *code, size_t i)
{
	const struct isa_module *module = s->module;
	uint64_t start = module->funcs[s->index].start;
	uint32_t left = SCRATCH;

	for (size_t end = i + BEHIND_MAX; i < code->n && i < end && left; i++) {
		uint32_t insn = insn_read(code->bytes + 4 * i);
		enum insn_kind kind = insn_kind(insn);

		if (kind == INSN_BL) {
			uint64_t to = insn_target(kind, insn, start + 4 * i);
			size_t callee = func_at(module, to);

			return callee < module->nfuncs && module->funcs[callee].start == to
				&& s->scan->funcs[callee].facts & FACT_SCRATCH_IN;
		}
		if (names_scratch(insn)) {
			struct insn_uses uses = insn_uses(insn);

			if (uses.reads & left)
				return true;
			left &= ~uses.writes;
		}
		if (kind == INSN_BLR || insn_ends(kind, insn))
			return false;
	}
	return false;
}

static void meet_call(struct scanner *s, const struct a64_code *code, size_t i, uint64_t target)
{
	size_t to = func_at(s->module, target);

	if (to < s->module->nfuncs && target < s->module->funcs[to].end
		&& relies_on_scratch(s, code, i + 1))
		s->scan->funcs[to].facts |= FACT_SCRATCH_OUT;
}

/* Does the function run into the next one? What ends with a call does not expect it to return. */
static bool runs_on(const struct isa_module *module, size_t index, const struct a64_code *code)
{
	const struct isa_func *func = &module->funcs[index];
	uint32_t last = insn_read(code->bytes + 4 * (code->n - 1));
	enum insn_kind kind = insn_kind(last);

	return index + 1 < module->nfuncs && func[1].start == func->end
		&& !insn_ends(kind, last) && kind != INSN_BL && kind != INSN_BLR
		&& last != INSN_NOP;
}

static void scan_func(struct scanner *s, size_t index)
{
	const struct isa_func *func = &s->module->funcs[index];
	struct a64_code code = a64_code_of(s->module, func);

	s->index = index;
	memset(s->page, 0, sizeof(s->page));
	for (size_t i = 0; i < code.n; i++) {
		uint32_t insn = insn_read(code.bytes + 4 * i);
		enum insn_kind kind = insn_kind(insn);
		uint64_t at = func->start + 4 * i;

		if (kind == INSN_BL && !s->filling)
			meet_call(s, &code, i, insn_target(kind, insn, at));
		else if (kind == INSN_BLR && !s->filling && !s->scan->indirect_out)
			s->scan->indirect_out = relies_on_scratch(s, &code, i + 1);
		if (insn_is_direct(kind))
			meet_branch(s, kind, insn_target(kind, insn, at));
		else
			follow_address(s, kind, insn, at);
	}
	if (code.n && runs_on(s->module, index, &code))
		add_link(s, index + 1);
}

/* All functions; links are counted, or filled in. */
static void scan_all(struct scanner *s)
{
	s->scan->nlinks = 0;
	for (size_t i = 0; i < s->module->nfuncs; i++)
		scan_func(s, i);
}

/* Whoever goes on in a function that keeps its caller's return address does so too; and who is gone on
 * in returns to the same callers. */
static bool settle_link(struct a64_func *from, struct a64_func *to)
{
	bool keeps = to->keeps && !from->keeps;
	uint16_t out = from->facts & ~to->facts & FACT_SCRATCH_OUT;

	if (keeps)
		from->keeps = to->keeps;
	to->facts |= out;
	return keeps || out;
}

static void settle_links(const struct a64_scan *scan)
{
	bool news = true;

	for (int round = 0; news && round < ROUNDS; round++) {
		news = false;
		for (size_t i = 0; i < scan->nlinks; i++)
			news |= settle_link(&scan->funcs[scan->links[i].from],
				&scan->funcs[scan->links[i].to]);
	}
}

static void look_at_all(const struct isa_module *module, struct a64_scan *scan)
{
	for (size_t i = 0; i < module->nfuncs; i++) {
		struct a64_code code = a64_code_of(module, &module->funcs[i]);
		struct a64_func *state = &scan->funcs[i];

		state->offset = a64_patch_offset(&code);
		state->keeps = module->funcs[i].keeps;
		state->facts = a64_look(&code, &module->funcs[i]);
		if (state->facts & FACT_READS_RETURN && !state->keeps)
			state->keeps = REASON_READS_RETURN;
	}
}

int a64_scan(struct isa_module *module)
{
	struct a64_scan *scan = arena_alloc(module->arena, sizeof(*scan));
	struct scanner s = { .module = module, .scan = scan };

	if (!scan)
		return -ENOMEM;
	module->scan = scan;
	scan->funcs = arena_alloc(module->arena, (module->nfuncs + 1) * sizeof(*scan->funcs));
	if (!scan->funcs)
		return -ENOMEM;
	look_at_all(module, scan);
	scan_all(&s);
	scan->links = arena_alloc(module->arena, (scan->nlinks + 1) * sizeof(*scan->links));
	if (!scan->links)
		return -ENOMEM;
	s.filling = true;
	scan_all(&s);
	s.index = module->nfuncs;
	for (size_t i = 0; i < module->npointers; i++)
		meet_other(&s, module->pointers[i], INSN_OTHER);
	settle_links(scan);
	return 0;
}
