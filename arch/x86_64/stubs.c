/* SPDX-License-Identifier: MIT */
/*
 * The part of an image that its detours share: what they go to when the straight line is left. What S, E,
 * D and T are emit.c says.
 */
#include "emitter.h"

static const enum reg kept[] = { [X86_SAVED_RSI] = RSI, [X86_SAVED_RDI] = RDI,
	[X86_SAVED_R8] = R8, [X86_SAVED_R9] = R9, R10, R11 };
#define KEPT_FLAGS (FRAME_REGS + (int)(sizeof(kept) / sizeof(kept[0])) * 8)

/* rsp = S - FRAME_SIZE. Save what C may change beyond rax, rcx, rdx. @cfa: CFA - rsp. */
static void stub_save(struct emitter *e, unsigned cfa)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		store(e, kept[i], RSP, FRAME_REGS + (int)i * 8);
	byte(e, 0x9c); /* pushfq */
	row_cfa(e, cfa + 8);
	mem(e, false, 0x8f, 0, RSP, KEPT_FLAGS, false); /* pop [rsp + n]: rsp as it is after the pop */
	row_cfa(e, cfa);
	byte(e, 0xfc); /* cld */
	lea(e, RDI, RSP, FRAME_SIZE);
	store(e, RDI, RSP, FRAME_SLOT);
}


/* Restore, rsp = S, go to frame.go with rax, rcx, rdx still in the save area. */
static void stub_go(struct emitter *e, unsigned cfa)
{
	mem(e, false, 0xff, 6, RSP, KEPT_FLAGS, false); /* push [rsp + n] */
	row_cfa(e, cfa + 8);
	byte(e, 0x9d); /* popfq */
	row_cfa(e, cfa);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		mem(e, true, 0x8b, kept[i], RSP, FRAME_REGS + (int)i * 8, false);
	load(e, RAX, RSP, FRAME_GO);
	lea(e, RSP, RSP, FRAME_SIZE);
	row_cfa(e, 8);
	CODE(e, "\x3e\xff\xe0"); /* notrack jmp *rax */
}

/*
 * Where stub_tail() and stub_passed() keep things, besides what D and T do; until stub_tail() returns: memory
 * below the stack pointer is nobody's then.
 */
#define TAIL_INFO   X86_SAVE_R10
#define TAIL_RETURN X86_SAVE_R8 /* the return point of the function that has jumped */
#define TAIL_NOW    X86_SAVE_R9
#define EXIT_INFO   X86_SAVE_R11

#define INFO_ID	   ((int)offsetof(struct detour_info, id))
#define INFO_RESUME ((int)offsetof(struct detour_info, resume))
#define INFO_RET   ((int)offsetof(struct detour_info, ret))
#define RECORD_SHIFT 6
_Static_assert(FUNC_RECORD_SIZE == 1 << RECORD_SHIFT, "function record size");
_Static_assert(offsetof(struct shadow_entry, flags) == offsetof(struct shadow_entry, func) + 4
		&& INFO_ID == 0, "func and flags are one word");

/* rdx += eax records */
static void add_records(struct emitter *e)
{
	CODE(e, "\x48\xc1\xe0");
	byte(e, RECORD_SHIFT); /* shl $n, rax */
	CODE(e, "\x48\x01\xc2"); /* add rax, rdx */
}

/* Pending slow jumps arrive here. */
static void all_here(struct emitter *e, struct labels *l)
{
	while (l->nslow)
		near_here(e, l->to_slow[--l->nslow]);
}

/* @reg = isa_env.infos[@reg]. Changes rax. */
static void info_at(struct emitter *e, const struct isa_env *env, enum reg reg)
{
	CODE(e, "\x48\xb8"); /* mov infos, rax */
	word64(e, (uint64_t)env->infos);
	CODE(e, "\x48\x8b"); /* mov (rax, reg, 8), reg */
	byte(e, 0x04 | reg << 3);
	byte(e, 0xc0 | reg << 3);
}

