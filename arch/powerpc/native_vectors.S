/* SPDX-License-Identifier: MIT */
/* Vector and floating-point state around a C function. See native_call.c. */

#include "vectors.h"

/* Offsets in struct ftr_call. */
#define CALL_VECTORS 248
#define CALL_APART   257

/* The frame of arch_call_vectors. */
#define SAVED	48 /* vs0 to vs31, then v0 to v31 */
#define FPSCR	(SAVED + 1024)
#define VSCR	(FPSCR + 16)
#define SIZE	(VSCR + 32)

	.machine power8
	.abiversion 2
	.text

	.macro function name
	.globl \name
	.hidden \name
	.type \name, @function
	.balign 16
\name:
	.cfi_startproc
	.endm

	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

/* void arch_call_vectors(void (*function)(struct ftr_call *), struct ftr_call *call) */
	function arch_call_vectors
	mflr 0
	std 0, 16(1)
	.cfi_offset 65, 16
	std 31, -8(1)
	.cfi_offset 31, -8
	stdu 1, -SIZE(1)
	.cfi_def_cfa_offset SIZE
	mr 31, 4
	mr 12, 3
	addi 9, 1, SAVED
	each stxvd2x, stvx
	put_control_aside FPSCR, VSCR
	std 9, CALL_VECTORS(31)
	li 10, 1
	stb 10, CALL_APART(31)
	mr 3, 31
	std 2, 24(1)
	mtctr 12
	bctrl
	ld 2, 24(1)
	li 10, 0
	stb 10, CALL_APART(31)
	addi 9, 1, SAVED
	take_control_back FPSCR, VSCR
	each lxvd2x, lvx
	addi 1, 1, SIZE
	.cfi_def_cfa_offset 0
	ld 31, -8(1)
	.cfi_restore 31
	ld 0, 16(1)
	mtlr 0
	.cfi_restore 65
	blr
	end arch_call_vectors

/* void ppc_save_vectors(struct ppc_vectors *to): f1 to f13, v2 to v13 */
	function ppc_save_vectors
	.irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13
	stfd \n, 8 * \n(3)
	.endr
	.irp n, 2,3,4,5,6,7,8,9,10,11,12,13
	li 10, 96 + 16 * \n
	stvx \n, 3, 10
	.endr
	blr
	end ppc_save_vectors

/* void ppc_load_vectors(const struct ppc_vectors *from): those that differ, since loading f1 clears the
 * other half of its register */
	function ppc_load_vectors
	.irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13
	ld 10, 8 * \n(3)
	mfvsrd 9, \n
	cmpd 9, 10
	beq 1f
	lfd \n, 8 * \n(3)
1:
	.endr
	.irp n, 2,3,4,5,6,7,8,9,10,11,12,13
	li 10, 96 + 16 * \n
	lvx \n, 3, 10
	.endr
	blr
	end ppc_load_vectors

/* void ppc_to_single(const uint64_t *from, uint32_t *to) */
	function ppc_to_single
	li 10, -16
	stxvd2x 0, 1, 10
	lfd 0, 0(3)
	stfs 0, 0(4)
	lxvd2x 0, 1, 10
	blr
	end ppc_to_single

/* void ppc_to_double(const uint32_t *from, uint64_t *to) */
	function ppc_to_double
	li 10, -16
	stxvd2x 0, 1, 10
	lfs 0, 0(3)
	stfd 0, 0(4)
	lxvd2x 0, 1, 10
	blr
	end ppc_to_double

	.section .note.GNU-stack, "", @progbits
