/* SPDX-License-Identifier: MIT */
/*
 * Functions by their first instruction: nop, push (the store that makes a frame) and ret. The same
 * with an entry only: they read their return address.
 */
	.abiversion 2
	.text

	.macro FUNCTION name, first, second
	.p2align 6
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	\first
	\second
	blr
	.cfi_endproc
	.size \name, . - \name
	.endm

	.macro PUSH_FUNCTION name, insns:vararg
	.p2align 6
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	stdu	%r1, -32(%r1)
	.cfi_def_cfa_offset 32
	\insns
	addi	%r1, %r1, 32
	.cfi_def_cfa_offset 0
	blr
	.cfi_endproc
	.size \name, . - \name
	.endm

	FUNCTION ftr_bench_nop, nop
	FUNCTION ftr_bench_ret,
	FUNCTION ftr_bench_nop_only, nop, "mflr %r3"
	PUSH_FUNCTION ftr_bench_push,
	PUSH_FUNCTION ftr_bench_push_only, mflr %r3

	.p2align 6
	.section .note.GNU-stack, "", @progbits