/* @reg = that of E.func; rcx = E. Changes rax. */
static void info_of(struct emitter *e, const struct isa_env *env, enum reg reg)
{
	mem(e, false, 0x8b, reg, RCX, FUNC, false);
	info_at(e, env, reg);
}

/* rcx = E, rdx = records: is E the entry of a function that has just jumped to this one, both of the common
 * kind? rsi = its return point then; else slow. Changes rax. */
static void if_tail(struct emitter *e, const struct isa_env *env, struct labels *l)
{
	mem(e, true, 0x39, RSP, RCX, SLOT, false); /* cmp rsp, E.slot */
	slow_if(e, l, COND_NE);
	mem(e, true, 0x39, RDX, RCX, OWNER, false);
	slow_if(e, l, COND_NE);
	mem(e, false, 0x83, 7, RCX, FLAGS, false); /* cmp $0, E.flags */
	byte(e, 0);
	slow_if(e, l, COND_NE);
	load(e, RAX, RSP, TAIL_INFO);
	mem(e, false, 0x8b, RSI, RAX, INFO_ID, false);
	mem(e, false, 0x39, RSI, RCX, FUNC, false); /* cmp esi, E.func: T would take it for its own */
	slow_if(e, l, COND_E);
	info_at(e, env, RSI);
	mem(e, true, 0x3b, RSI, RSP, TAIL_INFO, false); /* stub_passed() goes by the function's id */
	slow_if(e, l, COND_NE);
	if (env->mode != MODE_COUNT) {
		thread_var(e, 0x39, RCX, env->tls_current);
		slow_if(e, l, COND_NE);
	}
	info_of(e, env, RSI);
	test(e, RSI);
	slow_if(e, l, COND_E);
	mem(e, true, 0x63, RAX, RSI, INFO_RET, false); /* movslq */
	CODE(e, "\x48\x01\xc6"); /* add rax, rsi */
	mem(e, true, 0x3b, RSI, RSP, 0, false); /* cmp (rsp), rsi */
	slow_if(e, l, COND_NE);
}

/* The function of E has jumped away and counts as returned. rcx = E, rdx = records. */
static void jumped_away(struct emitter *e, const struct isa_env *env)
{
	if (env->mode != MODE_COUNT) {
		store(e, RDI, RSP, X86_SAVE_RDI);
		move(e, RDI, RDX);
		read_clock(e);
		store(e, RAX, RSP, TAIL_NOW);
		move(e, RSI, RAX);
		move(e, RDX, RDI);
	}
	mem(e, false, 0x8b, RAX, RCX, FUNC, false);
	add_records(e);
	if (env->mode != MODE_COUNT)
		x86_emit_times(e, env, 0);
	load(e, RAX, RCX, RET);
	store(e, RAX, RSP, 0); /* for unwinders, while E is not valid */
	zero(e, RCX, SLOT);
	increment(e, RDX, RECORD(0, returned));
}

/* E becomes that of the function that was jumped to. */
static void jumped_here(struct emitter *e, const struct isa_env *env)
{
	bool times = env->mode != MODE_COUNT;

	load(e, RAX, RSP, TAIL_INFO);
	mem(e, false, 0x8b, RAX, RAX, INFO_ID, false);
	CODE(e, "\x48\x0f\xba\xe8\x28"); /* bts $40, rax: SHADOW_TAIL */
	store(e, RAX, RCX, FUNC);
	load(e, RDX, RCX, OWNER);
	CODE(e, "\x89\xc0"); /* mov eax, eax */
	add_records(e);
	if (times) {
		zero(e, RCX, CHILD);
		load(e, RAX, RSP, TAIL_NOW);
		store(e, RAX, RCX, START);
	}
	increment(e, RDX, RECORD(0, calls));
	store(e, RSP, RCX, SLOT);
	if (times) {
		thread_var(e, 0x89, RCX, env->tls_current);
		load(e, RDI, RSP, X86_SAVE_RDI);
	}
}
_Static_assert(SHADOW_TAIL == 1 << (40 - 32), "the bit that jumped_here() sets");

