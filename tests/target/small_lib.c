/* SPDX-License-Identifier: MIT */
/* The library of small_library.c, with data in its first page. */
static int base = 5, *volatile where = &base;

__attribute__((noinline, noipa)) int small_work(int x)
{
	return x * 3 + *where;
}
