/* SPDX-License-Identifier: MIT */
/*
 * Writes arm64 detours. S is the stack pointer at the function's entry, which is the slot; E its
 * shadow entry.
 *
 *   D:  fill E with x30 as the return address, count, bl B    (which makes x30 = T)
 *   T:  account, x30 = the real return address, free E, ret
 *   B:  the displaced instructions, b back
 *
 * Registers are kept in a frame of SAVE bytes below S, since there is no red zone. x16 and x17 are
 * nobody's at an entry and after a return (AAPCS64, 6.1.1); where code shows otherwise they are
 * kept as well. Condition flags are never touched. Whatever does not fit the straight line goes to
 * the slow stubs in the image's common part, with x16 = the detour's struct detour_info; and what
 * may be a tail call to the stubs before them, with x10 = that.
 *
 * Behind a paciasp, which is a landing pad and stays, x30 is signed: D makes it plain, B signs T.
 */
#include "emitter.h"
#include "scan.h"
#include <errno.h>

/* Offsets the generated code uses. */
#define OWNER  offsetof(struct shadow_entry, owner)
#define FUNC   offsetof(struct shadow_entry, func)
#define FLAGS  offsetof(struct shadow_entry, flags)
#define RET_TO offsetof(struct shadow_entry, ret)
#define SLOT   offsetof(struct shadow_entry, slot)
#define CHILD  offsetof(struct shadow_entry, child)
#define START  offsetof(struct shadow_entry, start)
#define PARENT offsetof(struct shadow_entry, parent)
#define RECORD(field) offsetof(struct func_record, field)

_Static_assert(FUNC == OWNER + 8 && RET_TO == FUNC + 8 && SLOT == RET_TO + 8 && CHILD == SLOT + 8
		&& START == CHILD + 8 && PARENT == START + 8,
	"pairs of the shadow entry");
_Static_assert(offsetof(struct func_record, returned) == RECORD(calls) + 8
		&& offsetof(struct func_record, callees) == RECORD(total) + 8
		&& offsetof(struct func_record, max) == RECORD(nmin) + 8
		&& sizeof(struct func_record) == FUNC_RECORD_SIZE,
	"pairs of the function record");

/* ---- the detour ---- */

struct labels {
	uint8_t *resume, *bypass, *leave; /* where the slow path goes on */
	uint8_t *account;
	uint8_t *to_slow[8];
	unsigned nslow;
	uint8_t *to_tail;
	uint8_t *infos[8]; /* adr of the info, and a tag */
	unsigned ninfos;
	struct hook_places places; /* from the detour's start */
};

static void slow_if(struct emitter *e, struct labels *l, uint32_t opcode, unsigned rt)
{
	l->to_slow[l->nslow++] = branch_ahead(e, opcode | rt);
}

/* x@reg = info + @tag, go to @stub. */
static void info_to_stub(struct emitter *e, struct labels *l, unsigned reg, unsigned tag, uint64_t stub)
{
	l->infos[l->ninfos++] = branch_ahead(e, ADR | tag << 29 | reg);
	branch(e, A64_B, stub);
}

static void to_stub(struct emitter *e, struct labels *l, unsigned tag, uint64_t stub)
{
	info_to_stub(e, l, X16, tag, stub);
}

/* All pending slow branches arrive here. */
static void slow_here(struct emitter *e, struct labels *l, uint64_t stub)
{
	while (l->nslow)
		refer(l->to_slow[--l->nslow], e->p);
	to_stub(e, l, 0, stub);
}

/* What may be a tail call arrives here, if the function's are the common ones. */
static void tail_here(struct emitter *e, struct labels *l, uint64_t stub)
{
	if (!l->to_tail)
		return;
	refer(l->to_tail, e->p);
	info_to_stub(e, l, X10, 0, stub);
}

#define EOR_NO_TAIL 0xd2570000u /* eor x?, x?, #1 << 41 */
_Static_assert(SHADOW_NO_TAIL == 1 << (41 - 32), "the bit of EOR_NO_TAIL");

/* Is its return point the common one, and its entry? See SHADOW_TAIL. */
static bool may_tail(const struct isa_emit *in)
{
	return in->env->infos && in->id < INFOS_MAX && !in->site->entry_only && !in->site->scratch_in
		&& !in->watch && !in->point;
}

/* Go where a tail call is looked for unless x@reg is 0. */
static void tail_if(struct emitter *e, const struct isa_emit *in, struct labels *l, unsigned reg)
{
	if (may_tail(in))
		l->to_tail = branch_ahead(e, CBNZ | reg);
	else
		slow_if(e, l, CBNZ, reg);
}

/* What the entries that it makes have at FUNC. */
static uint64_t func_word(const struct isa_emit *in)
{
	return in->id | (may_tail(in) ? 0 : (uint64_t)SHADOW_NO_TAIL << 32);
}

/* A place that the stubs go to, by br. */
static int32_t landing(struct emitter *e)
{
	put(e, INSN_BTI_J);
	return (int32_t)(here(e) - 4);
}

/* Entry handlers, in the frame of D; they go on behind. Returns where. */
static int32_t to_handlers(struct emitter *e, const struct isa_emit *in, struct labels *l,
	unsigned tag)
{
	to_stub(e, l, tag, in->common->base + in->common->hook_entry);
	return landing(e);
}

static void slot_in_x9(struct emitter *e)
{
	add_number(e, X9, SP, SAVE, 0);
}

/* Keep registers below S. D and T do it alike; that x9 = S is next tells T. */
static void save(struct emitter *e, bool is_return)
{
	pair(e, PUSH_PAIR, X10, X9, SP, -SAVE);
	row_cfa(e, SAVE);
	if (is_return)
		slot_in_x9(e);
	if (e->times)
		pair(e, STORE_PAIR, X11, X12, SP, 16);
	if (e->keep16)
		pair(e, STORE_PAIR, X16, X17, SP, 32);
}

