/* SPDX-License-Identifier: MIT */
/*
 * Writes powerpc detours. S is the stack pointer at a function's entry, which is its stack slot; E
 * the shadow entry of S. The return address itself is in LR.
 *
 *   D:  fill E, count, bl B           (LR = T)
 *   T:  account, free E, LR = the real return address, blr
 *   B:  the displaced instruction, b back
 *
 * r0, r12, CR0 and XER are nobody's at an entry, and with r8 to r11 behind a return (ELFv2 ABI,
 * 2.2.1): detours keep these only for functions with rules of their own (isa_site.scratch_in). The
 * 288 bytes below r1 are the function's own, which is us. Signal handlers stay below them.
 *
 * Whatever does not fit the straight line goes to the slow stubs in the image's common part, with
 * r12 = the detour's struct detour_info, and they call C. They come back with all registers but r0,
 * r11 and r12 as they were, to the struct's places; the return address is at PPC_KEPT_RETURN. What
 * may be a tail call goes to the stub before them, with r10 = info.
 */
#include "emitter.h"
#include "insn.h"

#include <errno.h>

/* Offsets the generated code uses. */
#define SLOT   ((int)offsetof(struct shadow_entry, slot))
#define RET    ((int)offsetof(struct shadow_entry, ret))
#define FUNC   ((int)offsetof(struct shadow_entry, func))
#define FLAGS  ((int)offsetof(struct shadow_entry, flags))
#define OWNER  ((int)offsetof(struct shadow_entry, owner))
#define START  ((int)offsetof(struct shadow_entry, start))
#define CHILD  ((int)offsetof(struct shadow_entry, child))
#define PARENT ((int)offsetof(struct shadow_entry, parent))
#define RECORD(field) ((int)offsetof(struct func_record, field))

/*
 * The slow stubs' frame: an ELFv2 one, so that C can be called; struct slow_frame, the registers,
 * and at its end what D or T have saved below S.
 */
#define FRAME_SIZE  256
#define FRAME_AT    32
#define FRAME_TOC   24
#define FRAME_SLOT  (FRAME_AT + (int)offsetof(struct slow_frame, slot))
#define FRAME_INFO  (FRAME_AT + (int)offsetof(struct slow_frame, info))
#define FRAME_RET   (FRAME_AT + (int)offsetof(struct slow_frame, ret))
#define FRAME_GO    (FRAME_AT + (int)offsetof(struct slow_frame, go))
#define FRAME_REGS  (FRAME_AT + (int)sizeof(struct slow_frame))
#define FRAME_R(n)  (FRAME_REGS + 8 * ((int)(n)-R2))
#define FRAME_CR    FRAME_R(R11)
#define FRAME_XER   FRAME_R(R12)
#define FRAME_CTR   FRAME_R(R13)

/* Where D and T keep registers, relative to S. */
#define SAVE_CR (-56) /* and see saved_at() */

_Static_assert(sizeof(struct shadow_entry) == SHADOW_TIMED_SIZE
		&& offsetof(struct shadow_entry, child) == SHADOW_COUNT_SIZE,
	"shadow entry layout");
_Static_assert(sizeof(struct func_record) == FUNC_RECORD_SIZE, "function record layout");
_Static_assert(FRAME_CTR + 8 <= FRAME_SIZE + SAVE_CR, "slow frame layout");
_Static_assert(FRAME_RET - FRAME_SIZE == PPC_KEPT_RETURN, "where stubs leave a return address");

/* ---- the detour ---- */

/* The registers that D or T changes and that are not free; CR0 among them, and XER left alone. */
struct kept {
	uint32_t regs; /* bit n: rn */
	bool all;
};

static struct kept kept_in(const struct isa_emit *in)
{
	bool all = in->site->scratch_in;

	if (!all)
		return (struct kept){ in->site->leaf ? 0 : 1u << R11, false };
	return (struct kept){ 1u << R0 | 1u << R10 | 1u << R11 | 1u << R12, true };
}

static struct kept kept_out(const struct isa_emit *in)
{
	bool all = in->site->scratch_in;

	return (struct kept){ all ? 1u << R0 | 0x1fu << R8 : 0, all };
}

static int saved_at(enum ppc_reg reg)
{
	return reg == R0 ? -48 : -8 * (R13 - (int)reg); /* r12 at -8 */
}

static void save(struct emitter *e, struct kept kept)
{
	for (enum ppc_reg r = R0; r <= R12; r++)
		if (kept.regs >> r & 1)
			put(e, ppc_std(r, saved_at(r), R1));
	if (kept.all) {
		put(e, ppc_mfcr0(R12));
		put(e, ppc_std(R12, SAVE_CR, R1));
	}
}

static void restore(struct emitter *e, struct kept kept)
{
	if (kept.all) {
		put(e, ppc_ld(R12, SAVE_CR, R1));
		put(e, ppc_mtcr0(R12));
	}
	for (enum ppc_reg r = R0; r <= R12; r++)
		if (kept.regs >> r & 1)
			put(e, ppc_ld(r, saved_at(r), R1));
}

struct labels {
	uint32_t resume, bypass, leave;
	uint8_t *to_slow[8];
	unsigned nslow;
	uint8_t *to_tail;
	struct {
		uint8_t *at; /* where its address is loaded */
		enum ppc_reg reg;
		unsigned tag;
	} infos[8];
	unsigned ninfos;
	uint32_t handlers, account;
	struct hook_places places; /* from the detour's start */
};

