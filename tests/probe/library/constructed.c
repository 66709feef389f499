/* SPDX-License-Identifier: MIT */
/* A library whose constructor calls the program that loads it. */

void constructed(void);
int constructed_next(int n);

__attribute__((constructor)) static void construct(void)
{
	constructed();
}

int constructed_next(int n)
{
	return 3 * (n + 1);
}
