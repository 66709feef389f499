/* SPDX-License-Identifier: MIT */
/* The library of same_name.c: names of the program, with other contents. */
int lib_work(int x);

static int helper(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1000;
}

int lib_work(int x)
{
	return helper(x) + helper(x + 1);
}