/* A branch ahead, to where skip_ends() is told of it. */
static uint8_t *skip_if(struct emitter *e, enum ppc_condition condition)
{
	put(e, ppc_bc(condition, 0));
	return e->p - 4;
}

static void skip_ends(const struct emitter *e, uint8_t *from)
{
	uint32_t word;

	memcpy(&word, from, 4);
	word |= (uint32_t)(e->p - from) & 0xfffc;
	memcpy(from, &word, 4);
}

static void slow_if(struct emitter *e, struct labels *l, enum ppc_condition condition)
{
	l->to_slow[l->nslow++] = skip_if(e, condition);
}

/* @reg = info + @tag (its place is told later), go to @stub. */
static void info_to_stub(struct emitter *e, struct labels *l, enum ppc_reg reg, unsigned tag, uint64_t stub)
{
	l->infos[l->ninfos].at = e->p;
	l->infos[l->ninfos].reg = reg;
	l->infos[l->ninfos++].tag = tag;
	constant(e, reg, 0);
	branch(e, stub, false);
}

static void to_stub(struct emitter *e, struct labels *l, unsigned tag, uint64_t stub)
{
	info_to_stub(e, l, R12, tag, stub);
}

/* All pending slow branches arrive here. */
static void slow_here(struct emitter *e, struct labels *l, uint64_t stub)
{
	while (l->nslow)
		skip_ends(e, l->to_slow[--l->nslow]);
	to_stub(e, l, 0, stub);
}

/* Is its return point the common one, and its entry? Then tail calls of it and to it are the stub's. */
static bool may_tail(const struct isa_emit *in)
{
	return in->env->infos && in->id < INFOS_MAX && !in->site->entry_only && !in->site->scratch_in
		&& !in->watch && !in->point;
}

/* What may be a tail call arrives here, if the function's are the common ones. */
static void tail_here(struct emitter *e, struct labels *l, uint64_t stub)
{
	if (!l->to_tail)
		return;
	skip_ends(e, l->to_tail);
	put(e, ppc_std(R10, saved_at(R10), R1));
	info_to_stub(e, l, R10, 0, stub);
}

static void infos_are(const struct emitter *e, const struct labels *l, uint32_t offset)
{
	for (unsigned i = 0; i < l->ninfos; i++) {
		struct emitter load = { .p = l->infos[i].at };

		constant(&load, l->infos[i].reg, e->at + offset + l->infos[i].tag);
	}
}

/* Entry handlers; the stub goes on behind. LR is the return address, and then kept. r10, an
 * argument, may be one of those that D has saved. */
static int32_t to_handlers(struct emitter *e, const struct isa_emit *in, struct labels *l,
	unsigned tag)
{
	bool saved = kept_in(in).regs >> R10 & 1;
	int32_t back;

	if (saved)
		put(e, ppc_ld(R10, saved_at(R10), R1));
	to_stub(e, l, tag, in->common->base + in->common->hook_entry);
	back = (int32_t)here(e);
	if (saved)
		put(e, ppc_std(R10, saved_at(R10), R1));
	return back;
}

/* The upper part of a displacement whose lower 16 bits are taken as signed. */
static int64_t high_part(int64_t value)
{
	return (value + 0x8000) >> 16;
}

/* Load or store the word at @offset from r13. What is loaded, and @spare, can be a base: not r0. */
static void thread_var(struct emitter *e, bool is_store, enum ppc_reg reg, enum ppc_reg spare,
	int64_t offset)
{
	enum ppc_reg base = R13;

	if (high_part(offset)) {
		base = is_store ? spare : reg;
		put(e, ppc_addis(base, R13, high_part(offset)));
	}
	put(e, is_store ? ppc_std(reg, offset, base) : ppc_ld(reg, offset, base));
}

static void slow_if_zero(struct emitter *e, struct labels *l, enum ppc_reg reg)
{
	put(e, ppc_cmpdi(reg, 0));
	slow_if(e, l, COND_EQ);
}

/* r12 = the records of the thread whose mirror is in @mirror. Slow where there are none yet. */
static void load_records(struct emitter *e, struct labels *l, enum ppc_reg mirror)
{
	put(e, ppc_ld(R12, MIRROR_RECORDS, mirror));
	slow_if_zero(e, l, R12);
}

/* r11, the mirror, becomes E's place in it. */
static void place_entry(struct emitter *e, const struct isa_env *env)
{
	unsigned shift = env->mode == MODE_COUNT ? 2 : 3;
	unsigned bits = 64 - (unsigned)__builtin_clzll(env->mask);

	put(e, ppc_rlwimi(R11, R1, shift, 32 - bits - shift, 31 - 3 - shift));
}

/* r12, the records, is moved close to those of @id. Returns their offset from there. */
static int load_record(struct emitter *e, uint32_t id)
{
	int64_t offset = (int64_t)id * FUNC_RECORD_SIZE;

	if (high_part(offset))
		put(e, ppc_addis(R12, R12, high_part(offset)));
	return (int16_t)offset;
}

/*
 * A counter at r12[@disp] += 1, in one piece: the handler of a signal in between may count there, too. @spare
 * becomes its value, r12 its address; CR0 is changed, and XER if @spare is r0, to which only an addition that does
 * so can add.
 */
