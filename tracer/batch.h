/* SPDX-License-Identifier: MIT */
/*
 * A batch: modules that come to be traced together. The first are those that are loaded when the
 * program starts; later ones come with a dlopen. Steps, in this order: plan, load, record, patch.
 */
#ifndef TRACER_BATCH_H
#define TRACER_BATCH_H

#include "session.h"

struct batch {
	struct arena arena;
	struct plan *plans;
	size_t nplans; /* recorded ones; */
	size_t nall;   /* behind them those for what the tracer watches itself */
	uint32_t first_id, next_id;
	uint32_t max_ids; /* ids are below */
	uint32_t traced, skipped;
	uint32_t islands, far; /* of the traced and of the skipped ones */
	bool unguarded; /* libc's functions cannot be watched: nothing may be traced */
	/* What could not be done, for batch_tell(): the first of it, and how many there are. */
	char module[256], why[256];
	uint32_t nfailed;
};

/* Plan those of @modules that are wanted. */
void batch_plan(struct batch *batch, const struct modules *modules);

/* Plan also the functions that the tracer itself watches (watch.h). */
void batch_plan_watched(struct batch *batch, const struct modules *modules);

/* On CPUs whose branches do not reach far: keep memory near the wanted modules free for them. */
void batch_reserve(struct batch *batch, const struct modules *modules);

/* Build and load the images. Ids are given from batch->first_id on. */
void batch_load(struct batch *batch);

/* Write the symbols file, as number @number. 0 or -errno with *@why. */
int batch_record(struct batch *batch, uint32_t number, const char **why);

/*
 * From here on calls are recorded. Where libc cannot be patched nothing is, and -errno is returned
 * with *@why.
 */
int batch_patch(struct batch *batch, const char **why);

/* One line about the modules that are not traced though they should be, if there are any. */
void batch_tell(const struct batch *batch);

void batch_free(struct batch *batch);

#endif
