/* SPDX-License-Identifier: MIT */
/* The stubs that detours of functions with handlers go through; see emit.c. */
#include "emitter.h"

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

void x86_emit_hooks(struct emitter *e, const struct isa_env *env, struct isa_common *common,
	struct isa_range *ranges)
{
	range_begin(e, &ranges[0], CIE_SHADOW);
	align(e);
	common->hook_entry = here(e);
	stub_hook_entry(e, env, true);
	align(e);
	common->hook_bare = here(e);
	stub_hook_entry(e, env, false);
	common->hook_any = here(e);
	stub_hook_any(e, env);
	range_end(e);
	range_begin(e, &ranges[1], CIE_SHADOW);
	align(e);
	common->hook_exit = here(e);
	stub_hook_exit(e, env);
	range_end(e);
}