static void restore(struct emitter *e)
{
	if (e->keep16)
		pair(e, LOAD_PAIR, X16, X17, SP, 32);
	if (e->times)
		pair(e, LOAD_PAIR, X11, X12, SP, 16);
	pair(e, POP_PAIR, X10, X9, SP, SAVE);
	row_cfa(e, 0);
}

/* What of @number offsets, which reach @reach, say behind a register to which the rest of it is added. */
static unsigned offset_of(uint64_t number, unsigned reach)
{
	if (number <= reach)
		return (unsigned)number;
	return (number & 0xfff) <= reach ? number & 0xfff : 0;
}

/* @rn += @number, as far as offsets behind it, up to 64 more, cannot say it. Returns the rest. */
static unsigned add_base(struct emitter *e, unsigned rn, uint64_t number, unsigned reach)
{
	unsigned offset = offset_of(number, reach);

	number -= offset;
	if (number >> 24)
		e->unreachable = true;
	if (number >> 12)
		add_number(e, rn, rn, number >> 12 & 0xfff, SHIFT_12);
	if (number & 0xfff)
		add_number(e, rn, rn, number & 0xfff, 0);
	return offset;
}

#define PAIR_REACH (63 * 8 - 64) /* ldp, stp */
#define WORD_REACH 4095		 /* ldr, str: eight times as far */

/* x@tp = what thread words are at; returns at which offset. */
static unsigned thread_words(struct emitter *e, unsigned tp)
{
	put(e, MRS_TPIDR | tp);
	return add_base(e, tp, (uint64_t)e->env->tls_mirror, e->times ? PAIR_REACH : WORD_REACH);
}

/* x@mirror = this thread's, and with times x@current = its newest entry, by way of x@tp. Returns where the
 * words are from there. */
static unsigned load_thread(struct emitter *e, unsigned tp, unsigned mirror, unsigned current)
{
	unsigned words = thread_words(e, tp);

	if (e->times)
		pair(e, LOAD_PAIR, mirror, current, tp, (int)words);
	else
		load(e, mirror, tp, words);
	return words;
}

/* x17 = the records of the thread whose mirror x@mirror is. Slow where there are none yet. */
static void load_records(struct emitter *e, struct labels *l, unsigned mirror)
{
	put(e, LDUR | (MIRROR_RECORDS & 0x1ffu) << 12 | mirror << 5 | X17);
	slow_if(e, l, CBZ, X17);
}

/* x16 = the mirror, x17 = the records, and with times x12 = the newest entry. Slow also in a task whose thread
 * pointer leads to memory that libc has not set up; no call returns there that was not made there. */
static unsigned load_at_entry(struct emitter *e, struct labels *l, unsigned tp)
{
	unsigned words = load_thread(e, tp, X16, X12);

	slow_if(e, l, CBZ, X16);
	load_records(e, l, X16);
	return words;
}

/* x16, the mirror, becomes E. The mirror is aligned to its size: S goes in as a bit field. */
static void place_entry(struct emitter *e)
{
	unsigned lsb = e->times ? 3 : 2;
	unsigned width = 64 - (unsigned)__builtin_clzll(e->env->mask);

	put(e, 0xb3400000u | (64 - lsb) << 16 | (width - 1) << 10 | X9 << 5 | X16);
}

/* x17, the records, becomes the place of the function's calls. */
static void place_calls(struct emitter *e, uint32_t id)
{
	add_base(e, X17, (uint64_t)id * FUNC_RECORD_SIZE + RECORD(calls), 0);
}

static void emit_entry(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	unsigned words;

	save(e, false);
	words = load_at_entry(e, l, e->times ? X11 : X16);
	slot_in_x9(e);
	place_entry(e);
	load(e, X10, X16, OWNER);
	tail_if(e, in, l, X10); /* or it was left behind by a longjmp */
	if (e->times) {
		load(e, X10, X12, SLOT);
		operate(e, SUB, X10, X9, X10);
		slow_if(e, l, TBZ_SIGN, X10); /* the newest call is not older than this one */
	}
	load_number(e, X10, func_word(in));
	pair(e, STORE_PAIR, X17, X10, X16, OWNER); /* and func and flags */
	place_calls(e, in->id);
	count(e, X10, X9, X17);
	if (!(e->env->features & A64_FEATURE_ATOMICS))
		slot_in_x9(e);
	if (e->times) {
		put(e, MRS_CNTVCT | X10);
		pair(e, STORE_PAIR, X10, X12, X16, START); /* and parent */
	}
	pair(e, STORE_PAIR, X30, X9, X16, RET_TO); /* and slot */
	if (e->times)
		store(e, X16, X11, words + 8);
	l->resume = e->p;
	if (in->point)
		l->places.run = to_handlers(e, in, l, HOOK_TAG_ENTERED);
	restore(e);
}

/* What emit_times() and emit_booking() have put off. */
struct unusual {
	uint8_t *longest, *shortest, *back;
	uint8_t *inexact, *outermost, *booked;
};

/* T has x17 = the address of this one, so that nothing needs to be added to count. */
#define FROM_RETURNED(field) ((int)RECORD(field) - (int)RECORD(returned))

/* The time in x10 is as long as the longest, or is not longer than the shortest; x12 = of that in callees,
 * x9 = ~min, or x10 + ~min, and x11 is free. */
static void emit_extremes(struct emitter *e, const struct unusual *u)
{
	uint8_t *positive, *first;

	refer(u->longest, e->p);
	store(e, X10, X17, FROM_RETURNED(max));
	branch_back(e, CBNZ | X9, u->back);
	first = branch_ahead(e, A64_B);
	refer(u->shortest, e->p);
	add_number(e, X9, X9, 1, 0);
	branch_back(e, CBZ | X9, u->back); /* as long as the shortest */
	positive = branch_ahead(e, TBZ_SIGN | X10);
	operate(e, SUB, X10, X10, X10); /* the clock ran backwards: 0 */
	operate(e, SUB, X12, X12, X12);
	refer(positive, e->p);
	refer(first, e->p);
	put(e, 0xaa2003e0u | X10 << 16 | X9); /* mvn x9, x10 */
	store(e, X9, X17, FROM_RETURNED(nmin));
	branch_back(e, A64_B, u->back);
}

