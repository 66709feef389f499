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
#include "x86.h"
#include <errno.h>

enum reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

/* Offsets the generated code uses. */
#define SLOT   ((int)offsetof(struct shadow_entry, slot))
#define RET    ((int)offsetof(struct shadow_entry, ret))
#define FUNC   ((int)offsetof(struct shadow_entry, func))
#define FLAGS  ((int)offsetof(struct shadow_entry, flags))
#define OWNER  ((int)offsetof(struct shadow_entry, owner))
#define START  ((int)offsetof(struct shadow_entry, start))
#define CHILD  ((int)offsetof(struct shadow_entry, child))
#define PARENT ((int)offsetof(struct shadow_entry, parent))
#define RECORD(id, field)                                                                          \
	((int)((id) * FUNC_RECORD_SIZE + offsetof(struct func_record, field)))
#define FRAME_SLOT  ((int)offsetof(struct slow_frame, slot))
#define FRAME_INFO  ((int)offsetof(struct slow_frame, info))
#define FRAME_KEY   ((int)offsetof(struct slow_frame, key))
#define FRAME_RET   ((int)offsetof(struct slow_frame, ret))
#define FRAME_GO    ((int)offsetof(struct slow_frame, go))
#define FRAME_REGS  ((int)sizeof(struct slow_frame))
#define FRAME_SIZE  256 /* from the stub's rsp up to S; the saves below S are inside */

#define OF_CALL(field) ((int)offsetof(struct ftr_call, field))
#define OF_PLAIN(field) ((int)offsetof(struct hook_plain, field))
#define OF_STATE(field) ((int)offsetof(struct hook_state, field))
#define OF_INFO(field)  ((int)offsetof(struct detour_info, field))
#define OF_PLACE(field) ((int)(sizeof(struct detour_info) + offsetof(struct hook_places, field)))
#define ACTIVATION(env, field)                                                                     \
	((int)((env)->thread_active + offsetof(struct hook_activation, field)))

_Static_assert(sizeof(struct shadow_entry) == SHADOW_TIMED_SIZE
		&& offsetof(struct shadow_entry, start) == SHADOW_COUNT_SIZE,
	"shadow entry layout");
_Static_assert(sizeof(struct func_record) == FUNC_RECORD_SIZE, "function record layout");
_Static_assert(sizeof(struct slow_frame) + 8 * 8 - X86_SAVE_END <= FRAME_SIZE, "slow frame layout");

struct emitter {
	uint8_t *start, *p;
	uint64_t at; /* run-time address of start */
	bool unreachable;
	struct isa_range *range;
	uint8_t *row; /* code position of the newest row */
};

static void byte(struct emitter *e, unsigned b)
{
	*e->p++ = (uint8_t)b;
}

static void bytes(struct emitter *e, const char *code, size_t n)
{
	memcpy(e->p, code, n);
	e->p += n;
}
#define CODE(e, literal) bytes(e, literal, sizeof(literal) - 1)

static void word32(struct emitter *e, uint32_t v)
{
	memcpy(e->p, &v, 4);
	e->p += 4;
}

static void word64(struct emitter *e, uint64_t v)
{
	memcpy(e->p, &v, 8);
	e->p += 8;
}

static uint32_t here(const struct emitter *e)
{
	return (uint32_t)(e->p - e->start);
}

/* An operand [base + disp] behind @opcode (one byte, REX.W before it when @wide). */
static void mem(struct emitter *e, bool wide, unsigned opcode, unsigned reg, enum reg base, int disp,
	bool long_disp)
{
	bool small = !long_disp && disp >= -128 && disp <= 127;
	unsigned rex = (wide ? 0x48 : 0x40) | (reg >= 8 ? 4 : 0) | (base >= 8 ? 1 : 0);

	if (rex != 0x40)
		byte(e, rex);
	byte(e, opcode);
	byte(e, (small ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7));
	if (base == RSP)
		byte(e, 0x24);
	if (small)
		byte(e, (unsigned)disp);
	else
		word32(e, (uint32_t)disp);
}

static void store(struct emitter *e, enum reg reg, enum reg base, int disp)
{
	mem(e, true, 0x89, reg, base, disp, false);
}

static void load(struct emitter *e, enum reg reg, enum reg base, int disp)
{
	mem(e, true, 0x8b, reg, base, disp, false);
}

