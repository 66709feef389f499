/* SPDX-License-Identifier: MIT */
/*
 * Vectors of 64 bytes, and mask registers kept over a call into assembler code.
 *
 * flags: -O2 -mavx512f -mavx512bw
 * flags: clang -O2 -mavx512f -mavx512bw -mprefer-vector-width=512
 * needs: x86_64 avx512f avx512bw
 * expect: add64 calls=3
 * expect: many64 calls=3
 * expect: leave_masks calls=3
 */
#include "target.h"

#include <stdint.h>

typedef double v8 __attribute__((vector_size(64)));

static NOIPA v8 add64(v8 a, v8 b)
{
	HIT();
	return a + b;
}

static NOIPA v8 many64(v8 a, v8 b, v8 c, v8 d, v8 e, v8 f, v8 g, v8 h, v8 i)
{
	HIT();
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}

void leave_masks(void);
extern unsigned long leave_masks_calls;
__asm__(".text\n.globl leave_masks\n.type leave_masks, @function\n"
	"leave_masks: incq leave_masks_calls(%rip)\nret\n.size leave_masks, .-leave_masks\n"
	".bss\n.globl leave_masks_calls\nleave_masks_calls: .zero 8\n.text\n");

/* k1, k7 and zmm31 over a call that touches none of them. */
static int masks_survive(void)
{
	uint64_t k1 = 0x0123456789abcdef, k7 = 0xfedcba9876543210, upper;

	__asm__ volatile("kmovq %0, %%k1\n\tkmovq %1, %%k7\n\t"
			 "vpternlogd $0xff, %%zmm31, %%zmm31, %%zmm31\n\t"
			 "sub $128, %%rsp\n\tcall leave_masks\n\tadd $128, %%rsp\n\t"
			 "kmovq %%k1, %0\n\tkmovq %%k7, %1\n\t"
			 "vextracti64x4 $1, %%zmm31, %%ymm30\n\tvmovq %%xmm30, %2"
			 : "+r"(k1), "+r"(k7), "=r"(upper)
			 :
			 : "k1", "k7", "xmm30", "xmm31", "memory", "cc");
	return k1 == 0x0123456789abcdef && k7 == 0xfedcba9876543210 && upper == ~0ul;
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		v8 x = {i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7};

		CHECK(masks_survive());
		x = add64(x, x);
		x = many64(x, x, x, x, x, x, x, x, x);
		printf("%g %g %g %g\n", x[0], x[1], x[6], x[7]);
	}
	printf("calls leave_masks %lu\n", leave_masks_calls);
	hits("");
	return 0;
}
