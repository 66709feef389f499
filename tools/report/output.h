/* SPDX-License-Identifier: MIT */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include "model.h"

struct output_options {
	bool skipped;
	bool threads;
	bool colour;
};

/* For people. */
void table_print(FILE *to, const struct model *model, const struct output_options *options);

/* docs/report-json.md */
void json_print(FILE *to, const struct model *model, const struct output_options *options);

/* RFC 4180: the functions; with @skipped or @threads these instead. */
void csv_print(FILE *to, const struct model *model, const struct output_options *options);

#endif
