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

/* The records of a function that is traced, or has or had a probe. */
static bool find_record(uint64_t address, uint32_t *id, bool *entry_only)
{
	const struct where_entry *w = where_find(address);
	const struct target *t = w ? NULL : target_find(address);

	if (!w && (!t || !t->function.id))
		return false;
	*id = w ? w->id : t->function.id;
	*entry_only = w ? w->entry_only : t->function.site.entry_only;
	return true;
}

EXPORTED int ftr_read_counts(const void *function, struct ftr_counts *counts)
{
	bool entry_only;
	uint32_t id;

	if (!counts)
		return -EINVAL;
	*counts = (struct ftr_counts){ 0 };
	if (!find_record((uint64_t)function, &id, &entry_only))
		return -ENOENT;
	/* The ends first: what is counted meanwhile must not let them exceed the calls. */
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		const struct func_record *r = shadow_records_of(t);

		if (r && !entry_only) {
			counts->returned += get(&r[id].returned);
			counts->unwound += get(&r[id].unwound);
		}
	}
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		const struct func_record *r = shadow_records_of(t);

		counts->calls += r ? get(&r[id].calls) : 0;
	}
	return entry_only ? -ENODATA : 0;
}

EXPORTED const char *ftr_version(void)
{
	return FTR_VERSION;
}