/* x9 = calls less returned: more than those that are active where some have ended otherwise. Of an inner one
 * only what is its own is booked. */
static void emit_inner(struct emitter *e, const struct unusual *u)
{
	refer(u->inexact, e->p);
	load(e, X11, X17, FROM_RETURNED(left));
	operate(e, SUB, X9, X9, X11);
	branch_back(e, CBZ | X9, u->outermost);
	branch_back(e, TBNZ_SIGN | X9, u->outermost);
	load(e, X11, X17, FROM_RETURNED(callees));
	operate(e, ADD, X11, X11, X12);
	operate(e, SUB, X11, X11, X10);
	store(e, X11, X17, FROM_RETURNED(callees));
	branch_back(e, A64_B, u->booked);
}

/* x16 = E, the newest; x11 and @words: thread words. Then x10 = its time. */
static void emit_times(struct emitter *e, unsigned words, struct unusual *u)
{
	pair(e, LOAD_PAIR, X10, X9, X16, START); /* and parent */
	store(e, X9, X11, words + 8);
	put(e, MRS_CNTVCT | X11);
	operate(e, SUB, X10, X11, X10);
	load(e, X11, X9, CHILD);
	operate(e, ADD, X11, X11, X10);
	store(e, X11, X9, CHILD);
	pair(e, LOAD_PAIR, X9, X11, X17, FROM_RETURNED(nmin));
	operate(e, SUB, X11, X10, X11);
	u->longest = branch_ahead(e, TBZ_SIGN | X11);
	operate(e, ADD, X9, X9, X10);
	u->shortest = branch_ahead(e, TBNZ_SIGN | X9);
	u->back = e->p;
}

/*
 * Add the times, x10 and x12, to the sums, the call being counted: to the total only of the outermost. This is not done in one
 * piece: where a signal's handler calls the function in between, its time is lost, and no count.
 */
static void emit_booking(struct emitter *e, bool leaf, struct unusual *u)
{
	if (!leaf) {
		pair(e, LOAD_PAIR, X9, X11, X17, FROM_RETURNED(calls));
		operate(e, SUB, X9, X9, X11);
		u->inexact = branch_ahead(e, CBNZ | X9);
		u->outermost = e->p;
	}
	pair(e, LOAD_PAIR, X9, X11, X17, FROM_RETURNED(total)); /* and callees */
	operate(e, ADD, X9, X9, X10);
	operate(e, ADD, X11, X11, X12);
	pair(e, STORE_PAIR, X9, X11, X17, FROM_RETURNED(total));
	u->booked = e->p;
}

/* x10 = E's func and flags, and is lost. Go elsewhere unless they are as the function's entries are made; stacks
 * may be copied, processes fork. */
static void compare_func(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	if (in->id >> 24)
		e->unreachable = true;
	sub_number(e, X10, X10, in->id & 0xfff, 0);
	if (in->id >> 12)
		sub_number(e, X10, X10, in->id >> 12 & 0xfff, SHIFT_12);
	if (!may_tail(in))
		put(e, EOR_NO_TAIL | X10 << 5 | X10);
	tail_if(e, in, l, X10);
}

static void emit_exit(struct emitter *e, const struct isa_emit *in, struct labels *l,
	struct unusual *u)
{
	unsigned words;

	save(e, true);
	if (in->hook_return) {
		to_stub(e, l, 0, in->common->base + in->common->hook_exit);
		l->places.account = landing(e);
	}
	l->account = e->p;
	if (e->times) { /* E is nearly always the newest call's */
		words = load_thread(e, X11, X17, X16);
		load_records(e, l, X17); /* without, the clock may be forbidden */
	} else {
		words = load_thread(e, X16, X16, 0);
		load_records(e, l, X16);
		place_entry(e);
	}
	if (e->times)
		pair(e, LOAD_PAIR, X10, X12, X16, SLOT); /* and child */
	else
		load(e, X10, X16, SLOT);
	operate(e, SUB, X10, X10, X9);
	slow_if(e, l, CBNZ, X10);
	pair(e, LOAD_PAIR, X10, X30, X16, FUNC); /* and flags; ret */
	compare_func(e, in, l);
	add_base(e, X17, (uint64_t)in->id * FUNC_RECORD_SIZE + RECORD(returned), 0);
	if (e->times)
		emit_times(e, words, u);
	row_in_link(e);
	if (e->times) {
		pair(e, STORE_PAIR, XZR, XZR, X16, SLOT); /* and child */
		count(e, X11, X9, X17);
		emit_booking(e, in->site->leaf, u);
	} else {
		store(e, XZR, X16, SLOT);
		count(e, X10, X9, X17);
	}
	store(e, XZR, X16, OWNER);
	l->leave = e->p;
	restore(e);
	put(e, RET);
}

/* Where the slow path goes on. */
static int32_t land(struct emitter *e, const uint8_t *to)
{
	int32_t at = landing(e);

	branch_back(e, A64_B, to);
	return at;
}

/* Run the body without a shadow entry. Returns the branch to it. */
static uint8_t *emit_bypass(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	if (in->point)
		l->places.pass = to_handlers(e, in, l, HOOK_TAG_PASSED);
	restore(e);
	return branch_ahead(e, A64_B);
}

/* Return what is in the registers. Behind a branch, in the frame of D. */
static void emit_drop(struct emitter *e, struct labels *l)
{
	row_cfa(e, SAVE);
	l->places.drop = landing(e);
	restore(e);
	put(e, RET);
}

/*
 * As if the body had returned; and the return handlers of a function that has jumped to the one that
 * returns now. Behind emit_drop().
 */
