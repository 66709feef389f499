/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support_report.h"
#include "tools/report/names.h"

Test(report_names, demangles_cpp_and_rust)
{
	static const char *const rows[][2] = {
		{ "_ZN3app5parseEi", "app::parse(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
			"std::vector<int, std::allocator<int> >::push_back(int const&)" },
		{ "_ZN3FooC2Ev", "Foo::Foo()" },
		{ "_Z3foov.constprop.0", "foo() [clone .constprop.0]" },
		{ "_Z3foov.isra.0.part.1", "foo() [clone .isra.0] [clone .part.1]" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
			"core::fmt::Write::write_fmt" },
		{ "_RNvC5mylib3foo", "mylib::foo" },
		{ "_RNvC5mylib3foo.llvm.123", "mylib::foo" },
		/* not mangled, or not right */
		{ "main", NULL },
		{ "foo.constprop.0", NULL },
		{ "_Z", NULL },
		{ "_R", NULL },
		{ "_ZN3ap", NULL },
		{ "_start", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *name = names_demangle(rows[i][0]);

		if (rows[i][1] && name)
			cr_expect_str_eq(name, rows[i][1], "row %zu", i);
		else
			cr_expect(!name && !rows[i][1], "row %zu: %s", i, name);
		free(name);
	}
}

/* A substitution: S_, S0_, ... S9_, SA_, ... */
static void bomb_reference(char *to, unsigned int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (n == 0)
		strcat(to, "S_");
	else
		sprintf(to + strlen(to), "S%c_", digits[n - 1]);
}

Test(report_names, gives_up_on_names_of_exponential_length)
{
	/* f(A<int, int>, A<#1, #1>, A<#2, #2>, ...): each parameter is twice the one before. */
	char symbol[2048] = "_Z1f1AIiiE";

	for (unsigned int i = 1; i < 36; i++) {
		strcat(symbol, "S_I");
		bomb_reference(symbol, i);
		bomb_reference(symbol, i);
		strcat(symbol, "E");
	}
	cr_expect_null(names_demangle(symbol));
	/* and is not left in a bad state */
	char *name = names_demangle("_Z1fv");

	cr_assert_not_null(name);
	cr_expect_str_eq(name, "f()");
	free(name);
}

Test(report_names, survives_deep_nesting)
{
	char *symbol = malloc(200001);

	memset(symbol, 'N', 200000);
	symbol[200000] = 0;
	memcpy(symbol, "_Z", 2);
	cr_expect_null(names_demangle(symbol));
	memset(symbol, 'P', 200000);
	memcpy(symbol, "_Z1f", 4);
	cr_expect_null(names_demangle(symbol));
	memcpy(symbol, "_RNvC", 5);
	cr_expect_null(names_demangle(symbol));
	free(symbol);
}

Test(report_names, names_functions_without_symbol_by_address)
{
	static const struct made_function functions[] = {
		{ "_Z1fv", 0x1000, 2, 0, NULL, 0 },
		{ "plain", 0x2000, 2, 0, NULL, 0 },
		{ NULL, 0xffffffffffffffff, 2, 0, NULL, 1 },
	};
	static const char *const names[] = { "f()", "plain", "libx.so+0xffffffffffffffff" };
	const struct made_symbols made = { .file = "s.symbols",
		.modules = { "/bin/app", "/lib/libx.so" },
		.functions = functions,
		.nfunctions = 3 };
	struct datafile_symbols symbols;
	struct datafile_fault fault;
	char *dir = made_dir();
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	made_write_symbols(dir, &made);
	cr_assert(!datafile_read_symbols(&symbols, fd, made.file, &fault), "%s", fault.text);
	for (size_t i = 0; i < 3; i++) {
		const char *name = names_get(&symbols, i);

		cr_expect_str_eq(name, names[i]);
		cr_expect_eq(names_get(&symbols, i), name, "row %zu is made twice", i);
	}
	names_free(&symbols);
	datafile_free_symbols(&symbols);
	close(fd);
	made_remove(dir);
}
