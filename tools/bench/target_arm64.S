/* SPDX-License-Identifier: MIT */
/*
 * Functions that the kernel's uprobes treat differently, by their first instruction: stp (what is
 * a push elsewhere) is stepped over out of line, nop and ret are simulated. The same with an entry
 * only: they read their return address.
 */
	.text

	.macro FUNCTION name, first, second
	.p2align 6
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	\first
	\second
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm

	.macro PUSH_FUNCTION name, insns:vararg
	.p2align 6
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	\insns
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm

	FUNCTION ftr_bench_nop, nop
	FUNCTION ftr_bench_ret,
	FUNCTION ftr_bench_nop_only, nop, "mov x0, x30"
	PUSH_FUNCTION ftr_bench_push,
	PUSH_FUNCTION ftr_bench_push_only, mov x0, x30

	.p2align 6
	.section .note.GNU-stack, "", %progbits
