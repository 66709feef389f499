/* SPDX-License-Identifier: MIT */
/*
 * What functions hand on to each other.
 *
 * A function that ends with a jump to another gives it its own return address. So a function is
 * hooked at its entry only when it ends, directly or over others, in one that must see its caller's
 * own return address: setjmp would keep our return point as the place to come back to, and come
 * back twice. Flags that come in may be read, or returned, first by a function that is called or
 * jumped to.
 *
 * The scan notes every place where a function may go on in another, without a look at whether
 * there is an instruction at all: nearly none of them matters, and those that do are decoded here.
 */
#include "scan.h"

#include <errno.h>

#define PREFIX_MAX  4  /* of a jump in a PLT entry */
#define RUN_ON_MAX  64 /* bytes of nops between functions */
#define FLOW_ROUNDS 32 /* longer rows of functions than this are no compiler's */

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

/* ---- entries that matter ---- */

static struct x86_func *state_of(const struct isa_module *module, size_t index)
{
	return &((struct x86_scan *)module->scan)->funcs[index];
}

static void mark(const struct isa_module *module, uint64_t addr, uint64_t size)
{
	const struct isa_text *text = x86_text_at(module, addr);
	struct x86_scan *scan = module->scan;

	uint64_t at, end;
	uint8_t *bits;

	if (!text)
		return;
	bits = scan->maps[text - module->texts].marked;
	at = addr - text->addr;
	end = size < text->size - at ? at + size : text->size;
	for (; at < end && at % 8; at++)
		bits[at / 8] |= 1u << at % 8;
	for (; end > at && end % 8; end--)
		bits[(end - 1) / 8] |= 1u << (end - 1) % 8;
	if (at < end)
		memset(bits + at / 8, 0xff, (end - at) / 8);
}

static bool is_marked(const struct isa_module *module, uint64_t addr)
{
	const struct isa_text *text = x86_text_at(module, addr);
	const struct x86_scan *scan = module->scan;
	uint64_t at;

	if (!text)
		return false;
	at = addr - text->addr;
	return scan->maps[text - module->texts].marked[at / 8] >> at % 8 & 1;
}

static void set_flags_in(const struct isa_module *module, size_t index)
{
	struct x86_func *state = state_of(module, index);

	state->facts |= FACT_FLAGS_IN;
	mark(module, module->funcs[index].start, state->offset + 1u);
}

/* The function that is entered at @addr, or module->nfuncs. */
static size_t entered_at(const struct isa_module *module, uint64_t addr)
{
	size_t index = x86_func_at(module, addr);

	if (index < module->nfuncs &&
		addr - module->funcs[index].start > state_of(module, index)->offset)
		return module->nfuncs;
	return index;
}

/* Is @addr the entry of a function that needs its caller's condition flags? */
static bool needs_flags(const struct isa_module *module, uint64_t addr)
{
	size_t index;

	if (!is_marked(module, addr))
		return false;
	index = entered_at(module, addr);
	return index < module->nfuncs && state_of(module, index)->facts & FACT_FLAGS_IN;
}

/* ---- jumps through words that the loader fills ---- */

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

/* bnd, notrack, rex */
static bool is_jump_prefix(uint8_t byte)
{
	return byte == 0xf2 || byte == 0x3e || (byte & 0xf0) == 0x40;
}

/* Of the PLT entry at @addr, an optional endbr64 and jmp *slot(%rip). */
static uint8_t stub_reason(const struct isa_module *module, uint64_t addr)
{
	const struct isa_text *text = x86_text_at(module, addr);
	size_t at = addr - (text ? text->addr : 0);
	int32_t disp;

	if (!text)
		return REASON_NONE;
	if (text->size - at >= 4 && memcmp(text->bytes + at, endbr64, 4) == 0)
		at += 4;
	for (int n = 0; n < PREFIX_MAX && at < text->size && is_jump_prefix(text->bytes[at]); n++)
		at++;
	if (text->size - at < 6 || text->bytes[at] != 0xff || text->bytes[at + 1] != 0x25)
		return REASON_NONE;
	memcpy(&disp, text->bytes + at + 2, 4);
	return slot_reason(module, text->addr + at + 6 + (int64_t)disp);
}

