/* SPDX-License-Identifier: MIT */
/*
 * Called from the detour of a place inside a function (hit.c), with LR = where to go on there, and in
 * its frame. Makes a struct arch_hit, calls usdt_hit() with it, and puts all registers back: general
 * ones, CR, XER, vectors; the detour itself does r0, LR and CTR.
 *
 * For unwinders it is a signal frame: the program was at the site. Column 67 is what libgcc and the
 * kernel take for the address that a signal has interrupted.
 */
#include "vectors.h"

#define HIT	48	/* struct arch_hit */
#define REGS	HIT
#define FLAGS	(HIT + 256)
#define RESUME	(HIT + 264)
#define SITE	(HIT + 272)
#define RECORD	(HIT + 280)
#define VECTORS	(HIT + 288)
#define FPSCR	(VECTORS + 1024)
#define VSCR	(FPSCR + 16)
#define XER	(VSCR + 16)
#define VRSAVE	(XER + 8)
#define SIZE	(XER + 16)

/* The detour's frame. */
#define ABOVE	512
#define OLD_R0	(SIZE + 64)
#define OLD_LR	(SIZE + 72)

	.machine power8
	.abiversion 2
	.text
	.globl	hit_stub
	.hidden	hit_stub
	.type	hit_stub, @function
	.balign	16
hit_stub:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_return_column 67
	.cfi_undefined 67
	.cfi_def_cfa 1, ABOVE
	.cfi_offset 65, OLD_LR - SIZE - ABOVE
	stdu	1, -SIZE(1)
	.cfi_adjust_cfa_offset SIZE
	.irp n, 2,3,4,5,6,7,8,9,10,11,12,13
	std	\n, REGS + 8 * \n(1)
	.endr
	.cfi_offset 2, REGS + 16 - SIZE - ABOVE
	.irp n, 14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	std	\n, REGS + 8 * \n(1)
	.cfi_offset \n, REGS + 8 * \n - SIZE - ABOVE
	.endr
	ld	0, OLD_R0(1)
	std	0, REGS(1)
	addi	3, 1, SIZE + ABOVE
	std	3, REGS + 8(1)
	mfcr	0
	std	0, FLAGS(1)
	mfxer	0
	std	0, XER(1)
	mfspr	0, 256
	stw	0, VRSAVE(1)
	mflr	31
	std	31, RESUME(1)
	ld	0, 28(31)
	std	0, RECORD(1)
	ld	0, 36(31)
	std	0, SITE(1)
	.cfi_offset 67, SITE - SIZE - ABOVE
	bcl	20, 31, 1f
1:	mflr	12
	addis	2, 12, .TOC. - 1b@ha
	addi	2, 2, .TOC. - 1b@l
	addi	9, 1, VECTORS
	each	stxvd2x, stvx
	put_control_aside FPSCR, VSCR
	addi	3, 1, HIT
	mr	4, 9
	bl	usdt_hit
	nop
	addi	9, 1, VECTORS
	take_control_back FPSCR, VSCR
	each	lxvd2x, lvx
	lwz	0, VRSAVE(1)
	mtspr	256, 0
	ld	0, XER(1)
	mtxer	0
	ld	0, RESUME(1)
	mtlr	0
	ld	0, FLAGS(1)
	mtcrf	255, 0
	.irp n, 2,3,4,5,6,7,8,9,10,11,12,13
	ld	\n, REGS + 8 * \n(1)
	.endr
	.cfi_restore 2
	.irp n, 14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	ld	\n, REGS + 8 * \n(1)
	.cfi_restore \n
	.endr
	addi	1, 1, SIZE
	.cfi_adjust_cfa_offset -SIZE
	.cfi_undefined 67
	blr
	.cfi_endproc
	.size	hit_stub, . - hit_stub
	.section .note.GNU-stack, "", @progbits
