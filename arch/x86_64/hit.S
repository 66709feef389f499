/* SPDX-License-Identifier: MIT */
/*
 * Called from the detour of a place inside a function (hit.c). Makes a struct arch_hit, calls
 * usdt_hit() with it, and puts all registers back: general ones, flags, x87 and vectors.
 *
 *	152(%rsp)	the program's stack pointer
 *	 24(%rsp)	128 bytes that are the program's
 *	 16(%rsp)	record
 *	  8(%rsp)	site
 *	   (%rsp)	where to go on
 *
 * For unwinders it is a signal frame: the program was at the site.
 */
#define KEPT_ROOM 2752	/* of XSAVE's components up to AVX-512; a multiple of 64 */

	.text
	.globl	hit_stub
	.hidden	hit_stub
	.type	hit_stub, @function
	.balign	16
hit_stub:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa %rsp, 152
	.cfi_offset %rip, -144
	endbr64
	pushfq
	.cfi_adjust_cfa_offset 8
	push	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r15, 0
	push	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r14, 0
	push	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r13, 0
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	push	%r11
	.cfi_adjust_cfa_offset 8
	push	%r10
	.cfi_adjust_cfa_offset 8
	push	%r9
	.cfi_adjust_cfa_offset 8
	push	%r8
	.cfi_adjust_cfa_offset 8
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	push	%rsp		/* its place; see below */
	.cfi_adjust_cfa_offset 8
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	push	%rdx
	.cfi_adjust_cfa_offset 8
	push	%rcx
	.cfi_adjust_cfa_offset 8
	push	%rax
	.cfi_adjust_cfa_offset 8
	cld
	mov	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	lea	288(%rbx), %rax
	mov	%rax, 32(%rbx)	/* the program's */
	sub	$KEPT_ROOM, %rsp
	and	$-64, %rsp
	xor	%eax, %eax
	mov	%rax, 512(%rsp)	/* the header */
	mov	%rax, 520(%rsp)
	mov	%rax, 528(%rsp)
	mov	%rax, 536(%rsp)
	mov	%rax, 544(%rsp)
	mov	%rax, 552(%rsp)
	mov	%rax, 560(%rsp)
	mov	%rax, 568(%rsp)
	xor	%edx, %edx
	mov	hit_mask(%rip), %eax
	xsave64	(%rsp)
	mov	%rbx, %rdi
	mov	%rsp, %rsi
	call	usdt_hit
	xor	%edx, %edx
	mov	hit_mask(%rip), %eax
	xrstor64 (%rsp)
	mov	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop	%rax
	.cfi_adjust_cfa_offset -8
	pop	%rcx
	.cfi_adjust_cfa_offset -8
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	lea	8(%rsp), %rsp	/* rsp */
	.cfi_adjust_cfa_offset -8
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	pop	%r8
	.cfi_adjust_cfa_offset -8
	pop	%r9
	.cfi_adjust_cfa_offset -8
	pop	%r10
	.cfi_adjust_cfa_offset -8
	pop	%r11
	.cfi_adjust_cfa_offset -8
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	pop	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r13
	pop	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r14
	pop	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r15
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	hit_stub, . - hit_stub
	.section .note.GNU-stack, "", @progbits