static void count(struct emitter *e, int disp, enum ppc_reg spare)
{
	if (disp)
		put(e, ppc_addi(R12, R12, disp));
	put(e, ppc_ldarx(spare, 0, R12));
	put(e, spare == R0 ? ppc_addic(R0, R0, 1) : ppc_addi(spare, spare, 1));
	put(e, ppc_stdcx_(spare, 0, R12));
	put(e, PPC_BNE_BACK_12);
}

static void load_id(struct emitter *e, enum ppc_reg reg, uint32_t id)
{
	if (id < 0x8000) {
		put(e, ppc_li(reg, id));
		return;
	}
	put(e, ppc_addis(reg, 0, id >> 16));
	put(e, ppc_d(24, reg, reg, id)); /* ori */
}

/* CR0 = (@reg == @id); @reg may be lost. */
static void compare_id(struct emitter *e, enum ppc_reg reg, uint32_t id)
{
	if (id < 0x8000) {
		put(e, ppc_cmpdi(reg, id));
		return;
	}
	put(e, ppc_d(27, reg, reg, id >> 16)); /* xoris */
	put(e, ppc_cmpldi(reg, id));
}

/* r11 = E. Slow unless func and flags are as the function's entries are made; stacks may be copied. r10 is lost. */
static void compare_func(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	if (may_tail(in)) {
		put(e, ppc_ld(R10, FUNC, R11));
	} else {
		put(e, ppc_lwz(R10, FLAGS, R11));
		put(e, ppc_cmpldi(R10, SHADOW_NO_TAIL));
		slow_if(e, l, COND_NE);
		put(e, ppc_lwz(R10, FUNC, R11));
	}
	compare_id(e, R10, in->id);
	slow_if(e, l, COND_NE);
}

/* The function's calls += 1. r12 is lost, and @records. */
static void count_call(struct emitter *e, uint32_t id, enum ppc_reg records)
{
	int64_t offset = (int64_t)id * FUNC_RECORD_SIZE + RECORD(calls);

	if (high_part(offset)) {
		put(e, ppc_addis(R12, 0, high_part(offset)));
		put(e, ppc_add(R12, R12, records));
		count(e, (int16_t)offset, records);
		return;
	}
	put(e, records == R0 ? ppc_addic(R12, R0, offset) : ppc_addi(R12, records, offset));
	count(e, 0, records);
}

/* r11 = E. r12 is lost, and @records. */
static void fill_entry(struct emitter *e, const struct isa_emit *in, enum ppc_reg records)
{
	bool times = in->env->mode != MODE_COUNT;

	put(e, ppc_std(records, OWNER, R11));
	put(e, ppc_mfspr(R12, SPR_LR));
	put(e, ppc_std(R12, RET, R11));
	load_id(e, R12, in->id);
	put(e, ppc_std(R12, FUNC, R11)); /* flags = 0 */
	if (!may_tail(in)) {
		put(e, ppc_li(R12, SHADOW_NO_TAIL));
		put(e, ppc_d(36, R12, R11, FLAGS)); /* stw */
	}
	count_call(e, in->id, records);
	if (times) {
		put(e, ppc_mfspr(R12, SPR_TB));
		put(e, ppc_std(R12, START, R11));
	}
	put(e, ppc_std(R1, SLOT, R11));
	if (times)
		thread_var(e, true, R11, R12, in->env->tls_current);
}

/*
 * At an entry: r11 = E, @records = this thread's, 0: none now. Slow where there is no mirror, as
 * in a task whose thread pointer leads to memory that libc has not set up.
 */
static void load_at_entry(struct emitter *e, struct labels *l, const struct isa_env *env,
	enum ppc_reg records)
{
	thread_var(e, false, R11, R11, env->tls_own);
	slow_if_zero(e, l, R11);
	put(e, ppc_ld(records, MIRROR_RECORDS, R11));
	place_entry(e, env);
}

/*
 * Slow when E is in use: at a tail call, or left behind by a longjmp; or when there are no records.
 * No owner is below the thread's own records, see OWNER_ELSEWHERE.
 */
static void check_owner(struct emitter *e, const struct isa_emit *in, struct labels *l, enum ppc_reg records)
{
	put(e, ppc_ld(R12, OWNER, R11));
	put(e, ppc_cmpld(records, R12));
	if (may_tail(in))
		l->to_tail = skip_if(e, COND_LE);
	else
		slow_if(e, l, COND_LE);
}

/* The newest call, which must be older than this one, is what encloses it. */
static void link_entry(struct emitter *e, struct labels *l, const struct isa_env *env)
{
	thread_var(e, false, R12, R12, env->tls_current);
	put(e, ppc_std(R12, PARENT, R11));
	put(e, ppc_ld(R12, SLOT, R12));
	put(e, ppc_cmpld(R12, R1));
	slow_if(e, l, COND_LE);
}

static void emit_entry(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	const struct isa_env *env = in->env;
	struct kept kept = kept_in(in);
	enum ppc_reg records = kept.all ? R10 : R0; /* no base of anything, so that r12 can be one */

	save(e, kept);
	load_at_entry(e, l, env, records);
	check_owner(e, in, l, records);
	if (env->mode != MODE_COUNT)
		link_entry(e, l, env);
	fill_entry(e, in, records);
	row_in_shadow(e);
	l->resume = l->handlers = here(e);
	if (in->point)
		l->places.run = to_handlers(e, in, l, HOOK_TAG_ENTERED);
	restore(e, kept);
}

