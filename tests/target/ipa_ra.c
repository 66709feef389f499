/* SPDX-License-Identifier: MIT */
/*
 * Callers that know which caller-saved registers a local function leaves alone: gcc's -fipa-ra, and
 * the same by hand with every caller-saved register.
 *
 * flags: -O2
 * flags: -O3 -fipa-ra -fno-ipa-icf
 * flags: -Os
 * needs: x86_64 gcc
 * expect: local_leaf calls=3000
 * expect: by_hand_leaf calls=3000
 * expect: keeps_all calls=1000
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

__asm__(".text\n.type by_hand_leaf, @function\n"
	"by_hand_leaf: incq by_hand_leaf_calls(%rip)\n\tlea 1(%rax), %rax\n\tret\n"
	".size by_hand_leaf, .-by_hand_leaf\n");

static NOIPA int by_hand(long seed)
{
	register long rcx __asm__("rcx") = seed + 1, rdx __asm__("rdx") = seed + 2,
			  rsi __asm__("rsi") = seed + 3, rdi __asm__("rdi") = seed + 4,
			  r8 __asm__("r8") = seed + 5, r9 __asm__("r9") = seed + 6,
			  r10 __asm__("r10") = seed + 7, r11 __asm__("r11") = seed + 8,
			  rax __asm__("rax") = seed;

	__asm__ volatile("sub $128, %%rsp\n\tcall by_hand_leaf\n\tcall by_hand_leaf\n\t"
			 "call by_hand_leaf\n\tadd $128, %%rsp"
			 : "+r"(rax), "+r"(rcx), "+r"(rdx), "+r"(rsi), "+r"(rdi), "+r"(r8), "+r"(r9),
			 "+r"(r10), "+r"(r11)
			 :
			 : "memory", "cc");
	return rax == seed + 3 && rcx == seed + 1 && rdx == seed + 2 && rsi == seed + 3 &&
		rdi == seed + 4 && r8 == seed + 5 && r9 == seed + 6 && r10 == seed + 7 &&
		r11 == seed + 8;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 1000; i++) {
		sum += keeps_all(i, 1, 2, 3, 4, 5);
		CHECK(by_hand(i * 1000003L));
	}
	printf("%ld\n", sum);
	printf("calls by_hand_leaf %lu\n", by_hand_leaf_calls);
	hits("");
	return 0;
}
