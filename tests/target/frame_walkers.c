/* SPDX-License-Identifier: MIT */
/*
 * Runtimes that look up the return addresses they find on the stack must find their own: the code
 * of an OCaml unit, and whatever a Java virtual machine has; both are known by their labels. And a
 * function with a nop in front is entered behind that, as Go enters runtime.goexit.
 *
 * flags: x86_64: -O2 -DOCAML
 * flags: x86_64: -O2 -DJAVA
 * flags: x86_64: -O0 -DOCAML -fno-pie -no-pie
 * expect: unit_outer calls=10
 * expect: unit_inner calls=10
 * expect: looks calls=10
 * expect: behind_nop calls=20
 */
#include "target.h"

void unit_outer(void);
void behind_nop(void);
void looks(void **inner);

extern char back_in_outer[];

#ifdef OCAML
#define BEGIN "camlUnit__code_begin"
#define END   "camlUnit__code_end"
#else
#define BEGIN "JNI_CreateJavaVM"
#define END   "machine_end"
#endif

__asm__(".pushsection .text\n"
	".globl " BEGIN ", " END ", unit_outer, unit_inner, behind_nop, back_in_outer\n"
#ifdef JAVA
	".type " BEGIN ", @function\n"
#endif
	".type unit_outer, @function\n"
	".type unit_inner, @function\n"
	".type behind_nop, @function\n" BEGIN ":\n"
	"	nop\n"
	"unit_outer:\n"
	"	sub $8, %rsp\n"
	"	call unit_inner\n"
	"back_in_outer:\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size unit_outer, . - unit_outer\n"
	"unit_inner:\n"
	"	sub $8, %rsp\n"
	"	lea 8(%rsp), %rdi\n"
	"	call looks@PLT\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size unit_inner, . - unit_inner\n" END ":\n"
	"	ud2\n"
	".p2align 4\n"
	"behind_nop:\n"
	"	nop\n"
	"	movl $1, %eax\n"
	"	ret\n"
	".size behind_nop, . - behind_nop\n"
	".popsection\n");

NOIPA void looks(void **inner)
{
	HIT();
	CHECK(*inner == back_in_outer);
}

int main(void)
{
	char *entry = (char *)OPAQUE(behind_nop);

	for (int i = 0; i < 10; i++) {
		unit_outer();
		behind_nop();
		((void (*)(void))(entry + 1))();
	}
	hits("");
	return 0;
}
