/* SPDX-License-Identifier: MIT */
/*
 * Functions of usdt.c in assembly, for each CPU:
 *
 * wide()		a nop with room for a jump, and arguments of odd sizes; returns its argument + 1
 * floats()		floating-point arguments, the third in memory; returns 2
 * keeps_all()		fills all registers, flags and what is below the stack pointer, has a probe, and
 *			compares: 0, all are the same
 * spoil_registers()	changes what a function may change
 */
#ifndef PROBE_USDT_ASM_H
#define PROBE_USDT_ASM_H

#include "note.h"

#define TO_31 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"

int wide(int x);
int floats(double d, float f, const float *memory);
int keeps_all(void);
void spoil_registers(void);

#if defined(__x86_64__)
#include "registers_x86_64.h"

__asm__(".text\n.type wide, @function\nwide:\n\tmov $1, %eax\n\tmov %edi, %eax\n"
	"990:\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tadd $1, %eax\n\tret\n.size wide, . - wide\n"
	NOTE("ftrtest", "wide", "-4@%edi 1@%dil -1@%dil 4@$-1 8f@%xmm0 3@%eax 8@8(%rax)"));

__asm__(".text\n.type floats, @function\nfloats:\n\tmov $1, %eax\n"
	"990:\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tadd $1, %eax\n\tret\n.size floats, . - floats\n"
	NOTE("ftrtest_floats", "floats", "8f@%xmm0 -4f@%xmm1 4f@(%rdi) 8f@%xmm17 4@%eax 2f@%xmm0 8f@8(%rax)"));

/* The place is one byte; two instructions behind it are displaced. */
__asm__(".text\n.type keeps_all, @function\nkeeps_all:\n" FILL_REGISTERS
	"990:\tnop\n\tlea 0(%rax), %rax\n\tlea 0(%rbx), %rbx\n\tjnc 1f\n" COMPARE_REGISTERS
	".size keeps_all, . - keeps_all\n"
	NOTE("ftrtest", "kept", "8@%rbx"));

__asm__(".text\n.type spoil_registers, @function\nspoil_registers:\n"
	"\txorps %xmm0, %xmm0\n\txorps %xmm7, %xmm7\n\txorps %xmm15, %xmm15\n\tfninit\n"
	"\tmov $1, %eax\n\tmov %eax, %ecx\n\tmov %eax, %edx\n\tmov %eax, %esi\n\tmov %eax, %edi\n"
	"\tmov %eax, %r8d\n\tmov %eax, %r9d\n\tmov %eax, %r10d\n\tmov %eax, %r11d\n\tclc\n\tret\n"
	".size spoil_registers, . - spoil_registers\n");

#elif defined(__aarch64__)

__asm__(".text\n.type wide, @function\nwide:\n\tmov w9, w0\n990:\tnop\n\tadd w0, w9, 1\n\tret\n"
	".size wide, . - wide\n"
	NOTE("ftrtest", "wide", "-4@w0 1@w0 -1@w0 4@-1 8f@d0 3@w0 8@[x0, 8]"));

__asm__(".text\n.type floats, @function\nfloats:\n\tmov w9, 1\n990:\tnop\n\tadd w0, w9, 1\n\tret\n"
	".size floats, . - floats\n"
	NOTE("ftrtest_floats", "floats", "8f@d0 -4f@s1 4f@[x0] 8f@d32 4@w9 2f@s0 8f@[x9, 8]"));

__asm__(".text\n.type keeps_all, @function\nkeeps_all:\n"
	"\tstp x29, x30, [sp, #-160]!\n\tstp x19, x20, [sp, #16]\n\tstp x21, x22, [sp, #32]\n"
	"\tstp x23, x24, [sp, #48]\n\tstp x25, x26, [sp, #64]\n\tstp x27, x28, [sp, #80]\n"
	"\tstp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n\tstp d12, d13, [sp, #128]\n"
	"\tstp d14, d15, [sp, #144]\n"
	".irp n," TO_31 "\tmovi v\\n\\().16b, #\\n\n.endr\n"
	"\tmov x0, #0xa0000000\n\tmsr nzcv, x0\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n"
	"\tmov x\\n, #0x100 + \\n\n.endr\n"
	"990:\tnop\n"
	"\tb.pl 1f\n\tb.eq 1f\n\tb.cc 1f\n\tb.vs 1f\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n"
	"\tcmp x\\n, #0x100 + \\n\n\tb.ne 1f\n.endr\n"
	"\tmov x3, #0x0101010101010101\n"
	".irp n," TO_31 "\tmov x0, v\\n\\().d[0]\n\tmov x1, v\\n\\().d[1]\n\tmov x2, #\\n\n"
	"\tmul x2, x2, x3\n\tcmp x0, x2\n\tb.ne 1f\n\tcmp x1, x2\n\tb.ne 1f\n.endr\n"
	"\tmov w0, #0\n\tb 2f\n1:\tmov w0, #1\n2:\n"
	"\tldp d14, d15, [sp, #144]\n\tldp d12, d13, [sp, #128]\n\tldp d10, d11, [sp, #112]\n"
	"\tldp d8, d9, [sp, #96]\n\tldp x27, x28, [sp, #80]\n\tldp x25, x26, [sp, #64]\n"
	"\tldp x23, x24, [sp, #48]\n\tldp x21, x22, [sp, #32]\n\tldp x19, x20, [sp, #16]\n"
	"\tldp x29, x30, [sp], #160\n\tret\n.size keeps_all, . - keeps_all\n"
	NOTE("ftrtest", "kept", "8@x29"));

