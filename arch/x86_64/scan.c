/* SPDX-License-Identifier: MIT */
/*
 * Finds everything in a module that lands inside a window.
 *
 * Decoding all of a large program takes seconds; looking at its bytes takes milliseconds. So one
 * bit per byte of text says "inside a window", and one pass over the bytes takes every position
 * that could be the displacement of a branch or of a RIP-relative operand and looks up where that
 * would lead. Nearly all lead nowhere of interest. The rest are suspects, and only for these the
 * function is decoded, from its start, to see whether an instruction with that field is there.
 * Where decoding is not possible (unknown code, undecodable bytes) a suspect counts as guilty.
 *
 * Addresses also come from relocated words or data, and from tables of 4-byte offsets that
 * compilers make for switch statements: those are read for functions that have an indirect jump.
 *
 * The same pass collects what else only the whole text can tell: see enum x86_fact.
 */
#include "scan.h"

#include <errno.h>

enum class {
	CLASS_REL8 = 1 << 0,
	CLASS_REL32 = 1 << 1,
	CLASS_ESCAPE = 1 << 2, /* 0f */
	CLASS_RIP = 1 << 3,    /* ModRM of a RIP-relative operand */
	CLASS_GROUP5 = 1 << 4, /* ff */
	CLASS_SIB = 1 << 5,    /* (%rsp) as a base */
	CLASS_POP = 1 << 6,    /* pop, and ModRM of add to rsp */
	CLASS_EIGHT = 1 << 7,  /* the disp8 of 8(%rbp) */
};

/* A table of offsets that an indirect jump of funcs[index] may use. */
struct table {
	uint64_t addr; /* its offsets count from there */
	size_t index;
};

struct scanner {
	const struct isa_module *module;
	struct x86_scan *scan;
	uint64_t low, span; /* all texts lie in [low, low + span) */
	uint8_t classes[256];
	struct table *tables;
	size_t ntables;
};

/* Decodes a range from its start, as far as it is asked. */
struct cursor {
	const uint8_t *bytes;
	size_t at, to; /* offsets in bytes */
	struct insn insn; /* the one at @at */
	bool lost;
	bool pushed; /* some push was seen */
};

/* A piece of text under the scan. */
struct range {
	const struct isa_text *text;
	const struct x86_map *map;
	size_t from, to; /* offsets in the text */
	size_t index;	 /* of its function; module->nfuncs: unknown code */
	uint64_t start, entry; /* addresses of the function and of its patch */
	const struct isa_row *row, *last_row;
	bool single_row;
	struct cursor cursor;
};

const struct isa_text *x86_text_at(const struct isa_module *module, uint64_t addr)
{
	for (size_t i = 0; i < module->ntexts; i++) {
		if (addr - module->texts[i].addr < module->texts[i].size)
			return &module->texts[i];
	}
	return NULL;
}

size_t x86_func_at(const struct isa_module *module, uint64_t addr)
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

static uint8_t class_of(uint8_t byte)
{
	uint8_t class = 0;

	if ((byte & 0xf0) == 0x70 || byte == 0xeb || (byte & 0xfc) == 0xe0)
		class |= CLASS_REL8;
	if ((byte & 0xfe) == 0xe8)
		class |= CLASS_REL32;
	if (byte == 0x0f || byte == 0xc7) /* c7 f8: xbegin */
		class |= CLASS_ESCAPE;
	if ((byte & 0xc7) == 0x05)
		class |= CLASS_RIP;
	if (byte == 0xff)
		class |= CLASS_GROUP5;
	if (byte == 0x24)
		class |= CLASS_SIB;
	if ((byte & 0xf8) == 0x58 || byte == 0xc4)
		class |= CLASS_POP;
	if (byte == 0x08)
		class |= CLASS_EIGHT;
	return class;
}

static int32_t read_s32(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, 4);
	return value;
}

/* ---- windows and what lands in them ---- */

static bool has_bit(const uint8_t *bits, size_t n)
{
	return bits[n / 8] >> n % 8 & 1;
}

static void set_bit(uint8_t *bits, size_t n)
{
	bits[n / 8] |= 1u << n % 8;
}

