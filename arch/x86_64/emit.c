/* SPDX-License-Identifier: MIT */
/*
 * Writes x86_64 detours. S is the stack slot of the return address, E the shadow entry of S.
 *
 *   D:  rsp = S       save rax rcx rdx below the stack pointer, fill E, count,
 *                     rsp = S + 8, call B            (the call's push reuses the slot)
 *   T:  rsp = S + 8   account, put the real return address back into the slot, rsp = S, free E, ret
 *   B:                the displaced instructions, jmp back
 *
 * At a function's entry the 128 bytes below rsp are the callee's own, which is us; after its
 * return they are nobody's. Signal handlers stay below them (System V ABI, AMD64 supplement,
 * 3.2.2). Whatever does not fit the straight line goes to the slow stubs in the image's common
 * part, with rax = the detour's struct detour_info, and they call C.
 *
 * A function with handlers goes through the hook stubs as well: D once E is filled, T before E is
 * looked at. To D and T these are like an instruction that changes nothing but the save area, in
 * which rax, rcx and rdx are.
 */
#include "emitter.h"
#include <errno.h>

/* Take back what D has saved. */
static void restore(struct emitter *e, const struct isa_emit *in)
{
	if (in->site->flags_in)
		restore_flags(e, 0);
	load(e, RAX, RSP, X86_SAVE_RAX);
	load(e, RCX, RSP, X86_SAVE_RCX);
	load(e, RDX, RSP, X86_SAVE_RDX);
}

/* A function without an id has no records. */
static bool is_counted(const struct isa_emit *in)
{
	return in->id != ID_NONE;
}

static bool is_timed(const struct isa_emit *in)
{
	return in->env->mode != MODE_COUNT && is_counted(in);
}

/* Is there a shadow entry for its calls? */
static bool has_return(const struct isa_emit *in)
{
	return !in->site->entry_only && (is_counted(in) || in->hook_return);
}

/* Is its return point the common one, and its entry? See SHADOW_TAIL. */
static bool may_tail(const struct isa_emit *in)
{
	return in->env->infos && in->id < INFOS_MAX && has_return(in) && !in->watch && !in->point
		&& !in->hook_return;
}

static void emit_entry(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	const struct isa_env *env = in->env;
	bool times = is_timed(in);

	store(e, RAX, RSP, X86_SAVE_RAX);
	store(e, RCX, RSP, X86_SAVE_RCX);
	store(e, RDX, RSP, X86_SAVE_RDX);
	if (in->site->flags_in)
		save_flags(e, 0);
	load_records(e, l, env);
	load_entry(e, env, 0);
	mem(e, true, 0x83, 7, RCX, OWNER, false); /* cmp $0, E.owner */
	byte(e, 0);
	slow_if(e, l, COND_NE); /* a tail call, or left behind by a longjmp */
	if (times) {
		thread_var(e, 0x8b, RAX, env->tls_current);
		mem(e, true, 0x39, RSP, RAX, SLOT, false); /* cmp rsp, current.slot */
		slow_if(e, l, COND_BE);
	}
	store(e, RDX, RCX, OWNER); /* first: now no handler takes the place for free */
	if (times) {
		store(e, RAX, RCX, PARENT);
		zero(e, RCX, CHILD);
	}
	load(e, RAX, RSP, 0);
	store(e, RAX, RCX, RET);
	mem(e, true, 0xc7, 0, RCX, FUNC, false); /* mov $id, E.func; E.flags = 0 */
	word32(e, in->id);
	if (!may_tail(in)) {
		mem(e, false, 0xc7, 0, RCX, FLAGS, false); /* mov $SHADOW_NO_TAIL, E.flags */
		word32(e, SHADOW_NO_TAIL);
	}
	if (times) {
		increment(e, RDX, RECORD(in->id, calls));
		read_clock(e);
		store(e, RAX, RCX, START);
		store(e, RSP, RCX, SLOT);
		thread_var(e, 0x89, RCX, env->tls_current);
	} else {
		if (is_counted(in))
			increment(e, RDX, RECORD(in->id, calls));
		store(e, RSP, RCX, SLOT);
	}
	if (in->point) {
		to_stub(e, l, HOOK_TAG_ENTERED, in->common->base
			+ (in->hook_return ? in->common->hook_entry : in->common->hook_bare));
		l->run = here(e);
	} else {
		l->resume = here(e);
	}
	restore(e, in);
	lea(e, RSP, RSP, 8);
}

