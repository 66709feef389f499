/* SPDX-License-Identifier: MIT */
/*
 * Functions so short, or with first bytes so special, that patching them is hard or impossible.
 * Those named packed_* stand back to back without padding. Each takes a number in rdi and gives a
 * known result in rax.
 */
	.macro	function name
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm
	.macro	end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	.balign	16
function packed_ret
	ret
end packed_ret
function packed_zero
	xor	%eax, %eax
	ret
end packed_zero
function packed_same
	mov	%edi, %eax
	ret
end packed_same
function packed_endbr
	endbr64
	ret
end packed_endbr
function packed_one
	push	$1
	.cfi_adjust_cfa_offset 8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	ret
end packed_one
function packed_jump
	jmp	packed_same
end packed_jump
function packed_near_jump
	.byte	0xe9
	.long	packed_same - . - 4
end packed_near_jump
function packed_last
	lea	1(%rdi), %eax
	ret
end packed_last

	.balign	64
function padded_ret
	ret
end padded_ret
	.balign	32
function padded_zero
	xor	%eax, %eax
	ret
end padded_zero
	.balign	32
function padded_endbr
	endbr64
	ret
end padded_endbr
	.balign	32, 0xcc
function trapped_zero
	xor	%eax, %eax
	ret
end trapped_zero
	.balign	32, 0xcc

/* data behind a short function without a symbol of its own */
function before_data
	mov	(%rip), %eax		/* reads its own ret and the data behind */
	ret
end before_data
	.byte	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77
	.balign	32

/* loops to the first instruction and into the window */
function loop_to_entry
	sub	$1, %rdi
	jnz	loop_to_entry
	mov	$5, %eax
	ret
end loop_to_entry
	.balign	32
function loop_into_window
	xor	%eax, %eax
1:	inc	%eax
	dec	%edi
	jnz	1b
	ret
end loop_into_window
	.balign	32
function jump_into_from_far
	mov	%edi, %eax
1:	add	$3, %eax
	test	$1, %dil
	jnz	2f
	ret
2:	.zero	200, 0x90
	dec	%edi
	jmp	1b
end jump_into_from_far
	.balign	32
/* another function enters this one two bytes in */
function second_entry_owner
	mov	%edi, %eax
second_entry:
	add	$10, %eax
	ret
end second_entry_owner
	.balign	32
function uses_second_entry
	lea	1(%rdi), %eax
	jmp	second_entry
end uses_second_entry
	.balign	32
function loop_first
	mov	%rdi, %rcx
1:	loop	1b
	lea	7(%rcx), %eax
	ret
end loop_first
	.balign	32
function jrcxz_first
	jrcxz	1f
	mov	$1, %eax
	ret
1:	mov	$2, %eax
	ret
end jrcxz_first
	.balign	32
function jecxz_first
	jecxz	1f
	mov	$1, %eax
	ret
1:	mov	$2, %eax
	ret
end jecxz_first
	.balign	32
function jcc_short_first
	jne	1f
	mov	$1, %eax
	ret
1:	mov	$2, %eax
	ret
end jcc_short_first
	.balign	32
function jcc_near_first
	.byte	0x0f, 0x85		/* jne, 32 bits */
	.long	1f - . - 4
	mov	$1, %eax
	ret
1:	mov	$2, %eax
	ret
end jcc_near_first
	.balign	32
function call_first
	call	thirteen
	ret
end call_first
	.balign	32
function call_second
	push	%rbx
	.cfi_adjust_cfa_offset 8
	call	thirteen
	lea	1(%rax), %eax
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
end call_second
	.balign	32
function thirteen
	mov	$13, %eax
	lock incq thirteen_calls(%rip)
	ret
end thirteen
	.balign	32
function call_pop_first
	call	1f			/* its own address, the old way */
1:	pop	%rax
	lea	1b(%rip), %rcx
	sub	%rcx, %rax
	ret
end call_pop_first
	.balign	32
function rip_load_first
	mov	table(%rip), %rax
	ret
end rip_load_first
	.balign	32
