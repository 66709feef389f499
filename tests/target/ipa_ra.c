/* SPDX-License-Identifier: MIT */
/*
 * Callers that know which caller-saved registers a local function leaves alone: gcc's -fipa-ra, and
 * the same by hand with every caller-saved register. (On powerpc gcc has no -fipa-ra; by hand these are
 * the registers of arguments.)
 *
 * flags: -O2
 * flags: -O3 -fipa-ra -fno-ipa-icf
 * flags: -Os
 * needs: gcc
 * expect: local_leaf calls=3000
 * expect: by_hand_leaf calls=3000
 * expect: keeps_all calls=1000
 * expect: local_float calls=2000
 */
#include "target.h"

#include <stdint.h>

static volatile long sink;
unsigned long by_hand_leaf_calls;

__attribute__((noinline, noclone)) static long local_leaf(long x)
{
	HIT();
	return x + sink;
}

/* Many values live across calls of a leaf that needs few registers. */
NOIPA long keeps_all(long a, long b, long c, long d, long e, long f)
{
	long x, y, z;

	HIT();
	x = local_leaf(a);
	y = local_leaf(b + x);
	z = local_leaf(c + y);
	return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + x * 17 + y * 19 + z * 23;
}

/* The same with floating-point registers. */
__attribute__((noinline, noclone)) static double local_float(double x)
{
	HIT();
	return x + 0.5;
}

NOIPA double keeps_floats(double a, double b, double c, double d, double e, double f)
{
	double x = local_float(a), y = local_float(b);

	return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + x * 17 + y * 19;
}

/* REGISTERS(R): register 0 is argument and result, the others are kept. CALLS: three of them. */
#if defined(__x86_64__)
__asm__(".text\n.type by_hand_leaf, @function\n"
	"by_hand_leaf: incq by_hand_leaf_calls(%rip)\n\tlea 1(%rax), %rax\n\tret\n"
	".size by_hand_leaf, .-by_hand_leaf\n");
#define REGISTERS(R)                                                                               \
	R(1, "rcx") R(2, "rdx") R(3, "rsi") R(4, "rdi") R(5, "r8") R(6, "r9") R(7, "r10") R(8, "r11")
#define FIRST "rax"
#define CALLS                                                                                      \
	"sub $128, %%rsp\n\tcall by_hand_leaf\n\tcall by_hand_leaf\n\tcall by_hand_leaf\n\t"       \
	"add $128, %%rsp"
#define LOST
#elif defined(__aarch64__)
__asm__(".text\n.type by_hand_leaf, %function\n"
	"by_hand_leaf: adrp x16, by_hand_leaf_calls\n\tldr x17, [x16, :lo12:by_hand_leaf_calls]\n\t"
	"add x17, x17, 1\n\tstr x17, [x16, :lo12:by_hand_leaf_calls]\n\tadd x0, x0, 1\n\tret\n"
	".size by_hand_leaf, .-by_hand_leaf\n");
#define REGISTERS(R)                                                                               \
	R(1, "x1") R(2, "x2") R(3, "x3") R(4, "x4") R(5, "x5") R(6, "x6") R(7, "x8") R(8, "x9")    \
	R(9, "x10") R(10, "x11") R(11, "x12") R(12, "x13") R(13, "x14") R(14, "x15")
#define FIRST "x0"
#define CALLS "bl by_hand_leaf\n\tbl by_hand_leaf\n\tbl by_hand_leaf"
#define LOST  , "x16", "x17", "x30"
#else
__asm__(".text\n.type by_hand_leaf, @function\n"
	"by_hand_leaf: addis 11, 2, by_hand_leaf_calls@toc@ha\n\tld 12, by_hand_leaf_calls@toc@l(11)\n\t"
	"addi 12, 12, 1\n\tstd 12, by_hand_leaf_calls@toc@l(11)\n\taddi 3, 3, 1\n\tblr\n"
	".size by_hand_leaf, .-by_hand_leaf\n");
#define REGISTERS(R) R(1, "r4") R(2, "r5") R(3, "r6") R(4, "r7")
#define FIRST "r3"
#define CALLS                                                                                      \
	"stdu 1, -512(1)\n\tbl by_hand_leaf\n\tbl by_hand_leaf\n\tbl by_hand_leaf\n\t"             \
	"addi 1, 1, 512"
#define LOST , "lr", "r0", "r8", "r9", "r10", "r11", "r12", "xer"
#endif

static NOIPA int by_hand(long seed)
{
#define DECLARED(n, name) register long k##n __asm__(name) = seed + (n);
#define OPERAND(n, name) , "+r"(k##n)
#define CHECKED(n, name) good &= k##n == seed + (n);
	register long k0 __asm__(FIRST) = seed;
	int good;

	REGISTERS(DECLARED)
	__asm__ volatile(CALLS : "+r"(k0) REGISTERS(OPERAND) : : "memory", "cc" LOST);
	good = k0 == seed + 3;
	REGISTERS(CHECKED)
	return good;
}

int main(void)
{
	double floats = 0;
	long sum = 0;

	for (int i = 0; i < 1000; i++) {
		sum += keeps_all(i, 1, 2, 3, 4, 5);
		floats += keeps_floats(i, 1, 2, 3, 4, 5);
		CHECK(by_hand(i * 1000003L));
	}
	printf("%ld %g\n", sum, floats);
	printf("calls by_hand_leaf %lu\n", by_hand_leaf_calls);
	hits("");
	return 0;
}