/* The maps of the text that holds @addr, and its offset there; NULL: none. */
static const struct x86_map *map_at(const struct scanner *s, uint64_t addr, size_t *at)
{
	const struct isa_text *text;

	if (addr - s->low >= s->span)
		return NULL;
	text = x86_text_at(s->module, addr);
	if (!text)
		return NULL;
	*at = addr - text->addr;
	return &s->scan->maps[text - s->module->texts];
}

/* Is @addr inside a window, not at its first byte? */
static bool in_window(const struct scanner *s, uint64_t addr)
{
	size_t at;
	const struct x86_map *map = map_at(s, addr, &at);

	return map && has_bit(map->windows, at);
}

static void map_func(struct scanner *s, size_t index)
{
	const struct isa_func *func = &s->module->funcs[index];
	const struct x86_func *state = &s->scan->funcs[index];
	size_t len = state->len > state->hop_len ? state->len : state->hop_len;
	size_t at;
	const struct x86_map *map = map_at(s, func->start, &at);

	if (!map)
		return;
	if (func->anonymous)
		set_bit(map->anonymous, at);
	for (size_t i = 1; i < len; i++)
		set_bit(map->windows, at + state->offset + i);
}

/* The bit for @addr of the window that holds it. */
static struct x86_func *window_at(const struct scanner *s, uint64_t addr, uint32_t *bit)
{
	size_t index = x86_func_at(s->module, addr);
	struct x86_func *state = &s->scan->funcs[index];

	*bit = 1u << ((addr - s->module->funcs[index].start - state->offset) & 31);
	return state;
}

static void land(const struct scanner *s, uint64_t addr)
{
	uint32_t bit;
	struct x86_func *state = window_at(s, addr, &bit);

	state->landed |= bit;
}

/* Only of anonymous functions it matters who goes to them. */
static void note_start(const struct scanner *s, uint64_t addr, enum x86_fact fact)
{
	size_t at;
	const struct x86_map *map = map_at(s, addr, &at);

	if (!map || !has_bit(map->anonymous, at))
		return;
	s->scan->funcs[x86_func_at(s->module, addr)].facts |= fact;
	if (fact == FACT_REFERRED)
		map->anonymous[at / 8] &= ~(1u << at % 8);
}

/* ---- suspects ---- */

/* Decode up to the instruction that covers offset @pos. False: this is not possible. */
static bool cursor_reach(struct cursor *c, size_t pos)
{
	while (!c->lost && c->at + c->insn.len <= pos) {
		c->at += c->insn.len;
		c->lost = !decoder_read(c->bytes + c->at, c->to - c->at, &c->insn);
		c->pushed |= c->insn.map == 0 && (c->insn.opcode & 0xf8) == 0x50;
	}
	return !c->lost;
}

/*
 * Code that is not of any function is mostly PLT entries. Is the byte at @p in the displacement of
 * jmp *slot(%rip), where the slot is an aligned word of data?
 */
static bool in_slot_jump(const struct scanner *s, const struct range *r, size_t p)
{
	const struct isa_module *module = s->module;

	for (size_t at = p - 5; at != p - 1; at++) {
		const uint8_t *code = r->text->bytes + at;
		uint64_t slot;

		if (at < r->from || at >= r->to || r->to - at < 6 || code[0] != 0xff ||
			code[1] != 0x25)
			continue;
		slot = r->text->addr + at + 6 + (int64_t)read_s32(code + 2);
		if (slot % 8 || x86_text_at(module, slot))
			continue;
		for (size_t i = 0; i < module->ndatas; i++)
			if (slot - module->datas[i].addr < module->datas[i].size)
				return true;
	}
	return false;
}

static bool is_branch_field(struct cursor *c, size_t pos)
{
	return !cursor_reach(c, pos) || (c->insn.rel_at && c->at + c->insn.rel_at == pos);
}

static bool is_rip_field(struct cursor *c, size_t pos)
{
	return !cursor_reach(c, pos) || (c->insn.rip_at && c->at + c->insn.rip_at == pos);
}

