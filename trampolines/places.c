/* SPDX-License-Identifier: MIT */
/*
 * The table is replaced as a whole. Handlers that look at it are counted; a table that was replaced is
 * freed once there was nobody at all. (In a child that was forked while another thread looked the count
 * stays, and so do tables.)
 */
#include "places.h"
#include "trap.h"
#include <errno.h>

#define RESTORE_MAX 64 /* patches in one go */

struct places_table {
	struct places_table *next; /* once it was replaced */
	struct arena arena;	   /* its own memory */
	size_t count;
	struct places_entry list[]; /* sorted by site */
};

static struct {
	struct places_table *table;
	struct places_table *replaced;
	uint32_t readers;
} places;

static int compare_sites(const void *a, const void *b)
{
	const struct places_entry *x = a, *y = b;

	return x->site < y->site ? -1 : x->site > y->site;
}

static struct places_entry *find(struct places_table *table, uint64_t site)
{
	size_t i = table ? mem_below(table->list, table->count, sizeof(table->list[0]), site) : 0;

	return table && i < table->count && table->list[i].site == site ? table->list + i : NULL;
}

uint64_t places_detour(uint64_t site)
{
	const struct places_entry *found;
	uint64_t detour = 0;

	__atomic_fetch_add(&places.readers, 1, __ATOMIC_SEQ_CST);
	found = find(__atomic_load_n(&places.table, __ATOMIC_SEQ_CST), site);
	if (found && !__atomic_load_n(&found->gone, __ATOMIC_ACQUIRE))
		detour = found->detour;
	__atomic_fetch_sub(&places.readers, 1, __ATOMIC_SEQ_CST);
	return detour;
}

static void free_replaced(void)
{
	while (places.replaced && !__atomic_load_n(&places.readers, __ATOMIC_SEQ_CST)) {
		struct arena arena = places.replaced->arena;

		places.replaced = places.replaced->next;
		arena_free(&arena);
	}
}

int places_set(struct places_entry *list, size_t n)
{
	struct arena arena = { 0 };
	struct places_table *old = places.table;
	struct places_table *table = arena_alloc(&arena, sizeof(*table) + n * sizeof(*list));

	if (!table)
		return -ENOMEM;
	mem_sort(list, n, sizeof(*list), compare_sites);
	memcpy(table->list, list, n * sizeof(*list));
	table->count = n;
	table->arena = arena;
	__atomic_store_n(&places.table, table, __ATOMIC_SEQ_CST);
	if (old) {
		old->next = places.replaced;
		places.replaced = old;
	}
	free_replaced();
	return trap_install();
}

void places_end(uint64_t site)
{
	struct places_entry *found = find(places.table, site);

	if (found)
		__atomic_store_n(&found->gone, true, __ATOMIC_RELEASE);
}

static void restore(const struct isa_patch *patches, size_t n, const struct patch_how *how)
{
	if (!n || patch_store(patches, n, NULL, how))
		return;
	for (size_t i = 0; i < n; i++)
		places_end(patches[i].addr);
}

void places_restore(const struct patch_how *how)
{
	struct isa_patch patches[RESTORE_MAX];
	size_t n = 0;

	for (size_t i = 0; places.table && i < places.table->count; i++) {
		const struct places_entry *p = &places.table->list[i];

		if (n == RESTORE_MAX) {
			restore(patches, n, how);
			n = 0;
		}
		if (!p->gone)
			patches[n++] = (struct isa_patch){ .addr = p->site, .len = 1, .bytes = { p->original } };
	}
	restore(patches, n, how);
}

bool places_any(void)
{
	const struct places_table *table;
	bool any = false;

	__atomic_fetch_add(&places.readers, 1, __ATOMIC_SEQ_CST);
	table = __atomic_load_n(&places.table, __ATOMIC_SEQ_CST);
	for (size_t i = 0; table && i < table->count && !any; i++)
		any = !__atomic_load_n(&table->list[i].gone, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&places.readers, 1, __ATOMIC_SEQ_CST);
	return any;
}