/* r9 = took, r12[@record] the function's record. r8 and r10 are lost. */
static void add_extremes(struct emitter *e, int record)
{
	uint8_t *shorter, *known, *longer;

	put(e, ppc_ld(R10, record + RECORD(max), R12));
	put(e, ppc_cmpld(R9, R10));
	shorter = skip_if(e, COND_LT);
	put(e, ppc_std(R9, record + RECORD(max), R12));
	put(e, ppc_ld(R10, record + RECORD(nmin), R12));
	put(e, ppc_cmpdi(R10, 0));
	known = skip_if(e, COND_NE);
	put(e, ppc_not(R8, R9));
	put(e, ppc_std(R8, record + RECORD(nmin), R12));
	skip_ends(e, shorter);
	skip_ends(e, known);
	put(e, ppc_ld(R10, record + RECORD(nmin), R12));
	put(e, ppc_add(R10, R10, R9) | PPC_RECORD);
	longer = skip_if(e, COND_GE);
	put(e, ppc_not(R8, R9)); /* or as long: the same again */
	put(e, ppc_std(R8, record + RECORD(nmin), R12));
	skip_ends(e, longer);
}

/* What emit_total() has put off. */
struct unusual {
	uint8_t *inexact, *outermost, *booked;
};

/* r12 = the address of this one, behind its being counted. */
#define FROM_RETURNED(field) (RECORD(field) - RECORD(returned))

/*
 * total += r9, the time, at the outermost call; at an inner one nothing; r10 = returned, this call among them. r8 and r10 are lost. None of
 * the times is added in one piece: where a signal's handler calls the function in between, its time is lost, and no
 * count.
 */
static void emit_total(struct emitter *e, bool leaf, struct unusual *u)
{
	if (!leaf) {
		put(e, ppc_ld(R8, FROM_RETURNED(calls), R12));
		put(e, ppc_cmpd(R8, R10));
		u->inexact = skip_if(e, COND_NE);
		u->outermost = e->p;
	}
	put(e, ppc_ld(R10, FROM_RETURNED(total), R12));
	put(e, ppc_add(R10, R10, R9));
	put(e, ppc_std(R10, FROM_RETURNED(total), R12));
	u->booked = e->p;
}

/* There are more calls than have returned: are they active, or have they ended otherwise? Of an inner one only what
 * is its own is booked. */
static void emit_inner(struct emitter *e, const struct unusual *u)
{
	skip_ends(e, u->inexact);
	put(e, ppc_sub(R8, R8, R10));
	put(e, ppc_ld(R10, FROM_RETURNED(left), R12));
	put(e, ppc_cmpd(R8, R10));
	put(e, ppc_bc(COND_LE, u->outermost - e->p));
	put(e, ppc_ld(R10, FROM_RETURNED(callees), R12));
	put(e, ppc_sub(R10, R10, R9));
	put(e, ppc_std(R10, FROM_RETURNED(callees), R12));
	put(e, ppc_b(u->booked - e->p, false));
}

/* r11 = E, the newest. r9 becomes its time. The time base is one for all processors: it never runs backwards. */
static void emit_times(struct emitter *e, const struct isa_env *env, int record)
{
	put(e, ppc_mfspr(R9, SPR_TB));
	put(e, ppc_ld(R10, START, R11));
	put(e, ppc_sub(R9, R9, R10));
	add_extremes(e, record);
	put(e, ppc_ld(R10, CHILD, R11));
	put(e, ppc_ld(R8, record + RECORD(callees), R12));
	put(e, ppc_add(R8, R8, R10));
	put(e, ppc_std(R8, record + RECORD(callees), R12));
	put(e, ppc_ld(R10, PARENT, R11));
	put(e, ppc_ld(R8, CHILD, R10));
	put(e, ppc_add(R8, R8, R9));
	put(e, ppc_std(R8, CHILD, R10));
	thread_var(e, true, R10, R8, env->tls_current);
}

/*
 * r11 = E if it is this function's, r12 = this thread's records, r0 = 0. Else slow. An entry
 * without flags is counted in the records of its thread.
 */
static void find_entry(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	bool times = in->env->mode != MODE_COUNT;

	if (times) {
		thread_var(e, false, R12, R12, in->env->tls_mirror);
		load_records(e, l, R12);
		/* The newest call's is it, nearly always. */
		thread_var(e, false, R11, R11, in->env->tls_current);
	} else {
		thread_var(e, false, R11, R11, in->env->tls_mirror);
		load_records(e, l, R11);
		place_entry(e, in->env);
	}
	compare_func(e, in, l);
	put(e, ppc_ld(R0, SLOT, R11));
	put(e, ppc_sub(R0, R0, R1) | PPC_RECORD);
	slow_if(e, l, COND_NE);
}

static void emit_exit(struct emitter *e, const struct isa_emit *in, struct labels *l,
	struct unusual *u)
{
	struct kept kept = kept_out(in);
	int record;

