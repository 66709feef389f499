/* SPDX-License-Identifier: MIT */
/*
 * A library whose constructor starts threads, which call its functions while the loader still holds
 * its lock; loaded at start by the program's own constructor, and later.
 *
 * flags: -O2 -pthread -ldl
 * env: FTR_MODULES=constructor_threads,constructor_threads_lib.so
 * library: constructor_threads_lib.c -O2 -pthread
 * stacks: several
 * expect: use calls=10
 * expect: starts calls=10
 * expect: early_thread calls=40
 * expect: early_work calls=4000
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>

static NOIPA void use(void)
{
	char path[500];
	int (*total)(void);
	void *library;

	HIT();
	snprintf(path, sizeof(path), "%s/constructor_threads_lib.so", getenv("TARGET_DIR"));
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	total = (int (*)(void))dlsym(library, "early_total");
	CHECK(total() == 400);
	CHECK(dlclose(library) == 0);
}

__attribute__((constructor)) static void before_main(void)
{
	use();
}

int main(void)
{
	for (int i = 1; i < 10; i++)
		use();
	hits("");
	return 0;
}
