/* SPDX-License-Identifier: MIT */
/*
 * The report for people. A table is a list of columns, each with a function that writes a cell;
 * it is made twice, once to know how wide the columns are and once to print it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "contract.h"
#include "names.h"
#include "output.h"
#include "text.h"

#define TABLE_PROCESSES_MAX 10 /* listed above the table */
#define TABLE_COMMAND_MAX   80 /* characters of a command line */
#define TABLE_BOLD	    "\033[1m"
#define TABLE_DIM	    "\033[2m"
#define TABLE_PLAIN	    "\033[0m"

struct table_column {
	const char *title;
	bool text; /* else a number: on the right */
	/* The text of a cell, which may be in @buf. */
	const char *(*cell)(const struct model *model, size_t row, char buf[TEXT_NS_MAX]);
};

static const char *table_number(char *buf, uint64_t value)
{
	snprintf(buf, TEXT_NS_MAX, "%" PRIu64, value);
	return buf;
}

static const char *table_time(char *buf, uint64_t ns)
{
	return ns == MODEL_NONE ? "-" : text_ns(buf, ns);
}

/* A time that is summed up when a call ends, or when the process exits with calls open. */
static const char *table_sum(char *buf, const struct model_function *function, uint64_t ns)
{
	return table_time(buf, function->timed || ns ? ns : MODEL_NONE);
}

#define TABLE_CELL(what, expression)                                                               \
	static const char *table_##what(const struct model *model, size_t row, char *buf)          \
	{                                                                                          \
		(void)buf;                                                                         \
		return expression;                                                                 \
	}

TABLE_CELL(calls, table_number(buf, model->functions[row].calls))
TABLE_CELL(returned, table_number(buf, model->functions[row].returned))
TABLE_CELL(unwound, table_number(buf, model->functions[row].unwound))
TABLE_CELL(open, table_number(buf, model->functions[row].open))
TABLE_CELL(total, table_sum(buf, &model->functions[row], model->functions[row].total))
TABLE_CELL(self, table_sum(buf, &model->functions[row], model->functions[row].self))
TABLE_CELL(average, table_time(buf, model_average(&model->functions[row])))
TABLE_CELL(min, table_time(buf, model->functions[row].min))
TABLE_CELL(max, table_time(buf, model->functions[row].max))
TABLE_CELL(module,
	text_base(datafile_module_path(model->functions[row].symbols, model->functions[row].index)))
TABLE_CELL(name, names_get(model->functions[row].symbols, model->functions[row].index))

TABLE_CELL(thread_tid, table_number(buf, model->threads[row].tid))
TABLE_CELL(thread_users, table_number(buf, model->threads[row].users))
TABLE_CELL(thread_calls, table_number(buf, model->threads[row].calls))
TABLE_CELL(thread_self, table_time(buf, model->threads[row].self))

static const char *table_thread_pid(const struct model *model, size_t row, char *buf)
{
	return table_number(buf, model->processes[model->threads[row].process]->header.pid);
}

static const char *table_thread_top(const struct model *model, size_t row, char *buf)
{
	const struct model_thread *thread = &model->threads[row];

	(void)buf;
	return thread->top_symbols ? names_get(thread->top_symbols, thread->top_index) : "-";
}

static const struct symbols_function *table_skipped(const struct model *model, size_t row)
{
	return &model->skipped[row].symbols->functions[model->skipped[row].index];
}

static const char *table_skipped_address(const struct model *model, size_t row, char *buf)
{
	snprintf(buf, TEXT_NS_MAX, "0x%" PRIx64, table_skipped(model, row)->address);
	return buf;
}

TABLE_CELL(skipped_reason, contract_reason(table_skipped(model, row)->reason))
TABLE_CELL(skipped_module,
	text_base(datafile_module_path(model->skipped[row].symbols, model->skipped[row].index)))
TABLE_CELL(skipped_name, names_get(model->skipped[row].symbols, model->skipped[row].index))