/*
 * A tail call, the common case of what slow_entry is for: the other function's T has not been returned to
 * and never would be, which the processor's predictor of returns and its shadow stack do not expect. So it
 * is returned to now, with all registers as they are, and stub_passed() goes on from there.
 */
static void stub_tail(struct emitter *e, const struct isa_env *env)
{
	struct labels l = { 0 };
	uint8_t *no;

	store(e, RSI, RSP, X86_SAVE_RSI);
	store(e, RAX, RSP, TAIL_INFO);
	mem(e, false, 0x83, 7, RAX, INFO_RET, false); /* cmp $0, info.ret */
	byte(e, 0);
	no = jump_near(e, COND_E);
	load_records(e, &l, env);
	load_entry(e, env, 0);
	if_tail(e, env, &l);
	store(e, RSI, RSP, TAIL_RETURN);
	jumped_away(e, env);
	jumped_here(e, env);
	load(e, RSI, RSP, TAIL_RETURN);
	store(e, RSI, RSP, 0);
	load(e, RSI, RSP, X86_SAVE_RSI);
	restore_flags(e, 0);
	load(e, RAX, RSP, X86_SAVE_RAX);
	load(e, RCX, RSP, X86_SAVE_RCX);
	load(e, RDX, RSP, X86_SAVE_RDX);
	byte(e, 0xc3); /* ret */
	all_here(e, &l);
	near_here(e, no);
	load(e, RSI, RSP, X86_SAVE_RSI);
	load(e, RAX, RSP, TAIL_INFO);
}

/* T of a function that has jumped away has been returned to by stub_tail(): go on to the body. */
static void stub_passed(struct emitter *e, const struct isa_env *env)
{
	struct labels l = { 0 };

	store(e, RAX, RSP, EXIT_INFO - 8);
	load(e, RDX, RSP, X86_SAVE_RESULT2 - 8);
	store(e, RDX, RSP, X86_SAVE_RDX - 8); /* where D has it */
	load_records(e, &l, env);
	load_entry(e, env, -8);
	mem(e, true, 0x39, RDX, RCX, OWNER, false);
	slow_if(e, &l, COND_NE);
	lea(e, RDX, RSP, -8);
	mem(e, true, 0x39, RDX, RCX, SLOT, false);
	slow_if(e, &l, COND_NE);
	mem(e, false, 0x81, 7, RCX, FLAGS, false); /* cmp $SHADOW_TAIL, E.flags */
	word32(e, SHADOW_TAIL);
	slow_if(e, &l, COND_NE);
	mem(e, false, 0xc7, 0, RCX, FLAGS, false); /* mov $0, E.flags */
	word32(e, 0);
	load(e, RDX, RCX, RET);
	store(e, RDX, RSP, -8);
	lea(e, RSP, RSP, -8);
	row_cfa(e, 8);
	row_in_slot(e);
	if (env->mode != MODE_COUNT)
		load(e, RSI, RSP, X86_SAVE_RSI);
	info_of(e, env, RCX);
	mem(e, true, 0x63, RAX, RCX, INFO_RESUME, false); /* movslq */
	CODE(e, "\x48\x01\xc8\x3e\xff\xe0"); /* add rcx, rax; notrack jmp *rax */
	row_in_shadow(e);
	all_here(e, &l);
	load(e, RAX, RSP, EXIT_INFO - 8);
	if (env->mode != MODE_COUNT)
		load(e, RSI, RSP, X86_SAVE_RSI - 8); /* for passes_on(); a return takes it once more */
}

/* A tail call that was not stub_tail()'s: take the return point from the processor's shadow stack, if it is in
 * use (SDM volume 1, chapter 17). */