static void emit_skip(struct emitter *e, const struct isa_emit *in, struct labels *l,
	uint8_t *account)
{
	row_cfa(e, SAVE);
	if (in->hook_return) {
		l->places.owed = landing(e);
		to_stub(e, l, HOOK_TAG_OWED, in->common->base + in->common->hook_entry);
	}
	row_in_shadow(e);
	row_cfa(e, SAVE);
	l->places.skip = landing(e);
	slot_in_x9(e);
	branch_back(e, A64_B, account);
}

/* Entry only: no shadow entry; x30 stays. Returns the branch to the body. */
static uint8_t *emit_entry_only(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	save(e, false);
	if (in->watch || (in->id == ID_NONE && !in->point)) {
		l->to_slow[l->nslow++] = branch_ahead(e, A64_B);
	} else if (in->id != ID_NONE) {
		load_at_entry(e, l, X16);
		place_calls(e, in->id);
		count(e, X10, X9, X17);
	}
	l->bypass = e->p;
	return emit_bypass(e, in, l);
}

/* ---- the body ---- */

/* The function's bytes, up to the end of the window; NULL: there are none. */
static const uint8_t *code_of(const struct isa_emit *in)
{
	for (size_t i = 0; i < in->module->ntexts; i++) {
		const struct isa_text *text = &in->module->texts[i];
		uint64_t at = in->func->start - text->addr;

		if (at < text->size && text->size - at >= (uint64_t)in->site->offset + in->site->len)
			return text->bytes + at;
	}
	return NULL;
}

/* What the function has signed its return address with before the site; 0: nothing. */
static uint32_t signing(const struct isa_emit *in, const uint8_t *code)
{
	uint32_t first = in->site->offset ? insn_read(code) : 0;

	return first == INSN_PACIASP || first == INSN_PACIBSP ? first : 0;
}

/*
 * A call has become the loading of its return address and a branch. From there on this is a frame
 * that the function's original code has called; its return address is a constant.
 */
static void call_rows(struct emitter *e, uint64_t ret)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_val_expression);
	cfi_byte(e, X30);
	cfi_byte(e, 9);
	cfi_byte(e, DW_OP_const8u);
	for (int i = 0; i < 8; i++, ret >>= 8)
		cfi_byte(e, ret & 0xff);
}
#define CALL_ROWS 16

/* Where in the body the function's own row of offset @at begins. */
static uint32_t row_place(const struct isa_emit *in, const struct a64_moved *moved, uint32_t at,
	uint32_t signs)
{
	if (at == 0 || (at <= in->site->offset && !signs))
		return 0;
	if (at <= in->site->offset)
		return signs;
	return signs + moved->to[(at - in->site->offset) / 4];
}

/* The body's rows: the function's own ones, moved along with its instructions. */
static void body_rows(struct emitter *e, const struct isa_emit *in, const struct a64_moved *moved,
	uint32_t signs, bool calls)
{
	uint32_t end = in->site->offset + in->site->len - (calls ? 4u : 0u);
	uint8_t *body = e->p;

	for (uint32_t i = 0; i < in->ncfi; i++) {
		const struct isa_cfi *cfi = &in->cfi[i];

		if (cfi->at > end || e->range->cfi_len + cfi->len + CALL_ROWS + 4 > ISA_CFI_MAX)
			break;
		e->p = body + row_place(in, moved, cfi->at, signs);
		cfi_here(e);
		memcpy(e->range->cfi + e->range->cfi_len, cfi->bytes, cfi->len);
		e->range->cfi_len = (uint16_t)(e->range->cfi_len + cfi->len);
	}
	if (calls) { /* x30 is complete before the last instruction */
		e->p = body + signs + moved->size - 4;
		call_rows(e, in->func->start + end + 4 + (uint64_t)in->bias);
	}
	e->p = body;
}

/*
 * Back into the function. Where that is further than a branch reaches, by way of x16; and by ret,
 * which goes anywhere, where the function may be in a page that is guarded against br (with GCS,
 * ret does not, see HWCAP_GCS).
 */
static int lead_back(struct emitter *e, const struct isa_emit *in, uint64_t to, const uint8_t *code)
{
	bool guarded = a64_patch_offset(&(struct a64_code){ code, 1 });
	uint32_t insn;

	if (a64_branch(A64_B, e->at + here(e), to, &insn)) {
		put(e, insn);
		return 0;
	}
	if (in->site->scratch_in || (guarded && e->env->features & A64_FEATURE_GCS))
		return -ERANGE;
	load_number(e, X16, to);
	put(e, (guarded ? 0xd65f0000u : BR) | X16 << 5);
	return 0;
}

static int emit_body(struct emitter *e, const struct isa_emit *in, const uint8_t *code,
	struct isa_detour *detour)
{
	const uint8_t *window = code + in->site->offset;
	uint64_t from = in->func->start + in->site->offset + (uint64_t)in->bias;
	uint32_t sign = signing(in, code), signs = sign ? 4 : 0;
	bool rows = in->ncfi && sign != INSN_PACIBSP; /* rows cannot say which key it was */
	enum insn_kind last = insn_kind(insn_read(window + in->site->len - 4));
	struct a64_moved moved;
	int err = a64_relocate(window, in->site->len / 4, from, e->at + here(e) + signs,
		!in->site->scratch_in, e->p + signs, &moved);

	if (err)
		return err;
	if (rows) {
		range_begin(e, &detour->ranges[detour->nranges], CIE_PLAIN);
		body_rows(e, in, &moved, signs, last == INSN_BL || last == INSN_BLR);
	}
	if (sign)
		put(e, sign);
	e->p += moved.size;
	if (!moved.ends)
		err = lead_back(e, in, from + in->site->len, code);
	if (rows) {
		range_end(e);
		detour->nranges++;
	}
	return err;
}

/* The body of a site of nops: what is behind them. */
static void point_behind(struct emitter *e, uint8_t *from, uint64_t behind)
{
	struct emitter at_branch = { .start = e->start, .p = from, .at = e->at };
	uint32_t opcode = insn_read(from);

	branch(&at_branch, opcode, behind);
	e->unreachable |= at_branch.unreachable;
}

