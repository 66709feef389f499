/* SPDX-License-Identifier: MIT */
/*
 * .eh_frame is a sequence of records: CIEs, which say how to read the FDEs that refer back to
 * them, and FDEs, one per range of code. The records are read one after the other; the sorted
 * table in .eh_frame_hdr is not needed. Few CIEs serve many FDEs, so the CIEs seen last are kept
 * taken apart.
 *
 * Unwind instructions are taken apart in one place, eh_decode(). Two things are built upon it: the
 * walk, which interprets the rules of the CFA and the return address, and ehframe_cfi(), which
 * copies runs of instructions without looking into them.
 */
#include "ehframe.h"
#include "radix.h"

#include <errno.h>

/* ---- reading bytes ---- */

struct eh_reader {
	const uint8_t *next, *end;
	bool bad; /* sticky: something was read that is not there; zeros were returned since */
};

static const uint8_t *eh_take(struct eh_reader *r, uint64_t size)
{
	const uint8_t *bytes = r->next;

	if (size > (uint64_t)(r->end - r->next)) {
		r->bad = true;
		r->next = r->end;
		return NULL;
	}
	r->next += size;
	return bytes;
}

static uint8_t eh_u8(struct eh_reader *r)
{
	const uint8_t *bytes = eh_take(r, 1);

	return bytes ? *bytes : 0;
}

static uint64_t eh_u16(struct eh_reader *r)
{
	const uint8_t *bytes = eh_take(r, 2);
	uint16_t v = 0;

	if (bytes)
		memcpy(&v, bytes, sizeof(v));
	return v;
}

static uint32_t eh_u32(struct eh_reader *r)
{
	const uint8_t *bytes = eh_take(r, 4);
	uint32_t v = 0;

	if (bytes)
		memcpy(&v, bytes, sizeof(v));
	return v;
}

static uint64_t eh_u64(struct eh_reader *r)
{
	const uint8_t *bytes = eh_take(r, 8);
	uint64_t v = 0;

	if (bytes)
		memcpy(&v, bytes, sizeof(v));
	return v;
}

/* Seven bits per byte, lowest first. Sets *@bits to how many there were and *@top to the last. */
static uint64_t eh_leb(struct eh_reader *r, unsigned *bits, uint8_t *top)
{
	uint64_t v = 0;

	*bits = 0;
	do {
		*top = eh_u8(r);
		if (*bits < 64)
			v |= (uint64_t)(*top & 0x7f) << *bits;
		*bits += 7;
	} while (*top & 0x80);
	return v;
}

static uint64_t eh_uleb(struct eh_reader *r)
{
	unsigned bits;
	uint8_t top;

	return eh_leb(r, &bits, &top);
}

static int64_t eh_sleb(struct eh_reader *r)
{
	unsigned bits;
	uint8_t top;
	uint64_t v = eh_leb(r, &bits, &top);

	if (bits < 64 && top & 0x40)
		v |= UINT64_MAX << bits;
	return (int64_t)v;
}

/* DW_EH_PE_*: the low four bits say how a pointer is stored, the next three what it counts from. */
enum {
	EH_PE_ABSPTR = 0x00,
	EH_PE_ULEB128 = 0x01,
	EH_PE_UDATA2 = 0x02,
	EH_PE_UDATA4 = 0x03,
	EH_PE_UDATA8 = 0x04,
	EH_PE_SLEB128 = 0x09,
	EH_PE_SDATA2 = 0x0a,
	EH_PE_SDATA4 = 0x0b,
	EH_PE_SDATA8 = 0x0c,
	EH_PE_FORMAT = 0x0f,
	EH_PE_PCREL = 0x10,
	EH_PE_DATAREL = 0x30,
	EH_PE_ALIGNED = 0x50,
	EH_PE_BASE = 0x70,
	EH_PE_INDIRECT = 0x80,
	EH_PE_OMIT = 0xff,
};

