/* SPDX-License-Identifier: MIT */
/* include/ftr/ftr.h */
#include "target.h"
#include "where.h"
#include "../include/ftr/ftr.h"
#include "../rethook/thread.h"
#include <errno.h>

#define EXPORTED __attribute__((visibility("default")))

static uint64_t get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

/* Where a function is counted that is traced, or has or had a probe. */
struct counted {
	uint32_t id;
	uint32_t entry_id; /* see struct target */
	bool entry_only;
};

static bool find_counted(uint64_t address, struct counted *c)
{
	const struct where_entry *w = where_traced(address);
	const struct target *t = target_find(address);

	*c = (struct counted){ .id = w ? w->id : t ? t->function.id : 0,
		.entry_id = t ? t->entry_id : 0,
		.entry_only = w ? w->entry_only : t && target_is_entry_only(t) };
	return w || c->id || c->entry_id;
}

EXPORTED int ftr_read_counts(const void *function, struct ftr_counts *counts)
{
	struct counted c;

	if (!counts)
		return -EINVAL;
	*counts = (struct ftr_counts){ 0 };
	if (!find_counted((uint64_t)function, &c))
		return -ENOENT;
	/* The ends first: what is counted meanwhile must not let them exceed the calls. */
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		const struct func_record *r = shadow_records_of(t);

		if (r && !c.entry_only) {
			uint64_t unseen = get(&r[c.entry_id].calls);

			counts->returned += get(&r[c.id].returned) + unseen;
			counts->unwound += get(&r[c.id].unwound);
			counts->calls += unseen;
		}
	}
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		const struct func_record *r = shadow_records_of(t);

		counts->calls += r ? get(&r[c.id].calls) : 0;
	}
	return c.entry_only ? -ENODATA : 0;
}

EXPORTED const char *ftr_version(void)
{
	return FTR_VERSION;
}
