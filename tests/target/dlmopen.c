/* SPDX-License-Identifier: MIT */
/*
 * One library in several namespaces at a time, each with a C library of its own: every copy is
 * traced under its own name and numbers.
 *
 * flags: -O2 -ldl
 * env: FTR_MODULES=*
 * library: late_lib.c -O1 -Wl,--no-as-needed
 * library: phases_lib.c -O1
 * stacks: several
 * needs: kernel
 * expect: use calls=12
 * expect: late_init calls=12
 * expect: late_work calls=120
 * expect: late_fini calls=12
 * expect: phases_late calls=1
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>

static NOIPA int use(void *library, int x)
{
	int (*work)(int);
	int result = 0;

	HIT();
	CHECK(library);
	work = (int (*)(int))dlsym(library, "late_work");
	CHECK(work);
	for (int i = 0; i < 10; i++)
		result += work(x + i);
	return result;
}

int main(void)
{
	void *libraries[4];
	char path[500];
	long sum = 0;

	snprintf(path, sizeof(path), "%s/late_lib.so", getenv("TARGET_DIR"));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++)
			libraries[i] = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
		libraries[3] = dlopen(path, RTLD_NOW);
		for (int i = 0; i < 4; i++)
			sum += use(libraries[i], i);
		for (int i = 0; i < 4; i++)
			CHECK(dlclose(libraries[(i + round) % 4]) == 0);
	}
	snprintf(path, sizeof(path), "%s/phases_lib.so", getenv("TARGET_DIR"));
	libraries[0] = dlopen(path, RTLD_NOW);
	sum += ((int (*)(int))dlsym(libraries[0], "phases_late"))(1);
	printf("%ld\n", sum);
	hits("");
	return 0;
}