static uint64_t eh_value(struct eh_reader *r, uint8_t format)
{
	switch (format) {
	case EH_PE_ABSPTR:
	case EH_PE_UDATA8:
	case EH_PE_SDATA8:
		return eh_u64(r);
	case EH_PE_ULEB128:
		return eh_uleb(r);
	case EH_PE_SLEB128:
		return (uint64_t)eh_sleb(r);
	case EH_PE_UDATA2:
		return eh_u16(r);
	case EH_PE_SDATA2:
		return (uint64_t)(int16_t)eh_u16(r);
	case EH_PE_UDATA4:
		return eh_u32(r);
	case EH_PE_SDATA4:
		return (uint64_t)(int32_t)eh_u32(r);
	}
	r->bad = true;
	return 0;
}

/* A pointer as it is stored, the indirection not followed; 0 means none in any encoding. */
static uint64_t eh_pointer(const struct elffile *elf, struct eh_reader *r, uint8_t encoding)
{
	uint64_t at = elf->eh_frame.addr + (uint64_t)(r->next - elf->eh_frame.bytes), v;

	if (encoding == EH_PE_OMIT)
		return 0;
	if ((encoding & EH_PE_BASE) == EH_PE_ALIGNED) {
		eh_take(r, -at & 7);
		return eh_u64(r);
	}
	v = eh_value(r, encoding & EH_PE_FORMAT);
	if (!v)
		return 0;
	switch (encoding & EH_PE_BASE) {
	case EH_PE_ABSPTR:
		return v;
	case EH_PE_PCREL:
		return v + at;
	case EH_PE_DATAREL:
		if (elf->pltgot)
			return v + elf->pltgot;
	}
	r->bad = true;
	return 0;
}

/* ---- records ---- */

struct eh_record {
	const uint8_t *at;
	const uint8_t *id_at;
	uint32_t id;	       /* 0: a CIE; else an FDE, whose CIE is this far before id_at */
	struct eh_reader body; /* what follows the id */
	const uint8_t *next;
	bool empty; /* a terminator */
};

/* False where no whole record follows. LSB: the id has four bytes even with a 64-bit length. */
static bool eh_record(const struct elf_part *part, const uint8_t *at, struct eh_record *rec)
{
	struct eh_reader r = { at, part->bytes + part->size, false };
	uint64_t len = eh_u32(&r);

	if (len == UINT32_MAX)
		len = eh_u64(&r);
	rec->at = at;
	rec->id_at = r.next;
	rec->empty = !len;
	rec->next = r.next;
	if (r.bad || rec->empty)
		return !r.bad;
	if (!eh_take(&r, len))
		return false;
	rec->next = r.next;
	rec->body = (struct eh_reader){ rec->id_at, rec->next, false };
	rec->id = eh_u32(&rec->body);
	return !rec->body.bad;
}

struct eh_cie {
	const uint8_t *at;   /* NULL: not in use */
	struct eh_fde model; /* what its FDEs have in common */
	uint8_t pc_encoding, lsda_encoding;
	bool augmented; /* its FDEs have a sized augmentation */
};

/* What an augmentation's letters stand for; an unknown one makes the CIE unusable. */
static void eh_augmentation(const struct elffile *elf, struct eh_reader *r, const char *letters,
	struct eh_cie *cie)
{
	struct eh_reader data;
	uint64_t len;

	if (!*letters)
		return;
	if (*letters != 'z') {
		r->bad = true;
		return;
	}
	cie->augmented = true;
	len = eh_uleb(r);
	data = (struct eh_reader){ r->next, r->next, false };
	if (eh_take(r, len))
		data.end = r->next;
	while (*++letters && !data.bad) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->pc_encoding = eh_u8(&data);
			break;
		case 'L':
			cie->lsda_encoding = eh_u8(&data);
			break;
		case 'P':
			encoding = eh_u8(&data);
			cie->model.personality_indirect = encoding & EH_PE_INDIRECT;
			cie->model.personality = eh_pointer(elf, &data, encoding);
			break;
		case 'S':
			cie->model.signal_frame = true;
			break;
		case 'B':
			cie->model.b_key = true;
			break;
		case 'G': /* arm64: memory tags; nothing to do with return addresses */
			break;
		default:
			data.bad = true;
		}
	}
	r->bad = r->bad || data.bad;
}