	save(e, kept);
	if (in->hook_return)
		to_stub(e, l, 0, in->common->base + in->common->hook_exit);
	l->account = here(e);
	if (in->hook_return)
		l->places.account = (int32_t)here(e);
	find_entry(e, in, l);
	record = load_record(e, in->id);
	if (in->env->mode != MODE_COUNT)
		emit_times(e, in->env, record);
	put(e, ppc_ld(R10, RET, R11));
	put(e, ppc_mtspr(SPR_LR, R10));
	row_in_lr(e);
	put(e, ppc_std(R0, SLOT, R11));
	count(e, record + RECORD(returned), R10);
	if (in->env->mode != MODE_COUNT) {
		emit_total(e, in->site->leaf, u);
		put(e, ppc_std(R0, CHILD, R11));
	}
	put(e, ppc_std(R0, OWNER, R11));
	restore(e, kept);
	put(e, PPC_BLR);
}

/* The return address that a stub has kept. */
static void take_link(struct emitter *e)
{
	row_kept(e);
	put(e, ppc_ld(R12, PPC_KEPT_RETURN, R1));
	put(e, ppc_mtspr(SPR_LR, R12));
	row_in_lr(e);
}

/* The stubs come back here: LR as they have left it, the registers as D or T has saved them. */
static void take_back(struct emitter *e, struct kept kept)
{
	take_link(e);
	restore(e, kept);
}

static void emit_entry_only(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	struct kept kept = kept_in(in);

	save(e, kept);
	if (in->watch) {
		put(e, ppc_cmpd(R1, R1));
		slow_if(e, l, COND_EQ);
	} else if (in->id != ID_NONE) {
		thread_var(e, false, R12, R12, in->env->tls_own);
		slow_if_zero(e, l, R12);
		load_records(e, l, R12);
		count(e, load_record(e, in->id) + RECORD(calls), kept.all ? R10 : R0);
	}
	l->handlers = here(e);
	if (in->point) {
		l->places.pass = to_handlers(e, in, l, HOOK_TAG_PASSED);
		take_back(e, kept);
	} else {
		restore(e, kept);
	}
}

/* B's rows: the function's own ones, moved along with its instruction. */
static void body_rows(struct emitter *e, const struct isa_emit *in, uint32_t moved)
{
	uint8_t *body = e->p;
	uint32_t offset = in->site->offset, len = in->site->len;

	for (uint32_t i = 0; i < in->ncfi; i++) {
		const struct isa_cfi *cfi = &in->cfi[i];

		if (cfi->at > offset + len || e->range->cfi_len + cfi->len + 4u > ISA_CFI_MAX)
			break;
		e->p = cfi->at <= offset ? body : body + moved;
		cfi_here(e);
		memcpy(e->range->cfi + e->range->cfi_len, cfi->bytes, cfi->len);
		e->range->cfi_len = (uint16_t)(e->range->cfi_len + cfi->len);
	}
	e->p = body;
}

/* Where the function goes on behind the window, */
static uint64_t behind(const struct isa_emit *in)
{
	return in->func->start + in->site->offset + in->site->len + (uint64_t)in->bias;
}

/* and by way of where, as seen from the detour: an island's second word branches there. */
static uint64_t way_behind(const struct isa_emit *in)
{
	return in->site->choice == SITE_ISLAND ? in->site->hop + (uint64_t)in->bias + 4 : behind(in);
}

static int emit_body(struct emitter *e, const struct isa_emit *in, struct isa_detour *detour)
{
	uint64_t addr = in->func->start + in->site->offset;
	const uint8_t *window = ppc_code_at(in->module, addr, in->site->len);
	uint64_t from = addr + (uint64_t)in->bias;
	bool ends;
	int size;

	if (!window)
		return -EINVAL;
	size = ppc_relocate(window, in->site->len, from, e->at + here(e), e->p, &ends);
	if (size < 0)
		return size;
	if (in->ncfi) {
		range_begin(e, &detour->ranges[detour->nranges], CIE_PLAIN);
		body_rows(e, in, (uint32_t)size);
	}
	e->p += size;
	if (!ends)
		branch(e, way_behind(in), false);
	if (in->ncfi) {
		range_end(e);
		detour->nranges++;
	}
	return 0;
}

/* A place in the detour that branches to the body, which is not known yet. */
static uint8_t *to_body(struct emitter *e, bool link)
{
	put(e, ppc_b(0, link));
	return e->p - 4;
}

static void body_is(struct emitter *e, uint8_t *from, uint64_t body)
{
	struct emitter at = { .start = e->start, .p = from, .at = e->at };
	uint32_t word;

	if (!from)
		return;
	memcpy(&word, from, 4);
	branch(&at, body, word & 1);
	e->unreachable |= at.unreachable;
}

/* What of a detour refers to its body. */
struct pending {
	uint8_t *call, *bypass, *slow_bypass;
};

/* The slow path goes on to the handlers, whose stub takes the return address from LR. */
static void emit_resume(struct emitter *e, struct labels *d)
{
	d->resume = here(e);
	take_link(e);
	branch(e, e->at + d->handlers, false);
}

/* To the body without a shadow entry. */
static void emit_bypass(struct emitter *e, const struct isa_emit *in, struct labels *d)
{
	if (in->point) {
		take_link(e);
		d->places.pass = to_handlers(e, in, d, HOOK_TAG_PASSED);
	}
	take_back(e, kept_in(in));
}