/* ---- all of it ---- */

static void emit_code(struct emitter *e, const struct isa_emit *in, struct labels *l,
	struct detour_info *info, struct isa_detour *detour, uint8_t *to_body[2])
{
	struct unusual unusual = { 0 };

	if (in->site->entry_only) {
		to_body[0] = emit_entry_only(e, in, l);
		row_cfa(e, SAVE);
		slow_here(e, l, in->common->base + in->common->slow_entry);
		info->bypass = land(e, l->bypass);
		if (in->point)
			emit_drop(e, l);
		return;
	}
	emit_entry(e, in, l);
	row_in_shadow(e);
	to_body[0] = branch_ahead(e, A64_BL);
	detour->ret = here(e);
	/* The slow branches of D are kept apart from T's: their rows differ. */
	struct labels t = { 0 };

	emit_exit(e, in, &t, &unusual);
	if (unusual.inexact) {
		row_cfa(e, SAVE);
		emit_inner(e, &unusual);
	}
	row_in_shadow(e);
	row_cfa(e, SAVE);
	if (e->times)
		emit_extremes(e, &unusual);
	tail_here(e, &t, in->common->base + in->common->passed);
	slow_here(e, &t, in->common->base + in->common->slow_exit);
	row_in_link(e);
	info->leave = land(e, t.leave);
	tail_here(e, l, in->common->base + in->common->tail);
	slow_here(e, l, in->common->base + in->common->slow_entry);
	info->resume = land(e, l->resume);
	info->bypass = landing(e);
	to_body[1] = emit_bypass(e, in, l);
	if (in->point) {
		emit_drop(e, l);
		emit_skip(e, in, l, t.account);
	}
	l->places.account = t.places.account;
	for (unsigned i = 0; i < t.ninfos; i++)
		l->infos[l->ninfos++] = t.infos[i];
}

/* What is told from the info's address: where there is something. */
static int32_t relative(const struct emitter *e, int32_t place)
{
	return place ? place - (int32_t)here(e) : 0;
}

static void emit_places(struct emitter *e, const struct hook_places *places, uint32_t info)
{
	struct emitter from = { .start = e->start, .p = e->start + info };
	const struct hook_places told = { .run = relative(&from, places->run),
		.pass = relative(&from, places->pass), .skip = relative(&from, places->skip),
		.drop = relative(&from, places->drop), .account = relative(&from, places->account),
		.owed = relative(&from, places->owed) };

	memcpy(e->p, &told, sizeof(told));
	e->p += sizeof(told);
}

/* Returns where it is, if there are SHADOW_TAIL calls of the function. */
static uint32_t emit_info(struct emitter *e, const struct labels *l, struct detour_info *info)
{
	uint32_t at;

	while (here(e) & 7)
		put(e, BRK);
	at = here(e);
	info->resume = relative(e, info->resume);
	info->bypass = relative(e, info->bypass);
	info->leave = relative(e, info->leave);
	info->ret = relative(e, info->ret);
	for (unsigned i = 0; i < l->ninfos; i++)
		refer(l->infos[i], e->p);
	memcpy(e->p, info, sizeof(*info));
	e->p += sizeof(*info);
	if (info->point)
		emit_places(e, &l->places, at);
	return info->ret ? at : 0;
}

/*
 * Where the patch leads: x30 becomes plain. With key B the range begins behind that: a CIE of its own
 * would have to say which key it is, and nothing but a signal's handler can look here.
 */
static void emit_landing(struct emitter *e, const struct isa_emit *in, struct isa_range *range,
	uint32_t sign)
{
	range_begin(e, range, CIE_DETOUR);
	row_in_link(e);
	if (sign)
		row_signed(e);
	if (in->site->choice == SITE_SEVERAL) /* its patch comes by br */
		put(e, INSN_BTI_C);
	if (sign)
		put(e, sign == INSN_PACIASP ? INSN_AUTIASP : INSN_AUTIBSP);
	if (sign == INSN_PACIBSP) {
		range_begin(e, range, CIE_DETOUR);
		row_in_link(e);
	} else if (sign) {
		row_signed(e);
	}
}

int a64_emit(const struct isa_emit *in, uint8_t *out, struct isa_detour *detour)
{
	struct emitter e = { .start = out, .p = out, .at = in->at, .env = in->env,
		.times = in->env->mode != MODE_COUNT && !in->site->entry_only,
		.keep16 = in->site->scratch_in || in->site->scratch_out };
	uint64_t behind = in->func->start + in->site->offset + in->site->len + (uint64_t)in->bias;
	struct detour_info info = { .id = in->id, .watch = in->watch, .point = in->point };
	const uint8_t *code = code_of(in);
	bool own_body = in->site->choice != SITE_NOPS || (code && signing(in, code));
	uint8_t *to_body[2] = { NULL, NULL };
	struct labels l = { 0 };
	int err = 0;

	if (!code)
		return -EINVAL;
	*detour = (struct isa_detour){ .nranges = 1 };
	emit_landing(&e, in, &detour->ranges[0], signing(in, code));
	emit_code(&e, in, &l, &info, detour, to_body);
	range_end(&e);
	if (may_tail(in))
		info.ret = (int32_t)detour->ret;
	detour->info = emit_info(&e, &l, &info);
	if (own_body)
		detour->body = here(&e);
	for (int i = 0; i < 2 && to_body[i]; i++)
		if (own_body)
			refer(to_body[i], e.p);
		else
			point_behind(&e, to_body[i], behind);
	if (own_body)
		err = emit_body(&e, in, code, detour);
	detour->size = here(&e);
	return err ? err : e.unreachable ? -ERANGE : 0;
}

/* ---- the common part ---- */

/*
 * The frame of a stub. x29 = its address; above it are the registers that C may change, and then
 * the SAVE bytes of D or T up to S. Below are the vectors, where there are more than a system call
 * keeps: their size is the processor's.
 */
