/* SPDX-License-Identifier: MIT */
/*
 * Called from the detour of a place inside a function (hit.c), with x30 = where to go on there. Makes a
 * struct arch_hit, calls usdt_hit() with it, and puts all registers back: general ones, flags, vectors.
 *
 *	sp + 320	the program's stack pointer
 *	sp + 288	its x16 and x30
 *	sp		struct arch_hit
 *
 * For unwinders it is a signal frame: the program was at the site. Column 96 is what libgcc takes for
 * the address that a signal has interrupted.
 */
#include "vectors.h"

#define FLAGS	256
#define RESUME	264
#define SITE	272
#define RECORD	280
#define SIZE	288
#define ABOVE	32

	.arch_extension sve
	.text
	.globl	hit_stub
	.hidden	hit_stub
	.type	hit_stub, @function
	.balign	16
hit_stub:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_return_column 96
	.cfi_undefined 96
	.cfi_def_cfa sp, ABOVE
	.cfi_offset x30, -24
	hint	#34	/* bti c */
	sub	sp, sp, #SIZE
	.cfi_adjust_cfa_offset SIZE
	stp	x0, x1, [sp, #0]
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x9, [sp, #64]
	stp	x10, x11, [sp, #80]
	stp	x12, x13, [sp, #96]
	stp	x14, x15, [sp, #112]
	str	x17, [sp, #136]
	stp	x18, x19, [sp, #144]
	.cfi_offset x19, -168
	stp	x20, x21, [sp, #160]
	.cfi_offset x20, -160
	.cfi_offset x21, -152
	stp	x22, x23, [sp, #176]
	.cfi_offset x22, -144
	.cfi_offset x23, -136
	stp	x24, x25, [sp, #192]
	.cfi_offset x24, -128
	.cfi_offset x25, -120
	stp	x26, x27, [sp, #208]
	.cfi_offset x26, -112
	.cfi_offset x27, -104
	stp	x28, x29, [sp, #224]
	.cfi_offset x28, -96
	.cfi_offset x29, -88
	ldp	x0, x1, [sp, #SIZE]
	add	x2, sp, #SIZE + ABOVE
	str	x0, [sp, #128]
	stp	x1, x2, [sp, #240]
	mrs	x0, nzcv
	stp	x0, x30, [sp, #FLAGS]
	ldur	x0, [x30, #20]
	ldur	x1, [x30, #12]
	stp	x0, x1, [sp, #SITE]
	.cfi_offset 96, SITE - SIZE - ABOVE
	mov	x19, sp
	.cfi_def_cfa_register x19
	mrs	x20, fpcr
	mrs	x21, fpsr
	put_vectors_aside
	mov	x0, x19
	mov	x1, x11
	bl	usdt_hit
	take_vectors_back
	msr	fpcr, x20
	msr	fpsr, x21
	mov	sp, x19
	.cfi_def_cfa_register sp
	ldp	x0, x30, [sp, #FLAGS]
	msr	nzcv, x0
	ldp	x28, x29, [sp, #224]
	ldp	x26, x27, [sp, #208]
	ldp	x24, x25, [sp, #192]
	ldp	x22, x23, [sp, #176]
	ldp	x20, x21, [sp, #160]
	ldp	x18, x19, [sp, #144]
	ldr	x17, [sp, #136]
	ldp	x14, x15, [sp, #112]
	ldp	x12, x13, [sp, #96]
	ldp	x10, x11, [sp, #80]
	ldp	x8, x9, [sp, #64]
	ldp	x6, x7, [sp, #48]
	ldp	x4, x5, [sp, #32]
	ldp	x2, x3, [sp, #16]
	ldp	x0, x1, [sp, #0]
	.cfi_restore x19
	.cfi_restore x20
	.cfi_restore x21
	.cfi_restore x22
	.cfi_restore x23
	.cfi_restore x24
	.cfi_restore x25
	.cfi_restore x26
	.cfi_restore x27
	.cfi_restore x28
	.cfi_restore x29
	add	sp, sp, #SIZE
	.cfi_adjust_cfa_offset -SIZE
	.cfi_undefined 96
	ret
	.cfi_endproc
	.size	hit_stub, . - hit_stub
	file_notes
