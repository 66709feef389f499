/* SPDX-License-Identifier: MIT */
/*
 * Plain calls, recursion and callbacks, built in every way that changes what an entry looks like.
 *
 * flags: -O2
 * flags: -O0
 * flags: -O1
 * flags: -O3
 * flags: -Os
 * flags: clang -O0
 * flags: clang -O2
 * flags: clang -Oz
 * flags: -O2 -fno-pie -no-pie
 * flags: x86_64: -O2 -fcf-protection=full
 * flags: x86_64: -O2 -fcf-protection=none
 * flags: x86_64,arm64: -O2 -fpatchable-function-entry=5
 * flags: x86_64,arm64: -O2 -fpatchable-function-entry=16,3
 * flags: x86_64,arm64: clang -O2 -fpatchable-function-entry=5
 * flags: x86_64: -O2 -pg -mfentry -mnop-mcount -fno-pie -no-pie
 * flags: -O2 -fomit-frame-pointer -fno-align-functions
 * flags: -O2 -fno-omit-frame-pointer -fstack-protector-all
 * flags: -O2 -fstack-clash-protection -D_FORTIFY_SOURCE=2
 * flags: -O2 -fno-asynchronous-unwind-tables
 * flags: -O2 -ffunction-sections -Wl,--gc-sections
 * flags: -O2 -flto
 * flags: x86_64: -O2 -fsplit-stack
 * flags: x86_64: -O2 -mindirect-branch=thunk -mfunction-return=thunk -fcf-protection=none
 * flags: -O2 -Wl,-z,separate-code -Wl,-z,now
 * flags: -O2 -Wl,-z,noseparate-code -Wl,--hash-style=sysv
 * flags: clang -O2 -mllvm -enable-tail-merge
 * flags: x86_64: -O2 -march=native
 * flags: x86_64: -O2 -mcmodel=large -fno-pie -no-pie
 * flags: -O2 -fno-plt -Wl,-z,max-page-size=65536
 * flags: -O2 -Wl,--emit-relocs -gz -Wl,--build-id=none
 * flags: -O2 -fuse-ld=gold
 * flags: x86_64: -Os -fno-align-functions -falign-functions=1 -fcf-protection=none
 * flags: -O1 -fsanitize=undefined
 * flags: x86_64: clang -O1 -fsanitize=address,undefined
 * flags: -O0 -fprofile-arcs -ftest-coverage
 * flags: arm64: -O2 -mbranch-protection=standard
 * flags: arm64: -O2 -mbranch-protection=pac-ret+leaf+b-key
 * flags: arm64: -O3 -march=armv8.5-a+sve2
 * flags: arm64: -O2 -mcmodel=large -fno-pie -no-pie
 * flags: arm64: clang -O2 -mbranch-protection=standard
 * flags: powerpc: -O2 -mcpu=power10
 * flags: powerpc: -O2 -mcpu=power10 -mrop-protect
 * flags: powerpc: -O2 -mcmodel=large
 * flags: powerpc: -Os -mcpu=power9
 * flags: powerpc: clang -O2 -mcpu=power10
 * cross: yes
 * expect: factorial calls=11
 * expect: fibonacci calls=465
 * expect: ackermann calls=44
 * expect: compare_ints calls=7
 * expect: even calls=6
 * expect: odd calls=5
 * expect: main calls=1 returned=1
 * absent: never_called
 */
#include "target.h"

#include <string.h>

static NOIPA unsigned long factorial(unsigned n)
{
	HIT();
	return n ? n * OPAQUE(factorial)(n - 1) : 1;
}

static NOIPA unsigned fibonacci(unsigned n)
{
	HIT();
	return n < 2 ? n : OPAQUE(fibonacci)(n - 1) + OPAQUE(fibonacci)(n - 2);
}

static NOIPA unsigned ackermann(unsigned m, unsigned n)
{
	HIT();
	if (!m)
		return n + 1;
	return OPAQUE(ackermann)(m - 1, n ? OPAQUE(ackermann)(m, n - 1) : 1);
}

static NOIPA int compare_ints(const void *a, const void *b)
{
	HIT();
	return *(const int *)a - *(const int *)b;
}

static NOIPA int odd(unsigned n);

static NOIPA int even(unsigned n)
{
	HIT();
	return n ? odd(n - 1) : 1;
}

static NOIPA int odd(unsigned n)
{
	HIT();
	return n ? even(n - 1) : 0;
}

__attribute__((used)) static NOIPA void never_called(void)
{
	puts("never");
}

int main(void)
{
	int sorted[11], key = 64;

	printf("%lu %u %u\n", factorial(10), fibonacci(12), ackermann(2, 3));
	for (int i = 0; i < 11; i++)
		sorted[i] = i * i;
	for (int times = 0; times < 3; times++)
		CHECK(bsearch(&key, sorted, 11, sizeof(int), compare_ints) == &sorted[8]);
	key = 0;
	CHECK(bsearch(&key, sorted, 1, sizeof(int), compare_ints) == sorted);
	CHECK(even(10));
	hits("");
	return 0;
}
