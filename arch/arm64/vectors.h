/* SPDX-License-Identifier: MIT */
/* For assembly: all vector and floating-point state of the CPU, put below the stack pointer and taken
 * back. Uses x10, x11 and labels 1 and 2. */

	.macro flag_sve reg /* x\reg */
	adrp x\reg, a64_has_sve
	ldr w\reg, [x\reg, :lo12:a64_has_sve]
	.endm

	/* x11 = where v0, or z0, is; the others are behind it */
	.macro put_vectors_aside
	flag_sve 10
	cbz w10, 1f
	addvl sp, sp, #-32
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	str z\n, [sp, #\n, mul vl]
	.endr
	mov x11, sp
	addvl sp, sp, #-4
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	str p\n, [sp, #\n, mul vl]
	.endr
	rdffr p0.b
	str p0, [sp, #16, mul vl]
	b 2f
1:	sub sp, sp, #512
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	str q\n, [sp, #16 * \n]
	.endr
	mov x11, sp
2:
	.endm

	/* sp is what put_vectors_aside has left */
	.macro take_vectors_back
	flag_sve 10
	cbz w10, 1f
	ldr p0, [sp, #16, mul vl]
	wrffr p0.b
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	ldr p\n, [sp, #\n, mul vl]
	.endr
	addvl sp, sp, #4
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	ldr z\n, [sp, #\n, mul vl]
	.endr
	b 2f
1:	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	ldr q\n, [sp, #16 * \n]
	.endr
2:
	.endm

	/* The GNU-stack note, and that code here has landing pads. */
	.macro file_notes
	.section .note.GNU-stack, "", @progbits
#ifdef __ARM_FEATURE_BTI_DEFAULT
	.section .note.gnu.property, "a", @note
	.balign 8
	.long 4, 16, 5
	.asciz "GNU"
	.long 0xc0000000, 4, 3, 0 /* BTI, PAC */
#endif
	.endm