void x86_emit_times(struct emitter *e, const struct isa_env *env, uint32_t id)
{
	uint8_t *skip, *exact, *outermost;

	mem(e, true, 0x2b, RSI, RCX, START, false); /* sub E.start, rsi */
	skip = jump_short(e, JAE_SHORT);
	CODE(e, "\x31\xf6"); /* xor esi, esi: the clock ran backwards */
	zero(e, RCX, CHILD);
	short_here(e, skip);
	load(e, RAX, RCX, PARENT);
	thread_var(e, 0x89, RAX, env->tls_current);
	mem(e, true, 0x01, RSI, RAX, CHILD, false); /* add rsi, parent.child */
	mem(e, true, 0x39, RSI, RDX, RECORD(id, max), true); /* cmp rsi, max */
	skip = jump_short(e, JAE_SHORT);
	mem(e, true, 0x89, RSI, RDX, RECORD(id, max), true);
	short_here(e, skip);
	move(e, RAX, RSI);
	CODE(e, "\x48\xf7\xd0"); /* not rax */
	mem(e, true, 0x39, RAX, RDX, RECORD(id, nmin), true);
	skip = jump_short(e, JAE_SHORT);
	mem(e, true, 0x89, RAX, RDX, RECORD(id, nmin), true);
	short_here(e, skip);
	mem(e, true, 0x8b, RAX, RDX, RECORD(id, calls), true);
	mem(e, true, 0x2b, RAX, RDX, RECORD(id, returned), true); /* sub returned, rax */
	CODE(e, "\x48\xff\xc8"); /* dec rax: this one */
	exact = jump_short(e, JE_SHORT);
	mem(e, true, 0x2b, RAX, RDX, RECORD(id, left), true);
	outermost = jump_short(e, JLE_SHORT);
	mem(e, true, 0x29, RSI, RDX, RECORD(id, callees), true); /* an inner one: only what is its own */
	skip = jump_short(e, JMP_SHORT);
	short_here(e, exact);
	short_here(e, outermost);
	mem(e, true, 0x01, RSI, RDX, RECORD(id, total), true);
	short_here(e, skip);
	load(e, RAX, RCX, CHILD);
	mem(e, true, 0x01, RAX, RDX, RECORD(id, callees), true);
}

/*
 * A return point begins with this store; compilers write it with a one-byte displacement, so
 * these eight bytes tell a return point from every other return address.
 */
static void emit_mark(struct emitter *e)
{
	mem(e, true, 0x89, RAX, RSP, X86_SAVE_RAX - 8, true);
}

/* As if the body had returned. rsp = S */
static void emit_skip(struct emitter *e, struct labels *l)
{
	l->skip = here(e);
	save_flags(e, 0);
	lea(e, RSP, RSP, 8);
	row_in_shadow(e);
	branch(e, JMP, e->at + l->account);
}

/* Return handlers of a function that has jumped to the one that returns now. rsp = S */
static void emit_owed(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	l->owed = here(e);
	if (in->env->mode != MODE_COUNT)
		load(e, RSI, RSP, X86_SAVE_RSI);
	to_stub(e, l, HOOK_TAG_OWED, in->common->base + in->common->hook_any);
}

static void emit_return(struct emitter *e)
{
	load(e, RAX, RSP, X86_SAVE_RAX);
	load(e, RCX, RSP, X86_SAVE_RCX);
	load(e, RDX, RSP, X86_SAVE_RESULT2);
	byte(e, 0xc3); /* ret */
}

