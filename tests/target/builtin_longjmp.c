/* SPDX-License-Identifier: MIT */
/*
 * Non-local jumps without a library call: __builtin_longjmp, and one by hand that restores only the
 * stack pointer.
 *
 * flags: -O2
 * flags: -O0
 * needs: x86_64
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
__asm__(".text\n.globl call_saving, leave_all\n"
	".type call_saving, @function\n.type leave_all, @function\n"
	"call_saving:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\t"
	"push %r15\n\tsub $8, %rsp\n\tmov %rsp, saved_stack(%rip)\n\tcall *%rdi\n"
	"left:\n\tadd $8, %rsp\n\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\t"
	"pop %rbp\n\tpop %rbx\n\tret\n.size call_saving, .-call_saving\n"
	"leave_all:\n\tmov saved_stack(%rip), %rsp\n\tjmp left\n.size leave_all, .-leave_all\n"
	".bss\nsaved_stack: .zero 8\n.text\n");

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
