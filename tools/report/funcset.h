/* SPDX-License-Identifier: MIT */
/*
 * A set of functions. Two entries are the same function when module path, build id, address and
 * symbol agree, whatever process or file they come from.
 */
#ifndef REPORT_FUNCSET_H
#define REPORT_FUNCSET_H

#include "datafile.h"

struct funcset_entry {
	struct datafile_symbols *symbols; /* NULL: a free place */
	size_t index;
	size_t value; /* the caller's */
};

struct funcset {
	struct funcset_entry *entries;
	size_t room; /* a power of two */
	size_t used;
};

/*
 * The entry of a function. If it was not there, it is added with @value. The pointer is good until
 * the next call.
 */
struct funcset_entry *funcset_add(
	struct funcset *set, struct datafile_symbols *symbols, size_t index, size_t value);
void funcset_free(struct funcset *set);

#endif