/* Only a personality may be reached through a word that the loader fills in. */
static bool eh_is_direct(uint8_t encoding)
{
	return encoding == EH_PE_OMIT || !(encoding & EH_PE_INDIRECT);
}

static bool eh_parse_cie(const struct elffile *elf, const uint8_t *at, struct eh_cie *cie)
{
	struct eh_record rec;
	struct eh_reader *r = &rec.body;
	const char *letters;
	uint64_t column;
	uint8_t version;

	if (!eh_record(&elf->eh_frame, at, &rec) || rec.empty || rec.id)
		return false;
	*cie = (struct eh_cie){ .pc_encoding = EH_PE_ABSPTR, .lsda_encoding = EH_PE_OMIT };
	version = eh_u8(r);
	letters = (const char *)r->next;
	while (eh_u8(r))
		;
	if (r->bad)
		return false;
	if (version == 4 && (eh_u8(r) != 8 || eh_u8(r) != 0)) /* address size, segment size */
		return false;
	cie->model.code_align = eh_uleb(r);
	cie->model.data_align = eh_sleb(r);
	column = version == 1 ? eh_u8(r) : eh_uleb(r);
	if (column > UINT8_MAX || (version != 1 && version != 3 && version != 4))
		return false;
	cie->model.ra_column = (uint8_t)column;
	eh_augmentation(elf, r, letters, cie);
	cie->model.initial = r->next;
	cie->model.initial_end = r->end;
	cie->at = at;
	return !r->bad && eh_is_direct(cie->pc_encoding) && eh_is_direct(cie->lsda_encoding);
}

#define EH_CACHE 16

struct eh_file {
	const struct elffile *elf;
	struct eh_cie cache[EH_CACHE]; /* place by address */
};

static const struct eh_cie *eh_find_cie(struct eh_file *file, const struct eh_record *fde)
{
	struct eh_cie *cie;
	const uint8_t *at;

	if (fde->id > (uint64_t)(fde->id_at - file->elf->eh_frame.bytes))
		return NULL;
	at = fde->id_at - fde->id;
	cie = &file->cache[((uintptr_t)at >> 3) % EH_CACHE];
	if (cie->at == at)
		return cie;
	if (!eh_parse_cie(file->elf, at, cie))
		cie->at = NULL;
	return cie->at ? cie : NULL;
}

static bool eh_parse_fde(struct eh_file *file, const struct eh_record *rec, struct eh_fde *fde)
{
	const struct eh_cie *cie = eh_find_cie(file, rec);
	struct eh_reader r = rec->body, data;
	uint64_t size, len;

	if (!cie)
		return false;
	*fde = cie->model;
	fde->start = eh_pointer(file->elf, &r, cie->pc_encoding);
	size = eh_value(&r, cie->pc_encoding & EH_PE_FORMAT);
	fde->end = fde->start + size;
	if (cie->augmented) {
		len = eh_uleb(&r);
		data = (struct eh_reader){ r.next, r.next, false };
		if (eh_take(&r, len))
			data.end = r.next;
		fde->lsda = eh_pointer(file->elf, &data, cie->lsda_encoding);
		r.bad = r.bad || data.bad;
	}
	fde->insns = r.next;
	fde->insns_end = r.end;
	return !r.bad && fde->end >= fde->start;
}

static size_t eh_count_fdes(const struct elf_part *part)
{
	const uint8_t *at = part->bytes, *end = at + part->size;
	struct eh_record rec;
	size_t n = 0;

	for (; at < end && eh_record(part, at, &rec); at = rec.next)
		n += !rec.empty && rec.id;
	return n;
}

