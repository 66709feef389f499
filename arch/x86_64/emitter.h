/* SPDX-License-Identifier: MIT */
/* What emit.c, stubs.c and hook.c write code and its unwind rows with. */
#ifndef ARCH_X86_64_EMITTER_H
#define ARCH_X86_64_EMITTER_H

#include "x86.h"

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
		&& offsetof(struct shadow_entry, child) == SHADOW_COUNT_SIZE,
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

static inline void byte(struct emitter *e, unsigned b)
{
	*e->p++ = (uint8_t)b;
}

static inline void bytes(struct emitter *e, const char *code, size_t n)
{
	memcpy(e->p, code, n);
	e->p += n;
}
#define CODE(e, literal) bytes(e, literal, sizeof(literal) - 1)

static inline void word32(struct emitter *e, uint32_t v)
{
	memcpy(e->p, &v, 4);
	e->p += 4;
}

static inline void word64(struct emitter *e, uint64_t v)
{
	memcpy(e->p, &v, 8);
	e->p += 8;
}

static inline uint32_t here(const struct emitter *e)
{
	return (uint32_t)(e->p - e->start);
}

/* An operand [base + disp] behind @opcode (one byte, REX.W before it when @wide). */
static inline void mem(struct emitter *e, bool wide, unsigned opcode, unsigned reg, enum reg base, int disp,
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

static inline void store(struct emitter *e, enum reg reg, enum reg base, int disp)
{
	mem(e, true, 0x89, reg, base, disp, false);
}

static inline void load(struct emitter *e, enum reg reg, enum reg base, int disp)
{
	mem(e, true, 0x8b, reg, base, disp, false);
}

static inline void move(struct emitter *e, enum reg to, enum reg from)
{
	byte(e, 0x48);
	byte(e, 0x89);
	byte(e, 0xc0 | from << 3 | to);
}

static inline void lea(struct emitter *e, enum reg reg, enum reg base, int disp)
{
	mem(e, true, 0x8d, reg, base, disp, false);
}

/* inc/dec qword [base + disp]; the record's displacement has always four bytes, so that every
 * detour of a kind has the same size. */
static inline void increment(struct emitter *e, enum reg base, int disp)
{
	mem(e, true, 0xff, 0, base, disp, true);
}

static inline void store_number(struct emitter *e, uint32_t number, enum reg base, int disp)
{
	mem(e, true, 0xc7, 0, base, disp, false); /* mov $number, qword [base + disp] */
	word32(e, number);
}

static inline void zero(struct emitter *e, enum reg base, int disp)
{
	store_number(e, 0, base, disp);
}

/* opcode reg, fs:[offset] */
static inline void thread_mem(struct emitter *e, bool wide, unsigned opcode, enum reg reg, int64_t offset)
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

static inline void thread_var(struct emitter *e, unsigned opcode, enum reg reg, int64_t offset)
{
	thread_mem(e, true, opcode, reg, offset);
}

static inline void rel32_to(uint8_t *after, const uint8_t *target)
{
	int32_t rel = (int32_t)(target - after);

	memcpy(after - 4, &rel, 4);
}

/* A forward jump whose place is patched by jump_here(). */
static inline uint8_t *jump_short(struct emitter *e, unsigned opcode)
{
	byte(e, opcode);
	byte(e, 0);
	return e->p;
}

static inline uint8_t *jump_near(struct emitter *e, unsigned condition)
{
	byte(e, 0x0f);
	byte(e, 0x80 | condition);
	word32(e, 0);
	return e->p;
}

static inline void short_here(struct emitter *e, uint8_t *after)
{
	after[-1] = (uint8_t)(e->p - after);
}

static inline void near_here(struct emitter *e, uint8_t *after)
{
	rel32_to(after, e->p);
}

#define COND_E	4  /* equal, zero */
#define COND_NE 5
#define COND_BE 6
#define JE_SHORT  0x74
#define JAE_SHORT 0x73
#define JLE_SHORT 0x7e
#define JMP_SHORT 0xeb

/* jmp or call to a run-time address */
static inline void branch(struct emitter *e, unsigned opcode, uint64_t target)
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

static inline void call_absolute(struct emitter *e, uint64_t target)
{
	CODE(e, "\x48\xb8"); /* mov target, rax */
	word64(e, target);
	CODE(e, "\xff\xd0"); /* call *rax */
}

/* ---- unwind rows ---- */

#define RA			16
/* DWARF numbers, psABI figure 3.36 */
#define RBX_COLUMN		3
#define RSP_COLUMN		7

#define ROW_UNIT 1
#include "../rows.h"

/* The return address is in its slot from here on. */
static inline void row_in_slot(struct emitter *e)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | RA);
	cfi_byte(e, 1); /* CFA - 8 */
}

