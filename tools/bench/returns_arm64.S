/* SPDX-License-Identifier: MIT */
/*
 * Other ways to see a function return, around the same empty body, to compare ftr's with. Each is
 * called like the function itself, without arguments, and may clobber what a call may.
 */
	.text

	.macro ADD_ONE variable
	adrp	x9, \variable
	ldr	x10, [x9, :lo12:\variable]
	add	x10, x10, #1
	str	x10, [x9, :lo12:\variable]
	.endm

	/* x9: address of the thread's variable */
	.macro THREAD_ADDRESS variable
	mrs	x9, tpidr_el0
	add	x9, x9, #:tprel_hi12:\variable, lsl #12
	add	x9, x9, #:tprel_lo12_nc:\variable
	.endm

	.p2align 5
body:
	ret

/*
 * The usual way: the return address is replaced by that of a trampoline, which leaves by an
 * indirect jump. The call that the processor's return predictor remembers never sees its return.
 * returns_top (thread-local) points to the next free {return address, stack pointer}.
 */
	.p2align 5
	.globl returns_swap
	.type returns_swap, %function
returns_swap:
	ADD_ONE	returns_entered
	THREAD_ADDRESS returns_top
	ldr	x10, [x9]
	mov	x11, sp
	stp	x30, x11, [x10], #16
	str	x10, [x9]
	adr	x30, trampoline
	b	body
	.p2align 5
trampoline:
	ADD_ONE	returns_left
	THREAD_ADDRESS returns_top
	ldr	x10, [x9]
	ldr	x11, [x10, #-16]!
	str	x10, [x9]
	br	x11
	.size returns_swap, . - returns_swap

/*
 * The body is called, as ftr does it, so that calls and returns match. Where the return address
 * waits meanwhile is the business of two C functions:
 *	void enter(uint64_t address);	uint64_t leave(void);
 */
	.macro AROUND name, enter, leave
	.p2align 5
	.globl \name
	.type \name, %function
\name:
	mov	x0, x30
	bl	\enter
	bl	body
	bl	\leave
	mov	x30, x0
	ret
	.size \name, . - \name
	.endm

	AROUND returns_stack, pool_stack_enter, pool_stack_leave
	AROUND returns_list, pool_list_enter, pool_list_leave

	.section .note.GNU-stack, "", %progbits