static void emit_exit(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	const struct isa_env *env = in->env;
	bool times = is_timed(in);

	/* rsp = S + 8 */
	emit_mark(e);
	store(e, RCX, RSP, X86_SAVE_RCX - 8);
	store(e, RDX, RSP, X86_SAVE_RESULT2 - 8);
	save_flags(e, -8); /* hand-written functions return results in them */
	if (env->mode != MODE_COUNT)
		store(e, RSI, RSP, X86_SAVE_RSI - 8);
	if (in->hook_return)
		to_stub(e, l, 0, in->common->base + in->common->hook_exit);
	l->account = here(e);
	load_records(e, l, env); /* first: where there are none, the clock may be forbidden */
	if (times) {
		move(e, RSI, RDX);
		read_clock(e);
		move(e, RDX, RSI);
		move(e, RSI, RAX);
	}
	load_entry(e, env, -8);
	lea(e, RAX, RSP, -8);
	mem(e, true, 0x39, RAX, RCX, SLOT, false); /* cmp rax, E.slot */
	slow_if(e, l, COND_NE);
	mem(e, false, 0x81, 7, RCX, FUNC, false); /* cmp $id, E.func: stacks may be copied */
	word32(e, in->id);
	slow_if(e, l, COND_NE);
	mem(e, true, 0x39, RDX, RCX, OWNER, false); /* cmp rdx, E.owner: after a fork they differ */
	slow_if(e, l, COND_NE);
	if (times) {
		thread_var(e, 0x39, RCX, env->tls_current); /* cmp rcx, current */
		slow_if(e, l, COND_NE);
		x86_emit_times(e, env, in->id);
	}
	load(e, RAX, RCX, RET);
	store(e, RAX, RSP, -8);
	lea(e, RSP, RSP, -8);
	/* rsp = S */
	row_cfa(e, 8);
	row_in_slot(e);
	zero(e, RCX, SLOT);
	if (is_counted(in))
		increment(e, RDX, RECORD(in->id, returned));
	zero(e, RCX, OWNER);
	l->leave = l->drop = here(e);
	if (env->mode != MODE_COUNT)
		load(e, RSI, RSP, X86_SAVE_RSI);
	restore_flags(e, 0);
	emit_return(e);
	if (in->hook_return)
		emit_owed(e, in, l);
	row_in_shadow(e);
	slow_here(e, l, in->common->base + in->common->slow_exit);
}

static void emit_entry_only(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	store(e, RAX, RSP, X86_SAVE_RAX);
	store(e, RCX, RSP, X86_SAVE_RCX);
	store(e, RDX, RSP, X86_SAVE_RDX);
	if (in->site->flags_in)
		save_flags(e, 0);
	if (in->watch) {
		CODE(e, "\x31\xc0"); /* xor eax, eax: ZF */
		slow_if(e, l, COND_E);
		return;
	}
	if (!is_counted(in))
		return;
	load_records(e, l, in->env);
	increment(e, RDX, RECORD(in->id, calls));
}

/* Restore what D saved and run the body in the caller's frame. */
static void emit_bypass(struct emitter *e, const struct isa_emit *in, struct labels *l,
	uint8_t **to_body)
{
	uint64_t any = in->common->base + in->common->hook_any;

	if (in->point && has_return(in)) {
		l->resume = here(e);
		to_stub(e, l, HOOK_TAG_ENTERED, any);
	} else if (in->point && is_counted(in)) {
		to_stub(e, l, HOOK_TAG_ENTERED, in->common->base + in->common->hook_bare);
	}
	l->bypass = here(e);
	if (in->point)
		to_stub(e, l, HOOK_TAG_PASSED, any);
	if (in->point && !has_return(in)) {
		l->drop = here(e);
		emit_return(e);
	}
	l->pass = here(e);
	restore(e, in);
	if (!has_return(in))
		l->run = l->pass;
	byte(e, JMP);
	word32(e, 0);
	*to_body = e->p;
}

static const uint8_t *window_bytes(const struct isa_emit *in)
{
	uint64_t addr = in->func->start + in->site->offset;

	for (size_t i = 0; i < in->module->ntexts; i++) {
		const struct isa_text *text = &in->module->texts[i];

		if (addr - text->addr < text->size
			&& text->size - (addr - text->addr) >= in->site->len)
			return text->bytes + (addr - text->addr);
	}
	return NULL;
}

