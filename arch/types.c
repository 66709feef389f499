/* SPDX-License-Identifier: MIT */
#include "types.h"

struct isa_place types_on_stack(struct types_walk *w, uint32_t size, uint32_t align)
{
	struct isa_place place = { .kind = PLACE_STACK };

	place.offset = (w->stack + align - 1) & -align;
	w->stack = place.offset + ((size + 7) & -8u);
	return place;
}

/* The size behind an 's'; 0: there is none. */
static uint32_t read_size(const char **types)
{
	uint32_t size = 0;

	for (; **types >= '0' && **types <= '9' && size < (1u << 24); (*types)++)
		size = size * 10 + (uint32_t)(**types - '0');
	return size;
}

struct isa_place types_find(const char *types, unsigned n, bool hidden,
	struct isa_place (*next)(struct types_walk *walk, char type, uint32_t size))
{
	static const struct isa_place none = { .kind = PLACE_NONE };
	struct isa_place place = none;
	struct types_walk w = { 0 };

	if (*types == '&') {
		if (hidden)
			next(&w, 'i', 0);
		types++;
	}
	for (unsigned i = 0; i <= n; i++) {
		uint32_t size;
		char type;

		if (*types == '.') {
			w.variadic = true;
			types++;
		}
		if (!*types)
			return none;
		type = *types++;
		size = type == 's' ? read_size(&types) : 0;
		if (type == 's' && !size)
			return none;
		place = next(&w, type, size);
		if (place.kind == PLACE_NONE)
			break;
	}
	return place;
}
