/* SPDX-License-Identifier: MIT */
/*
 * Assembly around the place of a static probe: all registers are filled and the red zone used, and behind
 * it compared. A function of these two returns 0 if all are the same; label 1 is where they are not.
 */
#ifndef PROBE_REGISTERS_X86_64_H
#define PROBE_REGISTERS_X86_64_H

#define FILL_REGISTERS                                                                          \
	"\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"        \
	"\tmov $0x0101, %eax\n\tmov %rax, %rbx\n\tmov %rax, %rcx\n\tmov %rax, %rdx\n"           \
	"\tmov %rax, %rsi\n\tmov %rax, %rdi\n\tmov %rax, %rbp\n\tmov %rax, %r8\n\tmov %rax, %r9\n" \
	"\tmov %rax, %r10\n\tmov %rax, %r11\n\tmov %rax, %r12\n\tmov %rax, %r13\n\tmov %rax, %r14\n" \
	"\tmov %rax, %r15\n"                                                                    \
	"\tmovq %rax, %xmm0\n\tmovq %rax, %xmm7\n\tmovq %rax, %xmm15\n\tfld1\n"                 \
	"\tmov %rax, -8(%rsp)\n\tmov %rax, -128(%rsp)\n"                                        \
	"\tstc\n"

#define COMPARE_REGISTERS                                                                       \
	"\tcmp %rax, -8(%rsp)\n\tjne 1f\n\tcmp %rax, -128(%rsp)\n\tjne 1f\n"                    \
	"\tcmp $0x0101, %rax\n\tjne 1f\n\tcmp %rax, %rbx\n\tjne 1f\n\tcmp %rax, %rcx\n\tjne 1f\n" \
	"\tcmp %rax, %rdx\n\tjne 1f\n\tcmp %rax, %rsi\n\tjne 1f\n\tcmp %rax, %rdi\n\tjne 1f\n"  \
	"\tcmp %rax, %rbp\n\tjne 1f\n\tcmp %rax, %r8\n\tjne 1f\n\tcmp %rax, %r9\n\tjne 1f\n"    \
	"\tcmp %rax, %r10\n\tjne 1f\n\tcmp %rax, %r11\n\tjne 1f\n\tcmp %rax, %r12\n\tjne 1f\n"  \
	"\tcmp %rax, %r13\n\tjne 1f\n\tcmp %rax, %r14\n\tjne 1f\n\tcmp %rax, %r15\n\tjne 1f\n"  \
	"\tmovq %xmm0, %rcx\n\tcmp %rax, %rcx\n\tjne 1f\n\tmovq %xmm7, %rcx\n\tcmp %rax, %rcx\n" \
	"\tjne 1f\n\tmovq %xmm15, %rcx\n\tcmp %rax, %rcx\n\tjne 1f\n"                           \
	"\tsub $16, %rsp\n\tfistpl (%rsp)\n\tmov (%rsp), %ecx\n\tadd $16, %rsp\n\tcmp $1, %ecx\n" \
	"\tjne 1f\n\txor %eax, %eax\n\tjmp 2f\n1:\tmov $1, %eax\n2:\tpop %r15\n\tpop %r14\n"    \
	"\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n"

#endif
