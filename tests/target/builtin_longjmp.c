/* SPDX-License-Identifier: MIT */
/*
 * Non-local jumps without a library call: __builtin_longjmp, and one by hand that restores only the
 * stack pointer.
 *
 * flags: -O2
 * flags: -O0
 * expect: jump calls=50 returned=0 unwound=50
 * expect: middle calls=50 returned=0 unwound=50
 * expect: catch calls=50
 * expect: by_hand calls=50 returned=0 unwound=50
 * expect: call_saving returned=50
 * expect: catch_by_hand calls=50
 * expect: plain calls=100
 */
#include "target.h"

static void *env[5];

static NOIPA void plain(void)
{
	HIT();
}

static NOIPA void jump(void)
{
	HIT();
	__builtin_longjmp(env, 1);
}

static NOIPA int middle(void)
{
	HIT();
	OPAQUE(jump)();
	return 1;
}

static NOIPA int catch(void)
{
	HIT();
	if (__builtin_setjmp(env) == 0)
		return OPAQUE(middle)();
	plain();
	return 0;
}

/* call_saving(f) calls f; leave_all() goes back to where call_saving() would return. */
void call_saving(void (*f)(void));
__attribute__((noreturn)) void leave_all(void);
#if defined(__x86_64__)
__asm__(".text\n.globl call_saving, leave_all\n"
	".type call_saving, @function\n.type leave_all, @function\n"
	"call_saving:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\t"
	"push %r15\n\tsub $8, %rsp\n\tmov %rsp, saved_stack(%rip)\n\tcall *%rdi\n"
	"left:\n\tadd $8, %rsp\n\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\t"
	"pop %rbp\n\tpop %rbx\n\tret\n.size call_saving, .-call_saving\n"
	"leave_all:\n\tmov saved_stack(%rip), %rsp\n\tjmp left\n.size leave_all, .-leave_all\n"
	".bss\nsaved_stack: .zero 8\n.text\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl call_saving, leave_all\n"
	".type call_saving, %function\n.type leave_all, %function\n"
	"call_saving:\n\tstp x29, x30, [sp, #-160]!\n\tstp x19, x20, [sp, #16]\n\t"
	"stp x21, x22, [sp, #32]\n\tstp x23, x24, [sp, #48]\n\tstp x25, x26, [sp, #64]\n\t"
	"stp x27, x28, [sp, #80]\n\tstp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n\t"
	"stp d12, d13, [sp, #128]\n\tstp d14, d15, [sp, #144]\n\t"
	"mov x9, sp\n\tadrp x10, saved_stack\n\tstr x9, [x10, :lo12:saved_stack]\n\tblr x0\n"
	"left:\n\tldp d14, d15, [sp, #144]\n\tldp d12, d13, [sp, #128]\n\t"
	"ldp d10, d11, [sp, #112]\n\tldp d8, d9, [sp, #96]\n\tldp x27, x28, [sp, #80]\n\t"
	"ldp x25, x26, [sp, #64]\n\tldp x23, x24, [sp, #48]\n\tldp x21, x22, [sp, #32]\n\t"
	"ldp x19, x20, [sp, #16]\n\tldp x29, x30, [sp], #160\n\tret\n"
	".size call_saving, .-call_saving\n"
	"leave_all:\n\tadrp x9, saved_stack\n\tldr x9, [x9, :lo12:saved_stack]\n\tmov sp, x9\n\t"
	"b left\n.size leave_all, .-leave_all\n"
	".bss\n.balign 8\nsaved_stack: .zero 8\n.text\n");
#else
__asm__(".text\n.globl call_saving, leave_all\n"
	".type call_saving, @function\n.type leave_all, @function\n"
	"call_saving:\n0:\taddis 2, 12, .TOC.-0b@ha\n\taddi 2, 2, .TOC.-0b@l\n"
	".localentry call_saving, .-call_saving\n\t"
	"mflr 0\n\tstd 0, 16(1)\n\tmfcr 0\n\tstd 0, 8(1)\n\tstdu 1, -176(1)\n\t"
	".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
	"std \\n, (\\n - 10) * 8(1)\n\t.endr\n\t"
	"addis 9, 2, saved_stack@toc@ha\n\tstd 1, saved_stack@toc@l(9)\n\t"
	"mr 12, 3\n\tmtctr 12\n\tbctrl\n"
	"left:\n\t"
	".irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
	"ld \\n, (\\n - 10) * 8(1)\n\t.endr\n\t"
	"addi 1, 1, 176\n\tld 0, 8(1)\n\tmtcrf 0x38, 0\n\tld 0, 16(1)\n\tmtlr 0\n\tblr\n"
	".size call_saving, .-call_saving\n"
	"leave_all:\n1:\taddis 2, 12, .TOC.-1b@ha\n\taddi 2, 2, .TOC.-1b@l\n"
	".localentry leave_all, .-leave_all\n\t"
	"addis 9, 2, saved_stack@toc@ha\n\tld 1, saved_stack@toc@l(9)\n\tb left\n"
	".size leave_all, .-leave_all\n"
	".bss\n.balign 8\nsaved_stack: .zero 8\n.text\n");
#endif

static NOIPA void by_hand(void)
{
	HIT();
	leave_all();
}

static NOIPA int catch_by_hand(void)
{
	HIT();
	call_saving(by_hand);
	OPAQUE(plain)();
	return 0;
}

int main(void)
{
	for (int i = 0; i < 50; i++) {
		CHECK(OPAQUE(catch)() == 0);
		CHECK(OPAQUE(catch_by_hand)() == 0);
	}
	hits("");
	return 0;
}
