/* SPDX-License-Identifier: MIT */
#include "radix.h"

static void radix_pass(const struct radix_item *from, struct radix_item *to, size_t n,
	unsigned shift)
{
	size_t place[256] = { 0 }, before = 0;

	for (size_t i = 0; i < n; i++)
		place[(uint8_t)(from[i].key >> shift)]++;
	for (size_t i = 0; i < 256; i++) {
		size_t count = place[i];

		place[i] = before;
		before += count;
	}
	for (size_t i = 0; i < n; i++)
		to[place[(uint8_t)(from[i].key >> shift)]++] = from[i];
}

/* One pass per byte of the key, lowest first; bytes in which no two keys differ are passed over. */
void radix_sort(struct radix_item *items, struct radix_item *spare, size_t n)
{
	struct radix_item *from = items, *to = spare;
	uint64_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < n; i++) {
		differ |= items[i].key ^ items[0].key;
		sorted = sorted && items[i - 1].key <= items[i].key;
	}
	for (unsigned shift = 0; shift < 64 && !sorted; shift += 8) {
		struct radix_item *swap = from;

		if (!(uint8_t)(differ >> shift))
			continue;
		radix_pass(from, to, n, shift);
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
}
