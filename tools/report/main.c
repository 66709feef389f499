/* SPDX-License-Identifier: MIT */
/* ftr-report: read a data directory and say what the traced programs did. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli.h"
#include "usdt.h"

enum { STATUS_OK, STATUS_FAULTS, STATUS_USAGE };

/* https://no-color.org: set and not empty means none. */
static bool main_wants_colour(void)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) &&
	       !(terminal && !strcmp(terminal, "dumb"));
}

static int main_report(struct cli *cli)
{
	static void (*const print[])(
		FILE *, const struct model *, const struct output_options *) = {
		[CLI_TABLE] = table_print,
		[CLI_JSON] = json_print,
		[CLI_CSV] = csv_print,
	};
	struct model model;
	int status = STATUS_FAULTS;

	cli->output.colour = main_wants_colour();
	if (!model_load(&model, &cli->model, stderr)) {
		print[cli->format](stdout, &model, &cli->output);
		status = model.faults ? STATUS_FAULTS : STATUS_OK;
	}
	model_free(&model);
	return status;
}

int main(int argc, char **argv)
{
	struct cli cli;
	int status = STATUS_OK;

	if (cli_parse(&cli, argc, argv, stderr))
		return STATUS_USAGE;
	if (cli.action == CLI_HELP)
		cli_help(stdout);
	else if (cli.action == CLI_VERSION)
		puts("ftr-report " FTR_VERSION);
	else if (cli.action == CLI_USDT)
		status = usdt_list(cli.usdt, stdout, stderr) ? STATUS_FAULTS : STATUS_OK;
	else
		status = main_report(&cli);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "ftr-report: cannot write: %s\n", strerror(errno));
		return STATUS_FAULTS;
	}
	return status;
}