static const struct table_column table_timed_columns[] = {
	{ "calls", false, table_calls },
	{ "returned", false, table_returned },
	{ "unwound", false, table_unwound },
	{ "open", false, table_open },
	{ "total", false, table_total },
	{ "self", false, table_self },
	{ "avg", false, table_average },
	{ "min", false, table_min },
	{ "max", false, table_max },
	{ "module", true, table_module },
	{ "name", true, table_name },
};
static const struct table_column table_count_columns[] = {
	{ "calls", false, table_calls },
	{ "returned", false, table_returned },
	{ "unwound", false, table_unwound },
	{ "open", false, table_open },
	{ "module", true, table_module },
	{ "name", true, table_name },
};
static const struct table_column table_thread_columns[] = {
	{ "pid", false, table_thread_pid },
	{ "tid", false, table_thread_tid },
	{ "users", false, table_thread_users },
	{ "calls", false, table_thread_calls },
	{ "self", false, table_thread_self },
	{ "top", true, table_thread_top },
};
static const struct table_column table_skipped_columns[] = {
	{ "skipped", true, table_skipped_reason },
	{ "address", false, table_skipped_address },
	{ "module", true, table_skipped_module },
	{ "name", true, table_skipped_name },
};

#define TABLE_COLUMNS_MAX 16

struct table {
	FILE *to;
	const struct model *model;
	bool colour;
	const struct table_column *columns;
	size_t ncolumns;
	size_t nrows;
	/* What follows the last column of a row, or NULL. */
	const char *(*note)(const struct model *model, size_t row);
	size_t width[TABLE_COLUMNS_MAX];
};
#define TABLE_COLUMNS(list) (list), sizeof(list) / sizeof((list)[0])

static void table_measure(struct table *table)
{
	char buf[TEXT_NS_MAX];

	for (size_t c = 0; c < table->ncolumns; c++) {
		const struct table_column *column = &table->columns[c];

		table->width[c] = strlen(column->title);
		/* Nothing follows the last one. */
		for (size_t row = 0; c + 1 < table->ncolumns && row < table->nrows; row++) {
			size_t width = text_visible(NULL, column->cell(table->model, row, buf));

			if (table->width[c] < width)
				table->width[c] = width;
		}
	}
}

static void table_cell(const struct table *table, size_t c, const char *s)
{
	const struct table_column *column = &table->columns[c];
	int pad = (int)(table->width[c] - text_visible(NULL, s));
	bool last = c + 1 == table->ncolumns;

	if (!column->text)
		fprintf(table->to, "%*s", pad, "");
	text_visible(table->to, s);
	if (column->text && !last)
		fprintf(table->to, "%*s", pad, "");
	if (!last)
		fputs("  ", table->to);
}

static void table_rows(
	struct table *table, const struct table_column *columns, size_t ncolumns, size_t nrows)
{
	char buf[TEXT_NS_MAX];

	table->columns = columns;
	table->ncolumns = ncolumns;
	table->nrows = nrows;
	table_measure(table);
	fputs(table->colour ? "\n" TABLE_BOLD : "\n", table->to);
	for (size_t c = 0; c < table->ncolumns; c++)
		table_cell(table, c, table->columns[c].title);
	fputs(table->colour ? TABLE_PLAIN "\n" : "\n", table->to);
	for (size_t row = 0; row < table->nrows; row++) {
		const char *note = table->note ? table->note(table->model, row) : NULL;

		for (size_t c = 0; c < table->ncolumns; c++)
			table_cell(table, c, table->columns[c].cell(table->model, row, buf));
		if (note)
			fprintf(table->to, " (entry only: %s)", note);
		fputc('\n', table->to);
	}
}

/* ---- above the table ---- */

static void table_command(FILE *to, const struct model_process *process)
{
	const char *arg = model_next_arg(process, NULL); /* how it calls itself: exe says more */
	size_t room = TABLE_COMMAND_MAX;

	text_visible(to, process->header.exe);
	while (arg && (arg = model_next_arg(process, arg))) {
		size_t width = text_visible(NULL, arg) + 1;

		if (width > room) {
			fputs(" ...", to);
			return;
		}
		room -= width;
		fputc(' ', to);
		text_visible(to, arg);
	}
}