static void add_fact(struct scanner *s, const struct range *r, enum x86_fact fact)
{
	if (r->index < s->module->nfuncs)
		s->scan->funcs[r->index].facts |= fact;
}

static bool to_window(const struct scanner *s, const struct range *r, uint64_t target)
{
	uint64_t at = target - r->text->addr;

	return at < r->text->size ? has_bit(r->map->windows, at) : in_window(s, target);
}

static void add_link(struct scanner *s, const struct range *r, size_t field, uint64_t target)
{
	const struct x86_link link = { r->text->addr + field, target, (uint32_t)r->index };

	if (r->index < s->module->nfuncs)
		x86_flow_add(s->module, &link);
}

/* Does @target lie in a text, and outside the function? */
static bool leaves(const struct scanner *s, const struct range *r, uint64_t target)
{
	return target - r->start >= r->to - r->from && target - s->low < s->span;
}

/* Is @target, less than 130 bytes away, the entry of another function? */
static bool is_entry_near(const struct scanner *s, const struct range *r, uint64_t target)
{
	const struct isa_module *module = s->module;
	size_t i = r->index;

	if (i == module->nfuncs)
		return false;
	while (i + 1 < module->nfuncs && module->funcs[i + 1].start <= target)
		i++;
	while (i > 0 && module->funcs[i].start > target)
		i--;
	return target - module->funcs[i].start <= s->scan->funcs[i].offset;
}

/* A branch at @field, if there is one, goes to @target. */
static void meet_branch(struct scanner *s, struct range *r, size_t field, uint64_t target,
	bool call)
{
	bool own_entry = !call && (target == r->entry || target == r->start);

	if (!own_entry && !to_window(s, r, target))
		return;
	if (!is_branch_field(&r->cursor, field) ||
		(r->index == s->module->nfuncs && in_slot_jump(s, r, field - 1)))
		return;
	if (own_entry)
		add_fact(s, r, FACT_LOOPS);
	else
		land(s, target);
}

static void meet_rel8(struct scanner *s, struct range *r, size_t p)
{
	uint64_t target;

	if (p + 1 >= r->to)
		return;
	target = r->text->addr + p + 2 + (int64_t)(int8_t)r->text->bytes[p + 1];
	if (leaves(s, r, target) && is_entry_near(s, r, target))
		add_link(s, r, p + 1, target);
	meet_branch(s, r, p + 1, target, false);
}

/* A call into the middle of its own function that finds its return address there: the target of
 * a retpoline, or of code that asks where it is. */
static void meet_own_call(struct scanner *s, struct range *r, size_t p, uint64_t target)
{
	size_t at = target - r->text->addr;
	struct insn insn;

	if (target <= r->start || at < r->from || at >= r->to ||
		!decoder_read(r->text->bytes + at, r->to - at, &insn))
		return;
	if ((insn.base == 4 || (insn.map == 0 && (insn.opcode & 0xf8) == 0x58)) &&
		is_branch_field(&r->cursor, p + 1))
		add_fact(s, r, FACT_CALLS_INSIDE);
}

static void meet_rel32(struct scanner *s, struct range *r, size_t p)
{
	bool call = r->text->bytes[p] == 0xe8;
	uint64_t target;

	if (r->to - p < 5)
		return;
	target = r->text->addr + p + 5 + (int64_t)read_s32(r->text->bytes + p + 1);
	if (call) {
		meet_own_call(s, r, p, target);
		note_start(s, target, FACT_REFERRED);
	} else if (leaves(s, r, target)) {
		add_link(s, r, p + 1, target);
	}
	meet_branch(s, r, p + 1, target, call);
}

static void meet_escape(struct scanner *s, struct range *r, size_t p)
{
	const uint8_t *code = r->text->bytes + p;
	uint64_t target;

	if (r->to - p < 6 || (code[0] == 0x0f ? (code[1] & 0xf0) != 0x80 : code[1] != 0xf8))
		return;
	target = r->text->addr + p + 6 + (int64_t)read_s32(code + 2);
	if (target != r->start)
		note_start(s, target, FACT_BRANCHED_TO);
	if (leaves(s, r, target))
		add_link(s, r, p + 2, target);
	meet_branch(s, r, p + 2, target, false);
}

