/* SPDX-License-Identifier: MIT */
/*
 * A program that puts its own text into other memory at the same address, as those do that want it
 * on large pages, while it is in use; and a child that does so again.
 *
 * flags: -O2
 * flags: -O0 -fno-pie -no-pie
 * needs: kernel
 * expect: work calls=300
 * expect: remap calls=1
 * expect: child:work calls=100
 * expect: child:remap calls=1
 */
#define _GNU_SOURCE
#include "target.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char etext[];

static NOIPA int work(int x)
{
	HIT();
	return x + 1;
}

/* Runs from what it moves: libc does the moving in one system call. */
static NOIPA void remap(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t lo = (uintptr_t)&work & -page, hi = ((uintptr_t)etext + page - 1) & -page;
	void *copy =
		mmap(NULL, hi - lo, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	HIT();
	CHECK(copy != MAP_FAILED);
	memcpy(copy, (void *)lo, hi - lo);
	CHECK(!mprotect(copy, hi - lo, PROT_READ | PROT_EXEC));
	CHECK(mremap(copy, hi - lo, hi - lo, MREMAP_MAYMOVE | MREMAP_FIXED, lo) == (void *)lo);
}

static void works(void)
{
	for (int i = 0; i < 100; i++)
		CHECK(work(i) == i + 1);
}

int main(void)
{
	int status;
	pid_t pid;

	works();
	remap();
	works();
	pid = fork();
	if (pid == 0) {
		remap();
		works();
		_exit(7);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	works();
	hits("");
	return 0;
}
