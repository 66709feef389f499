/* SPDX-License-Identifier: MIT */
/*
 * Compiler-made pieces: .cold and .part fragments are jumped to and are no functions; clones keep
 * their counts.
 *
 * flags: -O2
 * flags: -O3
 * flags: -O2 -freorder-blocks-and-partition -fno-pie -no-pie
 * needs: gcc
 * expect: likely_fine calls=1000
 * expect: uses_part calls=1000
 * expect: handle_error calls=10
 * absent: *.cold *.cold.*
 */
#include "target.h"

#include <string.h>

static char message[100];

__attribute__((cold, noinline)) static void handle_error(int number)
{
	HIT();
	snprintf(message, sizeof(message), "error %d", number);
}

NOIPA int likely_fine(int x)
{
	HIT();
	if (__builtin_expect(x % 100 == 50, 0)) {
		handle_error(x);
		handle_error(-x);
		return -1;
	}
	return x + 1;
}

NOIPA int uses_part(int x, const char *text)
{
	HIT();
	if (__builtin_expect(!text, 0)) {
		fprintf(stderr, "%d", x);
		abort();
	}
	return (int)strlen(text) + x;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += uses_part(i, "text") + (i < 500 ? likely_fine(i) : likely_fine(i & 31));
	printf("%ld %s\n", sum, message);
	hits("");
	return 0;
}
