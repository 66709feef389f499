/* SPDX-License-Identifier: MIT */
/* Functions every 10 MiB of 300 MiB. */
	.text
	.macro far n
	.globl far_\n
	.type far_\n, %function
far_\n:
	.cfi_startproc
	stp x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov x29, sp
	add w0, w0, #\n
	ldp x29, x30, [sp], #16
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size far_\n, . - far_\n
	.endm

	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
	far \n
	.ifeq \n - 15
	/* Too short for the long patch, and too far from everywhere for the short one. */
	.globl far_short
	.type far_short, %function
far_short:
	ret
	.size far_short, . - far_short
	.endif
	.skip 10 << 20
	.endr
	.section .note.GNU-stack, "", %progbits