#define FRAME_LINK  0 /* x29, x30 */
#define FRAME_SLOW  16 /* struct slow_frame */
#define FRAME_REGS  (FRAME_SLOW + (int)sizeof(struct slow_frame)) /* x0 to x15, x18, nzcv */
#define FRAME_X18   (FRAME_REGS + 16 * 8)
#define FRAME_NZCV  (FRAME_X18 + 8)
#define FRAME_SIZE  ((FRAME_NZCV + 8 + 15) & ~15)
#define FRAME_CFA   (FRAME_SIZE + SAVE)
#define FRAME(field) ((unsigned)(FRAME_SLOW + offsetof(struct slow_frame, field)))

_Static_assert(sizeof(struct slow_frame) % 8 == 0, "registers follow");

/* SVE, 32 z, 16 p and ffr, from sp upwards; x9 is free. */
static void save_vectors(struct emitter *e)
{
	if (!(e->env->features & A64_FEATURE_SVE))
		return;
	put(e, 0x043f5000u | SP << 16 | (-32 & 0x3f) << 5 | SP); /* addvl sp, sp, #-32 */
	for (unsigned n = 0; n < 32; n++) /* str z?, [sp, #n, mul vl] */
		put(e, 0xe5804000u | n >> 3 << 16 | (n & 7) << 10 | SP << 5 | n);
	put(e, 0x043f5000u | SP << 16 | (-4 & 0x3f) << 5 | SP); /* addvl sp, sp, #-4 */
	for (unsigned n = 0; n < 16; n++) /* str p?, [sp, #n, mul vl] */
		put(e, 0xe5800000u | n >> 3 << 16 | (n & 7) << 10 | SP << 5 | n);
	put(e, 0x2519f000u);		    /* rdffr p0.b */
	put(e, 0xe5800000u | 2 << 16 | SP << 5); /* str p0, [sp, #16, mul vl] */
}

static void restore_vectors(struct emitter *e)
{
	if (!(e->env->features & A64_FEATURE_SVE))
		return;
	put(e, 0x85800000u | 2 << 16 | SP << 5); /* ldr p0, [sp, #16, mul vl] */
	put(e, 0x25289000u);		    /* wrffr p0.b */
	for (unsigned n = 0; n < 16; n++)
		put(e, 0x85800000u | n >> 3 << 16 | (n & 7) << 10 | SP << 5 | n);
	put(e, 0x043f5000u | SP << 16 | 4 << 5 | SP); /* addvl sp, sp, #4 */
	for (unsigned n = 0; n < 32; n++)
		put(e, 0x85804000u | n >> 3 << 16 | (n & 7) << 10 | SP << 5 | n);
	put(e, 0x91000000u | X29 << 5 | SP); /* mov sp, x29 */
}

/* sp = S - SAVE, and becomes the frame; CFA = x29 + FRAME_CFA. */
static void stub_frame(struct emitter *e)
{
	sub_number(e, SP, SP, FRAME_SIZE, 0);
	row_cfa(e, FRAME_CFA);
	pair(e, STORE_PAIR, X29, X30, SP, FRAME_LINK);
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | X29);
	cfi_uleb(e, FRAME_CFA / 8);
	add_number(e, X29, SP, 0, 0);
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa);
	cfi_uleb(e, X29);
	cfi_uleb(e, FRAME_CFA);
	for (unsigned n = 0; n < 16; n += 2)
		pair(e, STORE_PAIR, n, n + 1, X29, FRAME_REGS + (int)n * 8);
	put(e, MRS_NZCV | X9);
	pair(e, STORE_PAIR, X18, X9, X29, FRAME_X18);
	add_number(e, X9, X29, FRAME_CFA, 0);
	store(e, X9, X29, FRAME(slot));
	save_vectors(e);
}

/* The return address is in the frame from here on. */
static void row_in_frame(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | X30);
	cfi_uleb(e, (FRAME_CFA - 8) / 8);
}

static void stub_call(struct emitter *e, uint64_t c_function)
{
	add_number(e, X0, X29, FRAME_SLOW, 0);
	load_number(e, X16, c_function);
	put(e, BLR | X16 << 5);
}

/* Restore, x30 = frame.ret, sp = S - SAVE, go to frame.go. */
static void stub_go(struct emitter *e)
{
	restore_vectors(e);
	pair(e, LOAD_PAIR, X18, X9, X29, FRAME_X18);
	put(e, MSR_NZCV | X9);
	for (unsigned n = 0; n < 16; n += 2)
		pair(e, LOAD_PAIR, n, n + 1, X29, FRAME_REGS + (int)n * 8);
	load(e, X30, X29, FRAME(ret));
	row_in_link(e);
	load(e, X16, X29, FRAME(go));
	load(e, X29, X29, FRAME_LINK);
	cfi_here(e);
	cfi_byte(e, DW_CFA_same_value);
	cfi_byte(e, X29);
	cfi_byte(e, DW_CFA_def_cfa);
	cfi_uleb(e, SP);
	cfi_uleb(e, FRAME_CFA);
	add_number(e, SP, SP, FRAME_SIZE, 0);
	row_cfa(e, SAVE);
	put(e, BR | X16 << 5);
}

/*
 * stub_tail() keeps two registers more, below the frame of D, and in that frame, where nothing is kept of functions
 * that may come here, the return point of the function that has jumped.
 */
#define MORE	    16
#define TAIL_RETURN (MORE + 32)

#define INFO_ID	    offsetof(struct detour_info, id)
#define INFO_RESUME offsetof(struct detour_info, resume)
#define INFO_RET    offsetof(struct detour_info, ret)
#define RECORD_SHIFT 6
_Static_assert(FUNC_RECORD_SIZE == 1 << RECORD_SHIFT && RECORD(calls) == 0, "function record");
_Static_assert(INFOS_MAX == 1 << 20 && FLAGS == FUNC + 4, "func and flags are one word, see if_tail()");

