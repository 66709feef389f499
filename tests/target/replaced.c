/* SPDX-License-Identifier: MIT */
/*
 * A program that brings its own versions of library functions, which are not to be called before
 * it is ready, nor by anybody else: a tracer that calls them by name shows.
 *
 * flags: -O2 -rdynamic -fno-builtin
 * flags: -O0 -rdynamic -fno-builtin
 * expect: work calls=100
 */
#define _GNU_SOURCE
#include "target.h"

#include <unistd.h>

/* Each says its name: nothing in this program calls it. */
#define REPLACED(name)                                                                             \
	long replaced_##name(void) __asm__(#name);                                                 \
	long replaced_##name(void)                                                                 \
	{                                                                                          \
		static const char text[] = #name " was called\n";                                  \
		if (write(1, text, sizeof(text) - 1) < 0)                                          \
			_exit(98);                                                                 \
		return 0;                                                                          \
	}

REPLACED(dlopen)
REPLACED(dlclose)
REPLACED(dlsym)
REPLACED(dladdr)
REPLACED(dl_iterate_phdr)
REPLACED(open)
REPLACED(openat)
REPLACED(read)
REPLACED(mmap)
REPLACED(mprotect)
REPLACED(ftruncate)
REPLACED(getenv)
REPLACED(memfd_create)
REPLACED(syscall)
REPLACED(clock_gettime)
REPLACED(sigaction)
REPLACED(pthread_mutex_lock)
REPLACED(getpid)
REPLACED(gettid)
REPLACED(madvise)

static NOIPA void work(void)
{
	HIT();
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		work();
	hits("");
	return 0;
}
