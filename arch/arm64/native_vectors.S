/* SPDX-License-Identifier: MIT */
/* Vector and floating-point state around a C function. See native_call.c. */

#include "vectors.h"

/* Offsets in struct ftr_call. */
#define CALL_VECTORS 248
#define CALL_APART   257

	.arch_extension sve
	.text

	.macro function name
	.globl \name
	.hidden \name
	.type \name, @function
	.balign 16
\name:
	.cfi_startproc
	hint #34 /* bti c */
	.endm

	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

/* void arch_call_vectors(void (*function)(struct ftr_call *), struct ftr_call *call) */
	function arch_call_vectors
	stp x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset x29, -48
	.cfi_offset x30, -40
	mov x29, sp
	.cfi_def_cfa_register x29
	str x19, [sp, #16]
	.cfi_offset x19, -32
	mrs x10, fpcr
	mrs x11, fpsr
	stp x10, x11, [sp, #32]
	mov x9, x0
	mov x19, x1
	put_vectors_aside
	str x11, [x19, #CALL_VECTORS]
	mov w10, #1
	strb w10, [x19, #CALL_APART]
	mov x0, x19
	blr x9
	strb wzr, [x19, #CALL_APART]
	take_vectors_back
	mov sp, x29
	.cfi_def_cfa_register sp
	ldp x10, x11, [sp, #32]
	msr fpcr, x10
	msr fpsr, x11
	ldr x19, [sp, #16]
	ldp x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	.cfi_restore x19
	.cfi_restore x29
	.cfi_restore x30
	ret
	end arch_call_vectors

/* size_t a64_vector_size(void): from one register to the next in what is put aside */
	function a64_vector_size
	mov x0, #16
	flag_sve 1
	cbz w1, 1f
	rdvl x0, #1
1:	ret
	end a64_vector_size

/* void a64_save_vectors(uint8_t *spill): v0 to v7 */
	function a64_save_vectors
	stp q0, q1, [x0]
	stp q2, q3, [x0, #32]
	stp q4, q5, [x0, #64]
	stp q6, q7, [x0, #96]
	ret
	end a64_save_vectors

/* void a64_load_vectors(const uint8_t *spill): those that differ, since loading one clears what SVE
 * has above */
	function a64_load_vectors
	.irp n, 0,1,2,3,4,5,6,7
	ldp x1, x2, [x0, #16 * \n]
	mov x3, v\n\().d[0]
	mov x4, v\n\().d[1]
	cmp x1, x3
	ccmp x2, x4, #0, eq
	b.eq 1f
	ldr q\n, [x0, #16 * \n]
1:
	.endr
	ret
	end a64_load_vectors

	file_notes
