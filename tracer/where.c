/* SPDX-License-Identifier: MIT */
#include "where.h"
#include "plan.h"
#include <errno.h>

struct table {
	struct table *older;
	size_t count;
	struct where_entry list[]; /* sorted */
};

static struct table *newest; /* release: the table is complete; acquire in where_find() */
static struct arena arena;

int where_add(const struct plan *plan)
{
	struct table *t = arena_alloc(&arena, sizeof(*t) + plan->count * sizeof(t->list[0]));

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_function *f = &plan->functions[i];

		if (f->id)
			t->list[t->count++] = (struct where_entry){
				.addr = f->symbol->start + plan->module->bias,
				.detour = f->detour, .id = f->id,
				.entry_only = f->site.entry_only
			};
	}
	t->older = newest;
	__atomic_store_n(&newest, t, __ATOMIC_RELEASE);
	return 0;
}

static const struct where_entry *find_in(const struct table *t, uint64_t addr)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (t->list[middle].addr == addr)
			return &t->list[middle];
		if (t->list[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct where_entry *where_find(uint64_t addr)
{
	const struct table *t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
	const struct where_entry *found = NULL;

	for (; t && !found; t = t->older)
		found = find_in(t, addr);
	return found;
}

const struct where_entry *where_traced(uint64_t addr)
{
	const struct where_entry *found = where_find(addr);

	return found && found->id != ID_NONE ? found : NULL;
}
