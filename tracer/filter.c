/* SPDX-License-Identifier: MIT */
#include "filter.h"
#include <errno.h>

static const char *rule_end(const char *p)
{
	for (; *p && *p != ','; p++)
		if (*p == '\\' && p[1])
			p++;
	return p;
}

int filter_parse(struct filter *filter, const char *globs, struct arena *arena)
{
	size_t n = 1;

	*filter = (struct filter){ .otherwise = true };
	if (!globs)
		return 0;
	for (const char *p = globs; *(p = rule_end(p)); p++)
		n++;
	filter->rules = arena_alloc(arena, n * sizeof(*filter->rules));
	if (!filter->rules)
		return -ENOMEM;
	for (const char *p = globs;; p++) {
		const char *end = rule_end(p);
		struct filter_rule *rule = &filter->rules[filter->count];

		rule->leave_out = *p == '!';
		p += rule->leave_out;
		rule->glob = arena_str(arena, p, (size_t)(end - p));
		if (!rule->glob)
			return -ENOMEM;
		filter->count += end > p; /* "a,,b" has two rules */
		p = end;
		if (!*p)
			break;
	}
	filter->otherwise = !filter->count || filter->rules[0].leave_out;
	return 0;
}

bool filter_match(const struct filter *filter, const char *const *names, size_t n)
{
	for (size_t i = filter->count; i--;)
		for (size_t k = 0; k < n; k++)
			if (names[k] && str_glob(filter->rules[i].glob, names[k]))
				return !filter->rules[i].leave_out;
	return filter->otherwise;
}
