/* SPDX-License-Identifier: MIT */
/*
 * Other ways to see a function return, around the same empty body, to compare ftr's with. Each is
 * called like the function itself, without arguments, and may clobber what a call may.
 */
	.text

	.p2align 5
body:
	ret

/*
 * The usual way: the return address is replaced by that of a trampoline, which leaves by an
 * indirect jump. The call that the processor's return predictor remembers never sees its return.
 * returns_top (thread-local) points to the next free {return address, stack slot}.
 */
	.p2align 5
	.globl returns_swap
	.type returns_swap, @function
returns_swap:
	incq	returns_entered(%rip)
	mov	%fs:returns_top@tpoff, %rax
	mov	(%rsp), %rcx
	mov	%rcx, (%rax)
	mov	%rsp, 8(%rax)
	add	$16, %rax
	mov	%rax, %fs:returns_top@tpoff
	lea	trampoline(%rip), %rcx
	mov	%rcx, (%rsp)
	jmp	body
	.p2align 5
trampoline:
	incq	returns_left(%rip)
	mov	%fs:returns_top@tpoff, %rcx
	sub	$16, %rcx
	mov	%rcx, %fs:returns_top@tpoff
	jmp	*(%rcx)
	.size returns_swap, . - returns_swap

/*
 * The body is called, as ftr does it, so that calls and returns match. Where the return address
 * waits meanwhile is the business of two C functions:
 *	void enter(uint64_t address);	uint64_t leave(void);
 */
	.macro AROUND name, enter, leave
	.p2align 5
	.globl \name
	.type \name, @function
\name:
	pop	%rdi
	call	\enter
	call	body
	call	\leave
	push	%rax
	ret
	.size \name, . - \name
	.endm

	AROUND returns_stack, pool_stack_enter, pool_stack_leave
	AROUND returns_list, pool_list_enter, pool_list_leave

	.section .note.GNU-stack, "", @progbits
