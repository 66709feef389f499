/* SPDX-License-Identifier: MIT */
#include "../arch/mem.h"
#include "flush.h"
#include "../arch/arch.h"

static struct {
	uint64_t *asked, *done; /* NULL: nobody wants to know */
} flush;

void flush_count_in(uint64_t *asked, uint64_t *done)
{
	__atomic_store_n(&flush.asked, asked, __ATOMIC_RELAXED);
	__atomic_store_n(&flush.done, done, __ATOMIC_RELAXED);
}

static void flush_add(uint64_t *const *to, uint64_t n)
{
	uint64_t *sum = __atomic_load_n(to, __ATOMIC_RELAXED);

	if (sum && n)
		__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

void flush_count(uint64_t asked, uint64_t done)
{
	if (!arch_flushes)
		return;
	flush_add(&flush.asked, asked);
	flush_add(&flush.done, done);
}
