/* SPDX-License-Identifier: MIT */
#include "tracer/filter.h"
#include <criterion/criterion.h>

Test(filter, last_match_wins)
{
	static const struct {
		const char *globs, *name;
		bool match;
	} rows[] = {
		{ NULL, "anything", true },
		{ "", "anything", true },
		{ "a*", "abc", true },
		{ "a*", "b", false },
		{ "a*,!ab*", "abc", false },
		{ "a*,!ab*", "acc", true },
		{ "!ab*,a*", "abc", true },
		{ "!ab*", "abc", false },
		{ "!ab*", "x", true },
		{ "a,b,c", "b", true },
		{ "a,,b", "b", true },
		{ "a,", "b", false },
		{ "f(int\\, long)", "f(int, long)", true },
		{ "\\!a", "!a", true },
	};
	struct arena arena = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct filter filter;

		cr_assert_eq(filter_parse(&filter, rows[i].globs, &arena), 0);
		cr_expect_eq(filter_match(&filter, &rows[i].name, 1), rows[i].match, "'%s' on '%s'",
			rows[i].globs ? rows[i].globs : "(null)", rows[i].name);
	}
	arena_free(&arena);
}

Test(filter, any_of_the_names_decides)
{
	const char *names[3] = { "_ZN1a1bEv", "a::b()", NULL };
	struct arena arena = { 0 };
	struct filter filter;

	cr_assert_eq(filter_parse(&filter, "a::*", &arena), 0);
	cr_expect(filter_match(&filter, names, 3));
	cr_assert_eq(filter_parse(&filter, "*,!a::*", &arena), 0);
	cr_expect_not(filter_match(&filter, names, 3));
	arena_free(&arena);
}
