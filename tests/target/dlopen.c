/* SPDX-License-Identifier: MIT */
/*
 * Libraries that come and go, and come again, while traced functions call through them and they
 * call back.
 *
 * flags: -O2 -rdynamic -ldl
 * flags: -O0 -rdynamic -ldl
 * library: dlopen_lib.c
 * expect: called_back calls=400
 * expect: use_library calls=100
 */
#include "target.h"

#include <dlfcn.h>

NOIPA int called_back(int x);

NOIPA int called_back(int x)
{
	HIT();
	return x + 1;
}

static NOIPA int use_library(int x)
{
	char path[500];
	int (*work)(int (*)(int), int);
	void *library;
	int result;

	HIT();
	snprintf(path, sizeof(path), "%s/dlopen_lib.so", getenv("TARGET_DIR"));
	library = dlopen(path, x % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_GLOBAL);
	CHECK(library);
	work = (int (*)(int (*)(int), int))dlsym(library, "dlopen_lib_work");
	CHECK(work);
	result = work(called_back, x);
	CHECK(dlclose(library) == 0);
	return result;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum += use_library(i);
	CHECK(!dlopen("/nonexistent/library.so", RTLD_NOW));
	printf("%ld\n", sum);
	hits("");
	return 0;
}
