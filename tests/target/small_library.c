/* SPDX-License-Identifier: MIT */
/*
 * A library that is smaller than a page, and then loaded twice: its first page is mapped for its code
 * and again for its data.
 *
 * flags: -O2 -ldl
 * library: small_lib.c -O1 -nostdlib -s -Wl,-z,noseparate-code -Wl,-z,norelro
 * library: small_relro_lib.c -O1 -nostdlib -s -Wl,-z,noseparate-code -Wl,-z,relro
 * env: FTR_MODULES=small*
 * expect: small_work calls=200
 * expect: small_relro_work calls=200
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>

static void use(const char *name, const char *function, Lmid_t space)
{
	int (*work)(int);
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", getenv("TARGET_DIR"), name);
	library = dlmopen(space, path, RTLD_NOW);
	CHECK(library);
	work = (int (*)(int))dlsym(library, function);
	CHECK(work);
	for (int i = 0; i < 100; i++)
		CHECK(work(i) == 3 * i + 5);
}

int main(void)
{
	use("small_lib.so", "small_work", LM_ID_BASE);
	use("small_relro_lib.so", "small_relro_work", LM_ID_BASE);
	use("small_lib.so", "small_work", LM_ID_NEWLM);
	use("small_relro_lib.so", "small_relro_work", LM_ID_NEWLM);
	printf("calls small_work 200\ncalls small_relro_work 200\n");
	return 0;
}
