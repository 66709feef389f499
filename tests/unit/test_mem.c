/* SPDX-License-Identifier: MIT */
#include "arch/mem.h"
#include <criterion/criterion.h>
#include <limits.h>

Test(mem, globs)
{
	static const struct {
		const char *pattern, *s;
		bool match;
	} rows[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "*", "anything", true },
		{ "a*c", "abbbc", true },
		{ "a*c", "ac", true },
		{ "a*c", "acb", false },
		{ "*b*b*", "abcb", true },
		{ "*b*b*", "abc", false },
		{ "a?c", "abc", true },
		{ "a?c", "ac", false },
		{ "[a-c]x", "bx", true },
		{ "[a-c]x", "dx", false },
		{ "[!a-c]x", "dx", true },
		{ "[]]x", "]x", true },
		{ "[", "[", true },
		{ "\\*", "*", true },
		{ "\\*", "a", false },
		{ "*aaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		cr_expect_eq(str_glob(rows[i].pattern, rows[i].s), rows[i].match, "'%s' on '%s'",
			rows[i].pattern, rows[i].s);
}

Test(mem, prints)
{
	char buf[64];

	cr_expect_eq(str_print(buf, sizeof(buf), "%s %d %u %lx %c%%", "a", -5, 7u, 0xabcul, 'z'), 13);
	cr_expect_str_eq(buf, "a -5 7 abc z%");
	str_print(buf, sizeof(buf), "%08x|%p", 0x1234u, (void *)0xff);
	cr_expect_str_eq(buf, "00001234|0xff");
	cr_expect_eq(str_print(buf, 4, "%s", "longer"), 3);
	cr_expect_str_eq(buf, "lon");
	str_print(buf, sizeof(buf), "%ld", LONG_MIN);
	cr_expect_str_eq(buf, "-9223372036854775808");
}

static int ascending(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

Test(mem, sorts)
{
	uint32_t seed = 1, items[500];

	for (size_t n = 0; n < 500; n += 7) {
		for (size_t i = 0; i < n; i++)
			items[i] = (seed = seed * 1664525 + 1013904223) >> 20;
		mem_sort(items, n, sizeof(*items), ascending);
		for (size_t i = 1; i < n; i++)
			cr_assert_leq(items[i - 1], items[i], "%zu of %zu", i, n);
	}
}

Test(mem, items_below_a_key_are_counted)
{
	static const struct {
		uint64_t key;
		uint32_t more;
	} items[] = { { 3, 0 }, { 5, 1 }, { 5, 2 }, { 9, 3 }, { UINT64_MAX, 4 } };
	static const struct {
		uint64_t key;
		size_t below[6]; /* of so many of them */
	} rows[] = {
		{ 0, { 0, 0, 0, 0, 0, 0 } },
		{ 3, { 0, 0, 0, 0, 0, 0 } },
		{ 4, { 0, 1, 1, 1, 1, 1 } },
		{ 5, { 0, 1, 1, 1, 1, 1 } },
		{ 6, { 0, 1, 2, 3, 3, 3 } },
		{ UINT64_MAX, { 0, 1, 2, 3, 4, 4 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t n = 0; n <= 5; n++)
			cr_expect_eq(mem_below(items, n, sizeof(items[0]), rows[i].key), rows[i].below[n],
				"row %zu, %zu items", i, n);
}

Test(mem, arenas_give_zeroed_memory_that_stays)
{
	struct arena arena = { 0 };
	uint8_t *blocks[300];

	for (size_t i = 0; i < 300; i++) {
		size_t size = i * 97 % 20000;

		blocks[i] = arena_alloc(&arena, size);
		cr_assert_not_null(blocks[i]);
		cr_assert_eq((uintptr_t)blocks[i] % 16, 0);
		for (size_t k = 0; k < size; k++)
			cr_assert_eq(blocks[i][k], 0);
		memset(blocks[i], (int)i, size);
	}
	for (size_t i = 0; i < 300; i++)
		for (size_t k = 0; k < i * 97 % 20000; k++)
			cr_assert_eq(blocks[i][k], (uint8_t)i);
	cr_expect_null(arena_alloc(&arena, SIZE_MAX));
	cr_expect_str_eq(arena_str(&arena, "abcdef", 3), "abc");
	arena_free(&arena);
	cr_expect_eq(arena.held, 0);
}

/* Where system calls may be forbidden. */
Test(mem, sealed_arenas_do_not_grow)
{
	struct arena arena = { 0 }, none = { 0 };

	cr_assert_not_null(arena_alloc(&arena, 100));
	arena_seal();
	cr_expect_not_null(arena_alloc(&arena, 100));
	cr_expect_null(arena_alloc(&arena, 1 << 20));
	cr_expect_null(arena_alloc(&none, 1));
}

Test(mem, moves_overlapping_bytes)
{
	char text[] = "0123456789";

	memmove(text + 2, text, 5);
	cr_expect_str_eq(text, "0101234789");
	memmove(text, text + 2, 5);
	cr_expect_str_eq(text, "0123434789");
}
