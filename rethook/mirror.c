/* SPDX-License-Identifier: MIT */
#include "mirror.h"
#include "../arch/sys.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define WINDOW_MIN    (1ul << 20)
#define WINDOW_USUAL  (8ul << 20)
#define WINDOW_MAX    (64ul << 20)
#define OVERFLOW_SIZE (256ul << 20) /* address space: four million entries */
#define PAGE	      4096ul
#define FLAG_HOLE     0x80000000u /* in the overflow: freed below the end */

struct shadow_root shadow_root;

static size_t mirror_size(void)
{
	return (shadow_root.mask + 8) * shadow_root.scale;
}

void mirror_setup(enum detour_mode mode)
{
	struct rlimit stack = { WINDOW_USUAL, WINDOW_USUAL }, space = { 0, RLIM_INFINITY };
	uint64_t window = WINDOW_USUAL;

	space.rlim_cur = RLIM_INFINITY;
	sys_call(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &stack);
	sys_call(SYS_prlimit64, 0, RLIMIT_AS, NULL, &space);
	while (window < stack.rlim_cur && window < WINDOW_MAX)
		window *= 2;
	if (space.rlim_cur != RLIM_INFINITY)
		window = WINDOW_MIN; /* the program was given little and needs it itself */
	shadow_root.mask = window - 8;
	shadow_root.scale = (mode == MODE_COUNT ? SHADOW_COUNT_SIZE : SHADOW_TIMED_SIZE) / 8;
}

static void *reserve(size_t size)
{
	return sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int mirror_map(struct shadow_node *node)
{
	void *mirror = reserve(mirror_size());

	if (sys_failed(mirror))
		return -ENOMEM;
	/* A huge page would be filled for a single slot. */
	sys_call(SYS_madvise, mirror, mirror_size(), MADV_NOHUGEPAGE);
	node->mirror = (uint64_t)mirror;
	return 0;
}

struct shadow_entry *mirror_place(const struct shadow_node *node, uint64_t slot)
{
	return (struct shadow_entry *)(node->mirror + (slot & shadow_root.mask) * shadow_root.scale);
}

static struct shadow_entry *overflow_first(const struct shadow_node *node)
{
	return (struct shadow_entry *)node->overflow;
}

static struct shadow_entry *overflow_end(const struct shadow_node *node)
{
	return (struct shadow_entry *)__atomic_load_n(&node->overflow_end, __ATOMIC_ACQUIRE);
}

struct shadow_entry *mirror_find(const struct shadow_node *node, uint64_t slot)
{
	struct shadow_entry *e = mirror_place(node, slot);

	if (e->slot == slot)
		return e;
	for (e = overflow_end(node); e > overflow_first(node);)
		if ((--e)->slot == slot)
			return e;
	return NULL;
}

struct shadow_entry *mirror_overflow(struct shadow_node *node)
{
	struct shadow_entry *e;

	if (!node->overflow) {
		size_t size = OVERFLOW_SIZE;
		void *space = reserve(size);

		if (sys_failed(space))
			space = reserve(size /= 64);
		if (sys_failed(space))
			return NULL;
		node->overflow = node->overflow_end = (uint64_t)space;
		node->overflow_room = (uint64_t)space + size;
	}
	/* A signal handler may take the next one meanwhile. */
	e = (struct shadow_entry *)__atomic_fetch_add(
		&node->overflow_end, sizeof(*e), __ATOMIC_ACQ_REL);
	if ((uint64_t)e < node->overflow_room)
		return e;
	__atomic_fetch_sub(&node->overflow_end, sizeof(*e), __ATOMIC_ACQ_REL);
	return NULL;
}

static bool in_overflow(const struct shadow_node *node, const struct shadow_entry *e)
{
	return node->overflow && e >= overflow_first(node) && e < overflow_end(node);
}

void mirror_free(struct shadow_node *node, struct shadow_entry *entry)
{
	bool overflow = in_overflow(node, entry);

	if (overflow)
		entry->flags = FLAG_HOLE;
	__atomic_store_n(&entry->slot, 0, __ATOMIC_RELEASE);
	while (overflow) {
		uint64_t end = node->overflow_end, lower = end - sizeof(*entry);
		struct shadow_entry *last = (struct shadow_entry *)lower;

		if (end == node->overflow || last->slot || last->flags != FLAG_HOLE)
			break;
		last->flags = 0;
		if (!__atomic_compare_exchange_n(&node->overflow_end, &end, lower, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			last->flags = FLAG_HOLE;
	}
}

static void each_in(uint64_t from, uint64_t to, size_t size,
	void (*visit)(struct shadow_entry *, void *), void *arg)
{
	for (; from < to; from += size)
		if (((struct shadow_entry *)from)->slot)
			visit((struct shadow_entry *)from, arg);
}

void mirror_each(struct shadow_node *node, void (*visit)(struct shadow_entry *, void *), void *arg)
{
	size_t size = shadow_root.scale * 8, step = 512 * PAGE;
	uint8_t present[512];

	for (uint64_t at = node->mirror; at < node->mirror + mirror_size(); at += step) {
		if (sys_call(SYS_mincore, at, step, present) < 0)
			memset(present, 1, sizeof(present));
		for (size_t i = 0; i < 512; i++)
			if (present[i])
				each_in(at + i * PAGE, at + (i + 1) * PAGE, size, visit, arg);
	}
	each_in(node->overflow, node->overflow_end, sizeof(struct shadow_entry), visit, arg);
}
