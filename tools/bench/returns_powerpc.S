/* SPDX-License-Identifier: MIT */
/*
 * Other ways to see a function return, around the same empty body, to compare ftr's with. Each is
 * called like the function itself, without arguments, and may clobber what a call may.
 */
	.abiversion 2
	.text

	.macro ADD_ONE variable
	addis	%r9, %r2, \variable@toc@ha
	ld	%r10, \variable@toc@l(%r9)
	addi	%r10, %r10, 1
	std	%r10, \variable@toc@l(%r9)
	.endm

	/* r9: address of the thread's variable */
	.macro THREAD_ADDRESS variable
	addis	%r9, %r13, \variable@tprel@ha
	addi	%r9, %r9, \variable@tprel@l
	.endm

	.macro BEGIN name
	.p2align 5
	.globl \name
	.type \name, @function
\name:
	addis	%r2, %r12, .TOC. - \name@ha
	addi	%r2, %r2, .TOC. - \name@l
	.localentry \name, . - \name
	.endm

	.p2align 5
body:
	blr

/*
 * The usual way: the return address is replaced by that of a trampoline, which leaves by an
 * indirect jump. The call that the processor's return predictor remembers never sees its return.
 * returns_top (thread-local) points to the next free {return address, stack pointer}.
 */
	BEGIN	returns_swap
	ADD_ONE	returns_entered
	THREAD_ADDRESS returns_top
	ld	%r10, 0(%r9)
	mflr	%r0
	std	%r0, 0(%r10)
	std	%r1, 8(%r10)
	addi	%r10, %r10, 16
	std	%r10, 0(%r9)
	addis	%r11, %r2, trampoline@toc@ha
	addi	%r11, %r11, trampoline@toc@l
	mtlr	%r11
	b	body
	.p2align 5
trampoline:
	ADD_ONE	returns_left
	THREAD_ADDRESS returns_top
	ld	%r10, 0(%r9)
	ldu	%r11, -16(%r10)
	std	%r10, 0(%r9)
	mtctr	%r11
	bctr
	.size returns_swap, . - returns_swap

/*
 * The body is called, as ftr does it, so that calls and returns match. Where the return address
 * waits meanwhile is the business of two C functions:
 *	void enter(uint64_t address);	uint64_t leave(void);
 */
	.macro AROUND name, enter, leave
	BEGIN	\name
	mflr	%r3
	stdu	%r1, -32(%r1)
	bl	\enter
	nop
	bl	body
	bl	\leave
	nop
	addi	%r1, %r1, 32
	mtlr	%r3
	blr
	.size \name, . - \name
	.endm

	AROUND returns_stack, pool_stack_enter, pool_stack_leave
	AROUND returns_list, pool_list_enter, pool_list_leave

	.section .note.GNU-stack, "", @progbits