/*
 * Note where each usable FDE is, by its start. Discarded functions leave FDEs with a start of 0 or
 * without size behind; these are passed over and not counted as damaged.
 */
static size_t eh_list_fdes(struct eh_file *file, struct radix_item *items, size_t *damaged)
{
	const struct elf_part *part = &file->elf->eh_frame;
	const uint8_t *at = part->bytes, *end = at + part->size;
	struct eh_record rec;
	size_t n = 0;

	for (; at < end; at = rec.next) {
		struct eh_fde fde;

		if (!eh_record(part, at, &rec)) {
			++*damaged;
			break;
		}
		if (rec.empty || !rec.id)
			continue;
		if (!eh_parse_fde(file, &rec, &fde)) {
			++*damaged;
			continue;
		}
		if (fde.start && fde.start < fde.end)
			items[n++] = (struct radix_item){ fde.start, (uint64_t)(at - part->bytes) };
	}
	return n;
}

static long eh_read_sorted(struct eh_file *file, struct arena *arena, struct arena *scratch,
	struct eh_fde **fdes, size_t *damaged)
{
	const struct elf_part *part = &file->elf->eh_frame;
	size_t n = eh_count_fdes(part);
	struct radix_item *items = arena_alloc(scratch, (n + 1) * sizeof(*items));
	struct radix_item *spare = arena_alloc(scratch, (n + 1) * sizeof(*spare));

	if (!items || !spare)
		return -ENOMEM;
	n = eh_list_fdes(file, items, damaged);
	radix_sort(items, spare, n);
	*fdes = arena_alloc(arena, (n + 1) * sizeof(**fdes));
	if (!*fdes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct eh_record rec;

		eh_record(part, part->bytes + items[i].value, &rec);
		eh_parse_fde(file, &rec, &(*fdes)[i]);
	}
	return (long)n;
}

long ehframe_read(const struct elffile *elf, struct arena *arena, struct eh_fde **fdes,
	size_t *damaged)
{
	struct eh_file file = { .elf = elf };
	struct arena scratch = { 0 };
	size_t ignored;
	long n;

	if (!damaged)
		damaged = &ignored;
	*damaged = 0;
	*fdes = NULL;
	if (!elf->eh_frame.bytes)
		return 0;
	n = eh_read_sorted(&file, arena, &scratch, fdes, damaged);
	arena_free(&scratch);
	return n;
}

/* ---- unwind instructions ---- */

enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_ADVANCE_LOC8 = 0x1d,
	CFA_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_NEGATE_RA_STATE = 0x2d, /* the same number is GNU_window_save on sparc */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
	/* with an operand in the low six bits */
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
};

/* Operands: u uleb128, s sleb128, 1 2 4 8 fixed size, b block with its size before it. */
static const char *const eh_operands[] = {
	[CFA_NOP] = "",
	[CFA_ADVANCE_LOC1] = "1",
	[CFA_ADVANCE_LOC2] = "2",
	[CFA_ADVANCE_LOC4] = "4",
	[CFA_OFFSET_EXTENDED] = "uu",
	[CFA_RESTORE_EXTENDED] = "u",
	[CFA_UNDEFINED] = "u",
	[CFA_SAME_VALUE] = "u",
	[CFA_REGISTER] = "uu",
	[CFA_REMEMBER_STATE] = "",
	[CFA_RESTORE_STATE] = "",
	[CFA_DEF_CFA] = "uu",
	[CFA_DEF_CFA_REGISTER] = "u",
	[CFA_DEF_CFA_OFFSET] = "u",
	[CFA_DEF_CFA_EXPRESSION] = "b",
	[CFA_EXPRESSION] = "ub",
	[CFA_OFFSET_EXTENDED_SF] = "us",
	[CFA_DEF_CFA_SF] = "us",
	[CFA_DEF_CFA_OFFSET_SF] = "s",
	[CFA_VAL_OFFSET] = "uu",
	[CFA_VAL_OFFSET_SF] = "us",
	[CFA_VAL_EXPRESSION] = "ub",
	[CFA_ADVANCE_LOC8] = "8",
	[CFA_NEGATE_RA_STATE_WITH_PC] = "",
	[CFA_NEGATE_RA_STATE] = "",
	[CFA_GNU_ARGS_SIZE] = "u",
	[CFA_GNU_NEGATIVE_OFFSET_EXTENDED] = "uu",
};

