/* SPDX-License-Identifier: MIT */
/* The library of phases.c. */
int phases_late(int x);

static int calls;

__attribute__((noinline)) int phases_late(int x)
{
	return x + ++calls;
}
