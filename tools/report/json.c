/* SPDX-License-Identifier: MIT */
/* The interface for programs. docs/report-json.md says what it promises. */
#include <inttypes.h>
#include "contract.h"
#include "names.h"
#include "output.h"
#include "text.h"

static void json_string(FILE *to, const char *s)
{
	fputc('"', to);
	while (*s) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(to, "\\u%04x", c);
		else {
			s += text_put(to, s);
			continue;
		}
		s++;
	}
	fputc('"', to);
}

static void json_key_string(FILE *to, const char *key, const char *value)
{
	fprintf(to, ",\"%s\":", key);
	json_string(to, value);
}

static void json_key_number(FILE *to, const char *key, uint64_t value)
{
	fprintf(to, ",\"%s\":%" PRIu64, key, value);
}

static void json_key_time(FILE *to, const char *key, uint64_t ns)
{
	if (ns == MODEL_NONE)
		fprintf(to, ",\"%s\":null", key);
	else
		json_key_number(to, key, ns);
}

/* Begin the next object of a list; each is one line. */
static void json_next(FILE *to, bool first)
{
	fputs(first ? "\n" : ",\n", to);
}

static void json_process(FILE *to, const struct model_process *process)
{
	const char *arg = NULL;

	fprintf(to, "{\"pid\":%u,\"ppid\":%u,\"image\":%u", process->header.pid,
		process->header.ppid, process->header.image);
	json_key_string(to, "exe", process->header.exe);
	fputs(",\"args\":[", to);
	for (bool first = true; (arg = model_next_arg(process, arg)); first = false) {
		if (!first)
			fputc(',', to);
		json_string(to, arg);
	}
	fputc(']', to);
	json_key_string(to, "mode", contract_mode(process->header.mode));
	json_key_string(to, "end", model_end_name(process->end));
	if (model_has_status(process))
		fprintf(to, ",\"status\":%d}", model_status(process));
	else
		fputs(",\"status\":null}", to);
}

/* The opening of an object that belongs to a process. */
static void json_of_process(FILE *to, const struct model *model, size_t process)
{
	fprintf(to, "{\"pid\":%u", model->processes[process]->header.pid);
	json_key_number(to, "process", process);
}

/* What tells a function: the same for traced and skipped ones. */
static void json_identity(FILE *to, struct datafile_symbols *symbols, size_t index)
{
	const struct symbols_function *f = &symbols->functions[index];

	json_key_string(to, "name", names_get(symbols, index));
	json_key_string(to, "symbol", datafile_symbol(symbols, index));
	fputs(",\"aliases\":[", to);
	for (size_t i = 0; i < f->naliases; i++) {
		if (i)
			fputc(',', to);
		json_string(to, datafile_alias(symbols, index, i));
	}
	fputc(']', to);
	json_key_string(to, "module", datafile_module_path(symbols, index));
	fprintf(to, ",\"address\":\"0x%" PRIx64 "\"", f->address);
}

static void json_function(
	FILE *to, const struct model *model, const struct model_function *function)
{
	json_of_process(to, model, function->process);
	json_identity(to, function->symbols, function->index);
	json_key_number(to, "calls", function->calls);
	json_key_number(to, "returned", function->returned);
	json_key_number(to, "unwound", function->unwound);
	json_key_number(to, "open", function->open);
	json_key_time(to, "total_ns", function->total);
	json_key_time(to, "self_ns", function->self);
	json_key_time(to, "min_ns", function->min);
	json_key_time(to, "max_ns", function->max);
	if (model_entry_only(function))
		json_key_string(to, "entry_only",
			contract_reason(function->symbols->functions[function->index].reason));
	fputc('}', to);
}

static void json_skipped(FILE *to, const struct model *model, const struct model_skipped *skipped)
{
	json_of_process(to, model, skipped->process);
	json_identity(to, skipped->symbols, skipped->index);
	json_key_string(
		to, "reason", contract_reason(skipped->symbols->functions[skipped->index].reason));
	fputc('}', to);
}

static void json_thread(FILE *to, const struct model *model, const struct model_thread *thread)
{
	json_of_process(to, model, thread->process);
	json_key_number(to, "tid", thread->tid);
	json_key_number(to, "users", thread->users);
	json_key_number(to, "calls", thread->calls);
	json_key_time(to, "self_ns", thread->self);
	if (thread->top_symbols)
		json_key_string(to, "top", names_get(thread->top_symbols, thread->top_index));
	else
		fputs(",\"top\":null", to);
	fputc('}', to);
}

void json_print(FILE *to, const struct model *model, const struct output_options *options)
{
	fputs("{\"format\":1,\n\"processes\":[", to);
	for (size_t i = 0; i < model->nprocesses; i++) {
		json_next(to, i == 0);
		json_process(to, model->processes[i]);
	}
	fputs("],\n\"functions\":[", to);
	for (size_t i = 0; i < model->nfunctions; i++) {
		json_next(to, i == 0);
		json_function(to, model, &model->functions[i]);
	}
	fputs("],\n\"skipped\":[", to);
	for (size_t i = 0; i < model->nskipped; i++) {
		json_next(to, i == 0);
		json_skipped(to, model, &model->skipped[i]);
	}
	if (options->threads)
		fputs("],\n\"threads\":[", to);
	for (size_t i = 0; options->threads && i < model->nthreads; i++) {
		json_next(to, i == 0);
		json_thread(to, model, &model->threads[i]);
	}
	fputs("],\n\"lost\":{\"calls\":", to);
	fprintf(to, "%" PRIu64, model->lost_calls);
	json_key_number(to, "threads", model->lost_threads);
	json_key_number(to, "processes", model->lost_processes);
	json_key_number(to, "functions", model->lost_functions);
	fputs("},\n\"flushes\":{\"asked\":", to);
	fprintf(to, "%" PRIu64, model->flushes_asked);
	json_key_number(to, "done", model->flushes_done);
	fputs("}}\n", to);
}
