/* SPDX-License-Identifier: MIT */
/*
 * A program that denies itself executable memory that was writable (PR_SET_MDWE) and then executes
 * itself and opens a library: what is patched is never both.
 *
 * flags: -O2 -ldl
 * env: FTR_MODULES=no_exec_gain,late_lib.so
 * library: late_lib.c -O1
 * stacks: several
 * needs: kernel execve
 * expect: work calls=200
 * expect: late_work calls=100
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif

static NOIPA void work(void)
{
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	char *again[] = {argv[0], "again", NULL}, path[500];
	int (*late)(int);

	for (int i = 0; i < 100; i++)
		work();
	if (argc == 1) {
		/* Where the kernel knows no such thing, this is a program like others. */
		prctl(PR_SET_MDWE, 1, 0, 0, 0);
		execv("/proc/self/exe", again);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/late_lib.so", getenv("TARGET_DIR"));
	late = (int (*)(int))dlsym(dlopen(path, RTLD_NOW), "late_work");
	for (int i = 0; i < 100; i++) {
		HIT_AS("late_work");
		CHECK(late(i) == 3 * i + 7);
	}
	hits("");
	puts("calls work 200"); /* of both images */
	return 0;
}
