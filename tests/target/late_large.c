/* SPDX-License-Identifier: MIT */
/*
 * A library with more functions than there is room for is loaded while the program runs: it is left
 * alone, which the report says, and the next one is traced.
 *
 * flags: -O2 -ldl
 * env: FTR_MODULES=late_large,late_large_lib.so,late_lib.so
 * library: late_large_lib.c -O1
 * library: late_lib.c -O1
 * expect: use_library calls=2
 * skipped: large_work reason=no-image
 * expect: late_work calls=10
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

static NOIPA int use_library(const char *name, const char *function)
{
	char path[500];
	int (*work)(int);
	int result = 0;
	void *library;

	HIT();
	snprintf(path, sizeof(path), "%s/%s", getenv("TARGET_DIR"), name);
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	work = (int (*)(int))dlsym(library, function);
	CHECK(work);
	for (int i = 0; i < 10; i++)
		result += work(i);
	return result;
}

int main(void)
{
	int saved = dup(2);

	/* Where ftr says so. */
	CHECK(dup2(open("/dev/null", O_WRONLY), 2) == 2);
	printf("%d\n", use_library("late_large_lib.so", "large_work"));
	CHECK(dup2(saved, 2) == 2);
	printf("%d\n", use_library("late_lib.so", "late_work"));
	hits("");
	return 0;
}
