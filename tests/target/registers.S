/* SPDX-License-Identifier: MIT */
/*
 * check_registers(): fill every register with its own value, call a function that compares them at
 * its entry and leaves other values behind, compare those after the return. Out: 0 or the number
 * of the first register that was not as it should be.
 *
 * Registers by number: 1 rax, 2 rbx, 3 rcx, 4 rdx, 5 rsi, 6 rdi, 7 rbp, 8-15 r8-r15, 16 rsp,
 * 17 flags, 18 x87, 19 mxcsr, 32-47 xmm0-15.
 */
	.set	ENTRY, 0x1111000000000000
	.set	RESULT, 0x2222000000000000
	.set	FLAGS, 0xad5		/* OF SF ZF AF PF CF, no DF */

	/* value of register number \n in \reg */
	.macro	fill reg, n, base
	movabs	$\base + \n * 0x10001, \reg
	.endm

	.macro	fill_xmm n, base
	movabs	$\base + (32 + \n) * 0x10001, %rax
	movq	%rax, %xmm\n
	pshufd	$0x4e, %xmm\n, %xmm\n
	pinsrw	$1, %eax, %xmm\n
	.endm

	.macro	fill_xmms base
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	fill_xmm \n, \base
	.endr
	.endm

	.macro	fill_gprs base
	fill	%rax, 1, \base
	fill	%rbx, 2, \base
	fill	%rcx, 3, \base
	fill	%rdx, 4, \base
	fill	%rsi, 5, \base
	fill	%rdi, 6, \base
	fill	%rbp, 7, \base
	fill	%r8, 8, \base
	fill	%r9, 9, \base
	fill	%r10, 10, \base
	fill	%r11, 11, \base
	fill	%r12, 12, \base
	fill	%r13, 13, \base
	fill	%r14, 14, \base
	fill	%r15, 15, \base
	.endm

	/* flags = FLAGS, no register changed */
	.macro	fill_flags
	push	$FLAGS
	popf
	.endm

	/* note register \n as wrong when it does not hold its value; uses the stack */
	.macro	expect reg, n, base
	push	%rax
	.ifc	\reg, %rax
	push	%rbx
	fill	%rbx, \n, \base
	cmp	%rbx, %rax
	pop	%rbx
	.else
	fill	%rax, \n, \base
	cmp	%rax, \reg
	.endif
	pop	%rax
	je	1f
	movl	$\n, wrong(%rip)
1:
	.endm

	.macro	expect_xmm n, base
	movdqa	%xmm\n, scratch(%rip)
	fill_xmm \n, \base
	movdqa	%xmm\n, scratch+16(%rip)
	mov	scratch(%rip), %rax
	mov	scratch+8(%rip), %rcx
	xor	scratch+16(%rip), %rax
	xor	scratch+24(%rip), %rcx
	or	%rcx, %rax
	je	1f
	movl	$32 + \n, wrong(%rip)
1:
	.endm

	.macro	expect_all base
	pushf				/* 17 */
	expect	%rax, 1, \base
	expect	%rbx, 2, \base
	expect	%rcx, 3, \base
	expect	%rdx, 4, \base
	expect	%rsi, 5, \base
	expect	%rdi, 6, \base
	expect	%rbp, 7, \base
	expect	%r8, 8, \base
	expect	%r9, 9, \base
	expect	%r10, 10, \base
	expect	%r11, 11, \base
	expect	%r12, 12, \base
	expect	%r13, 13, \base
	expect	%r14, 14, \base
	expect	%r15, 15, \base
	pop	%rax
	and	$FLAGS, %eax
	cmp	$FLAGS, %eax
	je	1f
	movl	$17, wrong(%rip)
1:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	expect_xmm \n, \base
	.endr
	stmxcsr	scratch(%rip)
	cmpl	$0x7f80, scratch(%rip)
	je	1f
	movl	$19, wrong(%rip)
1:
	fnstcw	scratch(%rip)
	cmpw	$0x0c7f, scratch(%rip)
	je	1f
	movl	$18, wrong(%rip)
1:
	.endm

	.bss
	.balign	16
scratch:
	.zero	32
old_stack:
	.zero	8
wrong:
	.zero	4
	.balign	8
	.globl	register_callee_calls
register_callee_calls:
	.zero	8

	.text
	.globl	register_callee
	.type	register_callee, @function
register_callee:
	.cfi_startproc
#ifdef FLAGS_LIVE
	/* first reader of the flags sits at the very entry */
	jnc	9f
	lea	-8(%rsp), %rsp
	.cfi_adjust_cfa_offset 8
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
#else
	mov	%rsp, scratch+8(%rip)
#endif
	expect_all ENTRY
	incq	register_callee_calls(%rip)
	lea	8(%rsp), %rax
	cmp	old_stack(%rip), %rax
	je	1f
	movl	$16, wrong(%rip)
1:
	fldpi
	fld1
	fill_xmms RESULT
	fill_gprs RESULT
	fill_flags
	ret
9:
	movl	$17, wrong(%rip)
	ret
	.cfi_endproc
	.size	register_callee, . - register_callee

	.globl	check_registers
	.type	check_registers, @function
check_registers:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	push	%r12
	.cfi_adjust_cfa_offset 8
	push	%r13
	.cfi_adjust_cfa_offset 8
	push	%r14
	.cfi_adjust_cfa_offset 8
	push	%r15
	.cfi_adjust_cfa_offset 8
	sub	$24, %rsp
	.cfi_adjust_cfa_offset 24
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movl	$0x7f80, 8(%rsp)	/* round to zero */
	ldmxcsr	8(%rsp)
	movw	$0x0c7f, 12(%rsp)	/* round to zero, double */
	fldcw	12(%rsp)
	movl	$0, wrong(%rip)
	mov	%rsp, old_stack(%rip)
	fill_xmms ENTRY
	fill_gprs ENTRY
	fill_flags
	call	register_callee
	expect_all RESULT
	fstpl	scratch(%rip)		/* st0 = 1, st1 = pi */
	mov	scratch(%rip), %rax
	movabs	$0x3ff0000000000000, %rcx
	cmp	%rcx, %rax
	je	1f
	movl	$18, wrong(%rip)
1:
	fstpl	scratch(%rip)
	mov	scratch(%rip), %rax
	movabs	$0x400921fb54442d18, %rcx
	cmp	%rcx, %rax
	je	1f
	movl	$18, wrong(%rip)
1:
	cmp	old_stack(%rip), %rsp
	je	1f
	movl	$16, wrong(%rip)
1:
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	mov	wrong(%rip), %eax
	add	$24, %rsp
	.cfi_adjust_cfa_offset -24
	pop	%r15
	.cfi_adjust_cfa_offset -8
	pop	%r14
	.cfi_adjust_cfa_offset -8
	pop	%r13
	.cfi_adjust_cfa_offset -8
	pop	%r12
	.cfi_adjust_cfa_offset -8
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	check_registers, . - check_registers

	.section .note.GNU-stack, "", @progbits
