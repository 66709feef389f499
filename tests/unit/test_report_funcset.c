/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>
#include "support_report.h"
#include "tools/report/funcset.h"

#define MANY 5000

static void load(struct datafile_symbols *symbols, const struct made_symbols *made)
{
	struct datafile_fault fault;
	char *dir = made_dir();
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	made_write_symbols(dir, made);
	cr_assert(!datafile_read_symbols(symbols, fd, made->file, &fault), "%s", fault.text);
	close(fd);
	made_remove(dir);
}

Test(report_funcset, same_is_module_address_and_symbol)
{
	static const struct made_function functions[] = {
		{ "f", 0x1000, 1, 0, NULL, 0 },
		{ "f", 0x1000, 2, 0, "alias", 0 }, /* the same as 0, however it is patched */
		{ "g", 0x1000, 1, 0, NULL, 0 },
		{ "f", 0x1001, 1, 0, NULL, 0 },
		{ "f", 0x1000, 1, 0, NULL, 1 }, /* another module: path */
		{ "f", 0x1000, 1, 0, NULL, 2 }, /* another module: build id */
		{ NULL, 0x1000, 1, 0, NULL, 0 },
	};
	static const size_t same[] = { 0, 0, 2, 3, 4, 5, 6 };
	static const struct made_symbols made = {
		.file = "s.symbols",
		.modules = { "/bin/app", "/lib/app", "/bin/app" },
		.functions = functions,
		.nfunctions = 7,
	};
	struct datafile_symbols files[2]; /* as two processes have them */
	struct funcset set = { 0 };

	load(&files[0], &made);
	load(&files[1], &made);
	for (size_t file = 0; file < 2; file++)
		for (size_t i = 0; i < 7; i++)
			cr_expect(funcset_add(&set, &files[file], i, i)->value == same[i],
				"file %zu, function %zu", file, i);
	cr_expect_eq(set.used, 6);
	funcset_free(&set);
	datafile_free_symbols(&files[0]);
	datafile_free_symbols(&files[1]);
}

Test(report_funcset, grows)
{
	static struct made_function functions[MANY];
	const struct made_symbols made = { .file = "s.symbols",
		.modules = { "/bin/app" },
		.functions = functions,
		.nfunctions = MANY };
	struct datafile_symbols symbols;
	struct funcset set = { 0 };

	for (size_t i = 0; i < MANY; i++)
		functions[i].address = 0x1000 * i;
	load(&symbols, &made);
	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < MANY; i++)
			cr_expect(funcset_add(&set, &symbols, i, i + pass)->value == i,
				"pass %zu, function %zu", pass, i);
	cr_expect_eq(set.used, MANY);
	funcset_free(&set);
	datafile_free_symbols(&symbols);
}
