/* SPDX-License-Identifier: MIT */
#include "tracer/demangle.h"
#include <criterion/criterion.h>

Test(demangle, names)
{
	static const struct {
		const char *symbol, *full, *name; /* full NULL: not mangled */
	} rows[] = {
		{ "main", NULL, NULL },
		{ "_Zzz", NULL, NULL },
		{ "_ZN2ns1fEi", "ns::f(int)", "ns::f" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
			"std::vector<int, std::allocator<int> >::push_back(int&&)",
			"std::vector<int, std::allocator<int> >::push_back" },
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad", NULL },
		{ "_RNvC6_123foo3bar", "123foo::bar", NULL },
	};
	char out[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool known = demangle(rows[i].symbol, out, sizeof(out));

		cr_expect_eq(known, rows[i].full != NULL, "%s", rows[i].symbol);
		if (known)
			cr_expect_str_eq(out, rows[i].full, "%s: %s", rows[i].symbol, out);
		if (rows[i].name) {
			cr_expect(demangle_name(rows[i].symbol, out, sizeof(out)));
			cr_expect_str_eq(out, rows[i].name, "%s: %s", rows[i].symbol, out);
		}
	}
}

Test(demangle, cuts_off)
{
	char out[8];

	cr_expect(demangle("_ZN2ns1fEi", out, sizeof(out)));
	cr_expect_str_eq(out, "ns::f(i");
}