struct tail {
	uint8_t *to_slow[8];
	unsigned nslow;
	const uint8_t *infos; /* where isa_env.infos is kept */
};

static void slow_unless_0(struct emitter *e, struct tail *t, unsigned reg)
{
	t->to_slow[t->nslow++] = branch_ahead(e, CBNZ | reg);
}

/* Pending branches arrive here. */
static void no_tail_here(struct emitter *e, struct tail *t)
{
	while (t->nslow)
		refer(t->to_slow[--t->nslow], e->p);
}

/* x@rd = the word at x@rn + 8 * x@rm */
static void load_indexed(struct emitter *e, unsigned rd, unsigned rn, unsigned rm)
{
	put(e, 0xf8607800u | rm << 16 | rn << 5 | rd);
}

/* x@rd = the place that the info in x@rn has at @field */
static void load_place(struct emitter *e, unsigned rd, unsigned rn, unsigned field)
{
	put(e, LDRSW | field / 4 << 10 | rn << 5 | rd);
	operate(e, ADD, rd, rd, rn);
}

/* x17, the records, becomes the record of function x@func. */
static void add_records(struct emitter *e, unsigned func)
{
	put(e, 0x8b000000u | func << 16 | RECORD_SHIFT << 10 | X17 << 5 | X17);
}

/*
 * x9 = S, x10 = info, x16 = E, x17 = records, and with times x12 = the newest entry: is E the entry of a function
 * that has just jumped to this one, both of the common kind? Then x13 = its id, and x30 its return point, else slow.
 * x9 and x14 are lost.
 */
static void if_tail(struct emitter *e, struct tail *t)
{
	pair(e, LOAD_PAIR, X14, X13, X16, OWNER); /* and func and flags */
	operate(e, SUB, X14, X14, X17);
	slow_unless_0(e, t, X14);
	put(e, LSR_20 | X13 << 5 | X14);
	slow_unless_0(e, t, X14); /* flags; and who has none is below INFOS_MAX */
	load(e, X14, X16, SLOT);
	operate(e, SUB, X14, X14, X9);
	slow_unless_0(e, t, X14);
	if (e->times) {
		operate(e, SUB, X14, X12, X16);
		slow_unless_0(e, t, X14);
	}
	branch_back(e, LDR_LITERAL | X14, t->infos);
	put(e, LDR_W | INFO_ID / 4 << 10 | X10 << 5 | X9);
	load_indexed(e, X9, X14, X9);
	operate(e, SUB, X9, X9, X10);
	slow_unless_0(e, t, X9); /* stub_passed() goes by the function's id */
	load_indexed(e, X14, X14, X13);
	t->to_slow[t->nslow++] = branch_ahead(e, CBZ | X14);
	load_place(e, X9, X14, INFO_RET);
	operate(e, SUB, X9, X9, X30);
	slow_unless_0(e, t, X9);
}

/* The function of E has jumped away and counts as returned. With times x13 becomes info and x14 now, in place of
 * x13 = its id. x30 becomes the real return address. */
static void jumped_away(struct emitter *e, unsigned words, struct unusual *u)
{
	add_records(e, X13);
	add_number(e, X17, X17, RECORD(returned), 0);
	if (e->times) {
		add_number(e, X13, X10, 0, 0);
		load(e, X12, X16, CHILD);
		emit_times(e, words, u);
		load(e, X14, X16, START);
		operate(e, ADD, X14, X14, X10);
	}
	store(e, X30, SP, TAIL_RETURN);
	load(e, X30, X16, RET_TO); /* for unwinders, while E is not valid */
	store(e, XZR, X16, SLOT);
	count(e, e->times ? X11 : X14, X9, X17);
	if (e->times)
		emit_booking(e, false, u);
}

/* E becomes that of the function that was jumped to. */
static void jumped_here(struct emitter *e)
{
	unsigned words = 0;

	put(e, LDR_W | INFO_ID / 4 << 10 | (e->times ? X13 : X10) << 5 | X9);
	load(e, X17, X16, OWNER);
	add_records(e, X9);
	put(e, MOVK_32 | SHADOW_TAIL << 5 | X9);
	store(e, X9, X16, FUNC); /* and flags */
	count(e, X9, X10, X17);
	if (e->times) {
		pair(e, STORE_PAIR, XZR, X14, X16, CHILD); /* and start */
		words = thread_words(e, X11);
	}
	add_number(e, X9, SP, SAVE + MORE, 0);
	store(e, X9, X16, SLOT);
	if (e->times)
		store(e, X16, X11, words + 8);
}

/*
 * A tail call, the common case of an entry whose place is taken. The other function's T has not been returned to and
 * never would be, which the processor's predictor of returns and its shadow stack do not expect. So it is returned to
 * now, with all registers as they are, and stub_passed() goes on from there.
 */
static void stub_tail(struct emitter *e, const uint8_t *infos)
{
	unsigned words = offset_of((uint64_t)e->env->tls_mirror, PAIR_REACH); /* D has x11 so */
	struct tail t = { .infos = infos };
	struct unusual u;

	row_cfa(e, SAVE);
	row_in_link(e);
	pair(e, PUSH_PAIR, X13, X14, SP, -MORE);
	row_cfa(e, SAVE + MORE);
	if_tail(e, &t);
	jumped_away(e, words, &u);
	jumped_here(e);
	load(e, X30, SP, TAIL_RETURN);
	pair(e, POP_PAIR, X13, X14, SP, MORE);
	row_cfa(e, SAVE);
	restore(e);
	put(e, RET);
	row_cfa(e, SAVE + MORE);
	if (e->times) {
		emit_inner(e, &u);
		emit_extremes(e, &u);
	}
	no_tail_here(e, &t);
	pair(e, POP_PAIR, X13, X14, SP, MORE);
	row_cfa(e, SAVE);
	add_number(e, X16, X10, 0, 0);
}