uint8_t x86_flow_stub(const struct isa_module *module, const struct isa_text *text, size_t at)
{
	uint8_t reason = stub_reason(module, text->addr + at);

	if (!reason)
		return REASON_NONE;
	mark(module, text->addr + at, 1);
	for (int n = 0; n < PREFIX_MAX && at > 0 && is_jump_prefix(text->bytes[at - 1]); n++)
		mark(module, text->addr + --at, 1);
	if (at >= 4 && memcmp(text->bytes + at - 4, endbr64, 4) == 0)
		mark(module, text->addr + at - 4, 1);
	return reason;
}

/* Why whoever jumps to @addr must be hooked at its entry only. */
static uint8_t target_reason(const struct isa_module *module, uint64_t addr)
{
	size_t index;

	if (!is_marked(module, addr))
		return REASON_NONE;
	index = x86_func_at(module, addr);
	if (index < module->nfuncs && addr < module->funcs[index].end &&
		state_of(module, index)->keeps)
		return state_of(module, index)->keeps;
	return stub_reason(module, addr);
}

/* ---- places where a function goes on in another ---- */

void x86_flow_add(const struct isa_module *module, const struct x86_link *link)
{
	struct x86_scan *scan = module->scan;
	struct x86_links *last = scan->last_links;

	if (!last || last->n == X86_LINKS) {
		last = arena_alloc(module->arena, sizeof(*last));
		if (!last) {
			scan->no_memory = true;
			return;
		}
		if (scan->last_links)
			scan->last_links->next = last;
		else
			scan->links = last;
		scan->last_links = last;
	}
	last->list[last->n++] = *link;
}

/* Goes through one function after the other, each from its start. */
struct reader {
	const struct isa_module *module;
	size_t index;
	const struct isa_text *text;
	uint64_t at, end;
	struct insn insn; /* the one at @at */
	bool lost;
};

static void reader_begin(struct reader *r, size_t index)
{
	const struct isa_func *func = &r->module->funcs[index];
	uint64_t end;

	r->index = index;
	r->text = x86_text_at(r->module, func->start);
	r->at = func->start;
	r->insn.len = 0;
	r->lost = !r->text || func->end <= func->start;
	if (r->lost)
		return;
	end = r->text->addr + r->text->size;
	r->end = func->end < end ? func->end : end;
}

/* Decode up to the instruction that covers @addr. False: this is not possible. */
static bool reader_reach(struct reader *r, uint64_t addr)
{
	while (!r->lost && r->at + r->insn.len <= addr) {
		r->at += r->insn.len;
		r->lost = r->at >= r->end || !decoder_read(r->text->bytes + (r->at - r->text->addr),
			r->end - r->at, &r->insn);
	}
	return !r->lost;
}

/* Is there really a branch? Yes where this cannot be told. */
static bool is_link(struct reader *r, const struct x86_link *link)
{
	if (r->index != link->index || r->at > link->field)
		reader_begin(r, link->index);
	return !reader_reach(r, link->field) ||
		(r->insn.rel_at && r->at + r->insn.rel_at == link->field);
}

/* Nothing, or nops. */
static bool is_run_over(const struct isa_text *text, uint64_t at, uint64_t size)
{
	return size == 0 ||
		(size <= text->size - at && text->bytes[at] != 0xcc &&
			x86_is_padding(text->bytes + at, size));
}

/* Does funcs[index] run into the next one? What ends with a call does not expect it to return. */
static bool runs_on(const struct isa_module *module, size_t index)
{
	const struct isa_func *func = &module->funcs[index];
	struct reader r = { .module = module };
	uint64_t gap;

	if (index + 1 >= module->nfuncs)
		return false;
	gap = func[1].start - func->end;
	reader_begin(&r, index);
	if (r.lost || r.end != func->end || gap > RUN_ON_MAX ||
		!is_run_over(r.text, func->end - r.text->addr, gap))
		return false;
	return reader_reach(&r, func->end - 1) && r.at + r.insn.len == func->end &&
		!insn_ends(&r.insn) && r.insn.kind != INSN_CALL &&
		r.insn.kind != INSN_CALL_INDIRECT;
}

