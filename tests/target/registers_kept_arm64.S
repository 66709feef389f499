/* SPDX-License-Identifier: MIT */
/*
 * by_hand(in, out): what AAPCS64 leaves to callees, but for x16 to x18, is loaded from in; what it is behind three
 * calls of by_hand_leaf() is stored at out: x0 to x15, the flags, q0 to q31.
 */
	.macro	each_general insn, base
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\insn	x\n, [\base, #8 * \n]
	.endr
	.endm

	.macro	each_vector insn, base
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, \
		26, 27, 28, 29, 30, 31
	\insn	q\n, [\base, #144 + 16 * \n]
	.endr
	.endm

	.text
	.globl	by_hand
	.type	by_hand, %function
by_hand:
	.cfi_startproc
	stp	x29, x30, [sp, #-96]!
	.cfi_def_cfa_offset 96
	.cfi_offset x29, -96
	.cfi_offset x30, -88
	stp	x19, x20, [sp, #16]
	.cfi_offset x19, -80
	.cfi_offset x20, -72
	stp	d8, d9, [sp, #32]
	stp	d10, d11, [sp, #48]
	stp	d12, d13, [sp, #64]
	stp	d14, d15, [sp, #80]
	mov	x19, x0
	mov	x20, x1
	ldr	x0, [x19, #128]
	msr	nzcv, x0
	each_vector ldr, x19
	each_general ldr, x19
	bl	by_hand_leaf
	bl	by_hand_leaf
	bl	by_hand_leaf
	each_general str, x20
	each_vector str, x20
	mrs	x0, nzcv
	str	x0, [x20, #128]
	ldp	d14, d15, [sp, #80]
	ldp	d12, d13, [sp, #64]
	ldp	d10, d11, [sp, #48]
	ldp	d8, d9, [sp, #32]
	ldp	x19, x20, [sp, #16]
	.cfi_restore x20
	.cfi_restore x19
	ldp	x29, x30, [sp], #96
	.cfi_restore x30
	.cfi_restore x29
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	by_hand, . - by_hand

	.type	by_hand_leaf, %function
by_hand_leaf:
	.cfi_startproc
	adrp	x16, by_hand_leaf_calls
	ldr	x17, [x16, #:lo12:by_hand_leaf_calls]
	add	x17, x17, #1
	str	x17, [x16, #:lo12:by_hand_leaf_calls]
	ret
	.cfi_endproc
	.size	by_hand_leaf, . - by_hand_leaf

/* by_hand_pair(out): what a call of by_hand_two() leaves in x16 and x17, as code written by hand may agree on. */
	.globl	by_hand_pair
	.type	by_hand_pair, %function
by_hand_pair:
	.cfi_startproc
	str	x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x30, -16
	bl	by_hand_two
	stp	x16, x17, [x0]
	ldr	x30, [sp], #16
	.cfi_restore x30
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	by_hand_pair, . - by_hand_pair

	.type	by_hand_two, %function
by_hand_two:
	.cfi_startproc
	mov	x16, #0x1616
	mov	x17, #0x1717
	ret
	.cfi_endproc
	.size	by_hand_two, . - by_hand_two

	.section .note.GNU-stack, "", %progbits
