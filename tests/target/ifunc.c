/* SPDX-License-Identifier: MIT */
/*
 * Indirect functions: the resolver runs before anything is ready, its choice is an ordinary
 * function.
 *
 * flags: -O2
 * flags: -O2 -Wl,-z,now
 * flags: -O2 -fno-pie -no-pie
 * flags: clang -O2
 * expect: chosen calls=100
 */
#include "target.h"

static NOIPA int chosen(int x)
{
	HIT();
	return x + 1;
}

static NOIPA int not_chosen(int x)
{
	return x - 1;
}

static __attribute__((used)) int (*resolve(void))(int)
{
	static volatile int which = 1;

	return which ? chosen : not_chosen;
}

int indirect(int x) __attribute__((ifunc("resolve")));

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum += indirect(i);
	printf("%ld\n", sum);
	hits("");
	return 0;
}
