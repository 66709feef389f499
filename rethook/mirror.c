/* SPDX-License-Identifier: MIT */
#include "mirror.h"
#include "shadow.h"
#include "../arch/sys.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define WINDOW_MIN    (1ul << 20)
#define WINDOW_USUAL  (8ul << 20)
#define WINDOW_MAX    (64ul << 20)
#define OVERFLOW_SIZE (256ul << 20) /* address space: four million entries */
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

/* Reserve @size bytes, a power of two, aligned to that, and a page before them. */
static void *reserve_aligned(size_t size)
{
	size_t room = 2 * size + sys_page;
	uint8_t *all = reserve(room), *mirror;

	if (sys_failed(all))
		return all;
	mirror = (uint8_t *)(((uint64_t)all + sys_page + size - 1) & -size);
	if (mirror - sys_page > all)
		sys_munmap(all, (size_t)(mirror - sys_page - all));
	if (all + room > mirror + size)
		sys_munmap(mirror + size, (size_t)(all + room - mirror - size));
	return mirror;
}

int mirror_map(struct shadow_node *node)
{
	uint8_t *mirror = reserve_aligned(mirror_size());

	if (sys_failed(mirror))
		return -ENOMEM;
	if (sys_call(SYS_madvise, mirror - sys_page, sys_page, MADV_WIPEONFORK)) {
		sys_munmap(mirror - sys_page, sys_page + mirror_size());
		return -ENOMEM;
	}
	/* A huge page would be filled for a single slot. */
	sys_call(SYS_madvise, mirror, mirror_size(), MADV_NOHUGEPAGE);
	node->mirror = (uint64_t)mirror;
	return 0;
}

/* ---- entries whose place was taken ---- */

static uint64_t *bucket_of(const struct shadow_node *node, uint64_t slot)
{
	return (uint64_t *)(node->buckets + (slot & SHADOW_BUCKETS));
}

static struct shadow_entry *chain_find(const struct shadow_node *node, uint64_t slot)
{
	uint64_t link = node->buckets ? __atomic_load_n(bucket_of(node, slot), __ATOMIC_ACQUIRE) : 0;
	struct shadow_entry *e;

	for (; (e = (struct shadow_entry *)link); link = e->link)
		if (e->slot == slot)
			return e;
	return NULL;
}