static void move(struct emitter *e, enum reg to, enum reg from)
{
	byte(e, 0x48);
	byte(e, 0x89);
	byte(e, 0xc0 | from << 3 | to);
}

static void lea(struct emitter *e, enum reg reg, enum reg base, int disp)
{
	mem(e, true, 0x8d, reg, base, disp, false);
}

/* inc/dec qword [base + disp]; the record's displacement has always four bytes, so that every
 * detour of a kind has the same size. */
static void increment(struct emitter *e, enum reg base, int disp)
{
	mem(e, true, 0xff, 0, base, disp, true);
}

static void store_number(struct emitter *e, uint32_t number, enum reg base, int disp)
{
	mem(e, true, 0xc7, 0, base, disp, false); /* mov $number, qword [base + disp] */
	word32(e, number);
}

static void zero(struct emitter *e, enum reg base, int disp)
{
	store_number(e, 0, base, disp);
}

/* opcode reg, fs:[offset] */
static void thread_mem(struct emitter *e, bool wide, unsigned opcode, enum reg reg, int64_t offset)
{
	unsigned rex = (wide ? 0x48 : 0x40) | (reg >= 8 ? 4 : 0);

	byte(e, 0x64);
	if (rex != 0x40)
		byte(e, rex);
	byte(e, opcode);
	byte(e, (reg & 7) << 3 | 4);
	byte(e, 0x25);
	word32(e, (uint32_t)offset);
}

static void thread_var(struct emitter *e, unsigned opcode, enum reg reg, int64_t offset)
{
	thread_mem(e, true, opcode, reg, offset);
}

static void rel32_to(uint8_t *after, const uint8_t *target)
{
	int32_t rel = (int32_t)(target - after);

	memcpy(after - 4, &rel, 4);
}

/* A forward jump whose place is patched by jump_here(). */
static uint8_t *jump_short(struct emitter *e, unsigned opcode)
{
	byte(e, opcode);
	byte(e, 0);
	return e->p;
}

static uint8_t *jump_near(struct emitter *e, unsigned condition)
{
	byte(e, 0x0f);
	byte(e, 0x80 | condition);
	word32(e, 0);
	return e->p;
}

static void short_here(struct emitter *e, uint8_t *after)
{
	after[-1] = (uint8_t)(e->p - after);
}

static void near_here(struct emitter *e, uint8_t *after)
{
	rel32_to(after, e->p);
}

#define COND_E	4  /* equal, zero */
#define COND_NE 5
#define COND_BE 6
#define JE_SHORT  0x74
#define JAE_SHORT 0x73
#define JG_SHORT  0x7f

/* jmp or call to a run-time address */
static void branch(struct emitter *e, unsigned opcode, uint64_t target)
{
	int64_t rel = (int64_t)(target - (e->at + here(e) + 5));

	if (rel != (int32_t)rel)
		e->unreachable = true;
	byte(e, opcode);
	word32(e, (uint32_t)rel);
}
#define JMP  0xe9
#define CALL 0xe8
#define PUSH_IMM32 0x68 /* what relocate.c begins a moved call with */
#define PUSH_SIZE  5
#define CALL_ROWS  32 /* room for call_rows() */

static void call_absolute(struct emitter *e, uint64_t target)
{
	CODE(e, "\x48\xb8"); /* mov target, rax */
	word64(e, target);
	CODE(e, "\xff\xd0"); /* call *rax */
}

/* ---- unwind rows ---- */

#define DW_CFA_advance_loc1	0x02
#define DW_CFA_advance_loc2	0x03
#define DW_CFA_remember_state	0x0a
#define DW_CFA_restore_state	0x0b
#define DW_CFA_def_cfa		0x0c
#define DW_CFA_def_cfa_offset	0x0e
#define DW_CFA_val_expression	0x16
#define DW_CFA_offset		0x80
#define DW_CFA_restore		0xc0
#define DW_OP_const8u		0x0e
#define RA			16
/* DWARF numbers, psABI figure 3.36 */
#define RBX_COLUMN		3
#define RSP_COLUMN		7

static void cfi_byte(struct emitter *e, unsigned b)
{
	e->range->cfi[e->range->cfi_len++] = (uint8_t)b;
}

static void cfi_uleb(struct emitter *e, unsigned v)
{
	for (; v >= 0x80; v >>= 7)
		cfi_byte(e, (v & 0x7f) | 0x80);
	cfi_byte(e, v);
}