/* Where a function with handlers goes on instead of its body, or after another's return. */
static void emit_skip(struct emitter *e, const struct isa_emit *in, struct labels *d,
	const struct labels *t)
{
	d->places.drop = (int32_t)here(e);
	take_back(e, kept_in(in));
	put(e, PPC_BLR);
	if (in->site->entry_only)
		return;
	if (in->hook_return) {
		d->places.owed = (int32_t)here(e);
		take_back(e, kept_out(in));
		save(e, kept_in(in));
		to_stub(e, d, HOOK_TAG_OWED, in->common->base + in->common->hook_entry);
	}
	row_in_shadow(e);
	d->places.skip = (int32_t)here(e);
	restore(e, kept_in(in));
	save(e, kept_out(in));
	branch(e, e->at + t->account, false);
}

static void emit_code(struct emitter *e, const struct isa_emit *in, struct isa_detour *detour,
	struct labels *d, struct labels *t, struct pending *later)
{
	uint64_t common = in->common->base;
	struct unusual unusual = { 0 };

	row_in_lr(e);
	if (in->site->entry_only) {
		emit_entry_only(e, in, d);
		later->bypass = to_body(e, false);
	} else {
		emit_entry(e, in, d);
		later->call = to_body(e, true);
		detour->ret = here(e);
		emit_exit(e, in, t, &unusual);
		if (unusual.inexact)
			emit_inner(e, &unusual);
		row_in_shadow(e);
		slow_here(e, t, common + in->common->slow_exit);
		t->leave = here(e);
		take_back(e, kept_out(in));
		put(e, PPC_BLR);
	}
	row_in_lr(e);
	tail_here(e, d, common + in->common->tail);
	slow_here(e, d, common + in->common->slow_entry);
	if (in->point && !in->site->entry_only)
		emit_resume(e, d);
	d->bypass = here(e);
	if (in->point && in->site->entry_only) {
		take_link(e);
		branch(e, e->at + d->handlers, false);
	} else {
		emit_bypass(e, in, d);
		later->slow_bypass = to_body(e, false);
	}
	if (in->point)
		emit_skip(e, in, d, t);
}

/* Places become relative to the info, which comes next. Returns where that is. */
static uint32_t emit_info(struct emitter *e, const struct isa_emit *in, const struct labels *d,
	const struct labels *t, uint32_t ret)
{
	struct detour_info info = { .id = in->id, .watch = in->watch, .point = in->point };
	struct hook_places places = d->places;
	int32_t at;

	while (here(e) & 7)
		put(e, PPC_TRAP);
	at = (int32_t)here(e);
	info.resume = (int32_t)d->resume - at;
	info.bypass = (int32_t)d->bypass - at;
	info.leave = t->leave ? (int32_t)t->leave - at : 0;
	info.ret = may_tail(in) ? (int32_t)ret - at : 0;
	infos_are(e, d, (uint32_t)at);
	infos_are(e, t, (uint32_t)at);
	memcpy(e->p, &info, sizeof(info));
	e->p += sizeof(info);
	if (!in->point)
		return (uint32_t)at;
	places.account = t->places.account;
	for (int32_t *place = &places.run; place <= &places.owed; place++)
		*place -= *place ? at : 0;
	memcpy(e->p, &places, sizeof(places));
	e->p += sizeof(places);
	return (uint32_t)at;
}

int ppc_emit(const struct isa_emit *in, uint8_t *out, struct isa_detour *detour)
{
	struct emitter e = { .start = out, .p = out, .at = in->at };
	struct labels d = { 0 }, t = { 0 };
	uint64_t body = way_behind(in);
	struct pending later = { 0 };
	uint32_t info;
	int err = 0;

	*detour = (struct isa_detour){ .nranges = 1 };
	range_begin(&e, &detour->ranges[0], CIE_DETOUR);
	emit_code(&e, in, detour, &d, &t, &later);
	range_end(&e);
	info = emit_info(&e, in, &d, &t, detour->ret);
	detour->info = may_tail(in) ? info : 0;
	if (in->site->choice != SITE_NOPS) {
		detour->body = here(&e);
		body = e.at + here(&e);
		err = emit_body(&e, in, detour);
	}
	body_is(&e, later.call, body);
	body_is(&e, later.bypass, body);
	body_is(&e, later.slow_bypass, body);
	detour->size = here(&e);
	return err ? err : e.unreachable ? -ERANGE : 0;
}

/* ---- the common part ---- */

/* r1 = S, r12 = info, or nothing. Make the frame and save what C may change. */
static void stub_begin(struct emitter *e)
{
	put(e, ppc_stdu(R1, -FRAME_SIZE, R1));
	row_cfa(e, FRAME_SIZE);
	for (enum ppc_reg r = R2; r <= R10; r++)
		put(e, ppc_std(r, FRAME_R(r), R1));
	put(e, ppc_std(R12, FRAME_INFO, R1));
	put(e, ppc_mfcr(R12));
	put(e, ppc_std(R12, FRAME_CR, R1));
	put(e, ppc_mfspr(R12, SPR_XER));
	put(e, ppc_std(R12, FRAME_XER, R1));
	put(e, ppc_mfspr(R12, SPR_CTR));
	put(e, ppc_std(R12, FRAME_CTR, R1));
	put(e, ppc_addi(R12, R1, FRAME_SIZE));
	put(e, ppc_std(R12, FRAME_SLOT, R1));
}

/* Call what r12 points to. Unwinders know by the last instruction where r2 is saved. */
static void stub_call_r12(struct emitter *e)
{
	put(e, ppc_std(R2, FRAME_TOC, R1));
	put(e, ppc_mtspr(SPR_CTR, R12));
	put(e, PPC_BCTRL);
	put(e, PPC_LD_TOC);
}