/* ---- what detours and stubs have in common ---- */

/* Keep the condition flags in the save area; rax is saved already. @s: S - rsp. */
static inline void save_flags(struct emitter *e, int s)
{
	CODE(e, "\x9f\x0f\x90\xc0"); /* lahf; seto al */
	store(e, RAX, RSP, s + X86_SAVE_CONDITIONS);
}

static inline void restore_flags(struct emitter *e, int s)
{
	load(e, RAX, RSP, s + X86_SAVE_CONDITIONS);
	CODE(e, "\x04\x7f\x9e"); /* add $0x7f, al (sets OF when al = 1); sahf */
}

/* rax = clock, rdx lost */
static inline void read_clock(struct emitter *e)
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

static inline void slow_if(struct emitter *e, struct labels *l, unsigned condition)
{
	l->to_slow[l->nslow++] = jump_near(e, condition);
}

/* rax = info + @tag, go to @stub. */
static inline void to_stub(struct emitter *e, struct labels *l, unsigned tag, uint64_t stub)
{
	CODE(e, "\x48\x8d\x05"); /* lea info(%rip), rax */
	word32(e, tag);
	l->to_info[l->ninfo++] = e->p;
	branch(e, JMP, stub);
}

/* All pending slow jumps arrive here. */
static inline void slow_here(struct emitter *e, struct labels *l, uint64_t stub)
{
	while (l->nslow)
		near_here(e, l->to_slow[--l->nslow]);
	to_stub(e, l, 0, stub);
}

static inline void test(struct emitter *e, enum reg reg)
{
	byte(e, reg >= 8 ? 0x4d : 0x48);
	byte(e, 0x85);
	byte(e, 0xc0 | (reg & 7) << 3 | (reg & 7)); /* test reg, reg */
}

/*
 * rdx = this thread's records, rcx = its mirror. Slow where there are no records yet, and in a task whose
 * thread pointer leads to memory that libc has not set up.
 */
static inline void load_records(struct emitter *e, struct labels *l, const struct isa_env *env)
{
	thread_var(e, 0x8b, RCX, env->tls_mirror); /* mov fs:[tls_mirror], rcx */
	test(e, RCX);
	slow_if(e, l, COND_E);
	load(e, RDX, RCX, MIRROR_RECORDS);
	test(e, RDX);
	slow_if(e, l, COND_E);
}

/* rcx, the mirror, becomes E. @disp: S - rsp. rax is lost. */
static inline void load_entry(struct emitter *e, const struct isa_env *env, int disp)
{
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

static inline void stub_call(struct emitter *e, uint64_t c_function)
{
	move(e, RDI, RSP);
	call_absolute(e, c_function);
}

/* rcx = E, the newest; rdx = records, rsi = now: its call has ended. Changes rax and rsi. */
void x86_emit_times(struct emitter *e, const struct isa_env *env, uint32_t id);

/* The stubs of functions with handlers, in two ranges of their own. */
void x86_emit_hooks(struct emitter *e, const struct isa_env *env, struct isa_common *common,
	struct isa_range *ranges);

#endif
