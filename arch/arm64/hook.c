/* SPDX-License-Identifier: MIT */
/*
 * The stubs between detours and handlers. They are entered in the frame of D or T, with x16 = the
 * detour's struct detour_info and a tag, and build below it
 *
 *	x29 + 16:  that frame, up to S
 *	x29:       x29 and x30 as they were
 *	sp:        struct ftr_call, aligned
 *
 * They go on in the same frame with all registers as they were, but for those that handlers change.
 * Vectors stay where they are: see native_call.c.
 */
#include "emitter.h"

#define LINK	  16 /* bytes of x29, x30 */
#define ABOVE	  (LINK + SAVE) /* from x29 up to S */
#define REG(n)	  ((int)(offsetof(struct ftr_call, regs) + (n) * 8))
#define FRAME(field) ((unsigned)(offsetof(struct ftr_call, frame) + offsetof(struct slow_frame, field)))

_Static_assert(ABOVE == A64_HOOK_LINK, "native_call.c knows the layout");
_Static_assert(sizeof(struct ftr_call) < 4096, "an immediate");
_Static_assert(A64_CALL_X18 + 1 == A64_CALL_NZCV && A64_CALL_NZCV < 24, "pairs of registers");

/* The registers that C may change, in pairs. */
static void each_pair(struct emitter *e, enum pair op)
{
	for (unsigned n = 0; n < 16; n += 2)
		pair(e, op, n, n + 1, SP, REG(n));
}

/* sp = S - SAVE. */
static void hook_save(struct emitter *e)
{
	pair(e, PUSH_PAIR, X29, X30, SP, -LINK);
	row_cfa(e, ABOVE);
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | X29);
	cfi_uleb(e, ABOVE / 8);
	add_number(e, X29, SP, 0, 0);
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa);
	cfi_uleb(e, X29);
	cfi_uleb(e, ABOVE);
	sub_number(e, X17, SP, sizeof(struct ftr_call), 0);
	put(e, 0x927ae400u | X17 << 5 | SP); /* and sp, x17, #-64 */
	each_pair(e, STORE_PAIR);
	put(e, MRS_NZCV | X17);
	pair(e, STORE_PAIR, X18, X17, SP, REG(A64_CALL_X18));
	add_number(e, X17, X29, ABOVE, 0);
	pair(e, STORE_PAIR, X17, X16, SP, (int)FRAME(slot)); /* slot, info */
	store(e, X30, SP, FRAME(ret));
}

static void hook_call(struct emitter *e, uint64_t c_function)
{
	add_number(e, X0, SP, 0, 0);
	load_number(e, X16, c_function);
	put(e, BLR | X16 << 5);
}

static void hook_go(struct emitter *e)
{
	pair(e, LOAD_PAIR, X18, X17, SP, REG(A64_CALL_X18));
	put(e, MSR_NZCV | X17);
	load(e, X16, SP, FRAME(go));
	each_pair(e, LOAD_PAIR);
	add_number(e, SP, X29, 0, 0);
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa);
	cfi_uleb(e, SP);
	cfi_uleb(e, ABOVE);
	pair(e, POP_PAIR, X29, X30, SP, LINK);
	cfi_here(e);
	cfi_byte(e, DW_CFA_same_value);
	cfi_byte(e, X29);
	row_cfa(e, SAVE);
}

/* The return address is in x30, and then in the stub's frame. */
static void stub_hook_entry(struct emitter *e)
{
	row_cfa(e, SAVE);
	row_in_link(e);
	hook_save(e);
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | X30);
	cfi_uleb(e, (ABOVE - 8) / 8);
	hook_call(e, e->env->hook_entered);
	hook_go(e);
	row_in_link(e);
	put(e, BR | X16 << 5);
}

/* It is in the shadow stack. */
static void stub_hook_exit(struct emitter *e)
{
	row_in_shadow(e);
	row_cfa(e, SAVE);
	hook_save(e);
	hook_call(e, e->env->hook_returned);
	hook_go(e);
	put(e, BR | X16 << 5);
}

void a64_emit_hooks(struct emitter *e, struct isa_common *common, struct isa_range *range)
{
	range_begin(e, range, CIE_SHADOW);
	common->hook_entry = here(e);
	stub_hook_entry(e);
	common->hook_exit = here(e);
	stub_hook_exit(e);
	range_end(e);
}