function rip_store_first
	movl	$77, cell(%rip)
	mov	cell(%rip), %eax
	ret
end rip_store_first
	.balign	32
function rip_compare_first
	cmpb	$9, table+1(%rip)
	sete	%al
	movzbl	%al, %eax
	ret
end rip_compare_first
	.balign	32
function rip_lea_first
	lea	table(%rip), %rax
	mov	(%rax), %rax
	ret
end rip_lea_first
	.balign	32
function rip_xmm_first
	movdqa	table(%rip), %xmm0
	movq	%xmm0, %rax
	ret
end rip_xmm_first
	.balign	32
function rip_wide_imm_first
	movq	$0x12345678, cell(%rip)	/* 11 bytes, immediate behind the displacement */
	mov	cell(%rip), %rax
	ret
end rip_wide_imm_first
	.balign	32
function rip_indirect_jump_first
	jmp	*pointer(%rip)
end rip_indirect_jump_first
	.balign	32
function rip_push_first
	push	table(%rip)
	.cfi_adjust_cfa_offset 8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	ret
end rip_push_first
	.balign	32
function lock_rip_first
	mov	$1, %eax
	lock xadd %rax, counter(%rip)
	mov	$3, %eax
	ret
end lock_rip_first
	.balign	32
function segment_first
	mov	%fs:0, %rax
	sub	%fs:0, %rax
	ret
end segment_first
	.balign	32
function movabs_first
	movabs	$0x123456789abcdef0, %rax
	ret
end movabs_first
	.balign	32
function long_first
	.byte	0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
	mov	$21, %eax
	ret
end long_first
	.balign	32
function rep_first
	mov	$0, %ecx
	rep stosb
	mov	$22, %eax
	ret
end rep_first
	.balign	32
function repz_ret
	mov	$4, %al
	movzbl	%al, %eax
	repz ret
end repz_ret
	.balign	32
function pushf_first
	pushf
	.cfi_adjust_cfa_offset 8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	and	$0x400, %eax
	ret
end pushf_first
	.balign	32
function enter_first
	enter	$32, $0
	mov	%edi, -8(%rbp)
	mov	-8(%rbp), %eax
	leave
	ret
end enter_first
	.balign	32
function stack_read_first
	mov	16(%rsp), %rax		/* an argument above one more slot */
	ret
end stack_read_first
	.balign	32
/* takes two stack arguments and removes them itself */
function pops_arguments
	mov	8(%rsp), %rax
	add	16(%rsp), %rax
	ret	$16
end pops_arguments
	.balign	32
/* calls the two above: rdi + 100 */
function push_and_call
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	$100
	.cfi_adjust_cfa_offset 8
	call	pops_arguments
	.cfi_adjust_cfa_offset -16
	push	%rax
	.cfi_adjust_cfa_offset 8
	push	$0
	.cfi_adjust_cfa_offset 8
	call	stack_read_first
	add	$16, %rsp
	.cfi_adjust_cfa_offset -16
	ret
end push_and_call
	.balign	32
/* its last byte is the last byte of a page: nothing may be written behind it */
	.balign	4096
	.zero	4093, 0xcc
function page_end
	mov	%edi, %eax
	ret
end page_end
	.zero	16, 0xcc
/* two names, one address; and a local label at the same place */
	.balign	32
	.globl	second_name
	.type	second_name, @function
second_name:
function first_name
	mov	$31, %eax
	ret
	.size	second_name, . - second_name
end first_name
/* a function without .size and without unwind rows */
	.balign	32
	.globl	no_size
	.type	no_size, @function
no_size:
	mov	$32, %eax
	ret
/* a symbol in the text that is data */
	.balign	32
	.globl	data_in_text
	.type	data_in_text, @object
data_in_text:
	.quad	0x1122334455667788, 0x55
	.size	data_in_text, 16

	.data
	.balign	16
table:
	.quad	0x900 + 5, 6
cell:
	.quad	0
counter:
	.quad	0
	.globl	thirteen_calls
thirteen_calls:
	.quad	0
pointer:
	.quad	thirteen
	.section .note.GNU-stack, "", @progbits
