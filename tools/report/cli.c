/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "cli.h"

#define CLI_DATA "ftr.data"

/* Above all characters, so that short options, which we do not have, can be told apart. */
enum {
	CLI_OPTION_DATA = 256,
	CLI_OPTION_FORMAT,
	CLI_OPTION_SORT,
	CLI_OPTION_TOP,
	CLI_OPTION_FILTER,
	CLI_OPTION_PID,
	CLI_OPTION_SKIPPED,
	CLI_OPTION_THREADS,
	CLI_OPTION_ALL,
	CLI_OPTION_USDT,
	CLI_OPTION_HELP,
	CLI_OPTION_VERSION,
};

static const struct option cli_options[] = {
	{ "data", required_argument, NULL, CLI_OPTION_DATA },
	{ "format", required_argument, NULL, CLI_OPTION_FORMAT },
	{ "sort", required_argument, NULL, CLI_OPTION_SORT },
	{ "top", required_argument, NULL, CLI_OPTION_TOP },
	{ "filter", required_argument, NULL, CLI_OPTION_FILTER },
	{ "pid", required_argument, NULL, CLI_OPTION_PID },
	{ "skipped", no_argument, NULL, CLI_OPTION_SKIPPED },
	{ "threads", no_argument, NULL, CLI_OPTION_THREADS },
	{ "all", no_argument, NULL, CLI_OPTION_ALL },
	{ "list-usdt", required_argument, NULL, CLI_OPTION_USDT },
	{ "help", no_argument, NULL, CLI_OPTION_HELP },
	{ "version", no_argument, NULL, CLI_OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char *const cli_formats[] = { "table", "json", "csv", NULL };
/* By enum model_sort. */
static const char *const cli_sorts[] = { "default", "total", "self", "calls", "avg", "max", "name",
	NULL };

void cli_help(FILE *to)
{
	fputs("Usage: ftr-report [OPTION]...\n"
	      "Say which functions of the traced programs were called, how often and how long.\n"
	      "\n"
	      "  --data DIR       the data directory ($FTR_DATA, else " CLI_DATA ")\n"
	      "  --format FORMAT  table, json or csv (table)\n"
	      "  --sort KEY       total, self, calls, avg, max or name (total, else calls)\n"
	      "  --top N          only the first N functions\n"
	      "  --filter GLOB    only functions whose name or symbol matches, e.g. 'parse_*'\n"
	      "  --pid N          only process N\n"
	      "  --all            also functions that were never called\n"
	      "  --threads        the threads too\n"
	      "  --skipped        the functions that are not traced too, and why\n"
	      "  --list-usdt FILE the static probes (sys/sdt.h) of an ELF file, and no report\n"
	      "  --help           print this\n"
	      "  --version        print the version\n"
	      "\n"
	      "Exit status: 0; 1 when a data file could not be used; 2 for a wrong command line.\n",
		to);
}

/* The index of a word in a list, or -1 after a complaint that has the list. */
static int cli_choose(const char *option, const char *word, const char *const *words, FILE *errors)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(word, words[i]))
			return i;
	fprintf(errors, "ftr-report: --%s %s: must be", option, word);
	for (int i = 0; words[i]; i++)
		fprintf(errors, "%s %s", i == 0 ? "" : words[i + 1] ? "," : " or", words[i]);
	fputc('\n', errors);
	return -1;
}

static int cli_number(
	const char *option, const char *word, unsigned long max, unsigned long *value, FILE *errors)
{
	char *end;

	errno = 0;
	*value = strtoul(word, &end, 10);
	/* strtoul takes signs and blanks. */
	if (*word >= '0' && *word <= '9' && !*end && !errno && *value && *value <= max)
		return 0;
	fprintf(errors, "ftr-report: --%s %s: must be a number of 1 or more\n", option, word);
	return -1;
}

static int cli_option(struct cli *cli, int option, FILE *errors)
{
	unsigned long number = 0;
	int choice = 0;

	switch (option) {
	case CLI_OPTION_DATA:
		cli->model.dir = optarg;
		break;
	case CLI_OPTION_FORMAT:
		choice = cli_choose("format", optarg, cli_formats, errors);
		cli->format = (enum cli_format)choice;
		break;
	case CLI_OPTION_SORT:
		choice = cli_choose("sort", optarg, cli_sorts + 1, errors);
		cli->model.sort = (enum model_sort)(choice + 1);
		break;
	case CLI_OPTION_TOP:
		choice = cli_number("top", optarg, ULONG_MAX, &number, errors);
		cli->model.top = number;
		break;
	case CLI_OPTION_FILTER:
		cli->model.filter = optarg;
		break;
	case CLI_OPTION_PID:
		choice = cli_number("pid", optarg, INT_MAX, &number, errors);
		cli->model.pid = (uint32_t)number;
		break;
	case CLI_OPTION_SKIPPED:
		cli->output.skipped = true;
		break;
	case CLI_OPTION_THREADS:
		cli->output.threads = true;
		break;
	case CLI_OPTION_ALL:
		cli->model.all = true;
		break;
	case CLI_OPTION_USDT:
		cli->action = CLI_USDT;
		cli->usdt = optarg;
		break;
	case CLI_OPTION_HELP:
		cli->action = CLI_HELP;
		break;
	case CLI_OPTION_VERSION:
		cli->action = CLI_VERSION;
		break;
	}
	return choice < 0 ? -1 : 0;
}

/* Say what getopt_long() found wrong with the argument it looked at last. */
static int cli_refuse(int found, const char *argument, FILE *errors)
{
	if (found == ':')
		fprintf(errors, "ftr-report: %s: needs a value", argument);
	else if (optopt >= CLI_OPTION_DATA)
		fprintf(errors, "ftr-report: %s: takes no value", argument);
	else if (optopt)
		fprintf(errors, "ftr-report: -%c: no such option", optopt);
	else
		fprintf(errors, "ftr-report: %s: no such option", argument);
	fputs(" (see --help)\n", errors);
	return -1;
}

int cli_parse(struct cli *cli, int argc, char **argv, FILE *errors)
{
	const char *data = getenv("FTR_DATA");
	int option;

	memset(cli, 0, sizeof(*cli));
	cli->model.dir = data && *data ? data : CLI_DATA;
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", cli_options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return cli_refuse(option, argv[optind - 1], errors);
		if (cli_option(cli, option, errors))
			return -1;
		if (cli->action != CLI_REPORT)
			return 0;
	}
	if (optind < argc) {
		fprintf(errors, "ftr-report: %s: unexpected argument (see --help)\n", argv[optind]);
		return -1;
	}
	if (cli->format == CLI_CSV && cli->output.skipped && cli->output.threads) {
		fputs("ftr-report: --format csv prints one list: --skipped or --threads\n", errors);
		return -1;
	}
	cli->model.merge = cli->format == CLI_TABLE && !cli->model.pid;
	return 0;
}