/* jmp *slot(%rip), ModRM at @p. */
static void meet_slot(struct scanner *s, struct range *r, size_t p)
{
	uint8_t reason = x86_flow_stub(s->module, r->text, p - 1);

	if (reason && r->index < s->module->nfuncs && is_rip_field(&r->cursor, p + 1))
		s->scan->funcs[r->index].keeps = reason;
}

/* A RIP-relative operand, followed by an immediate of 0, 1, 2 or 4 bytes. */
static void meet_rip(struct scanner *s, struct range *r, size_t p)
{
	static const uint8_t immediates[] = { 0, 1, 2, 4 };
	const uint8_t *code = r->text->bytes + p;
	uint64_t target;

	if (r->to - p < 5)
		return;
	target = r->text->addr + p + 5 + (int64_t)read_s32(code + 1);
	if (p > r->from && code[-1] == 0x8d)
		note_start(s, target, FACT_REFERRED);
	if (p > r->from && code[-1] == 0xff && code[0] == 0x25 && s->module->nslots)
		meet_slot(s, r, p);
	for (int i = 0; i < 4; i++) {
		size_t end = p + 5 + immediates[i];

		if (to_window(s, r, target + immediates[i]) && is_rip_field(&r->cursor, p + 1) &&
			(r->cursor.lost || r->cursor.at + r->cursor.insn.len == end))
			land(s, target + immediates[i]);
	}
}

/* jmp through a register. Through memory needs no care: whole addresses are found as such. */
static void meet_group5(struct scanner *s, struct range *r, size_t p)
{
	if (r->index == s->module->nfuncs || r->to - p < 2 ||
		(r->text->bytes[p + 1] & 0xf8) != 0xe0)
		return;
	if (cursor_reach(&r->cursor, p) && r->cursor.insn.kind != INSN_JUMP_INDIRECT)
		return;
	add_fact(s, r, FACT_SWITCHES);
}

/* ---- uses of the return address ---- */

/* Go on to the row that holds at offset @p of the text. False: there is none. */
static bool find_row(struct range *r, size_t p)
{
	uint64_t off = r->text->addr + p - r->start;

	if (!r->row)
		return false;
	while (r->row < r->last_row && r->row[1].from <= off)
		r->row++;
	return r->row->from <= off;
}

/* Does the instruction under the cursor use the word that r->row describes? */
static bool insn_uses(const struct range *r)
{
	const struct insn *insn = &r->cursor.insn;

	if (insn_uses_word(insn, r->row->base == 7 ? 4 : 5, r->row->offset))
		return true;
	/* Code that pushes but has a single row has rows that are not to be believed. */
	if (r->row->base != 7 || r->row->offset != 0 || insn->map != 0 ||
		(r->single_row && r->cursor.pushed))
		return false;
	if ((insn->opcode & 0xf8) == 0x58)
		return true;
	return (insn->opcode == 0x81 || insn->opcode == 0x83) && insn->modrm == 0xc4 &&
		!insn->rex_b;
}

/* Could this ModRM byte belong to an instruction that takes 8 bytes from (%rsp) or (%rbp)? Behind a
 * REX.W without REX.B, 0f, or for push, pop, call and jmp. */
static bool is_wide_operand(const uint8_t *modrm)
{
	return (modrm[-2] & 0xf9) == 0x48 || modrm[-2] == 0x0f || modrm[-1] == 0xff ||
		modrm[-1] == 0x8f;
}

/* Could the byte at @p be a pop of the return address, which is on top of the stack? */
static bool looks_like_pop(const struct range *r, size_t p)
{
	const uint8_t *code = r->text->bytes + p;

	if (code[0] == 0xc4)
		return p > r->from && (code[-1] == 0x81 || code[-1] == 0x83);
	/* Rows that tell pushes from pops change behind this one. */
	if (r->single_row)
		return true;
	return r->row < r->last_row && r->start + r->row[1].from == r->text->addr + p + 1;
}

