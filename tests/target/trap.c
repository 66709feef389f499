/* SPDX-License-Identifier: MIT */
/*
 * FTR_PATCH=trap: functions without room for a jump are hooked by a breakpoint; an int3 of the
 * program's own still ends it.
 *
 * flags: -O2
 * env: FTR_PATCH=trap
 * needs: x86_64
 * exit: signal 5
 * expect: one_byte calls=100
 * expect: next_to_it calls=100
 * expect: main calls=1 open=1
 */
#include "target.h"

void one_byte(void);
void next_to_it(void);
__asm__(".text\n.balign 16\n.globl one_byte, next_to_it\n.type one_byte, @function\n"
	".type next_to_it, @function\none_byte:\n\tret\n.size one_byte, .-one_byte\n"
	"next_to_it:\n\tret\n.size next_to_it, .-next_to_it\n.globl third\n.type third, @function\n"
	"third:\n\tnop\n\tret\n.size third, .-third\n");

int main(void)
{
	unsigned long calls = 0;

	for (int i = 0; i < 100; i++, calls++) {
		one_byte();
		next_to_it();
	}
	printf("calls one_byte %lu\ncalls next_to_it %lu\ncalls main 1\n", calls, calls);
	fflush(stdout);
	__asm__ volatile("int3");
	return 0;
}