/*
 * x16 = E of a valid slot, x30 = its return address, x10 = info. T of a function that has jumped away has been
 * returned to by stub_tail(): go on to the body.
 */
static void stub_passed(struct emitter *e, const uint8_t *infos)
{
	struct tail t = { .infos = infos };

	row_in_shadow(e);
	row_cfa(e, SAVE);
	put(e, LDR_W | FLAGS / 4 << 10 | X16 << 5 | X17);
	sub_number(e, X17, X17, SHADOW_TAIL, 0);
	slow_unless_0(e, &t, X17);
	put(e, STR_W | FLAGS / 4 << 10 | X16 << 5 | XZR);
	row_in_link(e);
	put(e, LDR_W | FUNC / 4 << 10 | X16 << 5 | X17);
	branch_back(e, LDR_LITERAL | X16, t.infos);
	load_indexed(e, X16, X16, X17);
	load_place(e, X17, X16, INFO_RESUME);
	put(e, BR | X17 << 5);
	row_in_shadow(e);
	row_cfa(e, SAVE);
	no_tail_here(e, &t);
	add_number(e, X16, X10, 0, 0);
}

/*
 * A tail call that was not stub_tail()'s: take the return point from the processor's control stack, if it is in use
 * (Arm ARM, CHKFEAT: clears bit 0 of x16 where GCS is enabled, and is a nop of processors without it; GCSPOPM).
 */
static void drop_return(struct emitter *e)
{
	uint8_t *none, *off;

	load(e, X9, X29, FRAME(key));
	none = branch_ahead(e, CBZ | X9);
	load_number(e, X16, 1);
	put(e, CHKFEAT_X16);
	off = branch_ahead(e, CBNZ | X16);
	put(e, GCSPOPM | X16);
	refer(none, e->p);
	refer(off, e->p);
}

static void stub_entry(struct emitter *e, const struct isa_env *env)
{
	row_cfa(e, SAVE);
	row_in_link(e);
	stub_frame(e);
	row_in_frame(e);
	store(e, X16, X29, FRAME(info));
	store(e, X30, X29, FRAME(ret));
	stub_call(e, env->slow_entry);
	drop_return(e);
	stub_go(e);
}

/* frame.ret to where the rows find it from now on; then release the entry. */
static void stub_put_back(struct emitter *e, const struct isa_env *env)
{
	load(e, X9, X29, FRAME(ret));
	store(e, X9, X29, FRAME_LINK + 8);
	row_in_frame(e);
	stub_call(e, env->slow_release);
}

static void stub_exit(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	row_cfa(e, SAVE);
	stub_frame(e);
	store(e, X16, X29, FRAME(info));
	stub_call(e, env->slow_exit);
	stub_put_back(e, env);
	stub_go(e);
}

/*
 * The landing pad. The unwinder comes here with sp = S and the exception in x0. It goes on from
 * the stub's frame, which has the real return address.
 */
static void stub_pad(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	put(e, INSN_BTI_J);
	sub_number(e, SP, SP, SAVE, 0);
	row_cfa(e, SAVE);
	stub_frame(e);
	store(e, XZR, X29, FRAME(info));
	stub_call(e, env->slow_unwind);
	stub_put_back(e, env);
	load(e, X0, X29, FRAME_REGS);
	load(e, X16, X29, FRAME(go));
	put(e, BLR | X16 << 5);
	put(e, BRK);
}

uint32_t a64_emit_common(const struct isa_env *env, uint64_t at, uint8_t *out,
	struct isa_common *common, struct isa_range *ranges)
{
	struct emitter e = { .start = out, .p = out, .at = at, .env = env,
		.times = env->mode != MODE_COUNT };
	const uint8_t *infos = out + 8;

	*common = (struct isa_common){ .base = at };
	/* Not reached by a call: keep `return address - 1` look-ups off the first stub. */
	put(&e, BRK);
	put(&e, BRK);
	memcpy(e.p, &env->infos, 8);
	e.p += 8;
	range_begin(&e, &ranges[0], CIE_PLAIN);
	common->personality = here(&e);
	put(&e, INSN_BTI_C);
	load_number(&e, X16, env->personality);
	put(&e, BR | X16 << 5);
	range_end(&e);
	range_begin(&e, &ranges[1], CIE_SHADOW);
	common->tail = here(&e);
	if (env->infos)
		stub_tail(&e, infos);
	common->slow_entry = here(&e);
	stub_entry(&e, env);
	common->passed = here(&e);
	if (env->infos)
		stub_passed(&e, infos);
	common->slow_exit = here(&e);
	stub_exit(&e, env);
	common->pad = here(&e);
	stub_pad(&e, env);
	range_end(&e);
	a64_emit_hooks(&e, common, &ranges[2]);
	common->size = here(&e);
	return 3;
}

/* ---- the patch ---- */

int a64_patch(const struct isa_emit *in, struct isa_patch patches[2])
{
	uint64_t site = in->func->start + in->site->offset + (uint64_t)in->bias;
	int64_t pages = (int64_t)((in->at >> 12) - (site >> 12));
	uint32_t insns[3] = { 0 };
	unsigned n = 1;

	if (in->site->choice == SITE_SEVERAL) {
		if (pages < -(1 << 20) || pages >= 1 << 20)
			return -ERANGE;
		n = 3;
		insns[0] = 0x90000000u | (uint32_t)(pages & 3) << 29
			| ((uint32_t)(pages >> 2) & 0x7ffff) << 5 | X16; /* adrp */
		insns[1] = 0x91000000u | (uint32_t)(in->at & 0xfff) << 10 | X16 << 5 | X16;
		insns[2] = BR | X16 << 5;
	} else if (!a64_branch(A64_B, site, in->at, &insns[0])) {
		return -ERANGE;
	}
	patches[0] = (struct isa_patch){ .addr = site, .len = (uint8_t)(4 * n) };
	memcpy(patches[0].bytes, insns, 4 * n);
	return 1;
}