/* The rows that follow begin at this place in the code. */
static void cfi_here(struct emitter *e)
{
	uint32_t delta = (uint32_t)(e->p - e->row);

	if (!delta)
		return;
	if (delta < 0x40) {
		cfi_byte(e, 0x40 | delta);
	} else if (delta <= 0xff) {
		cfi_byte(e, DW_CFA_advance_loc1);
		cfi_byte(e, delta);
	} else {
		cfi_byte(e, DW_CFA_advance_loc2);
		cfi_byte(e, delta & 0xff);
		cfi_byte(e, delta >> 8);
	}
	e->row = e->p;
}

static void range_begin(struct emitter *e, struct isa_range *range, enum isa_cie cie)
{
	e->range = range;
	e->row = e->p;
	range->start = here(e);
	range->cie = (uint8_t)cie;
	range->cfi_len = 0;
	if (cie != CIE_PLAIN)
		cfi_byte(e, DW_CFA_remember_state);
}

static void range_end(struct emitter *e)
{
	e->range->size = here(e) - e->range->start;
}

/* CFA = rsp + @offset from here on. */
static void row_cfa(struct emitter *e, unsigned offset)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa_offset);
	cfi_uleb(e, offset);
}

/* The return address is in its slot from here on. */
static void row_in_slot(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | RA);
	cfi_byte(e, 1); /* CFA - 8 */
}

/*
 * CFA = rsp and the return address is in the shadow stack from here on: the CIE's own row, which
 * range_begin() has put aside. (DW_CFA_restore would do, but libgcc takes it for "not saved".)
 */
static void row_in_shadow(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_restore_state);
	cfi_byte(e, DW_CFA_remember_state);
}

/* ---- the detour ---- */

/* Keep the condition flags in the save area; rax is saved already. @s: S - rsp. */
static void save_flags(struct emitter *e, int s)
{
	CODE(e, "\x9f\x0f\x90\xc0"); /* lahf; seto al */
	store(e, RAX, RSP, s + X86_SAVE_CONDITIONS);
}

static void restore_flags(struct emitter *e, int s)
{
	load(e, RAX, RSP, s + X86_SAVE_CONDITIONS);
	CODE(e, "\x04\x7f\x9e"); /* add $0x7f, al (sets OF when al = 1); sahf */
}

/* rax = clock, rdx lost */
static void read_clock(struct emitter *e)
{
	CODE(e, "\x0f\x31");	     /* rdtsc */
	CODE(e, "\x48\xc1\xe2\x20"); /* shl $32, rdx */
	CODE(e, "\x48\x09\xd0");     /* or rdx, rax */
}

struct labels {
	uint32_t resume, bypass, leave, ret, info;
	uint32_t run, pass, skip, account, owed, drop; /* see struct hook_places */
	uint8_t *to_slow[12];
	unsigned nslow;
	uint8_t *to_info[8]; /* where its address is to be filled in */
	unsigned ninfo;
};

static void slow_if(struct emitter *e, struct labels *l, unsigned condition)
{
	l->to_slow[l->nslow++] = jump_near(e, condition);
}

/* rax = info + @tag, go to @stub. */
static void to_stub(struct emitter *e, struct labels *l, unsigned tag, uint64_t stub)
{
	CODE(e, "\x48\x8d\x05"); /* lea info(%rip), rax */
	word32(e, tag);
	l->to_info[l->ninfo++] = e->p;
	branch(e, JMP, stub);
}

/* All pending slow jumps arrive here. */
static void slow_here(struct emitter *e, struct labels *l, uint64_t stub)
{
	while (l->nslow)
		near_here(e, l->to_slow[--l->nslow]);
	to_stub(e, l, 0, stub);
}

static void test(struct emitter *e, enum reg reg)
{
	byte(e, reg >= 8 ? 0x4d : 0x48);
	byte(e, 0x85);
	byte(e, 0xc0 | (reg & 7) << 3 | (reg & 7)); /* test reg, reg */
}

/*
 * rdx = this thread's records. Slow where there are none yet, and in a task whose thread pointer
 * leads to memory that libc has not set up.
 */
static void load_records(struct emitter *e, struct labels *l, const struct isa_env *env)
{
	thread_var(e, 0x8b, RDX, env->tls_records); /* mov fs:[tls_records], rdx */
	test(e, RDX);
	slow_if(e, l, COND_E);
	mem(e, true, 0x8b, RDX, RDX, 0, false); /* mov [rdx], rdx */
	test(e, RDX);
	slow_if(e, l, COND_E);
}