static void stub_call(struct emitter *e, uint64_t c_function)
{
	put(e, ppc_addi(R3, R1, FRAME_AT));
	constant(e, R12, c_function);
	stub_call_r12(e);
}

/* Restore, r1 = S, go on at frame.go. */
static void stub_go(struct emitter *e)
{
	put(e, ppc_ld(R12, FRAME_GO, R1));
	put(e, ppc_mtspr(SPR_LR, R12));
	put(e, ppc_ld(R12, FRAME_CTR, R1));
	put(e, ppc_mtspr(SPR_CTR, R12));
	put(e, ppc_ld(R12, FRAME_XER, R1));
	put(e, ppc_mtspr(SPR_XER, R12));
	put(e, ppc_ld(R12, FRAME_CR, R1));
	put(e, ppc_mtcr(R12));
	for (enum ppc_reg r = R2; r <= R10; r++)
		put(e, ppc_ld(r, FRAME_R(r), R1));
	put(e, ppc_addi(R1, R1, FRAME_SIZE));
	row_cfa(e, 0);
	put(e, PPC_BLR);
}

#define INFO_ID	    ((int)offsetof(struct detour_info, id))
#define INFO_RESUME ((int)offsetof(struct detour_info, resume))
#define INFO_RET    ((int)offsetof(struct detour_info, ret))
#define RECORD_SHIFT 6
_Static_assert(FUNC_RECORD_SIZE == 1 << RECORD_SHIFT, "function record size");
_Static_assert(INFOS_MAX == 1 << 20 && FLAGS == FUNC + 4, "func and flags are one word, see if_tail()");

/* Where stub_tail() keeps info: nothing else is kept there of functions that may come to it. */
#define TAIL_INFO saved_at(R12)

/* r12, the records, becomes the record of function @func. r0 is lost. */
static void add_records(struct emitter *e, enum ppc_reg func)
{
	put(e, ppc_sldi(R0, func, RECORD_SHIFT));
	put(e, ppc_add(R12, R12, R0));
}

/* @reg += the place that the info in @reg has at @field. r0 is lost. */
static void add_place(struct emitter *e, enum ppc_reg reg, int field)
{
	put(e, ppc_lwa(R0, field, reg));
	put(e, ppc_add(reg, reg, R0));
}

/*
 * r11 = E, r0 = records, r12 = E's owner: is E the entry of a function that has just jumped to this one, both of the
 * common kind? Then r9 = its id, and LR its return point, else slow. r12 stays, r0 and r8 are lost.
 */
static void if_tail(struct emitter *e, const struct isa_env *env, struct labels *l)
{
	put(e, ppc_cmpd(R12, R0));
	slow_if(e, l, COND_NE);
	put(e, ppc_ld(R9, SLOT, R11));
	put(e, ppc_cmpd(R9, R1));
	slow_if(e, l, COND_NE);
	if (env->mode != MODE_COUNT) {
		thread_var(e, false, R9, R9, env->tls_current);
		put(e, ppc_cmpd(R9, R11));
		slow_if(e, l, COND_NE);
	}
	put(e, ppc_ld(R9, FUNC, R11));
	put(e, ppc_srdi(R0, R9, 20) | PPC_RECORD);
	slow_if(e, l, COND_NE); /* flags; and who has none is below INFOS_MAX */
	constant(e, R8, (uint64_t)env->infos);
	put(e, ppc_sldi(R0, R9, 3));
	put(e, ppc_ldx(R8, R8, R0));
	slow_if_zero(e, l, R8);
	add_place(e, R8, INFO_RET);
	put(e, ppc_mfspr(R0, SPR_LR));
	put(e, ppc_cmpd(R8, R0));
	slow_if(e, l, COND_NE);
}

/* The function of E, r9, has jumped away and counts as returned. LR becomes the real return address. With times r9
 * is the call's, and r10 lost. */
static void jumped_away(struct emitter *e, const struct isa_env *env, struct unusual *u)
{
	bool times = env->mode != MODE_COUNT;

	add_records(e, R9);
	if (times) {
		put(e, ppc_std(R10, TAIL_INFO, R1));
		emit_times(e, env, 0);
	}
	put(e, ppc_ld(R0, RET, R11));
	put(e, ppc_mtspr(SPR_LR, R0)); /* for unwinders, while E is not valid */
	put(e, ppc_li(R0, 0));
	put(e, ppc_std(R0, SLOT, R11));
	count(e, RECORD(returned), times ? R10 : R8);
	if (times) {
		emit_total(e, false, u);
		put(e, ppc_ld(R10, TAIL_INFO, R1));
	}
}

/* E becomes that of the function that was jumped to, which starts when the other has ended. */
static void jumped_here(struct emitter *e, const struct isa_env *env)
{
	put(e, ppc_lwz(R8, INFO_ID, R10));
	put(e, ppc_std(R8, FUNC, R11)); /* flags = 0 */
	put(e, ppc_ld(R12, OWNER, R11));
	add_records(e, R8);
	count(e, RECORD(calls), R8);
	if (env->mode != MODE_COUNT) {
		put(e, ppc_ld(R8, START, R11));
		put(e, ppc_add(R8, R8, R9));
		put(e, ppc_std(R8, START, R11));
		put(e, ppc_li(R0, 0));
		put(e, ppc_std(R0, CHILD, R11));
	}
	put(e, ppc_std(R1, SLOT, R11));
	row_in_shadow(e);
	if (env->mode != MODE_COUNT)
		thread_var(e, true, R11, R12, env->tls_current);
}

