/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>
#include "contract.h"
#include "names.h"
#include "output.h"
#include "text.h"

#define CSV_END "\r\n" /* RFC 4180, 2.1 */

/* One more field behind others. */
static void csv_text(FILE *to, const char *s)
{
	bool quote = s[strcspn(s, ",\"\r\n")] != 0;

	fputs(quote ? ",\"" : ",", to);
	while (*s) {
		if (*s == '"')
			fputc('"', to);
		s += text_put(to, s);
	}
	if (quote)
		fputc('"', to);
}

static void csv_number(FILE *to, uint64_t value)
{
	fprintf(to, ",%" PRIu64, value);
}

static void csv_time(FILE *to, uint64_t ns)
{
	if (ns == MODEL_NONE)
		fputc(',', to);
	else
		csv_number(to, ns);
}

static void csv_pid(FILE *to, const struct model *model, size_t process)
{
	fprintf(to, "%u", model->processes[process]->header.pid);
}

static void csv_identity(FILE *to, struct datafile_symbols *symbols, size_t index)
{
	csv_text(to, names_get(symbols, index));
	csv_text(to, datafile_symbol(symbols, index));
	csv_text(to, datafile_module_path(symbols, index));
	fprintf(to, ",0x%" PRIx64, symbols->functions[index].address);
}

static const char *csv_reason(const struct datafile_symbols *symbols, size_t index)
{
	return contract_reason(symbols->functions[index].reason);
}

static void csv_functions(FILE *to, const struct model *model)
{
	fputs("pid,name,symbol,module,address,calls,returned,unwound,open,"
	      "total_ns,self_ns,min_ns,max_ns,entry_only" CSV_END,
		to);
	for (size_t i = 0; i < model->nfunctions; i++) {
		const struct model_function *f = &model->functions[i];

		csv_pid(to, model, f->process);
		csv_identity(to, f->symbols, f->index);
		csv_number(to, f->calls);
		csv_number(to, f->returned);
		csv_number(to, f->unwound);
		csv_number(to, f->open);
		csv_time(to, f->total);
		csv_time(to, f->self);
		csv_time(to, f->min);
		csv_time(to, f->max);
		csv_text(to, model_entry_only(f) ? csv_reason(f->symbols, f->index) : "");
		fputs(CSV_END, to);
	}
}

static void csv_threads(FILE *to, const struct model *model)
{
	fputs("pid,tid,users,calls,self_ns,top" CSV_END, to);
	for (size_t i = 0; i < model->nthreads; i++) {
		const struct model_thread *t = &model->threads[i];

		csv_pid(to, model, t->process);
		csv_number(to, t->tid);
		csv_number(to, t->users);
		csv_number(to, t->calls);
		csv_time(to, t->self);
		csv_text(to, t->top_symbols ? names_get(t->top_symbols, t->top_index) : "");
		fputs(CSV_END, to);
	}
}

static void csv_skipped(FILE *to, const struct model *model)
{
	fputs("pid,name,symbol,module,address,reason" CSV_END, to);
	for (size_t i = 0; i < model->nskipped; i++) {
		const struct model_skipped *s = &model->skipped[i];

		csv_pid(to, model, s->process);
		csv_identity(to, s->symbols, s->index);
		csv_text(to, csv_reason(s->symbols, s->index));
		fputs(CSV_END, to);
	}
}

void csv_print(FILE *to, const struct model *model, const struct output_options *options)
{
	if (options->skipped)
		csv_skipped(to, model);
	else if (options->threads)
		csv_threads(to, model);
	else
		csv_functions(to, model);
}