struct eh_insn {
	uint8_t op;
	uint64_t arg[2];
};

static uint64_t eh_operand(struct eh_reader *r, char kind)
{
	switch (kind) {
	case '1':
		return eh_u8(r);
	case '2':
		return eh_u16(r);
	case '4':
		return eh_u32(r);
	case '8':
		return eh_u64(r);
	case 's':
		return (uint64_t)eh_sleb(r);
	case 'b':
		eh_take(r, eh_uleb(r));
		return 0;
	}
	return eh_uleb(r);
}

/* Take one instruction apart; false, and r->bad, when it cannot be. */
static bool eh_decode(struct eh_reader *r, struct eh_insn *insn)
{
	uint8_t byte = eh_u8(r);
	const char *operands = NULL;
	uint64_t *arg = insn->arg;

	insn->op = byte;
	if (byte & 0xc0) {
		insn->op = byte & 0xc0;
		*arg++ = byte & 0x3f;
		operands = insn->op == CFA_OFFSET ? "u" : "";
	} else if (byte < sizeof(eh_operands) / sizeof(*eh_operands)) {
		operands = eh_operands[byte];
	}
	if (!operands)
		r->bad = true;
	while (!r->bad && *operands)
		*arg++ = eh_operand(r, *operands++);
	return !r->bad;
}

/* True for the instructions that begin a new row; sets how far behind the last one it begins. */
static bool eh_is_advance(const struct eh_fde *fde, const struct eh_insn *insn, uint64_t *delta)
{
	switch (insn->op) {
	case CFA_ADVANCE_LOC:
	case CFA_ADVANCE_LOC1:
	case CFA_ADVANCE_LOC2:
	case CFA_ADVANCE_LOC4:
	case CFA_ADVANCE_LOC8:
		if (__builtin_mul_overflow(insn->arg[0], fde->code_align, delta))
			*delta = UINT64_MAX;
		return true;
	}
	return false;
}

/* ---- the walk ---- */

static void eh_set_ra(struct eh_walk *walk, uint64_t column, enum eh_ra ra, uint64_t factored)
{
	if (column != walk->fde->ra_column)
		return;
	walk->state.ra = ra;
	walk->state.ra_offset = (int64_t)(factored * (uint64_t)walk->fde->data_align);
}

/* What one instruction does to the rules; false where that is not known. */
static bool eh_execute(struct eh_walk *walk, const struct eh_insn *insn)
{
	const uint64_t *arg = insn->arg, factor = (uint64_t)walk->fde->data_align;
	struct eh_row *state = &walk->state;

	switch (insn->op) {
	case CFA_OFFSET:
	case CFA_OFFSET_EXTENDED:
	case CFA_OFFSET_EXTENDED_SF:
		eh_set_ra(walk, arg[0], EH_RA_AT_CFA, arg[1]);
		break;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		eh_set_ra(walk, arg[0], EH_RA_AT_CFA, -arg[1]);
		break;
	case CFA_RESTORE:
	case CFA_RESTORE_EXTENDED:
		if (arg[0] == walk->fde->ra_column) {
			state->ra = walk->initial.ra;
			state->ra_offset = walk->initial.ra_offset;
		}
		break;
	case CFA_UNDEFINED:
		eh_set_ra(walk, arg[0], EH_RA_UNDEFINED, 0);
		break;
	case CFA_SAME_VALUE:
		eh_set_ra(walk, arg[0], EH_RA_REGISTER, 0);
		break;
	case CFA_REGISTER:
	case CFA_EXPRESSION:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
	case CFA_VAL_EXPRESSION:
		eh_set_ra(walk, arg[0], EH_RA_OTHER, 0);
		break;
	case CFA_REMEMBER_STATE:
		if (walk->nsaved == EH_SAVED_MAX)
			return false;
		walk->saved[walk->nsaved++] = *state;
		break;
	case CFA_RESTORE_STATE:
		if (!walk->nsaved)
			return false;
		*state = walk->saved[--walk->nsaved];
		break;
	case CFA_DEF_CFA:
		state->cfa_base = arg[0];
		state->cfa_offset = (int64_t)arg[1];
		break;
	case CFA_DEF_CFA_SF:
		state->cfa_base = arg[0];
		state->cfa_offset = (int64_t)(arg[1] * factor);
		break;
	case CFA_DEF_CFA_REGISTER:
		state->cfa_base = arg[0];
		break;
	case CFA_DEF_CFA_OFFSET:
		state->cfa_offset = (int64_t)arg[0];
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		state->cfa_offset = (int64_t)(arg[0] * factor);
		break;
	case CFA_DEF_CFA_EXPRESSION:
		state->cfa_base = EH_CFA_OTHER;
		break;
	}
	return true;
}

