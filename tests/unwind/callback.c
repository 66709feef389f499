/* SPDX-License-Identifier: MIT */
/* C code between a throw and its catch; compiled with -fexceptions. */
#include <stdlib.h>

void call_through_c(void (*function)(int), int n);
void sort_through_c(int (*compare)(const void *, const void *));

static volatile int sink;

static void note(int *n)
{
	sink += *n;
}

__attribute__((noipa)) void call_through_c(void (*function)(int), int n)
{
	int cleaned __attribute__((cleanup(note))) = n;

	function(n);
	sink += cleaned;
}

__attribute__((noipa)) void sort_through_c(int (*compare)(const void *, const void *))
{
	char letters[] = "dcba";

	qsort(letters, 4, 1, compare);
	sink++;
}
