/* SPDX-License-Identifier: MIT */
/*
 * Functions of the same name in the program and in a library, and two names for one function: no
 * call is booked on a wrong name.
 *
 * flags: -O2 -ldl
 * library: same_name_lib.c -O0
 * expect: helper calls=100
 * expect: alias_a calls=200
 * expect: alias_b calls=200
 */
#include "target.h"

#include <dlfcn.h>

static NOIPA int helper(int x)
{
	HIT();
	return x + 1;
}

NOIPA int alias_a(int x);
NOIPA int alias_a(int x)
{
	HIT();
	return x * 2;
}

int alias_b(int x) __attribute__((alias("alias_a")));

int main(void)
{
	char path[500];
	int (*work)(int);
	long sum = 0;

	snprintf(path, sizeof(path), "%s/same_name_lib.so", getenv("TARGET_DIR"));
	work = (int (*)(int))dlsym(dlopen(path, RTLD_NOW), "lib_work");
	CHECK(work);
	for (int i = 0; i < 100; i++)
		sum += helper(i) + work(i) + alias_a(i) + OPAQUE(alias_b)(i);
	printf("%ld\n", sum);
	hits("");
	return 0;
}
