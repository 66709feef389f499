/* SPDX-License-Identifier: MIT */
/*
 * 64 MiB of functions: further apart than powerpc's branches reach. Those near both ends are reached
 * by branches, others by way of islands in the padding between functions, and what is left is said
 * to be out of reach. All of them do what they did.
 *
 * flags: powerpc: -O2
 * flags: powerpc: -O2 -fno-pie -no-pie
 * needs: powerpc
 * mode: count
 * env: FTR_VERBOSE=1
 * says: out of reach
 * expect: f0 calls=2
 * expect: f4000 calls=2
 * maybe: f16384 calls=2
 * maybe: f32767 calls=2
 * timeout: 300
 */
#include "target.h"

#define FUNCTIONS 32768
#define STRIDE	  2048

#ifndef SOLID
#define SOLID "\\n - \\n / 2 * 2" /* every other one */
#endif

/* Two instructions, what stands for the description of a function, and padding behind every other. */
__asm__(".altmacro\n"
	".macro function n\n"
	"	.set solid, " SOLID "\n"
	"	.globl f\\n\n"
	"	.type f\\n, @function\n"
	"f\\n:	addi 3, 3, \\n - \\n / 8 * 8\n"
	"	blr\n"
	"	.skip 2024 + solid * 16\n"
	"	.size f\\n, . - f\\n\n"
	"	.rept 4 - solid * 4\n"
	"	nop\n"
	"	.endr\n"
	".endm\n"
	".set i, 0\n"
	".rept 32768\n"
	"	function %i\n"
	"	.set i, i + 1\n"
	".endr\n"
	".noaltmacro\n");

long f0(long n);

static long call(int i, long n)
{
	long (*f)(long) = (long (*)(long))((char *)OPAQUE(f0) + (long)i * STRIDE);

	return f(n);
}

int main(void)
{
	static const int named[] = { 0, 4000, 16384, 32767 };

	for (int times = 0; times < 2; times++)
		for (int i = 0; i < FUNCTIONS; i++)
			CHECK(call(i, i) == i + (i & 7));
	for (unsigned i = 0; i < sizeof(named) / sizeof(*named); i++)
		printf("calls f%d 2\n", named[i]);
	return 0;
}