/* Could the bytes around @p be a use of the return address that r->row describes? */
static bool looks_like_use(const struct range *r, size_t p, uint8_t class)
{
	const uint8_t *code = r->text->bytes + p;
	int32_t offset = r->row->offset;

	if (r->row->base == 7 && class & CLASS_POP && offset == 0)
		return looks_like_pop(r, p);
	if (p - r->from < 3 || !is_wide_operand(code - 1))
		return false;
	if (r->row->base == 6)
		return class & CLASS_EIGHT && offset == 8 && (code[-1] & 0xc7) == 0x45;
	if (r->row->base != 7 || !(class & CLASS_SIB) || (code[-1] & 7) != 4)
		return false;
	switch (code[-1] >> 6) {
	case 0:
		return offset == 0;
	case 1:
		return r->to - p > 1 && offset == (int8_t)code[1];
	case 2:
		return r->to - p > 4 && offset == read_s32(code + 1);
	default:
		return false;
	}
}

static void meet_stack(struct scanner *s, struct range *r, size_t p, uint8_t class)
{
	if (!find_row(r, p) || s->scan->funcs[r->index].facts & FACT_READS_RETURN ||
		!looks_like_use(r, p, class))
		return;
	if (!cursor_reach(&r->cursor, p) || insn_uses(r))
		add_fact(s, r, FACT_READS_RETURN);
}

/* ---- the pass over the bytes ---- */

static void scan_range(struct scanner *s, struct range *r)
{
	const uint8_t *bytes = r->text->bytes;

	for (size_t p = r->from; p < r->to; p++) {
		uint8_t class = s->classes[bytes[p]];

		if (!class)
			continue;
		if (class & CLASS_REL8)
			meet_rel8(s, r, p);
		if (class & CLASS_REL32)
			meet_rel32(s, r, p);
		if (class & CLASS_ESCAPE)
			meet_escape(s, r, p);
		if (class & CLASS_RIP)
			meet_rip(s, r, p);
		if (class & CLASS_GROUP5)
			meet_group5(s, r, p);
		if (class & (CLASS_SIB | CLASS_POP | CLASS_EIGHT))
			meet_stack(s, r, p, class);
	}
}

static void scan_unknown(struct scanner *s, const struct isa_text *text, size_t from, size_t to)
{
	struct range r = {
		.text = text,
		.map = &s->scan->maps[text - s->module->texts],
		.from = from,
		.to = to,
		.index = s->module->nfuncs,
		.cursor.lost = true,
	};

	scan_range(s, &r);
}

static void scan_func(struct scanner *s, const struct isa_text *text, size_t index, size_t to)
{
	const struct isa_func *func = &s->module->funcs[index];
	size_t from = func->start - text->addr;
	struct range r = {
		.text = text,
		.map = &s->scan->maps[text - s->module->texts],
		.from = from,
		.to = to,
		.index = index,
		.start = func->start,
		.entry = func->start + s->scan->funcs[index].offset,
		.row = func->nrows ? func->rows : NULL,
		.single_row = func->nrows == 1,
		.last_row = func->nrows ? func->rows + func->nrows - 1 : NULL,
		.cursor = { .bytes = text->bytes, .at = from, .to = to },
	};

	scan_range(s, &r);
}

/* What follows a function, up to offset @next: padding, or else unknown code. */
static void scan_gap(struct scanner *s, const struct isa_text *text, size_t index, size_t from,
	size_t next)
{
	uint64_t limit = s->module->funcs[index].limit - text->addr;

	if (limit > next)
		limit = next;
	if (limit > from && x86_is_padding(text->bytes + from, limit - from)) {
		s->scan->funcs[index].facts |= FACT_PADDED;
		from = limit;
	}
	scan_unknown(s, text, from, next);
}

static void scan_text(struct scanner *s, const struct isa_text *text)
{
	const struct isa_module *module = s->module;
	uint64_t end = text->addr + text->size;
	size_t index = x86_func_at(module, text->addr);
	size_t done = 0;

	if (index == module->nfuncs)
		index = 0;
	else if (module->funcs[index].start < text->addr)
		index++;
	for (; index < module->nfuncs && module->funcs[index].start < end; index++) {
		const struct isa_func *func = &module->funcs[index];
		uint64_t next = index + 1 < module->nfuncs ? func[1].start : end;
		size_t to;

		if (next > end)
			next = end;
		to = (func->end < next ? func->end : next) - text->addr;
		if (func->end < func->start)
			to = func->start - text->addr;
		if (done == 0)
			scan_unknown(s, text, 0, func->start - text->addr);
		scan_func(s, text, index, to);
		done = next - text->addr;
		scan_gap(s, text, index, to, done);
	}
	if (done == 0)
		scan_unknown(s, text, 0, text->size);
}