/* Run up to the next advance or @end. *@delta: how far it advances; UINT64_MAX without one. */
static bool eh_run(struct eh_walk *walk, const uint8_t *end, uint64_t *delta)
{
	struct eh_reader r = { walk->next, end, false };
	struct eh_insn insn;

	*delta = UINT64_MAX;
	while (r.next < r.end) {
		if (!eh_decode(&r, &insn))
			return false;
		walk->next = r.next;
		if (eh_is_advance(walk->fde, &insn, delta)) {
			if (*delta)
				return true;
			*delta = UINT64_MAX;
		} else if (!eh_execute(walk, &insn)) {
			return false;
		}
	}
	return true;
}

void ehframe_walk(struct eh_walk *walk, const struct eh_fde *fde)
{
	uint64_t delta;

	walk->fde = fde;
	walk->next = fde->initial;
	walk->nsaved = 0;
	walk->row = (struct eh_row){ 0 };
	walk->state = (struct eh_row){ .cfa_base = EH_CFA_OTHER };
	walk->damaged = !eh_run(walk, fde->initial_end, &delta) || walk->next != fde->initial_end;
	walk->initial = walk->state;
	walk->next = fde->insns;
}

bool ehframe_next(struct eh_walk *walk)
{
	uint64_t from = walk->row.to, size = walk->fde->end - walk->fde->start, delta;

	if (walk->damaged || from >= size)
		return false;
	walk->damaged = !eh_run(walk, walk->fde->insns_end, &delta);
	if (walk->damaged)
		return false;
	walk->row = walk->state;
	walk->row.from = from;
	walk->row.to = delta < size - from ? from + delta : size;
	return true;
}

bool ehframe_row_is_entry(const struct eh_walk *walk, const struct isa *isa)
{
	const struct eh_row *row = &walk->row;

	if (row->cfa_base != isa->entry_cfa_base || row->cfa_offset != isa->entry_cfa_offset
		|| walk->fde->ra_column != isa->ra_column)
		return false;
	if (!isa->entry_ra_offset)
		return row->ra == EH_RA_REGISTER;
	return row->ra == EH_RA_AT_CFA && row->ra_offset == isa->entry_ra_offset;
}

bool ehframe_entry_row(const struct eh_fde *fde, const struct isa *isa, bool *undefined_ra)
{
	struct eh_walk walk;

	ehframe_walk(&walk, fde);
	*undefined_ra = false;
	if (!ehframe_next(&walk))
		return false;
	*undefined_ra = walk.row.ra == EH_RA_UNDEFINED;
	return ehframe_row_is_entry(&walk, isa);
}

/* ---- what is made of it for the planner and the image ---- */

#define EH_ROW_UNKNOWN 0xff

static struct isa_row eh_isa_row(const struct eh_row *row)
{
	struct isa_row out = { .from = (uint32_t)row->from, .base = EH_ROW_UNKNOWN };
	int64_t offset;

