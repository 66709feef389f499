/* SPDX-License-Identifier: MIT */
/* Memory is kept free around a text of ours, which has 64 MiB of room on either side. */
#define _GNU_SOURCE 1
#include "trampolines/reserve.h"
#include <criterion/criterion.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB(n) ((uint64_t)(n) << 20)
#define TEXT   MIB(4)

static struct arena arena;
static uint64_t text;

static uint64_t size_of_maps(uint64_t lo, uint64_t hi, bool hide)
{
	struct maps maps;
	uint64_t size = 0;

	cr_assert_eq(maps_read(&maps, "/proc/self/maps", &arena), 0);
	if (hide)
		reserve_hide(&maps);
	for (size_t i = 0; i < maps.count; i++) {
		uint64_t from = maps.list[i].lo > lo ? maps.list[i].lo : lo;
		uint64_t to = maps.list[i].hi < hi ? maps.list[i].hi : hi;

		if (from < to)
			size += to - from;
	}
	return size;
}

static void begin(int times)
{
	uint8_t *room = mmap(NULL, MIB(132), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	struct gap_request place = { .page = (uint64_t)sysconf(_SC_PAGESIZE),
		.program = getauxval(AT_PHDR),
		.loader = getauxval(AT_BASE),
		.brk = (uint64_t)sbrk(0),
		.reach = MIB(32) };

	cr_assert_neq(room, MAP_FAILED);
	text = (uint64_t)room + MIB(64);
	munmap(room, MIB(64));
	munmap(room + MIB(68), MIB(64));
	place.text_lo = text;
	place.text_hi = text + TEXT;
	for (int i = 0; i < times; i++)
		reserve_near(&place, &arena);
}

Test(reserve, keeps_memory_on_both_sides)
{
	begin(1);
	cr_expect_geq(size_of_maps(text - MIB(32), text, false), MIB(16));
	cr_expect_geq(size_of_maps(text + TEXT, text + TEXT + MIB(32), false), MIB(16));
	cr_expect_eq(size_of_maps(text - MIB(32), text + TEXT + MIB(32), true), TEXT);
	reserve_end();
	cr_expect_eq(size_of_maps(text - MIB(32), text + TEXT + MIB(32), false), TEXT);
}

Test(reserve, gives_back_what_is_asked_for)
{
	uint64_t all, around, hole = 0;

	begin(1);
	all = size_of_maps(text - MIB(32), text, false);
	for (uint64_t at = text - MIB(31); !hole && at < text; at += MIB(1))
		if (size_of_maps(at - MIB(1), at + MIB(2), false) == MIB(3))
			hole = at;
	cr_assert_neq(hole, 0);
	reserve_open(hole, hole + MIB(1));
	cr_expect_eq(size_of_maps(text - MIB(32), text, false), all - MIB(1));
	cr_expect_eq(size_of_maps(hole, hole + MIB(1), false), 0);
	/* Somebody moves in, and is not thrown out again. */
	around = (uint64_t)mmap((void *)hole, MIB(1), PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert_eq(around, hole);
	cr_expect_eq(size_of_maps(text - MIB(32), text, true), MIB(1));
	reserve_end();
	cr_expect_eq(size_of_maps(text - MIB(32), text, false), MIB(1));
}

/* The kernel shows neighbours as one mapping, in whatever order pieces were taken out of them. */
Test(reserve, hides_areas_that_have_become_one)
{
	static const uint8_t holes[] = { 17, 3, 28, 9, 22, 1, 13 };

	begin(4);
	cr_assert_eq(size_of_maps(text - MIB(32), text, true), 0);
	for (size_t i = 0; i < sizeof(holes); i++) {
		uint64_t hole = text - MIB(holes[i]);

		reserve_open(hole, hole + MIB(1) / 4);
		cr_expect_eq(size_of_maps(text - MIB(32), text, true), 0, "hole %u", holes[i]);
	}
	reserve_end();
}
