/* SPDX-License-Identifier: MIT */
/* Which modules and functions are traced: comma-separated globs, the last match wins. */
#ifndef TRACER_FILTER_H
#define TRACER_FILTER_H

#include "../arch/mem.h"

struct filter_rule {
	char *glob;
	bool leave_out; /* "!glob" */
};

struct filter {
	struct filter_rule *rules; /* in the order given */
	size_t count;
	bool otherwise; /* the answer where no rule matches */
};

/*
 * Parse @globs ("a*,!b"). NULL: everything matches. When the first rule leaves out, what no rule
 * matches is in. A backslash keeps the next character, a comma too, from being special. 0, -ENOMEM.
 */
int filter_parse(struct filter *filter, const char *globs, struct arena *arena);

/* True when one of @names (@n of them, NULL ones skipped) decides so. Every rule sees all names. */
bool filter_match(const struct filter *filter, const char *const *names, size_t n);

#endif
