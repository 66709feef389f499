/* SPDX-License-Identifier: MIT */
/* include/ftr/ftr.h */
#include "where.h"
#include "../include/ftr/ftr.h"
#include "../rethook/thread.h"
#include <errno.h>

#define EXPORTED __attribute__((visibility("default")))

static uint64_t get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

EXPORTED int ftr_read_counts(const void *function, struct ftr_counts *counts)
{
	const struct where_entry *w = where_find((uint64_t)function);

	if (!counts)
		return -EINVAL;
	*counts = (struct ftr_counts){ 0 };
	if (!w)
		return -ENOENT;
	/* The ends first: what is counted meanwhile must not let them exceed the calls. */
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		const struct func_record *r = shadow_records_of(t);

		if (r && !w->entry_only) {
			counts->returned += get(&r[w->id].returned);
			counts->unwound += get(&r[w->id].unwound);
		}
	}
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t)) {
		const struct func_record *r = shadow_records_of(t);

		counts->calls += r ? get(&r[w->id].calls) : 0;
	}
	return w->entry_only ? -ENODATA : 0;
}

EXPORTED const char *ftr_version(void)
{
	return FTR_VERSION;
}
