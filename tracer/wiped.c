/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "wiped.h"
#include "../arch/sys.h"
#include "../trampolines/patch.h"
#include <sys/mman.h>

/* Does the system accept the request to no effect? Emulators do. */
static bool by_hand(void)
{
	static uint8_t known;

	if (!known)
		known = patch_mem_executes() ? 1 : 2;
	return known == 2;
}

/* Behind each piece of memory. */
struct wiped {
	struct wiped *next;
	void *memory;
	size_t size; /* of the memory */
};

/* Of an emulated process. */
static struct {
	struct wiped *first;
	uint32_t lock;
} all;

static struct wiped *behind(void *memory, size_t size)
{
	return (struct wiped *)((uint8_t *)memory + ((size + 7) & ~7ul));
}

static size_t size_with(size_t size)
{
	return ((size + 7) & ~7ul) + sizeof(struct wiped);
}

static void lock(void)
{
	while (__atomic_exchange_n(&all.lock, 1, __ATOMIC_ACQUIRE))
		sys_call(SYS_sched_yield);
}

static void unlock(void)
{
	__atomic_store_n(&all.lock, 0, __ATOMIC_RELEASE);
}

void *wiped_alloc(size_t size)
{
	void *memory = sys_mmap(NULL, size_with(size), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wiped *w = behind(memory, size);

	if (sys_failed(memory))
		return NULL;
	if (sys_call(SYS_madvise, memory, size_with(size), MADV_WIPEONFORK) < 0) {
		sys_munmap(memory, size_with(size));
		return NULL;
	}
	if (by_hand()) {
		lock();
		*w = (struct wiped){ all.first, memory, size };
		__atomic_store_n(&all.first, w, __ATOMIC_RELEASE);
		unlock();
	}
	return memory;
}

void wiped_free(void *memory, size_t size)
{
	struct wiped **at = &all.first, *w = behind(memory, size);

	if (by_hand()) {
		lock();
		while (*at != w)
			at = &(*at)->next;
		__atomic_store_n(at, w->next, __ATOMIC_RELEASE);
		unlock();
	}
	sys_munmap(memory, size_with(size));
}

void wiped_forked(void)
{
	unlock(); /* of a thread that is not here; the list is whole at every moment */
	for (struct wiped *w = all.first; w; w = w->next)
		memset(w->memory, 0, w->size);
}