/* Of a cold part any byte may be jumped to. */
static void mark_own(const struct isa_module *module, size_t index)
{
	const struct isa_func *func = &module->funcs[index];
	uint64_t end = func->end;

	if (index + 1 < module->nfuncs && func[1].start < end)
		end = func[1].start;
	if (end > func->start)
		mark(module, func->start, end - func->start);
}

/* Functions that run into it do the same. */
static void set_keeps(const struct isa_module *module, size_t index, uint8_t reason)
{
	struct x86_func *state = state_of(module, index);

	for (;; index--, state--) {
		state->keeps = reason;
		mark_own(module, index);
		if (index == 0 || state[-1].keeps || !runs_on(module, index - 1))
			return;
	}
}

/* One link: what its target is may make the function entry only. True: this is news. */
static bool follow_link(struct reader *r, const struct x86_link *link)
{
	const struct isa_module *module = r->module;
	uint8_t reason;

	if (state_of(module, link->index)->keeps)
		return false;
	reason = target_reason(module, link->target);
	if (!reason || !is_link(r, link))
		return false;
	set_keeps(module, link->index, reason);
	return true;
}

static bool follow_all(struct reader *r)
{
	const struct x86_scan *scan = r->module->scan;
	bool news = false;

	for (const struct x86_links *links = scan->links; links; links = links->next)
		for (size_t i = 0; i < links->n; i++)
			news |= follow_link(r, &links->list[i]);
	return news;
}

/* Flags that come in go on to where state->flows says. */
static bool follow_flags(const struct isa_module *module)
{
	bool news = false;

	for (size_t i = 0; i < module->nfuncs; i++) {
		struct x86_func *state = state_of(module, i);

		if (state->facts & FACT_FLAGS_IN || !state->flows ||
			!needs_flags(module, state->flows))
			continue;
		set_flags_in(module, i);
		news = true;
	}
	return news;
}

/* Does funcs[index] jump, with flags that are its caller's, to code that nobody has looked at? */
static bool flags_escape(const struct isa_module *module, size_t index)
{
	const struct x86_func *state = state_of(module, index);

	return state->facts & FACT_FLAGS_JUMP &&
		entered_at(module, state->flows) == module->nfuncs;
}

void x86_flow_begin(const struct isa_module *module)
{
	bool news = false;

	for (size_t i = 0; i < module->nfuncs; i++) {
		state_of(module, i)->keeps = module->funcs[i].keeps;
		if (state_of(module, i)->facts & FACT_FLAGS_IN || flags_escape(module, i)) {
			set_flags_in(module, i);
			news = true;
		}
	}
	for (int round = 0; news && round < FLOW_ROUNDS; round++)
		news = follow_flags(module);
}

int x86_flow_settle(const struct isa_module *module)
{
	const struct x86_scan *scan = module->scan;
	struct reader reader = { .module = module, .index = module->nfuncs };
	bool news = module->nslots > 0;

	for (size_t i = 0; i < module->nfuncs; i++) {
		struct x86_func *state = state_of(module, i);

		if (state->facts & FACT_READS_RETURN && !state->keeps)
			state->keeps = REASON_READS_RETURN;
		/* a retpoline looks at no return address but its own call's */
		if (state->facts & FACT_CALLS_INSIDE && state->keeps == REASON_READS_RETURN)
			state->keeps = REASON_NONE;
		if (state->keeps)
			set_keeps(module, i, state->keeps);
		news |= state->keeps != REASON_NONE;
	}
	for (int round = 0; news && round < FLOW_ROUNDS; round++)
		news = follow_all(&reader);
	return scan->no_memory ? -ENOMEM : 0;
}
