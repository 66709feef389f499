/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "tracer/radix.h"

#define N_MAX 1000

/* Values number the items, so that equal keys show whether they kept their order. */
Test(radix, sorts_by_key_and_keeps_the_order_of_equal_keys)
{
	static const struct {
		const char *what;
		size_t n;
		uint64_t mask, factor;
	} rows[] = {
		{ "none", 0, UINT64_MAX, 1 },
		{ "one", 1, UINT64_MAX, 1 },
		{ "sorted", 1000, UINT64_MAX, 1 },
		{ "reversed", 1000, UINT64_MAX, -1ull },
		{ "all equal", 1000, 0, 1 },
		{ "few keys", 1000, 7, 0x9e3779b97f4a7c15 },
		{ "one byte", 1000, 0xff, 0x9e3779b97f4a7c15 },
		{ "two bytes apart", 1000, 0xff000000ff, 0x9e3779b97f4a7c15 },
		{ "three bytes", 1000, 0xffffff, 0x9e3779b97f4a7c15 },
		{ "all bytes", 1000, UINT64_MAX, 0x9e3779b97f4a7c15 },
		{ "top bit", 1000, 1ull << 63, 0x9e3779b97f4a7c15 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		static struct radix_item items[N_MAX], spare[N_MAX];
		bool seen[N_MAX] = { false };

		for (size_t k = 0; k < rows[i].n; k++)
			items[k] = (struct radix_item){ k * rows[i].factor & rows[i].mask, k };
		radix_sort(items, spare, rows[i].n);
		for (size_t k = 0; k < rows[i].n; k++) {
			uint64_t value = items[k].value;

			cr_assert(value < rows[i].n && !seen[value], "%s, %zu", rows[i].what, k);
			seen[value] = true;
			cr_assert_eq(items[k].key, value * rows[i].factor & rows[i].mask, "%s, %zu",
				rows[i].what, k);
			cr_assert(!k || items[k - 1].key < items[k].key
					|| (items[k - 1].key == items[k].key
						&& items[k - 1].value < value),
				"%s, %zu", rows[i].what, k);
		}
	}
}