__asm__(".text\n.type spoil_registers, @function\nspoil_registers:\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n\tmov x\\n, #7\n.endr\n"
	".irp n,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"\tmovi v\\n\\().16b, #99\n.endr\n"
	".irp n,8,9,10,11,12,13,14,15\n\tmov v\\n\\().d[1], x0\n.endr\n"
	"\tcmp x0, x0\n\tret\n.size spoil_registers, . - spoil_registers\n");

/* A variable by its page, as compilers name it where its address is fixed; returns it. */
int by_page(void);
__asm__(".data\n.balign 4096\n\t.space 0xabc\npaged:\t.4byte 1234, 5678\n"
	".text\n.type by_page, @function\nby_page:\n\tadrp x9, paged\n990:\tnop\n"
	"\tldr w0, [x9, #:lo12:paged]\n\tret\n.size by_page, . - by_page\n"
	NOTE("ftrtest_page", "page", "-4@[x9, #:lo12:paged] 4@[x9, :lo12:paged+4]"));

/* As keeps_all() for SVE: all vectors and predicates. */
int keeps_sve(void);
__asm__(".arch_extension sve\n.text\n.type keeps_sve, @function\nkeeps_sve:\n"
	"\tstp d8, d9, [sp, #-64]!\n\tstp d10, d11, [sp, #16]\n\tstp d12, d13, [sp, #32]\n"
	"\tstp d14, d15, [sp, #48]\n\tsetffr\n"
	".irp n," TO_31 "\tindex z\\n\\().b, #\\n - 16, #1\n.endr\n"
	".irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\tmov x1, #\\n\n\twhilelo p\\n\\().b, xzr, x1\n.endr\n"
	"990:\tnop\n\tmov w0, #1\n\taddvl sp, sp, #-3\n"
	".irp n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\tstr p\\n, [sp, #\\n, mul vl]\n"
	"\taddpl x3, sp, #\\n\n\tldrh w1, [x3]\n\tmov w2, #(1 << \\n) - 1\n\tcmp w1, w2\n\tb.ne 1f\n.endr\n"
	"\tptrue p1.b\n\trdffr p2.b\n\tnots p2.b, p1/z, p2.b\n\tb.any 1f\n\tstr z31, [sp, #2, mul vl]\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n"
	"\tindex z31.b, #\\n - 16, #1\n\tcmpne p2.b, p1/z, z31.b, z\\n\\().b\n\tb.any 1f\n.endr\n"
	"\tldr z31, [sp, #2, mul vl]\n\tindex z0.b, #15, #1\n\tcmpne p2.b, p1/z, z31.b, z0.b\n\tb.any 1f\n"
	"\tmov w0, #0\n1:\taddvl sp, sp, #3\n"
	"\tldp d14, d15, [sp, #48]\n\tldp d12, d13, [sp, #32]\n\tldp d10, d11, [sp, #16]\n"
	"\tldp d8, d9, [sp], #64\n\tret\n.size keeps_sve, . - keeps_sve\n"
	NOTE("ftrtest_sve", "kept", ""));

#elif defined(__powerpc64__)

__asm__(".text\n.type wide, @function\nwide:\n\tmr 9, 3\n990:\tnop\n\taddi 3, 9, 1\n\tblr\n"
	".size wide, . - wide\n"
	NOTE("ftrtest", "wide", "-4@3 1@%r3 -1@3 4@i-1 8f@f1 3@3 8@8(3)"));