	if (row->cfa_base >= EH_ROW_UNKNOWN || row->ra != EH_RA_AT_CFA
		|| __builtin_add_overflow(row->cfa_offset, row->ra_offset, &offset)
		|| offset != (int32_t)offset)
		return out;
	out.base = (uint8_t)row->cfa_base;
	out.offset = (int32_t)offset;
	return out;
}

/* Rows being collected; `rows` is NULL while they are only counted. */
struct eh_rows {
	struct isa_row *rows, last;
	size_t n;
	bool known; /* there is one that says something */
};

static void eh_add_row(struct eh_rows *out, struct isa_row row)
{
	if (out->n && row.base == out->last.base && row.offset == out->last.offset)
		return;
	if (out->rows)
		out->rows[out->n] = row;
	out->n++;
	out->last = row;
	out->known = out->known || row.base != EH_ROW_UNKNOWN;
}

static void eh_collect_rows(const struct eh_fde *fde, struct eh_rows *out)
{
	struct eh_walk walk;

	ehframe_walk(&walk, fde);
	while (ehframe_next(&walk) && walk.row.from <= UINT32_MAX)
		eh_add_row(out, eh_isa_row(&walk.row));
	if (walk.damaged && walk.row.to <= UINT32_MAX)
		eh_add_row(out, (struct isa_row){ (uint32_t)walk.row.to, 0, EH_ROW_UNKNOWN });
}

long ehframe_rows(const struct eh_fde *fde, struct arena *arena, struct isa_row **rows)
{
	struct eh_rows count = { 0 }, fill = { 0 };

	*rows = NULL;
	eh_collect_rows(fde, &count);
	if (!count.known)
		return 0;
	fill.rows = arena_alloc(arena, count.n * sizeof(*fill.rows));
	if (!fill.rows)
		return -ENOMEM;
	eh_collect_rows(fde, &fill);
	*rows = fill.rows;
	return (long)fill.n;
}

struct eh_cfis {
	struct isa_cfi *list;
	size_t n, max;
};

/* Note a run of instructions that takes effect at @at; false when there is no room for it. */
static bool eh_add_cfi(struct eh_cfis *out, uint64_t at, const uint8_t *from, const uint8_t *to)
{
	if (from == to)
		return true;
	if (out->n == out->max || at > UINT32_MAX || to - from > (ptrdiff_t)UINT32_MAX)
		return false;
	out->list[out->n++] = (struct isa_cfi){ (uint32_t)at, (uint32_t)(to - from), from };
	return true;
}

/* Split instructions into runs at what moves on, and at nops, which say nothing. */
static bool eh_split(const struct eh_fde *fde, struct eh_reader r, uint64_t upto,
	struct eh_cfis *out)
{
	const uint8_t *run = r.next, *insn_at;
	uint64_t at = 0, delta;
	struct eh_insn insn;

	while (at < upto && r.next < r.end) {
		insn_at = r.next;
		if (!eh_decode(&r, &insn))
			return false;
		delta = 0;
		if (!eh_is_advance(fde, &insn, &delta) && insn.op != CFA_NOP)
			continue;
		if (!eh_add_cfi(out, at, run, insn_at))
			return false;
		run = r.next;
		at = delta < UINT64_MAX - at ? at + delta : UINT64_MAX;
	}
	return at >= upto || eh_add_cfi(out, at, run, r.end);
}

long ehframe_cfi(const struct eh_fde *fde, uint64_t upto, struct isa_cfi *cfi, size_t max)
{
	struct eh_reader initial = { fde->initial, fde->initial_end, false };
	struct eh_reader insns = { fde->insns, fde->insns_end, false };
	struct eh_cfis out = { cfi, 0, max };

	if (fde->data_align != -8 || !eh_split(fde, initial, 1, &out)
		|| !eh_split(fde, insns, upto, &out))
		return -EINVAL;
	return (long)out.n;
}
