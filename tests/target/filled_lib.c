/* SPDX-License-Identifier: MIT */
/* The library of filled.c. */
extern const char ballast[8192]; /* the file's first page is mapped once */
const char ballast[8192] = { 1 };

int library_work(int);
int library_pair(int);

__attribute__((noinline, visibility("hidden"))) int inner(int n);
int inner(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

int library_work(int n)
{
	return inner(n);
}

int library_pair(int n)
{
	return inner(n) + inner(n + 1);
}
