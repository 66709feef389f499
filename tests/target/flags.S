/* SPDX-License-Identifier: MIT */
/* Functions that take or give condition flags. */
	.macro	function name
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm
	.macro	end name
	.cfi_endproc
	.size	\name, . - \name
	.balign	16
	.endm

	.text
	.balign	16
/* carry in: rax = rdi + rsi + carry */
function add_with_carry
	adc	%rsi, %rdi
	mov	%rdi, %rax
	lock incq add_with_carry_calls(%rip)
	ret
end add_with_carry

/* zero and sign flags in, by a jump that is itself among the first five bytes */
function branch_on_entry
	je	1f
	js	2f
	mov	$3, %eax
	jmp	3f
1:	mov	$1, %eax
	jmp	3f
2:	mov	$2, %eax
3:	lock incq branch_on_entry_calls(%rip)
	ret
end branch_on_entry

/* overflow in by seto, behind an endbr64 */
function read_overflow
	endbr64
	seto	%al
	movzbl	%al, %eax
	lock incq read_overflow_calls(%rip)
	ret
end read_overflow

/* carry out: set when rdi > rsi; everything else kept */
function give_carry
	lock incq give_carry_calls(%rip)
	cmp	%rdi, %rsi
	ret
end give_carry

/* carry in and carry out: one step of a long addition, rdi += rsi */
function carry_through
	adc	%rsi, %rdi
	mov	%rdi, %rax
	ret
end carry_through

/* uses all of the above; rdi = case number; out rax */
function use_add_with_carry
	stc
	call	add_with_carry
	push	%rax
	.cfi_adjust_cfa_offset 8
	mov	$100, %edi
	mov	$10, %esi
	clc
	call	add_with_carry
	pop	%rcx
	.cfi_adjust_cfa_offset -8
	imul	$1000, %rcx, %rcx
	add	%rcx, %rax
	ret
end use_add_with_carry

function use_branch_on_entry
	cmp	%rsi, %rdi
	call	branch_on_entry
	ret
end use_branch_on_entry

function use_read_overflow
	add	%edi, %esi
	call	read_overflow
	ret
end use_read_overflow

function use_give_carry
	call	give_carry
	setc	%al
	movzbl	%al, %eax
	ret
end use_give_carry

/* 192 bit addition, number at rdi += number at rsi; carry crosses two calls */
function add_192
	push	%rbx
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	mov	%rdi, %rbx
	mov	%rsi, %rbp
	clc
	mov	(%rbx), %rdi
	mov	(%rbp), %rsi
	call	carry_through
	mov	%rax, (%rbx)
	mov	8(%rbx), %rdi
	mov	8(%rbp), %rsi
	call	carry_through
	mov	%rax, 8(%rbx)
	mov	16(%rbx), %rdi
	mov	16(%rbp), %rsi
	call	carry_through
	mov	%rax, 16(%rbx)
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
end add_192

	.bss
	.irp	name, add_with_carry, branch_on_entry, read_overflow, give_carry
	.globl	\name\()_calls
\name\()_calls:
	.zero	8
	.endr
	.section .note.GNU-stack, "", @progbits
