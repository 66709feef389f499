/* SPDX-License-Identifier: MIT */
/* Sorting by address in linear time: a large program has some 300,000 symbols to put in order. */
#ifndef TRACER_RADIX_H
#define TRACER_RADIX_H

#include "../arch/mem.h"

struct radix_item {
	uint64_t key;
	uint64_t value;
};

/* Sort @items by key; equal keys keep their order. @spare has room for @n items too. */
void radix_sort(struct radix_item *items, struct radix_item *spare, size_t n);

#endif
