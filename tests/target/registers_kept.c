/* SPDX-License-Identifier: MIT */
/*
 * Every register that the ABI leaves to callees, set before calls of a function that changes none of
 * them and compared afterwards: registers.c for other CPUs than x86_64.
 *
 * flags: arm64: -O2 registers_kept_arm64.S
 * flags: powerpc: -O2 -mcpu=power9 registers_kept_powerpc.S
 * expect: by_hand_leaf calls=3000
 * expect: by_hand calls=1000
 */
#include "target.h"

#include <stdint.h>

#define WORDS 84

#if defined(__aarch64__)
#define FLAGS	    16
#define FLAGS_VALUE 0xa0000000 /* N, C */
#else
#define FLAGS	    14
#define FLAGS_VALUE 0xe0000000 /* SO, OV, CA of XER */
#define CR	    13
#endif

/* In registers_kept_CPU.S, which says what each word is. */
void by_hand(const uint64_t in[WORDS], uint64_t out[WORDS]);
extern unsigned long by_hand_leaf_calls;
unsigned long by_hand_leaf_calls;

#if defined(__aarch64__)
void by_hand_pair(uint64_t out[2]);

static int keeps_results(void)
{
	uint64_t out[2] = { 0 };

	by_hand_pair(out);
	return out[0] == 0x1616 && out[1] == 0x1717;
}
#else
static int keeps_results(void)
{
	return 1;
}
#endif

static int keeps(uint64_t seed)
{
	uint64_t in[WORDS] __attribute__((aligned(16))), out[WORDS] __attribute__((aligned(16)));

	for (uint64_t i = 0; i < WORDS; i++)
		in[i] = out[i] = (seed + i) * 0x9e3779b97f4a7c15;
	in[FLAGS] = FLAGS_VALUE;
#if defined(CR)
	in[CR] &= 0xffffffff;
#endif
	by_hand(in, out);
	for (unsigned int i = 0; i < WORDS; i++)
		if (in[i] != out[i]) {
			printf("word %u: %llx, not %llx\n", i, (unsigned long long)out[i], (unsigned long long)in[i]);
			return 0;
		}
	return 1;
}

int main(void)
{
	for (int i = 0; i < 1000; i++)
		CHECK(keeps((uint64_t)i * 1000003) && keeps_results());
	printf("calls by_hand_leaf %lu\ncalls by_hand 1000\n", by_hand_leaf_calls);
	return 0;
}
