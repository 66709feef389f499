/* SPDX-License-Identifier: MIT */
/* All vector and floating-point state around a C function. See native_call.c. */

/* Offsets in struct ftr_call. */
#define CALL_VECTORS 248
#define CALL_APART   257

	.text

/* void arch_call_vectors(void (*function)(struct ftr_call *), struct ftr_call *call) */
	.globl arch_call_vectors
	.hidden arch_call_vectors
	.type arch_call_vectors, @function
	.balign 16
arch_call_vectors:
	.cfi_startproc
	endbr64
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	push %rbx
	.cfi_offset %rbx, -24
	mov %rdi, %rcx
	mov %rsi, %rbx
	sub x86_state_size(%rip), %rsp
	and $-64, %rsp
	mov %rsp, CALL_VECTORS(%rbx)
	movb $1, CALL_APART(%rbx)
	/* XRSTOR wants most of the header to be zero, and the save leaves it alone. */
	xor %eax, %eax
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	mov %rax, 512+8*\n(%rsp)
	.endr
	xor %edx, %edx
	mov x86_state_mask(%rip), %rax
	test %eax, %eax
	jz 2f
	cmpl $0, x86_state_compact(%rip)
	je 1f
	xsavec64 (%rsp)
	jmp 3f
1:	xsave64 (%rsp)
	jmp 3f
2:	fxsave64 (%rsp)
	movl $3, 512(%rsp) /* as XSAVE would tell: both parts are there */
3:	/* A function's result may be on the x87 stack; a callee finds it empty. */
	testb $1, 512(%rsp)
	jz 4f
	fninit
	fldcw (%rsp)
4:	mov %rbx, %rdi
	call *%rcx
	movb $0, CALL_APART(%rbx)
	xor %edx, %edx
	mov x86_state_mask(%rip), %rax
	test %eax, %eax
	jz 5f
	xrstor64 (%rsp)
	jmp 6f
5:	fxrstor64 (%rsp)
6:	mov -8(%rbp), %rbx
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbx
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size arch_call_vectors, . - arch_call_vectors

	.section .note.GNU-stack, "", @progbits