static void drop_return(struct emitter *e)
{
	uint8_t *none, *off;

	mem(e, true, 0x83, 7, RSP, FRAME_KEY, false); /* cmp $0, frame.key */
	byte(e, 0);
	none = jump_short(e, JE_SHORT);
	CODE(e, "\x31\xc9\xf3\x48\x0f\x1e\xc9"); /* xor ecx, ecx; rdsspq rcx */
	test(e, RCX);
	off = jump_short(e, JE_SHORT);
	CODE(e, "\xb9\x01\x00\x00\x00\xf3\x48\x0f\xae\xe9"); /* mov $1, ecx; incsspq rcx */
	short_here(e, none);
	short_here(e, off);
}

static void stub_entry(struct emitter *e, const struct isa_env *env)
{
	row_cfa(e, 8);
	row_in_slot(e);
	if (env->infos)
		stub_tail(e, env);
	lea(e, RSP, RSP, -FRAME_SIZE);
	row_cfa(e, FRAME_SIZE + 8);
	store(e, RAX, RSP, FRAME_INFO);
	stub_save(e, FRAME_SIZE + 8);
	load(e, RDI, RSP, FRAME_SIZE);
	store(e, RDI, RSP, FRAME_RET);
	stub_call(e, env->slow_entry);
	drop_return(e);
	stub_go(e, FRAME_SIZE + 8);
}

/* frame.ret into the slot, where the rows find it from now on; then release the entry. */
static void stub_put_back(struct emitter *e, const struct isa_env *env)
{
	load(e, RDI, RSP, FRAME_RET);
	store(e, RDI, RSP, FRAME_SIZE);
	row_in_slot(e);
	stub_call(e, env->slow_release);
}

static void stub_exit(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	if (env->infos)
		stub_passed(e, env);
	lea(e, RSP, RSP, -FRAME_SIZE - 8);
	row_cfa(e, FRAME_SIZE + 8);
	store(e, RAX, RSP, FRAME_INFO);
	stub_save(e, FRAME_SIZE + 8);
	stub_call(e, env->slow_exit);
	stub_put_back(e, env);
	stub_go(e, FRAME_SIZE + 8);
}

/*
 * The landing pad. The unwinder comes here with rsp = S + 8 and the exception in rax. It goes on
 * from a small frame of our own that has the real return address in the slot.
 */
static void stub_pad(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	CODE(e, "\xf3\x0f\x1e\xfa"); /* endbr64 */
	lea(e, RSP, RSP, -FRAME_SIZE - 8);
	row_cfa(e, FRAME_SIZE + 8);
	zero(e, RSP, FRAME_INFO);
	store(e, RAX, RSP, FRAME_REGS);
	lea(e, RDI, RSP, FRAME_SIZE);
	store(e, RDI, RSP, FRAME_SLOT);
	stub_call(e, env->slow_unwind);
	stub_put_back(e, env);
	load(e, RDI, RSP, FRAME_REGS);
	load(e, RAX, RSP, FRAME_GO);
	lea(e, RSP, RSP, FRAME_SIZE - 8);
	row_cfa(e, 16);
	CODE(e, "\xff\xd0\x0f\x0b"); /* call *rax; ud2 */
}

uint32_t x86_emit_common(const struct isa_env *env, uint64_t at, uint8_t *out,
	struct isa_common *common, struct isa_range *ranges)
{
	struct emitter e = { .start = out, .p = out, .at = at };

	common->base = at;
	/* Not reached by a call: keep `return address - 1` look-ups off the first stub. */
	CODE(&e, "\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc");
	range_begin(&e, &ranges[0], CIE_PLAIN);
	common->personality = here(&e);
	CODE(&e, "\xf3\x0f\x1e\xfa\x48\xb8"); /* endbr64; mov target, rax */
	word64(&e, env->personality);
	CODE(&e, "\x3e\xff\xe0"); /* notrack jmp *rax */
	range_end(&e);
	range_begin(&e, &ranges[1], CIE_SHADOW);
	common->slow_entry = here(&e);
	stub_entry(&e, env);
	common->slow_exit = here(&e);
	stub_exit(&e, env);
	common->pad = here(&e);
	stub_pad(&e, env);
	range_end(&e);
	x86_emit_hooks(&e, env, common, &ranges[2]);
	common->size = here(&e);
	return 4;
}
