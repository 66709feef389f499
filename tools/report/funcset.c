/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "funcset.h"
#include "memory.h"

/* Address and the end of the module's path: enough to spread, the rest is compared. */
static uint64_t funcset_hash(const struct datafile_symbols *symbols, size_t index)
{
	const char *path = datafile_module_path(symbols, index);
	size_t len = strlen(path);
	uint64_t hash = symbols->functions[index].address;

	for (const char *s = len > 16 ? path + len - 16 : path; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3ull;
	return hash ^ hash >> 29;
}

static bool funcset_same(
	const struct funcset_entry *entry, const struct datafile_symbols *symbols, size_t index)
{
	const struct symbols_module *a = datafile_module(entry->symbols, entry->index);
	const struct symbols_module *b = datafile_module(symbols, index);

	if (entry->symbols == symbols && entry->index == index)
		return true;
	return entry->symbols->functions[entry->index].address ==
		       symbols->functions[index].address &&
	       a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len) &&
	       !strcmp(datafile_symbol(entry->symbols, entry->index),
		       datafile_symbol(symbols, index)) &&
	       !strcmp(datafile_module_path(entry->symbols, entry->index),
		       datafile_module_path(symbols, index));
}

/* The function's place, which is free when the set does not have it. */
static struct funcset_entry *funcset_find(
	const struct funcset *set, const struct datafile_symbols *symbols, size_t index)
{
	size_t at = funcset_hash(symbols, index) & (set->room - 1);

	while (set->entries[at].symbols && !funcset_same(&set->entries[at], symbols, index))
		at = (at + 1) & (set->room - 1);
	return &set->entries[at];
}

static void funcset_enlarge(struct funcset *set)
{
	struct funcset larger = { .room = set->room ? 2 * set->room : 1024, .used = set->used };

	larger.entries = memory_get(larger.room, sizeof(*larger.entries));
	for (size_t i = 0; i < set->room; i++) {
		struct funcset_entry *entry = &set->entries[i];

		if (entry->symbols)
			*funcset_find(&larger, entry->symbols, entry->index) = *entry;
	}
	free(set->entries);
	*set = larger;
}

struct funcset_entry *funcset_add(
	struct funcset *set, struct datafile_symbols *symbols, size_t index, size_t value)
{
	struct funcset_entry *entry;

	if (2 * set->used >= set->room)
		funcset_enlarge(set);
	entry = funcset_find(set, symbols, index);
	if (!entry->symbols) {
		*entry = (struct funcset_entry){ symbols, index, value };
		set->used++;
	}
	return entry;
}

void funcset_free(struct funcset *set)
{
	free(set->entries);
	*set = (struct funcset){ 0 };
}