/* The window offset of the first call, where the copy has `push imm32`; len: none. */
static uint32_t find_call(const uint8_t *window, uint32_t len, const uint8_t *body,
	const struct x86_moved *moved)
{
	uint32_t at = 0;

	while (at < len
		&& (moved->to[at] == 0xffff || window[at] == PUSH_IMM32
			|| body[moved->to[at]] != PUSH_IMM32))
		at++;
	return at;
}

/*
 * A call has become the push of its return address, in one instruction or two, and a jump. From
 * the push on this is a frame that the function's original code has called; nothing is saved in
 * it, and its return address is a constant.
 */
static void call_rows(struct emitter *e, uint64_t ret)
{
	static const uint8_t rows[] = { DW_CFA_def_cfa, 7, 8, DW_CFA_restore | 3,
		DW_CFA_restore | 6, DW_CFA_restore | 12, DW_CFA_restore | 13, DW_CFA_restore | 14,
		DW_CFA_restore | 15, DW_CFA_val_expression, RA, 9, DW_OP_const8u };

	cfi_here(e);
	for (size_t i = 0; i < sizeof(rows); i++)
		cfi_byte(e, rows[i]);
	for (int i = 0; i < 8; i++, ret >>= 8)
		cfi_byte(e, ret & 0xff);
}

/* The body's rows: the function's own ones, moved along with its instructions. */
static void body_rows(struct emitter *e, const struct isa_emit *in, const uint8_t *window,
	const struct x86_moved *moved)
{
	uint8_t *body = e->p;
	uint32_t offset = in->site->offset, len = in->site->len;
	uint32_t call = find_call(window, len, body, moved), next = call + 1;

	for (uint32_t i = 0; i < in->ncfi; i++) {
		const struct isa_cfi *cfi = &in->cfi[i];
		uint32_t at = cfi->at <= offset ? 0 : cfi->at - offset;

		if (at > call || moved->to[at] == 0xffff
			|| e->range->cfi_len + cfi->len + CALL_ROWS + 4 > ISA_CFI_MAX)
			break;
		e->p = body + moved->to[at];
		cfi_here(e);
		memcpy(e->range->cfi + e->range->cfi_len, cfi->bytes, cfi->len);
		e->range->cfi_len = (uint16_t)(e->range->cfi_len + cfi->len);
	}
	if (call < len) {
		while (moved->to[next] == 0xffff)
			next++;
		e->p = body + moved->to[call] + PUSH_SIZE;
		call_rows(e, in->func->start + offset + next + (uint64_t)in->bias);
	}
	e->p = body;
}

static int emit_body(struct emitter *e, const struct isa_emit *in, struct isa_detour *detour)
{
	const uint8_t *window = window_bytes(in);
	uint64_t addr = in->func->start + in->site->offset;
	struct x86_moved moved;
	int err;

	if (!window)
		return -EINVAL;
	err = x86_relocate(window, addr, in->site->len, in->bias, e->at + here(e), e->p,
		isa_x86_64.detour_max - here(e) - X86_JUMP_SIZE, &moved);
	if (err)
		return err;
	if (in->ncfi) {
		range_begin(e, &detour->ranges[detour->nranges], CIE_PLAIN);
		body_rows(e, in, window, &moved);
	}
	e->p += moved.size;
	if (!moved.ends)
		branch(e, JMP, addr + in->site->len + (uint64_t)in->bias);
	if (in->ncfi) {
		range_end(e);
		detour->nranges++;
	}
	return 0;
}

static int32_t relative(const struct emitter *e, uint32_t label)
{
	return label ? (int32_t)(label - here(e)) : 0;
}

