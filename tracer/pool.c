/* SPDX-License-Identifier: MIT */
#include "pool.h"

#define CLASSES	  48 /* class c holds blocks of 2^c bytes */
#define SMALLEST  5

struct block {
	struct block *next;
};

static struct {
	struct block *free[CLASSES];
	struct arena arena;
} pool;

static unsigned class_of(size_t size)
{
	unsigned c = SMALLEST;

	while (c < CLASSES - 1 && (size_t)1 << c < size)
		c++;
	return c;
}

void *pool_alloc(size_t size)
{
	unsigned c = class_of(size);
	struct block *b = pool.free[c];

	if (!b)
		return arena_alloc(&pool.arena, (size_t)1 << c);
	pool.free[c] = b->next;
	return memset(b, 0, size);
}

void pool_free(void *block, size_t size)
{
	struct block *b = block;
	unsigned c = class_of(size);

	if (!b)
		return;
	b->next = pool.free[c];
	pool.free[c] = b;
}