static void table_process(FILE *to, const struct model_process *process)
{
	fprintf(to, "  %u  ", process->header.pid);
	table_command(to, process);
	fprintf(to, "  (%s, ", contract_mode(process->header.mode));
	switch (process->end) {
	case MODEL_END_EXIT:
		fprintf(to, "exit %d)\n", model_status(process));
		break;
	case MODEL_END_SIGNAL:
		fputs("ended without exit)\n", to);
		break;
	case MODEL_END_UNKNOWN:
		fputs("end unknown)\n", to);
		break;
	case MODEL_END_EXEC:
	case MODEL_END_RUNNING:
		fprintf(to, "%s)\n", model_end_name(process->end));
		break;
	}
}

static void table_processes(FILE *to, const struct model *model)
{
	size_t shown = model->nprocesses;

	if (shown > TABLE_PROCESSES_MAX)
		shown = TABLE_PROCESSES_MAX;
	text_visible(to, model->options->dir);
	fprintf(to, ": %zu process%s\n", model->nprocesses, model->nprocesses == 1 ? "" : "es");
	for (size_t i = 0; i < shown; i++)
		table_process(to, model->processes[i]);
	if (shown < model->nprocesses)
		fprintf(to, "  ... and %zu more (--format json lists them)\n",
			model->nprocesses - shown);
}

/* ---- below the table ---- */

/* "40 too-short, 16 jump-inside", the most frequent first. */
static void table_reasons(FILE *to, const struct model *model)
{
	bool done[MODEL_REASONS] = { false };

	for (size_t n = 0;; n++) {
		size_t most = MODEL_REASONS;

		for (size_t i = 0; i < MODEL_REASONS; i++)
			if (!done[i] && model->reasons[i] &&
				(most == MODEL_REASONS || model->reasons[i] > model->reasons[most]))
				most = i;
		if (most == MODEL_REASONS)
			return;
		done[most] = true;
		fprintf(to, "%s%zu %s", n ? ", " : "", model->reasons[most],
			contract_reason((unsigned int)most));
	}
}

static void table_footer(FILE *to, const struct model *model, const struct output_options *options)
{
	if (model->nfunctions < model->matched)
		fprintf(to, "%zu of %zu functions shown\n", model->nfunctions, model->matched);
	fprintf(to, "%zu functions traced, %zu skipped", model->traced, model->refused);
	if (model->refused) {
		fputs(" (", to);
		table_reasons(to, model);
		fputs(options->skipped ? ")" : "; --skipped lists them)", to);
	}
	fputc('\n', to);
	if (model->lost_calls || model->lost_threads || model->lost_processes)
		fprintf(to,
			"lost: %" PRIu64 " calls, %" PRIu64 " threads, %" PRIu64
			" processes could not be recorded\n",
			model->lost_calls, model->lost_threads, model->lost_processes);
	if (model->lost_functions)
		fprintf(to, "lost: %" PRIu64 " functions, whose breakpoints went when the program "
			    "blocked or handled SIGTRAP\n", model->lost_functions);
	if (model->flushes_asked)
		fprintf(to,
			"flushed: %" PRIu64 " of %" PRIu64
			" detours and patches; the others were in place already\n",
			model->flushes_done, model->flushes_asked);
	if (model->no_rate)
		fputs("some times are left out: the rate of their clock is not known\n", to);
}

static const char *table_entry_only(const struct model *model, size_t row)
{
	const struct model_function *function = &model->functions[row];

	if (!model_entry_only(function))
		return NULL;
	return contract_reason(function->symbols->functions[function->index].reason);
}

void table_print(FILE *to, const struct model *model, const struct output_options *options)
{
	struct table table = { .to = to, .model = model, .colour = options->colour };

	table_processes(to, model);
	table.note = table_entry_only;
	if (model->timed)
		table_rows(&table, TABLE_COLUMNS(table_timed_columns), model->nfunctions);
	else
		table_rows(&table, TABLE_COLUMNS(table_count_columns), model->nfunctions);
	table.note = NULL;
	if (options->threads)
		table_rows(&table, TABLE_COLUMNS(table_thread_columns), model->nthreads);
	if (options->skipped)
		table_rows(&table, TABLE_COLUMNS(table_skipped_columns), model->nskipped);
	fputs(options->colour ? "\n" TABLE_DIM : "\n", to);
	table_footer(to, model, options);
	if (options->colour)
		fputs(TABLE_PLAIN, to);
}