static void emit_info(struct emitter *e, const struct isa_emit *in, struct labels *l)
{
	struct detour_info info = { .id = in->id, .watch = in->watch, .point = in->point };
	struct hook_places places;

	while (here(e) & 7)
		byte(e, 0xcc);
	info.resume = relative(e, l->resume);
	info.bypass = relative(e, l->bypass);
	info.leave = relative(e, l->leave);
	info.ret = may_tail(in) ? relative(e, l->ret) : 0;
	l->info = here(e);
	places = (struct hook_places){ .run = relative(e, l->run), .pass = relative(e, l->pass),
		.skip = relative(e, l->skip), .account = relative(e, l->account),
		.owed = relative(e, l->owed), .drop = relative(e, l->drop) };
	while (l->ninfo) {
		uint8_t *after = l->to_info[--l->ninfo];
		uint32_t tag;

		memcpy(&tag, after - 4, 4);
		rel32_to(after, e->p + tag);
	}
	memcpy(e->p, &info, sizeof(info));
	e->p += sizeof(info);
	if (!in->point)
		return;
	memcpy(e->p, &places, sizeof(places));
	e->p += sizeof(places);
}

int x86_emit(const struct isa_emit *in, uint8_t *out, struct isa_detour *detour)
{
	struct emitter e = { .start = out, .p = out, .at = in->at };
	uint64_t behind = in->func->start + in->site->offset + in->site->len + (uint64_t)in->bias;
	bool own_body = in->site->choice != SITE_NOPS;
	struct labels l = { 0 };
	uint8_t *call = NULL, *to_body;
	int err = 0;

	*detour = (struct isa_detour){ .nranges = 1 };
	range_begin(&e, &detour->ranges[0], CIE_DETOUR);
	row_cfa(&e, 8);
	row_in_slot(&e);
	if (has_return(in)) {
		/* The slow jumps of D are kept apart from T's: their rows differ. */
		struct labels entry;

		emit_entry(&e, in, &l);
		row_in_shadow(&e);
		byte(&e, CALL);
		word32(&e, 0);
		call = e.p;
		detour->ret = l.ret = here(&e);
		entry = l;
		l.nslow = 0;
		emit_exit(&e, in, &l);
		memcpy(l.to_slow, entry.to_slow, sizeof(l.to_slow));
		l.nslow = entry.nslow;
		row_cfa(&e, 8);
		row_in_slot(&e);
		slow_here(&e, &l, in->common->base + in->common->slow_entry);
		emit_bypass(&e, in, &l, &to_body);
		if (in->point)
			emit_skip(&e, &l);
	} else {
		emit_entry_only(&e, in, &l);
		emit_bypass(&e, in, &l, &to_body);
		slow_here(&e, &l, in->common->base + in->common->slow_entry);
	}
	range_end(&e);
	emit_info(&e, in, &l);
	detour->info = may_tail(in) ? l.info : 0;

	if (own_body) {
		detour->body = here(&e);
		rel32_to(to_body, e.p);
		if (call)
			rel32_to(call, e.p);
		err = emit_body(&e, in, detour);
	} else {
		struct emitter at_jump = { .start = out, .p = to_body - 5, .at = in->at };

		branch(&at_jump, JMP, behind);
		if (call) {
			at_jump.p = call - 5;
			branch(&at_jump, CALL, behind);
		}
		e.unreachable |= at_jump.unreachable;
	}
	detour->size = here(&e);
	return err ? err : e.unreachable ? -ERANGE : 0;
}

int x86_patch(const struct isa_emit *in, struct isa_patch patches[2])
{
	uint64_t site = in->func->start + in->site->offset + (uint64_t)in->bias;
	uint64_t jump = site;
	int n = 0;

	if (in->site->choice == SITE_TRAP) {
		patches[0] = (struct isa_patch){ .addr = site, .len = 1, .bytes = { 0xcc } };
		return 1;
	}
	if (in->site->choice == SITE_HOP)
		jump = in->site->hop + (uint64_t)in->bias;
	struct emitter e = { .start = patches[0].bytes, .p = patches[0].bytes, .at = jump };

	patches[n].addr = jump;
	patches[n++].len = X86_JUMP_SIZE;
	branch(&e, JMP, in->at);
	if (in->site->choice == SITE_HOP) {
		int64_t rel = (int64_t)(jump - (site + 2));

		if (rel != (int8_t)rel)
			return -ERANGE;
		patches[n++] = (struct isa_patch){
			.addr = site, .len = 2, .bytes = { 0xeb, (uint8_t)rel }
		};
	}
	return e.unreachable ? -ERANGE : n;
}