/* rcx = E. @disp: S - rsp. rax is lost. */
static void load_entry(struct emitter *e, const struct isa_env *env, int disp)
{
	thread_var(e, 0x8b, RCX, env->tls_mirror); /* mov fs:[tls_mirror], rcx */
	if (disp)
		mem(e, false, 0x8d, RAX, RSP, disp, false); /* lea disp(rsp), eax */
	else
		CODE(e, "\x89\xe0"); /* mov esp, eax */
	byte(e, 0x25);		     /* and $mask, eax */
	word32(e, (uint32_t)env->mask);
	if (env->mode == MODE_COUNT)
		CODE(e, "\x48\x8d\x0c\x81"); /* lea (rcx, rax, 4), rcx */
	else
		CODE(e, "\x48\x8d\x0c\xc1"); /* lea (rcx, rax, 8), rcx */
}

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
		increment(e, RDX, RECORD(in->id, depth));
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

/* rcx = E, the newest; rdx = records, rsi = now. Changes rax and rsi. */
static void emit_times(struct emitter *e, const struct isa_env *env, uint32_t id)
{
	uint8_t *skip;

	mem(e, true, 0x2b, RSI, RCX, START, false); /* sub E.start, rsi */
	skip = jump_short(e, JAE_SHORT);
	CODE(e, "\x31\xf6"); /* xor esi, esi: the clock ran backwards */
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
	mem(e, true, 0xff, 1, RDX, RECORD(id, depth), true); /* dec depth */
	skip = jump_short(e, JG_SHORT);
	mem(e, true, 0x01, RSI, RDX, RECORD(id, total), true);
	short_here(e, skip);
	mem(e, true, 0x2b, RSI, RCX, CHILD, false); /* sub E.child, rsi */
	skip = jump_short(e, JAE_SHORT);
	CODE(e, "\x31\xf6");
	short_here(e, skip);
	mem(e, true, 0x01, RSI, RDX, RECORD(id, self), true);
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
		emit_times(e, env, in->id);
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
	detour->info = l.info;

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

/* ---- the common part ---- */

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

static void stub_call(struct emitter *e, uint64_t c_function)
{
	move(e, RDI, RSP);
	call_absolute(e, c_function);
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
		emit_times(e, env, 0);
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
		increment(e, RDX, RECORD(0, depth));
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

/* ---- the hook stubs ---- */

/*
 * The usual case in a straight line: the thread is in no handler, and a hook_plain tells all there is
 * to do. What does not fit goes to C, which begins anew. The registers, once they are saved:
 *
 *	rax  struct detour_info	     r8   the thread
 *	rbx  S			     r9   struct hook_plain
 *	rcx  E			     r10  its serial
 *	rdx  struct hook_state	     r11  the handler
 *	rsp  struct ftr_call, aligned to 64 bytes
 */
static const struct {
	int8_t reg, place;
} hooked_regs[] = { { RDI, X86_SAVE_RDI }, { RSI, X86_SAVE_RSI }, { R8, X86_SAVE_R8 },
	{ R9, X86_SAVE_R9 }, { R10, X86_SAVE_R10 }, { R11, X86_SAVE_R11 } };
#define HOOKED_REGS (sizeof(hooked_regs) / sizeof(hooked_regs[0]))

/* CFA = rbx + 8 */
static void row_hooked(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa);
	cfi_uleb(e, RBX_COLUMN);
	cfi_uleb(e, 8);
}

/* rsp = S + @above, rax = info and a tag, the real rax, rcx and rdx are in the save area. */
static void hook_save(struct emitter *e, int above)
{
	for (size_t i = 0; i < HOOKED_REGS; i++)
		store(e, hooked_regs[i].reg, RSP, hooked_regs[i].place - above);
	store(e, RBX, RSP, X86_SAVE_RBX - above);
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | RBX_COLUMN);
	cfi_uleb(e, (8 - X86_SAVE_RBX) / 8);
	lea(e, RBX, RSP, -above);
	row_hooked(e);
	lea(e, RSP, RSP, X86_SAVE_END - (int)sizeof(struct ftr_call) - above);
	CODE(e, "\x48\x83\xe4\xc0"); /* and $-64, rsp */
}

