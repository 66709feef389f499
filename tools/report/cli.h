/* SPDX-License-Identifier: MIT */
/* The command line of ftr-report. */
#ifndef REPORT_CLI_H
#define REPORT_CLI_H

#include "model.h"
#include "output.h"

enum cli_format { CLI_TABLE, CLI_JSON, CLI_CSV };
enum cli_action { CLI_REPORT, CLI_HELP, CLI_VERSION, CLI_USDT };

struct cli {
	enum cli_action action;
	enum cli_format format;
	struct model_options model;
	const char *usdt; /* CLI_USDT: the file */
	struct output_options output; /* colour is decided by the caller */
};

/* 0, or -1 after one line to @errors. */
int cli_parse(struct cli *cli, int argc, char **argv, FILE *errors);
void cli_help(FILE *to);

#endif