__asm__(".text\n.type floats, @function\nfloats:\n\tli 9, 1\n990:\tnop\n\taddi 3, 9, 1\n\tblr\n"
	".size floats, . - floats\n"
	NOTE("ftrtest_floats", "floats", "8f@f1 -4f@%f2 4f@0(5) 8f@f32 4@9 2f@f1 8f@8(9)"));

#define GENERAL "0,3,4,5,6,7,8,9,10,11,12,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
__asm__(".text\n.type keeps_all, @function\nkeeps_all:\n"
	"\tmflr 0\n\tstd 0, 16(1)\n\tmfcr 0\n\tstw 0, 8(1)\n\tstdu 1, -608(1)\n"
	".irp n,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"\tstd \\n, 8 * \\n - 80(1)\n\tstfd \\n, 8 * \\n + 64(1)\n.endr\n"
	".irp n,20,21,22,23,24,25,26,27,28,29,30,31\n\tli 3, 16 * \\n + 16\n\tstvx \\n, 1, 3\n.endr\n"
	".irp n," TO_31 "\tli 3, \\n\n\tstd 3, -64(1)\n\tlfd \\n, -64(1)\n\tvspltisw \\n, \\n - 16\n.endr\n"
	"\tlis 3, 0x5a5a\n\tori 3, 3, 0x5a5a\n\tmtcr 3\n\tlis 3, 0x2000\n\tmtxer 3\n"
	"\tli 3, 0x77\n\tmtctr 3\n\tli 3, 0x78\n\tmtlr 3\n"
	".irp n," GENERAL "\tli \\n, 0x100 + \\n\n.endr\n"
	"\tstd 31, -8(1)\n\tstd 31, -288(1)\n"
	"990:\tnop\n"
	"\tstd 0, -24(1)\n\tmfcr 0\n\tstd 0, -32(1)\n"
	".irp n,3,4,5,6,7,8,9,10,11,12,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"\tcmpdi \\n, 0x100 + \\n\n\tbne 1f\n.endr\n"
	"\tld 0, -24(1)\n\tcmpdi 0, 0x100\n\tbne 1f\n"
	"\tld 0, -8(1)\n\tcmpd 0, 31\n\tbne 1f\n\tld 0, -288(1)\n\tcmpd 0, 31\n\tbne 1f\n"
	"\tlis 3, 0x5a5a\n\tori 3, 3, 0x5a5a\n\tld 0, -32(1)\n\tcmplw 0, 3\n\tbne 1f\n"
	"\tlis 3, 0x2000\n\tmfxer 0\n\tcmpld 0, 3\n\tbne 1f\n"
	"\tmfctr 0\n\tcmpdi 0, 0x77\n\tbne 1f\n\tmflr 0\n\tcmpdi 0, 0x78\n\tbne 1f\n"
	"\tli 4, -96\n"
	".irp n," TO_31 "\tstfd \\n, -64(1)\n\tld 3, -64(1)\n\tcmpdi 3, \\n\n\tbne 1f\n"
	"\tstvx \\n, 1, 4\n\tlwz 3, -96(1)\n\tcmpwi 3, \\n - 16\n\tbne 1f\n"
	"\tlwz 3, -84(1)\n\tcmpwi 3, \\n - 16\n\tbne 1f\n.endr\n"
	"\tli 3, 0\n\tb 2f\n1:\tli 3, 1\n2:\n"
	".irp n,20,21,22,23,24,25,26,27,28,29,30,31\n\tli 4, 16 * \\n + 16\n\tlvx \\n, 1, 4\n.endr\n"
	".irp n,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"\tld \\n, 8 * \\n - 80(1)\n\tlfd \\n, 8 * \\n + 64(1)\n.endr\n"
	"\taddi 1, 1, 608\n\tlwz 0, 8(1)\n\tmtcr 0\n\tld 0, 16(1)\n\tmtlr 0\n\tblr\n"
	".size keeps_all, . - keeps_all\n"
	NOTE("ftrtest", "kept", "8@31"));

__asm__(".text\n.type spoil_registers, @function\nspoil_registers:\n"
	".irp n,0,3,4,5,6,7,8,9,10,11,12\n\tli \\n, 7\n.endr\n\tmtctr 3\n\tmtxer 3\n\tmtcrf 0xc7, 3\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n\txxlxor \\n, \\n, \\n\n.endr\n"
	".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19\n\tvxor \\n, \\n, \\n\n.endr\n"
	"\tblr\n.size spoil_registers, . - spoil_registers\n");

#endif
#endif