/* A signal handler may put others in front meanwhile, and takes them out again. */
static void chain_add(struct shadow_node *node, struct shadow_entry *e, uint64_t slot)
{
	uint64_t *bucket = bucket_of(node, slot);

	e->link = *bucket;
	while (!__atomic_compare_exchange_n(
		bucket, &e->link, (uint64_t)e, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static void chain_remove(struct shadow_node *node, struct shadow_entry *e, uint64_t slot)
{
	uint64_t *at = bucket_of(node, slot), expected = (uint64_t)e;

	while (!__atomic_compare_exchange_n(
		at, &expected, e->link, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
		if (!expected)
			return;
		at = &((struct shadow_entry *)expected)->link;
		expected = (uint64_t)e;
	}
}

struct shadow_entry *mirror_find(const struct shadow_node *node, uint64_t slot)
{
	struct shadow_entry *e = mirror_place(node, slot);

	return e->slot == slot ? e : chain_find(node, slot);
}

bool mirror_prepare(struct shadow_node *node)
{
	size_t size = OVERFLOW_SIZE;
	void *buckets, *space;

	if (node->buckets)
		return true;
	if (shadow_hooks.sealed)
		return false;
	space = reserve(size);
	if (sys_failed(space))
		space = reserve(size /= 64);
	if (sys_failed(space))
		return false;
	buckets = reserve(SHADOW_BUCKETS + 8);
	if (sys_failed(buckets)) {
		sys_munmap(space, size);
		return false;
	}
	node->overflow = node->overflow_end = (uint64_t)space;
	node->overflow_room = (uint64_t)space + size;
	__atomic_store_n(&node->buckets, (uint64_t)buckets, __ATOMIC_RELEASE);
	return true;
}

struct shadow_entry *mirror_overflow(struct shadow_node *node, uint64_t slot)
{
	struct shadow_entry *e;

	if (!mirror_prepare(node))
		return NULL;
	/* A signal handler may take the next one meanwhile. */
	e = (struct shadow_entry *)__atomic_fetch_add(
		&node->overflow_end, sizeof(*e), __ATOMIC_ACQ_REL);
	if ((uint64_t)e >= node->overflow_room) {
		__atomic_fetch_sub(&node->overflow_end, sizeof(*e), __ATOMIC_ACQ_REL);
		return NULL;
	}
	chain_add(node, e, slot);
	return e;
}

static bool in_overflow(const struct shadow_node *node, const struct shadow_entry *e)
{
	return node->buckets && (uint64_t)e >= node->overflow && (uint64_t)e < node->overflow_end;
}

/* Give back the newest entries that are holes. */
static void trim_overflow(struct shadow_node *node)
{
	for (;;) {
		uint64_t end = node->overflow_end, lower = end - sizeof(struct shadow_entry);
		struct shadow_entry *last = (struct shadow_entry *)lower;

		if (end == node->overflow || last->slot || last->flags != FLAG_HOLE)
			return;
		chain_remove(node, last, last->ret);
		last->flags = 0;
		if (__atomic_compare_exchange_n(&node->overflow_end, &end, lower, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		chain_add(node, last, last->ret);
		last->flags = FLAG_HOLE;
		return;
	}
}

static void free_overflow(struct shadow_entry *entry)
{
	entry->owner = 0;
	entry->ret = entry->slot; /* which chain it is in */
	__atomic_store_n(&entry->slot, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->flags, FLAG_HOLE, __ATOMIC_RELEASE);
}

void mirror_free(struct shadow_node *node, struct shadow_entry *entry)
{
	if (in_overflow(node, entry)) {
		free_overflow(entry);
		trim_overflow(node);
		return;
	}
	__atomic_store_n(&entry->slot, 0, __ATOMIC_RELEASE);
	mirror_give_up(entry);
}

void mirror_give_up(struct shadow_entry *entry)
{
	if (shadow_root.scale * 8 == SHADOW_TIMED_SIZE)
		entry->child = 0;
	__atomic_store_n(&entry->owner, 0, __ATOMIC_RELEASE);
}

/*
 * The place may be taken again by its thread as soon as it looks free, so this is one store: what
 * remains looks like a call that was given up half-way, of function 0, which counts nothing.
 */
void mirror_free_foreign(struct shadow_node *node, struct shadow_entry *entry, uint64_t slot)
{
	if (in_overflow(node, entry)) {
		free_overflow(entry);
		return;
	}
	__atomic_store_n(&entry->func, 0, __ATOMIC_RELEASE);
	__atomic_compare_exchange_n(
		&entry->slot, &slot, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void each_in(uint64_t from, uint64_t to, size_t size,
	void (*visit)(struct shadow_entry *, void *), void *arg)
{
	for (; from < to; from += size)
		if (((struct shadow_entry *)from)->owner)
			visit((struct shadow_entry *)from, arg);
}

void mirror_each(struct shadow_node *node, void (*visit)(struct shadow_entry *, void *), void *arg)
{
	uint8_t present[512]; /* as many pages are asked for at a time */
	size_t size = shadow_root.scale * 8, step = sizeof(present) * sys_page;

	if (step > mirror_size())
		step = mirror_size();
	for (uint64_t at = node->mirror; at < node->mirror + mirror_size(); at += step) {
		if (shadow_hooks.sealed || sys_call(SYS_mincore, at, step, present) < 0)
			memset(present, 1, sizeof(present));
		for (size_t i = 0; i < step / sys_page; i++)
			if (present[i])
				each_in(at + i * sys_page, at + (i + 1) * sys_page, size, visit, arg);
	}
	each_in(node->overflow, node->overflow_end, sizeof(struct shadow_entry), visit, arg);
}
