/* SPDX-License-Identifier: MIT */
/* The library of dlopen_traced.c. */
int late_work(int x);
void late_init(void);
void late_fini(void);

static int base;

__attribute__((noinline, noipa)) int late_work(int x)
{
	return x * 3 + base;
}

__attribute__((constructor, noinline, noipa)) void late_init(void)
{
	base = 7;
}

__attribute__((destructor, noinline, noipa)) void late_fini(void)
{
	base = 0;
}