/*
 * A tail call, the common case of an entry whose place is taken; r10 = info, and is saved. The other function's T has
 * not been returned to and never will be. So that the processor, which predicts returns by its own stack of calls,
 * does not expect it when the next one returns, this goes on by a return. That one it predicts wrong: T itself could
 * not send it here with r8 to r11 as they are.
 */
static void stub_tail(struct emitter *e, const struct isa_env *env)
{
	struct labels l = { 0 };
	struct unusual u;

	row_in_lr(e);
	put(e, ppc_std(R8, saved_at(R8), R1));
	put(e, ppc_std(R9, saved_at(R9), R1));
	if_tail(e, env, &l);
	jumped_away(e, env, &u);
	jumped_here(e, env);
	put(e, ppc_mr(R12, R10));
	add_place(e, R12, INFO_RESUME);
	put(e, ppc_mtspr(SPR_LR, R12));
	for (enum ppc_reg r = R8; r <= R10; r++)
		put(e, ppc_ld(r, saved_at(r), R1));
	put(e, PPC_BLR);
	row_in_lr(e);
	if (env->mode != MODE_COUNT)
		emit_inner(e, &u);
	while (l.nslow)
		skip_ends(e, l.to_slow[--l.nslow]);
	put(e, ppc_mr(R12, R10));
	for (enum ppc_reg r = R8; r <= R10; r++)
		put(e, ppc_ld(r, saved_at(r), R1));
}

static void stub_entry(struct emitter *e, const struct isa_env *env)
{
	row_in_lr(e);
	put(e, ppc_mfspr(R11, SPR_LR));
	put(e, ppc_std(R11, PPC_KEPT_RETURN, R1)); /* frame.ret */
	row_kept(e);
	stub_begin(e);
	stub_call(e, env->slow_entry);
	stub_go(e);
}

/* frame.ret is where the rows find the return address from now on; release the entry. */
static void stub_put_back(struct emitter *e, const struct isa_env *env)
{
	row_kept(e);
	stub_call(e, env->slow_release);
}

static void stub_exit(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	stub_begin(e);
	stub_call(e, env->slow_exit);
	stub_put_back(e, env);
	stub_go(e);
}

/*
 * The landing pad. The unwinder comes here with r1 = S and the exception in r3. It goes on from a
 * frame of our own that has the real return address.
 */
static void stub_pad(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	put(e, ppc_li(R12, 0));
	stub_begin(e);
	stub_call(e, env->slow_unwind);
	stub_put_back(e, env);
	put(e, ppc_ld(R3, FRAME_R(R3), R1));
	put(e, ppc_ld(R12, FRAME_GO, R1));
	stub_call_r12(e);
	put(e, PPC_TRAP);
}

uint32_t ppc_emit_common(const struct isa_env *env, uint64_t at, uint8_t *out,
	struct isa_common *common, struct isa_range *ranges)
{
	struct emitter e = { .start = out, .p = out, .at = at };

	common->base = at;
	/* Not reached by a call: keep `return address - 1` look-ups off the first stub. */
	put(&e, PPC_TRAP);
	range_begin(&e, &ranges[0], CIE_PLAIN);
	common->personality = here(&e);
	constant(&e, R12, env->personality);
	put(&e, ppc_mtspr(SPR_CTR, R12));
	put(&e, PPC_BCTR);
	range_end(&e);
	range_begin(&e, &ranges[1], CIE_SHADOW);
	common->tail = here(&e);
	if (env->infos)
		stub_tail(&e, env);
	common->slow_entry = here(&e);
	stub_entry(&e, env);
	common->slow_exit = here(&e);
	stub_exit(&e, env);
	common->pad = here(&e);
	stub_pad(&e, env);
	range_end(&e);
	ppc_emit_hooks(&e, env, common, &ranges[2]);
	common->size = here(&e);
	return 3;
}

/* ---- the patch ---- */

/* Append a branch from behind what the patch has so far. False: out of reach. */
static bool patch_branch(struct isa_patch *patch, uint64_t target)
{
	int64_t distance = (int64_t)(target - (patch->addr + patch->len));
	uint32_t word = ppc_b(distance, false);

	memcpy(patch->bytes + patch->len, &word, 4);
	patch->len += 4;
	return ppc_in_reach(distance);
}

int ppc_patch(const struct isa_emit *in, struct isa_patch patches[2])
{
	uint64_t site = in->func->start + in->site->offset + (uint64_t)in->bias;
	uint64_t island = in->site->hop + (uint64_t)in->bias;

	if (in->site->choice != SITE_ISLAND) {
		patches[0] = (struct isa_patch){ .addr = site };
		return patch_branch(&patches[0], in->at) ? 1 : -ERANGE;
	}
	patches[0] = (struct isa_patch){ .addr = island };
	patches[1] = (struct isa_patch){ .addr = site };
	return patch_branch(&patches[0], in->at) && patch_branch(&patches[0], behind(in))
			&& patch_branch(&patches[1], island)
		? 2
		: -ERANGE;
}
