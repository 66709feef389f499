/* SPDX-License-Identifier: MIT */
/*
 * Functions that the kernel's uprobes treat differently, by their first instruction: nop and push
 * are emulated, ret is stepped over out of line, and a 5-byte nop becomes a call since Linux 6.18.
 * Those with an entry only read their return address.
 */
	.text

	.macro FUNCTION name, first, second
	.p2align 6
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	\first
	\second
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm

	FUNCTION ftr_bench_nop, nop
	FUNCTION ftr_bench_ret,
	FUNCTION ftr_bench_nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00"

	.macro PUSH_FUNCTION name, insns:vararg
	.p2align 6
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	\insns
	pop	%rbp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm

	FUNCTION ftr_bench_nop_only, nop, "mov (%rsp), %rax"
	PUSH_FUNCTION ftr_bench_push,
	PUSH_FUNCTION ftr_bench_push_only, mov 8(%rsp), %rax

	.p2align 6
	.section .note.GNU-stack, "", @progbits
