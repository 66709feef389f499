/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "wiped.h"
#include "../arch/sys.h"
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

void *wiped_alloc(size_t size)
{
	void *memory = sys_mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(memory))
		return NULL;
	if (sys_call(SYS_madvise, memory, size, MADV_WIPEONFORK) < 0) {
		sys_munmap(memory, size);
		return NULL;
	}
	return memory;
}

void wiped_free(void *memory, size_t size)
{
	sys_munmap(memory, size);
}
