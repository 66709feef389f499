/* SPDX-License-Identifier: MIT */
/*
 * The stubs between detours and handlers. They are entered with r1 = S, r12 = the detour's struct
 * detour_info and a tag, and what D or T has saved below S. r31 = S in them; below that are
 *
 *	S + HOOK_R31:  r31 as it was
 *	S + PPC_KEPT_RETURN:  the return address, at an entry
 *	r1 + CALL_AT:  struct ftr_call, aligned
 *	r1:            an ELFv2 frame, so that C can be called
 *
 * They go on with all registers as they were, but for LR, r0, r11, r12 and those that handlers change.
 * Vectors stay where they are: see native_call.c.
 */
#include "emitter.h"

#define CALL_AT	 64
#define BELOW	 256 /* S less this: the end of struct ftr_call */
#define HOOK_R31 (PPC_KEPT_RETURN - 8)
#define TOC	 24
#define REG(n)	 (CALL_AT + (int)(offsetof(struct ftr_call, regs) + (n) * 8))
#define FRAME(field)                                                                               \
	(CALL_AT + (int)(offsetof(struct ftr_call, frame) + offsetof(struct slow_frame, field)))

_Static_assert(HOOK_R31 >= -BELOW && sizeof(struct ftr_call) % 64 == 0, "the frame");

static void row_base(struct emitter *e, unsigned reg)
{
	cfi_here(e);
	cfi_byte(e, DW_CFA_def_cfa);
	cfi_uleb(e, reg);
	cfi_uleb(e, 0);
}

static void hook_save(struct emitter *e)
{
	put(e, ppc_std(R31, HOOK_R31, R1));
	cfi_here(e);
	cfi_byte(e, DW_CFA_offset | R31);
	cfi_uleb(e, -HOOK_R31 / 8);
	put(e, ppc_mr(R31, R1));
	row_base(e, R31);
	put(e, ppc_addi(R11, R1, -BELOW - CALL_AT - (int)sizeof(struct ftr_call)));
	put(e, ppc_clrrdi6(R11, R11));
	put(e, ppc_sub(R11, R11, R1));
	put(e, ppc_stdux(R1, R1, R11));
	for (enum ppc_reg r = R3; r <= R10; r++)
		put(e, ppc_std(r, REG(r - R3), R1));
	put(e, ppc_std(R2, REG(PPC_CALL_R2), R1));
	put(e, ppc_std(R12, FRAME(info), R1));
	put(e, ppc_mfcr(R12));
	put(e, ppc_std(R12, REG(PPC_CALL_CR), R1));
	put(e, ppc_mfspr(R12, SPR_XER));
	put(e, ppc_std(R12, REG(PPC_CALL_XER), R1));
	put(e, ppc_mfspr(R12, SPR_CTR));
	put(e, ppc_std(R12, REG(PPC_CALL_CTR), R1));
	put(e, ppc_std(R31, FRAME(slot), R1));
}

/* Unwinders know by the last instruction where r2 is saved. */
static void hook_call(struct emitter *e, uint64_t c_function)
{
	put(e, ppc_addi(R3, R1, CALL_AT));
	constant(e, R12, c_function);
	put(e, ppc_std(R2, TOC, R1));
	put(e, ppc_mtspr(SPR_CTR, R12));
	put(e, PPC_BCTRL);
	put(e, PPC_LD_TOC);
}

static void hook_go(struct emitter *e)
{
	put(e, ppc_ld(R12, FRAME(go), R1));
	put(e, ppc_mtspr(SPR_LR, R12));
	put(e, ppc_ld(R12, REG(PPC_CALL_CTR), R1));
	put(e, ppc_mtspr(SPR_CTR, R12));
	put(e, ppc_ld(R12, REG(PPC_CALL_XER), R1));
	put(e, ppc_mtspr(SPR_XER, R12));
	put(e, ppc_ld(R12, REG(PPC_CALL_CR), R1));
	put(e, ppc_mtcr(R12));
	put(e, ppc_ld(R2, REG(PPC_CALL_R2), R1));
	for (enum ppc_reg r = R3; r <= R10; r++)
		put(e, ppc_ld(r, REG(r - R3), R1));
	put(e, ppc_mr(R1, R31));
	row_base(e, R1);
	put(e, ppc_ld(R31, HOOK_R31, R1));
	cfi_here(e);
	cfi_byte(e, DW_CFA_same_value);
	cfi_byte(e, R31);
	put(e, PPC_BLR);
}

static void stub_hook_entry(struct emitter *e, const struct isa_env *env)
{
	row_in_lr(e);
	put(e, ppc_mfspr(R11, SPR_LR));
	put(e, ppc_std(R11, PPC_KEPT_RETURN, R1));
	row_kept(e);
	hook_save(e);
	put(e, ppc_ld(R12, PPC_KEPT_RETURN, R31));
	put(e, ppc_std(R12, FRAME(ret), R1));
	hook_call(e, env->hook_entered);
	hook_go(e);
}

/* The return address is in the shadow stack. */
static void stub_hook_exit(struct emitter *e, const struct isa_env *env)
{
	row_in_shadow(e);
	hook_save(e);
	hook_call(e, env->hook_returned);
	hook_go(e);
}

void ppc_emit_hooks(struct emitter *e, const struct isa_env *env, struct isa_common *common,
	struct isa_range *range)
{
	range_begin(e, range, CIE_SHADOW);
	common->hook_entry = here(e);
	stub_hook_entry(e, env);
	common->hook_exit = here(e);
	stub_hook_exit(e, env);
	range_end(e);
}