/* ---- addresses in data ---- */

static void meet_pointer(struct scanner *s, uint64_t addr)
{
	if (addr - s->low >= s->span)
		return;
	if (in_window(s, addr))
		land(s, addr);
	else
		note_start(s, addr, FACT_REFERRED);
}

static void scan_pointers(struct scanner *s)
{
	const struct isa_module *module = s->module;

	if (module->pointers) {
		for (size_t i = 0; i < module->npointers; i++)
			meet_pointer(s, module->pointers[i]);
		return;
	}
	for (size_t i = 0; i < module->ndatas; i++) {
		const struct isa_text *data = &module->datas[i];

		for (size_t at = -data->addr & 7; at + 8 <= data->size; at += 8) {
			uint64_t word;

			memcpy(&word, data->bytes + at, 8);
			meet_pointer(s, word);
		}
	}
}

/* ---- jump tables ---- */

/* The bytes of data, or of text, from @addr on. */
static const uint8_t *table_bytes(const struct isa_module *module, uint64_t addr, size_t *room)
{
	const struct isa_text *part = NULL;

	for (size_t i = 0; i < module->ndatas && !part; i++) {
		if (addr - module->datas[i].addr < module->datas[i].size)
			part = &module->datas[i];
	}
	if (!part)
		part = x86_text_at(module, addr);
	if (!part)
		return NULL;
	*room = part->size - (addr - part->addr);
	return part->bytes + (addr - part->addr);
}

static void add_table(struct scanner *s, size_t index, uint64_t addr)
{
	if (s->tables)
		s->tables[s->ntables] = (struct table){ .addr = addr, .index = index };
	s->ntables++;
}

/* Is @addr data, or in a text but in no function? */
static bool may_hold_table(const struct isa_module *module, uint64_t addr)
{
	size_t index = x86_func_at(module, addr), room;

	return table_bytes(module, addr, &room) &&
		(index == module->nfuncs || addr >= module->funcs[index].end);
}

/* Every lea of a function with an indirect jump may be of a table. */
static void find_tables(struct scanner *s, size_t index)
{
	const struct isa_func *func = &s->module->funcs[index];
	const struct isa_text *text = x86_text_at(s->module, func->start);
	size_t from = func->start - text->addr, to = func->end - text->addr;

	if (to > text->size)
		to = text->size;
	for (size_t p = from; p + 7 <= to; p++) {
		const uint8_t *code = text->bytes + p;
		uint64_t target;

		if ((code[0] & 0xf8) != 0x48 || code[1] != 0x8d || (code[2] & 0xc7) != 5)
			continue;
		target = text->addr + p + 7 + (int64_t)read_s32(code + 3);
		if (may_hold_table(s->module, target))
			add_table(s, index, target);
	}
}

/* A function and the places inside it share their jumps and their tables. */
static void join_places(struct scanner *s)
{
	const struct isa_func *funcs = s->module->funcs;
	size_t n = s->module->nfuncs;

	for (size_t i = 1; i < n; i++)
		if (funcs[i].inside)
			s->scan->funcs[i].facts |= s->scan->funcs[i - 1].facts & FACT_SWITCHES;
	for (size_t i = n; i-- > 1;)
		if (funcs[i].inside)
			s->scan->funcs[i - 1].facts |= s->scan->funcs[i].facts & FACT_SWITCHES;
}

static void find_all_tables(struct scanner *s)
{
	join_places(s);
	s->ntables = 0;
	for (size_t i = 0; i < s->module->nfuncs; i++) {
		if (s->scan->funcs[i].facts & FACT_SWITCHES)
			find_tables(s, i);
	}
}

