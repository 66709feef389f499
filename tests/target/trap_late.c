/* SPDX-License-Identifier: MIT */
/*
 * FTR_PATCH=trap: a library loaded later has functions without room for a jump, and the program
 * has none.
 *
 * flags: -O2 -ldl
 * library: trap_lib.c -O2
 * env: FTR_PATCH=trap
 * env: FTR_MODULES=trap_late,trap_lib.so
 * needs: x86_64
 * expect: short_one calls=100
 * expect: short_two calls=100
 */
#include "target.h"

#include <dlfcn.h>

int main(void)
{
	char path[4096];
	void (*one)(void), (*two)(void);
	unsigned long calls = 0;
	void *library;

	snprintf(path, sizeof(path), "%s/trap_lib.so", getenv("TARGET_DIR"));
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	one = (void (*)(void))dlsym(library, "short_one");
	two = (void (*)(void))dlsym(library, "short_two");
	for (int i = 0; i < 100; i++, calls++) {
		one();
		two();
	}
	printf("calls short_one %lu\ncalls short_two %lu\n", calls, calls);
	return 0;
}
