/* SPDX-License-Identifier: MIT */
/* The library of dlopen.c. */
int called_back(int x);
int dlopen_lib_work(int (*f)(int), int x);

static int loaded;

__attribute__((constructor)) static void load(void)
{
	loaded = called_back(0);
}

__attribute__((destructor)) static void unload(void)
{
	loaded = called_back(1);
}

int dlopen_lib_work(int (*f)(int), int x)
{
	return f(x) * f(loaded);
}
