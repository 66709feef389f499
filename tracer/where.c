/* SPDX-License-Identifier: MIT */
#include "where.h"
#include "plan.h"
#include <errno.h>

struct table {
	struct table *older;
	uint32_t first_id, nids;
	uint64_t *points; /* by id */
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
	t->first_id = plan->first_id;
	t->nids = arch_slot_in_memory ? 0 : plan->nids;
	t->points = arena_alloc(&arena, t->nids * sizeof(*t->points));
	if (!t->points)
		return -ENOMEM;
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_function *f = &plan->functions[i];

		if (f->id - t->first_id < t->nids)
			t->points[f->id - t->first_id] = f->returns;
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

static uint64_t *point_of(uint32_t id)
{
	const struct table *t = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);

	while (t && id - t->first_id >= t->nids)
		t = t->older;
	return t ? &t->points[id - t->first_id] : NULL;
}

uint64_t where_point(uint32_t id)
{
	const uint64_t *point = point_of(id);

	return point ? *point : 0;
}

void where_forget(uint32_t id)
{
	uint64_t *point = point_of(id);

	if (point)
		*point = 0;
}
