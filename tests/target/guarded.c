/* SPDX-License-Identifier: MIT */
/*
 * Pages that only landing pads can be jumped to (BTI) stay guarded when their code is patched. They
 * are a library's, since the C library's start files need not be built for them.
 *
 * flags: arm64: -O2 -ldl
 * needs: arm64 bti
 * library: guarded_lib.c -mbranch-protection=standard -nostartfiles -Wl,-z,force-bti
 * env: FTR_MODULES=guarded,guarded_lib.so
 * expect: work calls=10
 * expect: guarded_work calls=10
 * expect: guarded_probe calls=1 unwound=1
 */
#include "target.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;

static void stopped(int sig)
{
	siglongjmp(back, sig);
}

static NOIPA void work(void)
{
	HIT();
}

int main(void)
{
	char path[4096];
	void (*guarded_work)(void), (*guarded_probe)(void);
	void *library;
	int sig;

	snprintf(path, sizeof(path), "%s/guarded_lib.so", getenv("TARGET_DIR"));
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	guarded_work = (void (*)(void))dlsym(library, "guarded_work");
	guarded_probe = (void (*)(void))dlsym(library, "guarded_probe");
	CHECK(guarded_work && guarded_probe);
	for (int i = 0; i < 10; i++) {
		work();
		guarded_work();
	}
	signal(SIGILL, stopped);
	sig = sigsetjmp(back, 1);
	if (!sig)
		guarded_probe();
	printf("%s\n", sig == SIGILL ? "guarded" : "not guarded");
	hits("");
	return 0;
}
