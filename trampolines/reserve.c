/* SPDX-License-Identifier: MIT */
#include "../arch/mem.h"
#include "reserve.h"
#include "../arch/sys.h"
#include <sys/mman.h>

#define RESERVED_MAX 256
#define RESERVE_LEAST (1u << 20)
#define PER_TEXT     4 /* bytes of an image for a byte of code with very small functions */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct reserved {
	uint64_t lo, hi;
} reserved[RESERVED_MAX];
static size_t nreserved;

static void reserve_at(uint64_t lo, uint64_t size)
{
	void *got = sys_mmap((void *)lo, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (sys_failed(got))
		return;
	if ((uint64_t)got != lo) /* an old kernel takes the address for a hint */
		sys_munmap(got, size);
	else
		reserved[nreserved++] = (struct reserved){ lo, lo + size };
}

/* One area near [@lo, @hi), of @most bytes or of as many as there are. */
static void reserve_one(const struct gap_request *near, uint64_t lo, uint64_t hi, uint64_t most,
	struct arena *arena)
{
	struct gap_request place = *near;
	struct maps maps;

	place.text_lo = lo;
	place.text_hi = hi;
	if (nreserved == RESERVED_MAX || maps_read(&maps, "/proc/self/maps", arena))
		return;
	for (place.size = most; place.size >= RESERVE_LEAST; place.size /= 2) {
		uint64_t base = gap_find(&maps, &place);

		if (!base)
			continue;
		reserve_at(base, (place.size + place.page - 1) & -place.page);
		return;
	}
}

void reserve_near(const struct gap_request *near, struct arena *arena)
{
	uint64_t most = (near->text_hi - near->text_lo) * PER_TEXT;

	if (most < RESERVE_LEAST)
		most = RESERVE_LEAST;
	if (most > near->reach)
		most = near->reach;
	/* what is near both ends is found first from one, and not again from the other */
	reserve_one(near, near->text_lo, near->text_lo, most, arena);
	reserve_one(near, near->text_hi, near->text_hi, most, arena);
}

static bool is_reserved(const struct mapping *m)
{
	for (size_t i = 0; i < nreserved; i++)
		if (!m->prot && m->lo >= reserved[i].lo && m->hi <= reserved[i].hi)
			return true;
	return false;
}

/* Cut one reserved area off an end of a mapping. False: there is none. */
static bool cut_one(struct mapping *m)
{
	for (size_t i = 0; i < nreserved; i++) {
		if (reserved[i].lo <= m->lo && reserved[i].hi > m->lo && reserved[i].hi < m->hi)
			m->lo = reserved[i].hi;
		else if (reserved[i].hi >= m->hi && reserved[i].lo < m->hi && reserved[i].lo > m->lo)
			m->hi = reserved[i].lo;
		else
			continue;
		return true;
	}
	return false;
}

/* The kernel merges neighbours, and reserved areas are in no order. */
static void cut(struct mapping *m)
{
	while (!m->prot && cut_one(m))
		;
}

void reserve_hide(struct maps *maps)
{
	size_t n = 0;

	for (size_t i = 0; i < maps->count; i++) {
		cut(&maps->list[i]);
		if (!is_reserved(&maps->list[i]))
			maps->list[n++] = maps->list[i];
	}
	maps->count = n;
}

/* Keep [@lo, @hi) in the list, or give it back when that is full. */
static void keep(uint64_t lo, uint64_t hi)
{
	if (lo >= hi)
		return;
	if (nreserved < RESERVED_MAX)
		reserved[nreserved++] = (struct reserved){ lo, hi };
	else
		sys_munmap((void *)lo, hi - lo);
}

void reserve_open(uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < nreserved;) {
		struct reserved r = reserved[i];
		uint64_t from = lo > r.lo ? lo : r.lo, to = hi < r.hi ? hi : r.hi;

		if (from >= to) {
			i++;
			continue;
		}
		sys_munmap((void *)from, to - from);
		reserved[i] = reserved[--nreserved];
		keep(r.lo, from);
		keep(to, r.hi);
	}
}

void reserve_end(void)
{
	while (nreserved) {
		struct reserved r = reserved[--nreserved];

		sys_munmap((void *)r.lo, r.hi - r.lo);
	}
}