/* Take the registers back and go to rax with rsp = S + @above. */
static void hook_go(struct emitter *e, int above)
{
	for (size_t i = 0; i < HOOKED_REGS; i++)
		load(e, hooked_regs[i].reg, RBX, hooked_regs[i].place);
	lea(e, RSP, RBX, above);
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa);
	cfi_uleb(e, RSP_COLUMN);
	cfi_uleb(e, (unsigned)(8 - above));
	load(e, RBX, RSP, X86_SAVE_RBX - above);
	CODE(e, "\x3e\xff\xe0"); /* notrack jmp *rax */
}

/* Let C do it. */
static void hook_any(struct emitter *e, uint64_t c_function, int above)
{
	CODE(e, "\x9c\x5a"); /* pushfq; pop rdx */
	store(e, RDX, RBX, X86_SAVE_FLAGS);
	byte(e, 0xfc); /* cld */
	store(e, RAX, RSP, FRAME_INFO);
	store(e, RBX, RSP, FRAME_SLOT);
	stub_call(e, c_function);
	mem(e, false, 0xf6, 0, RBX, X86_SAVE_FLAGS + 1, false);
	CODE(e, "\x04\x74\x01\xfd"); /* test $DF, flags + 1; jz over it; std */
	load(e, RAX, RSP, FRAME_GO);
	hook_go(e, above);
}

/* cmp $number, [base + disp] */
static void compare_number(struct emitter *e, bool wide, uint32_t number, enum reg base, int disp)
{
	mem(e, wide, number < 128 ? 0x83 : 0x81, 7, base, disp, false);
	if (number < 128)
		byte(e, number);
	else
		word32(e, number);
}

/* Find the thread, which is in no handler, and a hook_plain. rdx is lost. */
static void hook_begin(struct emitter *e, const struct isa_env *env, struct labels *l,
	bool returning)
{
	CODE(e, "\x9c\x5a\xf6\xc6\x04"); /* pushfq; pop rdx; test $DF, dh */
	slow_if(e, l, COND_NE);
	thread_var(e, 0x8b, R8, env->tls_thread);
	load(e, R9, RAX, OF_INFO(point));
	if (returning) { /* it may be another than at the entry, a new one */
		test(e, R8);
		slow_if(e, l, COND_E);
	}
	compare_number(e, true, 0, R8, ACTIVATION(env, slot));
	slow_if(e, l, COND_NE);
	load(e, R10, R9, OF_PLAIN(serial));
}

/* rsi = the thread's hook_states, edx = S in the window, 8 times their index */
static void hook_load_states(struct emitter *e, const struct isa_env *env)
{
	load(e, RSI, R8, (int)env->thread_states);
	CODE(e, "\x89\xda\x81\xe2"); /* mov ebx, edx; and $mask, edx */
	word32(e, (uint32_t)env->mask);
}
#define LEA_STATE "\x48\x8d\x14\xd6" /* lea (rsi, rdx, 8), rdx */

/* Call the handler, and go on behind it. */
static void hook_call(struct emitter *e, const struct isa_env *env, struct labels *l, bool returning)
{
	const struct call_state begin = { .returning = returning, .plain = true };
	int above = returning ? 8 : 0;
	uint8_t *undo, *none, *finish, *finish2;
	uint32_t state;

	memcpy(&state, &begin, sizeof(state)); /* the rest is zero */
	store(e, RBX, R8, ACTIVATION(env, slot));
	store(e, R10, R8, ACTIVATION(env, serial));
	load(e, R11, R9, returning ? OF_PLAIN(ret) : OF_PLAIN(entry));
	load(e, RSI, R9, OF_PLAIN(data));
	mem(e, true, 0x39, R10, R9, OF_PLAIN(serial), false);
	undo = jump_near(e, COND_NE);
	test(e, R11);
	none = jump_near(e, COND_E);
	store(e, RBX, RSP, FRAME_SLOT);
	store(e, RAX, RSP, FRAME_INFO);
	store_number(e, state, RSP, OF_CALL(state));
	thread_mem(e, false, 0x8b, RAX, env->tls_errno);
	mem(e, false, 0x89, RAX, RSP, OF_CALL(saved_errno), false);
	move(e, RDI, RSP);
	CODE(e, "\x41\xff\xd3"); /* call *r11 */
	mem(e, false, 0x8b, RAX, RSP, OF_CALL(saved_errno), false);
	compare_number(e, false, state, RSP, OF_CALL(state));
	finish = jump_near(e, COND_NE);
	thread_mem(e, false, 0x39, RAX, env->tls_errno);
	finish2 = jump_near(e, COND_NE);
	load(e, RAX, RSP, FRAME_INFO);
	thread_var(e, 0x8b, R8, env->tls_thread);
	near_here(e, none);
	zero(e, R8, ACTIVATION(env, slot));
	mem(e, true, 0x63, RCX, RAX, returning ? OF_PLACE(account) : OF_PLACE(run), false); /* movslq */
	CODE(e, "\x48\x01\xc8"); /* add rcx, rax */
	hook_go(e, above);

	row_hooked(e);
	near_here(e, finish);
	near_here(e, finish2);
	stub_call(e, env->hook_finish);
	load(e, RAX, RSP, FRAME_GO);
	hook_go(e, above);

	row_hooked(e);
	near_here(e, undo);
	zero(e, R8, ACTIVATION(env, slot));
	while (l->nslow)
		near_here(e, l->to_slow[--l->nslow]);
	hook_any(e, returning ? env->hook_returned : env->hook_entered, above);
}