static int compare_tables(const void *a, const void *b)
{
	const struct table *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Read a table up to @end, where the next begins. */
static void read_table(struct scanner *s, const struct table *table, uint64_t end)
{
	const struct isa_func *func = &s->module->funcs[table->index];
	struct x86_func *own = &s->scan->funcs[table->index];
	size_t room;
	const uint8_t *bytes = table_bytes(s->module, table->addr, &room);

	if (end - table->addr < room)
		room = end - table->addr;
	for (size_t at = 0; at + 4 <= room; at += 4) {
		uint64_t target = table->addr + (int64_t)read_s32(bytes + at);
		uint32_t bit;

		if (!x86_text_at(s->module, target))
			return;
		if (target == func->start || target == func->start + own->offset)
			own->facts |= FACT_LOOPS;
		else if (in_window(s, target))
			window_at(s, target, &bit)->tabled |= bit;
	}
}

static int scan_tables(struct scanner *s)
{
	find_all_tables(s);
	if (s->ntables == 0)
		return 0;
	s->tables = arena_alloc(s->module->arena, s->ntables * sizeof(*s->tables));
	if (!s->tables)
		return -ENOMEM;
	find_all_tables(s);
	mem_sort(s->tables, s->ntables, sizeof(*s->tables), compare_tables);
	for (size_t i = 0; i < s->ntables; i++) {
		size_t next = i + 1;

		while (next < s->ntables && s->tables[next].addr == s->tables[i].addr)
			next++;
		read_table(s, &s->tables[i], next < s->ntables ? s->tables[next].addr : ~0ull);
	}
	return 0;
}

/* ---- all of it ---- */

/* Compilers align functions, and do not align the parts they split off. */
bool x86_scan_jumped_to(const struct isa_module *module, size_t index)
{
	const struct x86_scan *scan = module->scan;
	uint16_t facts = scan->funcs[index].facts;

	return module->funcs[index].start % 16 && facts & FACT_BRANCHED_TO &&
		!(facts & FACT_REFERRED);
}

static int scan_alloc(struct scanner *s, struct isa_module *module)
{
	struct x86_scan *scan = arena_alloc(module->arena, sizeof(*scan));

	if (!scan)
		return -ENOMEM;
	scan->funcs = arena_alloc(module->arena, (module->nfuncs + 1) * sizeof(*scan->funcs));
	scan->maps = arena_alloc(module->arena, (module->ntexts + 1) * sizeof(*scan->maps));
	if (!scan->funcs || !scan->maps)
		return -ENOMEM;
	for (size_t i = 0; i < module->ntexts; i++) {
		const struct isa_text *text = &module->texts[i];
		size_t size = text->size / 8 + 1;

		scan->maps[i].windows = arena_alloc(module->arena, size);
		scan->maps[i].anonymous = arena_alloc(module->arena, size);
		scan->maps[i].marked = arena_alloc(module->arena, size);
		if (!scan->maps[i].windows || !scan->maps[i].anonymous || !scan->maps[i].marked)
			return -ENOMEM;
	}
	module->scan = s->scan = scan;
	return 0;
}

int x86_scan(struct isa_module *module)
{
	struct scanner s = { .module = module };
	uint64_t high = 0;
	int err = decoder_open();

	if (!err)
		err = scan_alloc(&s, module);
	if (err)
		return err;
	for (int i = 0; i < 256; i++)
		s.classes[i] = class_of(i);
	s.low = ~0ull;
	for (size_t i = 0; i < module->ntexts; i++) {
		const struct isa_text *text = &module->texts[i];

		s.low = text->addr < s.low ? text->addr : s.low;
		high = text->addr + text->size > high ? text->addr + text->size : high;
	}
	s.span = high - s.low;
	for (size_t i = 0; i < module->nfuncs; i++) {
		x86_site_probe(module, i);
		map_func(&s, i);
	}
	x86_flow_begin(module);
	for (size_t i = 0; i < module->ntexts; i++)
		scan_text(&s, &module->texts[i]);
	scan_pointers(&s);
	err = scan_tables(&s);
	if (!err)
		err = x86_flow_settle(module);
	if (!err)
		x86_site_settle(module);
	return err;
}
