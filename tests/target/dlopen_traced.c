/* SPDX-License-Identifier: MIT */
/*
 * A library that is loaded while the program runs is traced from its first instruction, its
 * constructor, to its last, its destructor; again when it comes back, to whatever address.
 *
 * flags: -O2 -ldl
 * flags: -O0 -ldl
 * env: FTR_MODULES=dlopen_traced,late_lib.so
 * library: late_lib.c -O1
 * stacks: several
 * expect: use_library calls=20
 * expect: late_init calls=20
 * expect: late_fini calls=20
 * expect: late_work calls=200
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <sys/mman.h>

static NOIPA int use_library(int x)
{
	char path[500];
	int (*work)(int);
	void *library;
	int result = 0;

	HIT();
	snprintf(path, sizeof(path), "%s/late_lib.so", getenv("TARGET_DIR"));
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	work = (int (*)(int))dlsym(library, "late_work");
	CHECK(work);
	for (int i = 0; i < 10; i++)
		result += work(x + i);
	CHECK(dlclose(library) == 0);
	return result;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 20; i++) {
		sum += use_library(i);
		/* Take the place where it was, now and then. */
		if (i % 4 == 0)
			CHECK(mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
				!= MAP_FAILED);
	}
	printf("%ld\n", sum);
	hits("");
	return 0;
}
