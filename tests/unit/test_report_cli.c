/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "tools/report/cli.h"

#define ARGS_MAX 8

/* Parse up to the first NULL of @args. The complaint is at @said, to be freed. */
static int parse(struct cli *cli, const char *const args[ARGS_MAX], char **said)
{
	char *argv[ARGS_MAX + 2] = { (char *)"ftr-report" };
	int argc = 1, error;
	size_t size;
	FILE *errors = open_memstream(said, &size);

	while (argc <= ARGS_MAX && args[argc - 1]) {
		argv[argc] = (char *)args[argc - 1];
		argc++;
	}
	error = cli_parse(cli, argc, argv, errors);
	fclose(errors);
	return error;
}

Test(report_cli, refuses_with_one_clear_line)
{
	static const struct {
		const char *args[ARGS_MAX];
		const char *said;
	} rows[] = {
		{ { "--bogus" }, "ftr-report: --bogus: no such option (see --help)\n" },
		{ { "-x" }, "ftr-report: -x: no such option (see --help)\n" },
		{ { "-xyz" }, "ftr-report: -x: no such option (see --help)\n" },
		{ { "--top" }, "ftr-report: --top: needs a value (see --help)\n" },
		{ { "--all=1" }, "ftr-report: --all=1: takes no value (see --help)\n" },
		{ { "dir" }, "ftr-report: dir: unexpected argument (see --help)\n" },
		{ { "--all", "--", "--top" },
			"ftr-report: --top: unexpected argument (see --help)\n" },
		{ { "--top", "0" }, "ftr-report: --top 0: must be a number of 1 or more\n" },
		{ { "--top", "-1" }, "ftr-report: --top -1: must be a number of 1 or more\n" },
		{ { "--top", "" }, "ftr-report: --top : must be a number of 1 or more\n" },
		{ { "--top", "5x" }, "ftr-report: --top 5x: must be a number of 1 or more\n" },
		{ { "--top", "99999999999999999999" },
			"ftr-report: --top 99999999999999999999: must be a number of 1 or more\n" },
		{ { "--pid", "4294967297" },
			"ftr-report: --pid 4294967297: must be a number of 1 or more\n" },
		{ { "--sort", "default" },
			"ftr-report: --sort default: must be total, self, calls, avg, max or name\n" },
		{ { "--format", "xml" }, "ftr-report: --format xml: must be table, json or csv\n" },
		{ { "--format", "csv", "--skipped", "--threads" },
			"ftr-report: --format csv prints one list: --skipped or --threads\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cli cli;
		char *said;

		cr_expect(parse(&cli, rows[i].args, &said) == -1, "row %zu is accepted", i);
		cr_expect_str_eq(said, rows[i].said, "row %zu", i);
		free(said);
	}
}

Test(report_cli, takes_every_option)
{
	static const char *const args[ARGS_MAX] = { "--data=d", "--format=csv", "--sort", "name",
		"--top=7", "--filter=f*", "--pid=42", "--all" };
	struct cli cli;
	char *said;

	cr_assert(!parse(&cli, args, &said), "%s", said);
	cr_expect_str_eq(said, "");
	free(said);
	cr_expect_eq(cli.action, CLI_REPORT);
	cr_expect_eq(cli.format, CLI_CSV);
	cr_expect_str_eq(cli.model.dir, "d");
	cr_expect_eq(cli.model.sort, MODEL_SORT_NAME);
	cr_expect_eq(cli.model.top, 7);
	cr_expect_str_eq(cli.model.filter, "f*");
	cr_expect_eq(cli.model.pid, 42);
	cr_expect(cli.model.all);
}

Test(report_cli, merges_processes_in_the_table_of_all)
{
	static const struct {
		const char *args[ARGS_MAX];
		bool merge;
	} rows[] = {
		{ { NULL }, true },
		{ { "--format", "table" }, true },
		{ { "--pid", "1" }, false },
		{ { "--format", "json" }, false },
		{ { "--format", "csv" }, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cli cli;
		char *said;

		cr_expect(!parse(&cli, rows[i].args, &said), "row %zu: %s", i, said);
		cr_expect(cli.model.merge == rows[i].merge, "row %zu", i);
		free(said);
	}
}

Test(report_cli, finds_the_data_directory)
{
	static const struct {
		const char *variable, *option, *dir;
	} rows[] = {
		{ NULL, NULL, "ftr.data" },
		{ "", NULL, "ftr.data" },
		{ "env", NULL, "env" },
		{ "env", "--data=opt", "opt" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *args[ARGS_MAX] = { rows[i].option };
		struct cli cli;
		char *said;

		unsetenv("FTR_DATA");
		if (rows[i].variable)
			setenv("FTR_DATA", rows[i].variable, 1);
		cr_expect(!parse(&cli, args, &said), "row %zu: %s", i, said);
		cr_expect_str_eq(cli.model.dir, rows[i].dir, "row %zu", i);
		free(said);
	}
}

Test(report_cli, help_and_version_need_nothing_else)
{
	static const struct {
		const char *args[ARGS_MAX];
		enum cli_action action;
	} rows[] = {
		{ { "--help" }, CLI_HELP },
		{ { "--version" }, CLI_VERSION },
		{ { "--all", "--help", "--bogus" }, CLI_HELP },
		{ { "--skipped" }, CLI_REPORT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cli cli;
		char *said;

		cr_expect(!parse(&cli, rows[i].args, &said), "row %zu: %s", i, said);
		cr_expect(cli.action == rows[i].action, "row %zu", i);
		free(said);
	}
}

Test(report_cli, help_names_every_option)
{
	static const char *const options[] = { "--data", "--format", "--sort", "--top", "--filter",
		"--pid", "--all", "--threads", "--skipped", "--help", "--version" };
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	cli_help(to);
	fclose(to);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		cr_expect(strstr(text, options[i]), "%s", options[i]);
	free(text);
}
