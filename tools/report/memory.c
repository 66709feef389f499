/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"

static void *memory_check(void *memory)
{
	if (!memory) {
		fputs("ftr-report: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

void *memory_get(size_t n, size_t size)
{
	return memory_check(calloc(n ? n : 1, size));
}

char *memory_copy(const char *s, size_t len)
{
	char *copy = memory_get(len + 1, 1);

	memcpy(copy, s, len);
	return copy;
}

void *memory_grow(void *items, size_t n, size_t size)
{
	size_t room = n ? 2 * n : 8;

	/* Full at 0, 8, 16, 32 ... items. */
	if (n && (n < 8 || (n & (n - 1))))
		return items;
	return memory_check(room > SIZE_MAX / size ? NULL : realloc(items, room * size));
}
