/* SPDX-License-Identifier: MIT */
/*
 * by_hand(in, out): what the ELFv2 ABI leaves to callees is loaded from in, but for LR; what it is behind three
 * calls of by_hand_leaf() is stored at out: r0, r3 to r12 by number, CR, XER, CTR at 13 to 15, and at 16 two words
 * for each of vs0 to vs13, v0 to v19. Compilers rely on none of r0, r8 to r12, CR0 and XER there. Code like this
 * does, and is known by its reading them right behind a call.
 */
/*
 * by_hand(in, out): what the ELFv2 ABI leaves to callees is loaded from in, but for LR; what it is behind three
 * calls of by_hand_leaf() is stored at out: r0, r3 to r12 by number, CR, XER, CTR at 13 to 15, and at
 * 16 two words for each of vs0 to vs13, v0 to v19. Compilers rely on none of r0,
 * r8 to r12, CR0 and XER. Code like this does, and is known by its reading them right behind a call.
 */
	.abiversion 2

	.macro	each_general insn, base
	.irp	n, 0, 8, 9, 10, 11, 12, 3, 4, 5, 6, 7
	\insn	%r\n, 8 * \n(\base)
	.endr
	.endm

	.macro	each_vector insn, base
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
	\insn	%vs\n, 128 + 16 * \n(\base)
	.endr
	.irp	n, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51
	\insn	%vs\n, 352 + 16 * (\n - 32)(\base)
	.endr
	.endm

	.text
	.globl	by_hand
	.type	by_hand, @function
by_hand:
	.cfi_startproc
0:	addis	%r2, %r12, .TOC. - 0b@ha
	addi	%r2, %r2, .TOC. - 0b@l
	.localentry by_hand, . - by_hand
	mflr	%r0
	std	%r0, 16(%r1)
	.cfi_offset lr, 16
	mfcr	%r0
	std	%r0, 8(%r1)
	std	%r30, -16(%r1)
	.cfi_offset r30, -16
	std	%r31, -8(%r1)
	.cfi_offset r31, -8
	stdu	%r1, -64(%r1)
	.cfi_def_cfa_offset 64
	mr	%r30, %r3
	mr	%r31, %r4
	each_vector lxv, %r30
	ld	%r0, 104(%r30)
	mtcr	%r0
	ld	%r0, 112(%r30)
	mtxer	%r0
	ld	%r0, 120(%r30)
	mtctr	%r0
	each_general ld, %r30
	bl	by_hand_leaf
	bl	by_hand_leaf
	bl	by_hand_leaf
	each_general std, %r31
	mfcr	%r0
	std	%r0, 104(%r31)
	mfxer	%r0
	std	%r0, 112(%r31)
	mfctr	%r0
	std	%r0, 120(%r31)
	each_vector stxv, %r31
	addi	%r1, %r1, 64
	.cfi_def_cfa_offset 0
	ld	%r0, 8(%r1)
	mtcr	%r0
	ld	%r30, -16(%r1)
	.cfi_restore r30
	ld	%r31, -8(%r1)
	.cfi_restore r31
	ld	%r0, 16(%r1)
	mtlr	%r0
	.cfi_restore lr
	blr
	.cfi_endproc
	.size	by_hand, . - by_hand

	.type	by_hand_leaf, @function
by_hand_leaf:
	.cfi_startproc
	std	%r11, -8(%r1)
	std	%r12, -16(%r1)
	addis	%r11, %r2, by_hand_leaf_calls@toc@ha
	ld	%r12, by_hand_leaf_calls@toc@l(%r11)
	addi	%r12, %r12, 1
	std	%r12, by_hand_leaf_calls@toc@l(%r11)
	ld	%r12, -16(%r1)
	ld	%r11, -8(%r1)
	blr
	.cfi_endproc
	.size	by_hand_leaf, . - by_hand_leaf

	.section .note.GNU-stack, "", @progbits