/* rsp = S; the return address is in the slot. @returns: rcx = E, and return handlers will be called. */
static void align(struct emitter *e)
{
	while ((e->at + here(e)) % 64)
		byte(e, 0xcc);
}

static void stub_hook_entry(struct emitter *e, const struct isa_env *env, bool returns)
{
	struct labels l = { 0 };

	row_in_shadow(e);
	row_cfa(e, 8);
	row_in_slot(e);
	hook_save(e, 0);
	hook_begin(e, env, &l, false);
	test(e, R10);
	slow_if(e, &l, COND_E);
	if (returns) {
		hook_load_states(e, env);
		test(e, RSI);
		slow_if(e, &l, COND_E);
		CODE(e, LEA_STATE);
		store(e, RAX, RDX, OF_STATE(info));
		store(e, R10, RDX, OF_STATE(limit));
		store_number(e, 1, RDX, OF_STATE(seen));
		zero(e, RDX, OF_STATE(words));
		mem(e, false, 0xc7, 0, RCX, FLAGS, false); /* mov $HOOKED, E.flags */
		word32(e, SHADOW_HOOKED);
	}
	hook_call(e, env, &l, false);
}

/* The same, for all but the usual case. */
static void stub_hook_any(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	row_cfa(e, 8);
	row_in_slot(e);
	hook_save(e, 0);
	hook_any(e, env->hook_entered, 0);
}

/* rsp = S + 8; it is in the shadow stack. */
static void stub_hook_exit(struct emitter *e, const struct isa_env *env)
{
	struct labels l = { 0 };

	row_in_shadow(e);
	hook_save(e, 8);
	hook_begin(e, env, &l, true);
	hook_load_states(e, env);
	thread_var(e, 0x8b, RCX, env->tls_mirror);
	CODE(e, "\x48\x8d\x0c"); /* lea (rcx, rdx, 4 or 8), rcx */
	byte(e, env->mode == MODE_COUNT ? 0x91 : 0xd1);
	CODE(e, LEA_STATE);
	mem(e, false, 0x8b, RSI, RAX, OF_INFO(id), false);
	mem(e, true, 0x39, RBX, RCX, SLOT, false); /* cmp rbx, E.slot */
	slow_if(e, &l, COND_NE);
	mem(e, false, 0x39, RSI, RCX, FUNC, false); /* cmp esi, E.func */
	slow_if(e, &l, COND_NE);
	compare_number(e, false, SHADOW_HOOKED, RCX, FLAGS);
	slow_if(e, &l, COND_NE);
	mem(e, true, 0x39, R10, RDX, OF_STATE(limit), false);
	slow_if(e, &l, COND_NE);
	compare_number(e, true, 1, RDX, OF_STATE(seen));
	slow_if(e, &l, COND_NE);
	hook_call(e, env, &l, true);
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
	range_begin(&e, &ranges[2], CIE_SHADOW);
	align(&e);
	common->hook_entry = here(&e);
	stub_hook_entry(&e, env, true);
	align(&e);
	common->hook_bare = here(&e);
	stub_hook_entry(&e, env, false);
	common->hook_any = here(&e);
	stub_hook_any(&e, env);
	range_end(&e);
	range_begin(&e, &ranges[3], CIE_SHADOW);
	align(&e);
	common->hook_exit = here(&e);
	stub_hook_exit(&e, env);
	range_end(&e);
	common->size = here(&e);
	return 4;
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
