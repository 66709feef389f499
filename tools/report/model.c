/* SPDX-License-Identifier: MIT */
/*
 * 1. The header of each counts file tells which process image it is about. From all of them
 *    together follows which images were replaced by an exec.
 * 2. The files of each wanted process are read and the records of its thread blocks summed up.
 *    Every function that was called becomes an entry, or is merged with the same function of the
 *    processes before.
 * 3. The entries are sorted and cut; different functions are counted over all symbols files.
 */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "contract.h"
#include "funcset.h"
#include "memory.h"
#include "model.h"
#include "names.h"
#include "text.h"

#define ANCHORS_APART_NS 20000000 /* nearer than that they do not give a good rate */

/* One line about a file of the data directory; @file NULL: about the directory itself. */
static void model_complain(struct model *model, const char *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void model_complain(struct model *model, const char *file, const char *format, ...)
{
	FILE *to = model->complaints;
	va_list ap;

	fputs("ftr-report: ", to);
	text_visible(to, model->options->dir);
	if (file) {
		fputc('/', to);
		text_visible(to, file);
	}
	fputs(": ", to);
	va_start(ap, format);
	vfprintf(to, format, ap);
	va_end(ap);
	fputc('\n', to);
	model->faults++;
}

static uint64_t model_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- 1. which processes there are ---- */

static void model_add_process(struct model *model, const char *file)
{
	struct datafile_counts counts;
	struct datafile_fault fault;
	struct model_process *process;

	if (datafile_open_counts(&counts, model->dir, file, &fault)) {
		model_complain(model, file, "%s", fault.text);
		return;
	}
	datafile_close_counts(&counts);
	process = memory_get(1, sizeof(*process));
	process->file = memory_copy(file, strlen(file));
	process->header = counts.header;
	model->processes =
		memory_grow(model->processes, model->nprocesses, sizeof(*model->processes));
	model->processes[model->nprocesses++] = process;
}

static void model_free_process(struct model_process *process)
{
	free(process->file);
	free(process);
}

static int model_compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int model_compare_processes(const struct model_process *a, const struct model_process *b)
{
	int order = memcmp(a->header.boot_id, b->header.boot_id, sizeof(a->header.boot_id));

	order = order ? order : model_compare_numbers(a->header.pid, b->header.pid);
	return order ? order : model_compare_numbers(a->header.start_time, b->header.start_time);
}

static int model_by_identity(const void *a, const void *b)
{
	const struct model_process *left = *(struct model_process *const *)a;
	const struct model_process *right = *(struct model_process *const *)b;
	int order = model_compare_processes(left, right);

	order = order ? order : model_compare_numbers(left->header.image, right->header.image);
	return order ? order : strcmp(left->file, right->file);
}

static int model_by_time(const void *a, const void *b)
{
	const struct model_process *left = *(struct model_process *const *)a;
	const struct model_process *right = *(struct model_process *const *)b;
	int order = model_compare_numbers(left->header.wall_ns, right->header.wall_ns);

	return order ? order : model_by_identity(a, b);
}

static void model_sort_processes(struct model *model, int (*compare)(const void *, const void *))
{
	if (model->nprocesses)
		qsort(model->processes, model->nprocesses, sizeof(*model->processes), compare);
}

/* Keep each image once, and the wanted ones only. Sorted by identity before, by time after. */
static void model_select_processes(struct model *model)
{
	struct model_process *previous = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < model->nprocesses; i++) {
		struct model_process *process = model->processes[i];
		bool same = previous && !model_compare_processes(previous, process);

		if (model->options->pid && process->header.pid != model->options->pid) {
			model_free_process(process);
		} else if (same && previous->header.image == process->header.image) {
			model_complain(
				model, process->file, "the same process as another file: left out");
			model_free_process(process);
		} else {
			if (same)
				previous->replaced = true;
			previous = process;
			model->processes[kept++] = process;
		}
	}
	model->nprocesses = kept;
	model_sort_processes(model, model_by_time);
}

static int model_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The counts files of a directory, in the order of their names. */
static char **model_list(DIR *dir, size_t *n)
{
	static const char suffix[] = ".counts";
	char **files = NULL;
	struct dirent *entry;

	*n = 0;
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (len < sizeof(suffix) ||
			strcmp(entry->d_name + len - (sizeof(suffix) - 1), suffix) != 0)
			continue;
		files = memory_grow(files, *n, sizeof(*files));
		files[(*n)++] = memory_copy(entry->d_name, len);
	}
	if (*n)
		qsort(files, *n, sizeof(*files), model_by_name);
	return files;
}

static void model_find_processes(struct model *model, DIR *dir)
{
	size_t nfiles;
	char **files = model_list(dir, &nfiles);

	for (size_t i = 0; i < nfiles; i++) {
		model_add_process(model, files[i]);
		free(files[i]);
	}
	free(files);
	model_sort_processes(model, model_by_identity);
	model_select_processes(model);
	if (nfiles == 0)
		model_complain(model, NULL, "no data files of ftr here");
	else if (model->nprocesses == 0 && model->options->pid)
		model_complain(model, NULL, "no data of process %u", model->options->pid);
}

/* ---- 2. what they did ---- */

/* A symbols file, read once for all processes that refer to it. NULL: it cannot be used. */
static struct datafile_symbols *model_symbols(struct model *model, const char *file)
{
	struct datafile_symbols *symbols;
	struct datafile_fault fault;

	for (size_t i = model->nfiles; i-- > 0;)
		if (!strcmp(model->files[i]->file, file))
			return model->files[i]->bytes ? model->files[i] : NULL;
	symbols = memory_get(1, sizeof(*symbols));
	model->files = memory_grow(model->files, model->nfiles, sizeof(*model->files));
	model->files[model->nfiles++] = symbols;
	if (datafile_read_symbols(symbols, model->dir, file, &fault)) {
		model_complain(model, file, "%s", fault.text);
		return NULL;
	}
	return symbols;
}

static void model_read_batches(struct model *model, struct model_process *process)
{
	for (uint32_t i = 0; i < process->header.nbatches; i++) {
		const struct format_batch *batch = &process->header.batches[i];
		struct datafile_symbols *symbols = model_symbols(model, batch->symbols);

		if (symbols && (symbols->header.first_id != batch->first_id ||
				       symbols->header.nfunctions < batch->count)) {
			model_complain(model, batch->symbols,
				"not the functions that its counts files count");
			symbols = NULL;
		}
		process->batches[i] = symbols;
	}
}

/* The function with this id: its symbols file and index; NULL: not known. */
static struct datafile_symbols *model_by_id(
	const struct model_process *process, uint32_t id, size_t *index)
{
	for (uint32_t i = 0; i < process->header.nbatches; i++) {
		const struct format_batch *batch = &process->header.batches[i];

		*index = id - batch->first_id;
		if (id >= batch->first_id && *index < batch->count)
			return process->batches[i];
	}
	return NULL;
}

static void model_find_end(struct model_process *process, bool this_boot, bool running)
{
	if (process->header.end == FORMAT_END_EXIT)
		process->end = MODEL_END_EXIT;
	else if (process->replaced)
		process->end = MODEL_END_EXEC;
	else if (running)
		process->end = MODEL_END_RUNNING;
	else
		process->end = this_boot ? MODEL_END_SIGNAL : MODEL_END_UNKNOWN;
}

static void model_find_rate(struct model *model, struct model_process *process, bool this_boot)
{
	const struct counts_header *h = &process->header;
	uint32_t machine = 0;

	if (!contract_mode_timed(h->mode))
		return;
	for (uint32_t i = 0; i < h->nbatches && !machine; i++)
		machine = process->batches[i] ? process->batches[i]->header.machine : 0;
	if (h->last.ticks > h->first.ticks && h->last.ns > h->first.ns)
		process->rate = (struct host_rate){ h->last.ticks - h->first.ticks,
			h->last.ns - h->first.ns };
	if (process->rate.ns < ANCHORS_APART_NS && this_boot) {
		struct host_rate fresh = host_clock_rate(machine);

		process->rate = fresh.ticks ? fresh : process->rate;
	}
	process->timed = process->rate.ticks != 0;
	model->timed |= process->timed;
	model->no_rate |= !process->timed;
}

static uint64_t model_ns(const struct model_process *process, uint64_t ticks)
{
	unsigned __int128 ns = (unsigned __int128)ticks * process->rate.ns / process->rate.ticks;

	return ns < MODEL_NONE ? (uint64_t)ns : MODEL_NONE - 1;
}

/* Sums of one process while its blocks are read. */
struct model_sums {
	struct datafile_record *records;
	uint32_t nrecords;
	struct model_thread *threads; /* one per block; self in ticks */
	uint64_t *top; /* self ticks or calls of each thread's top function */
};

static void model_consider_top(const struct model_process *process, struct model_sums *sums,
	uint32_t block, uint32_t id, uint64_t value)
{
	struct model_thread *thread = &sums->threads[block];
	struct datafile_symbols *symbols;
	size_t index;

	if (value <= sums->top[block])
		return;
	symbols = model_by_id(process, id, &index);
	if (symbols) {
		sums->top[block] = value;
		thread->top_symbols = symbols;
		thread->top_index = index;
	}
}

static void model_sum_ends(const struct model_process *process, struct model_sums *sums,
	uint32_t index, const struct datafile_block *block)
{
	struct model_thread *thread = &sums->threads[index];

	thread->tid = block->thread.tid;
	thread->users = block->thread.users;
	for (uint32_t id = 0; id < sums->nrecords; id++) {
		const struct datafile_record *from = &block->records[id];
		struct datafile_record *to = &sums->records[id];

		to->returned = model_add(to->returned, from->returned);
		to->unwound = model_add(to->unwound, from->unwound);
		to->total = model_add(to->total, from->total);
		to->self = model_add(to->self, from->self);
		to->nmin = to->nmin > from->nmin ? to->nmin : from->nmin;
		to->max = to->max > from->max ? to->max : from->max;
		thread->self = model_add(thread->self, from->self);
		if (process->timed)
			model_consider_top(process, sums, index, id, from->self);
	}
}

static void model_sum_calls(const struct model_process *process, struct model_sums *sums,
	uint32_t index, const struct datafile_block *block)
{
	struct model_thread *thread = &sums->threads[index];

	for (uint32_t id = 0; id < sums->nrecords; id++) {
		uint64_t calls = block->records[id].calls;

		sums->records[id].calls = model_add(sums->records[id].calls, calls);
		thread->calls = model_add(thread->calls, calls);
		if (!process->timed)
			model_consider_top(process, sums, index, id, calls);
	}
}

/*
 * Sum up all blocks, twice: the ends of calls in the first pass, the calls themselves in the
 * second. The program may be running, and so a call is never counted later than its end.
 */
static int model_sum_blocks(const struct model_process *process,
	const struct datafile_counts *counts, struct model_sums *sums, struct datafile_fault *fault)
{
	static void (*const passes[])(const struct model_process *, struct model_sums *, uint32_t,
		const struct datafile_block *) = { model_sum_ends, model_sum_calls };
	struct datafile_block block = { 0 };
	int error = 0;

	for (size_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < counts->header.nblocks && !error; i++) {
			error = datafile_read_block(counts, i, sums->nrecords, &block, fault);
			if (!error)
				passes[pass](process, sums, i, &block);
		}
	datafile_free_block(&block);
	return error;
}

static bool model_filter(const struct model *model, struct datafile_symbols *symbols, size_t index)
{
	const char *glob = model->options->filter;

	if (!glob || !fnmatch(glob, names_get(symbols, index), 0) ||
		!fnmatch(glob, datafile_symbol(symbols, index), 0))
		return true;
	for (size_t i = 0; i < symbols->functions[index].naliases; i++) {
		const char *alias = datafile_alias(symbols, index, i);
		char *name = names_demangle(alias);
		bool found = !fnmatch(glob, alias, 0) || (name && !fnmatch(glob, name, 0));

		free(name);
		if (found)
			return true;
	}
	return false;
}

bool model_entry_only(const struct model_function *function)
{
	const struct symbols_function *f = &function->symbols->functions[function->index];

	return f->reason != 0 && !contract_refused(f->choice);
}

/* The times of a function; those of one that is hooked at its entry only are not known. */
static void model_set_times(struct model_function *function, const struct model_process *process,
	const struct datafile_record *record)
{
	bool known = process->timed && !model_entry_only(function);

	function->total = function->self = function->min = function->max = MODEL_NONE;
	if (!known)
		return;
	function->timed = function->returned + function->unwound;
	function->total = model_ns(process, record->total);
	function->self = model_ns(process, record->self);
	if (record->nmin) {
		function->min = model_ns(process, ~record->nmin);
		function->max = model_ns(process, record->max);
	}
}

/*
 * The counts of a function, so that calls = returned + unwound + open. Returns whether the record
 * contradicts that.
 */
static bool model_set_counts(struct model_function *function, const struct datafile_record *record)
{
	uint64_t ended = model_add(record->returned, record->unwound);

	function->calls = record->calls;
	if (model_entry_only(function)) {
		function->returned = function->calls;
		return false;
	}
	if (function->calls < ended)
		function->calls = ended;
	function->returned = record->returned;
	function->unwound = record->unwound;
	if (function->unwound > function->calls - function->returned)
		function->unwound = function->calls - function->returned;
	function->open = function->calls - function->returned - function->unwound;
	return record->calls < ended;
}

static uint64_t model_add_times(uint64_t a, uint64_t b)
{
	uint64_t sum = model_add(a, b);

	if (a == MODEL_NONE || b == MODEL_NONE)
		return a == MODEL_NONE ? b : a;
	return sum < MODEL_NONE ? sum : MODEL_NONE - 1;
}

static void model_merge(struct model_function *to, const struct model_function *from)
{
	to->calls = model_add(to->calls, from->calls);
	to->returned = model_add(to->returned, from->returned);
	to->unwound = model_add(to->unwound, from->unwound);
	to->open = model_add(to->open, from->open);
	to->timed = model_add(to->timed, from->timed);
	to->total = model_add_times(to->total, from->total);
	to->self = model_add_times(to->self, from->self);
	if (to->min > from->min)
		to->min = from->min;
	if (to->max == MODEL_NONE || (from->max != MODEL_NONE && from->max > to->max))
		to->max = from->max;
}

static void model_add_function(
	struct model *model, struct funcset *merged, const struct model_function *function)
{
	struct funcset_entry *entry;

	if (model->options->merge) {
		entry = funcset_add(merged, function->symbols, function->index, model->nfunctions);
		if (entry->value < model->nfunctions) {
			model_merge(&model->functions[entry->value], function);
			return;
		}
	}
	model->functions =
		memory_grow(model->functions, model->nfunctions, sizeof(*model->functions));
	model->functions[model->nfunctions++] = *function;
}

static void model_add_functions(
	struct model *model, struct funcset *merged, size_t which, const struct model_sums *sums)
{
	const struct model_process *process = model->processes[which];
	size_t contradictions = 0;

	for (uint32_t id = 0; id < sums->nrecords; id++) {
		const struct datafile_record *record = &sums->records[id];
		struct model_function function = { .process = which };

		if (!record->calls && !record->returned && !record->unwound && !model->options->all)
			continue;
		function.symbols = model_by_id(process, id, &function.index);
		if (!function.symbols)
			continue;
		contradictions += model_set_counts(&function, record);
		model_set_times(&function, process, record);
		if (model_filter(model, function.symbols, function.index))
			model_add_function(model, merged, &function);
	}
	if (contradictions && process->end != MODEL_END_RUNNING)
		model_complain(model, process->file,
			"%zu functions ended more often than they were called", contradictions);
}

static void model_add_threads(
	struct model *model, size_t which, const struct model_sums *sums, uint32_t nblocks)
{
	const struct model_process *process = model->processes[which];

	for (uint32_t i = 0; i < nblocks; i++) {
		struct model_thread *thread = &sums->threads[i];

		if (!thread->tid)
			continue;
		thread->process = which;
		thread->self = process->timed ? model_ns(process, thread->self) : MODEL_NONE;
		model->threads =
			memory_grow(model->threads, model->nthreads, sizeof(*model->threads));
		model->threads[model->nthreads++] = *thread;
	}
}

static int model_read_counts(struct model *model, struct funcset *merged, size_t which,
	const struct datafile_counts *counts, struct datafile_fault *fault)
{
	struct model_process *process = model->processes[which];
	uint32_t nblocks = counts->header.nblocks;
	struct model_sums sums = { 0 };
	int error;

	for (uint32_t i = 0; i < process->header.nbatches; i++)
		sums.nrecords =
			process->header.batches[i].first_id + process->header.batches[i].count;
	sums.records = memory_get(sums.nrecords, sizeof(*sums.records));
	sums.threads = memory_get(nblocks, sizeof(*sums.threads));
	sums.top = memory_get(nblocks, sizeof(*sums.top));
	error = model_sum_blocks(process, counts, &sums, fault);
	if (!error) {
		model_add_functions(model, merged, which, &sums);
		model_add_threads(model, which, &sums, nblocks);
	}
	free(sums.records);
	free(sums.threads);
	free(sums.top);
	return error;
}

static void model_read_process(struct model *model, struct funcset *merged, size_t which)
{
	struct model_process *process = model->processes[which];
	bool this_boot = host_is_this_boot(process->header.boot_id);
	/* Asked before the header is read again: a process that is gone has written it. */
	bool running =
		this_boot && host_is_running(process->header.pid, process->header.start_time);
	struct datafile_counts counts;
	struct datafile_fault fault;

	if (datafile_open_counts(&counts, model->dir, process->file, &fault)) {
		model_complain(model, process->file, "%s", fault.text);
		return;
	}
	process->header = counts.header;
	model_read_batches(model, process);
	model_find_end(process, this_boot, running);
	model_find_rate(model, process, this_boot);
	if (model_read_counts(model, merged, which, &counts, &fault))
		model_complain(model, process->file, "%s", fault.text);
	datafile_close_counts(&counts);
	model->lost_calls = model_add(model->lost_calls, process->header.lost_calls);
	model->lost_threads = model_add(model->lost_threads, process->header.lost_threads);
	model->lost_processes = model_add(model->lost_processes, process->header.lost_processes);
	model->lost_functions = model_add(model->lost_functions, process->header.lost_functions);
	model->flushes_asked = model_add(model->flushes_asked, process->header.flushes_asked);
	model->flushes_done = model_add(model->flushes_done, process->header.flushes_done);
}

/* ---- 3. in which order, and how many ---- */

uint64_t model_average(const struct model_function *function)
{
	uint64_t ended = function->timed ? function->timed : function->calls;

	/* Damaged records may hold times of no call at all. */
	if (!ended || !function->total || function->total == MODEL_NONE)
		return function->timed ? function->total : MODEL_NONE;
	return function->total / ended;
}

static uint64_t model_key(const struct model_function *function, enum model_sort sort)
{
	uint64_t key;

	switch (sort) {
	case MODEL_SORT_TOTAL:
		key = function->total;
		break;
	case MODEL_SORT_SELF:
		key = function->self;
		break;
	case MODEL_SORT_AVG:
		key = model_average(function);
		break;
	case MODEL_SORT_MAX:
		key = function->max;
		break;
	default:
		return function->calls;
	}
	return key == MODEL_NONE ? 0 : key;
}

/* What two functions are told apart by when nothing else does it. */
static int model_compare_functions(const struct model_function *a, const struct model_function *b)
{
	int order = strcmp(
		datafile_symbol(a->symbols, a->index), datafile_symbol(b->symbols, b->index));

	order = order ? order
		      : model_compare_numbers(a->symbols->functions[a->index].address,
				b->symbols->functions[b->index].address);
	return order ? order : model_compare_numbers(a->process, b->process);
}

static int model_functions_by_key(const void *left, const void *right)
{
	const struct model_function *a = left, *b = right;
	int order = model_compare_numbers(b->key, a->key);

	order = order ? order : model_compare_numbers(b->calls, a->calls);
	return order ? order : model_compare_functions(a, b);
}

static int model_functions_by_name(const void *left, const void *right)
{
	const struct model_function *a = left, *b = right;
	int order = strcmp(names_get(a->symbols, a->index), names_get(b->symbols, b->index));

	return order ? order : model_compare_functions(a, b);
}

static void model_sort_functions(struct model *model)
{
	enum model_sort sort = model->options->sort;

	if (sort == MODEL_SORT_DEFAULT)
		sort = model->timed ? MODEL_SORT_TOTAL : MODEL_SORT_CALLS;
	for (size_t i = 0; i < model->nfunctions; i++)
		model->functions[i].key = model_key(&model->functions[i], sort);
	if (model->nfunctions)
		qsort(model->functions, model->nfunctions, sizeof(*model->functions),
			sort == MODEL_SORT_NAME ? model_functions_by_name : model_functions_by_key);
	model->matched = model->nfunctions;
	if (model->options->top && model->nfunctions > model->options->top)
		model->nfunctions = model->options->top;
}

/* Count different functions: a library may be described by the files of many processes. */
static void model_count_functions(struct model *model)
{
	struct funcset traced = { 0 }, refused = { 0 };

	for (size_t i = 0; i < model->nfiles; i++) {
		struct datafile_symbols *symbols = model->files[i];

		for (size_t f = 0; symbols->bytes && f < datafile_functions(symbols); f++) {
			bool skipped = f >= symbols->header.nfunctions;
			struct funcset *set = skipped ? &refused : &traced;
			size_t before = set->used;

			funcset_add(set, symbols, f, 0);
			if (skipped && set->used > before)
				model->reasons[symbols->functions[f].reason]++;
		}
	}
	model->traced = traced.used;
	model->refused = refused.used;
	funcset_free(&traced);
	funcset_free(&refused);
}

static void model_add_skipped(
	struct model *model, struct funcset *merged, size_t which, struct datafile_symbols *symbols)
{
	for (size_t i = symbols->header.nfunctions; i < datafile_functions(symbols); i++) {
		struct model_skipped skipped = { symbols, i, which };

		if (!model_filter(model, symbols, i))
			continue;
		if (model->options->merge &&
			funcset_add(merged, symbols, i, model->nskipped)->value != model->nskipped)
			continue;
		model->skipped =
			memory_grow(model->skipped, model->nskipped, sizeof(*model->skipped));
		model->skipped[model->nskipped++] = skipped;
	}
}

static void model_find_skipped(struct model *model)
{
	struct funcset merged = { 0 };

	for (size_t i = 0; i < model->nprocesses; i++) {
		struct model_process *process = model->processes[i];

		for (uint32_t b = 0; b < process->header.nbatches; b++)
			if (process->batches[b])
				model_add_skipped(model, &merged, i, process->batches[b]);
	}
	funcset_free(&merged);
}

int model_load(struct model *model, const struct model_options *options, FILE *complaints)
{
	struct funcset merged = { 0 };
	DIR *dir = opendir(options->dir);

	memset(model, 0, sizeof(*model));
	model->options = options;
	model->complaints = complaints;
	if (!dir) {
		model_complain(model, NULL, "%s", strerror(errno));
		return -1;
	}
	model->dir = dirfd(dir);
	model_find_processes(model, dir);
	for (size_t i = 0; i < model->nprocesses; i++)
		model_read_process(model, &merged, i);
	closedir(dir);
	funcset_free(&merged);
	model_sort_functions(model);
	model_count_functions(model);
	model_find_skipped(model);
	return 0;
}

void model_free(struct model *model)
{
	for (size_t i = 0; i < model->nprocesses; i++)
		model_free_process(model->processes[i]);
	for (size_t i = 0; i < model->nfiles; i++) {
		if (model->files[i]->bytes)
			names_free(model->files[i]);
		datafile_free_symbols(model->files[i]);
		free(model->files[i]);
	}
	free(model->processes);
	free(model->files);
	free(model->functions);
	free(model->threads);
	free(model->skipped);
}

const char *model_end_name(enum model_end end)
{
	static const char *const names[] = {
		[MODEL_END_EXIT] = "exit",
		[MODEL_END_SIGNAL] = "signal",
		[MODEL_END_EXEC] = "exec",
		[MODEL_END_RUNNING] = "running",
		[MODEL_END_UNKNOWN] = "unknown",
	};

	return names[end];
}

bool model_has_status(const struct model_process *process)
{
	return process->end == MODEL_END_EXIT || process->end == MODEL_END_EXEC;
}

int model_status(const struct model_process *process)
{
	return process->end == MODEL_END_EXIT ? process->header.status : 0;
}

const char *model_next_arg(const struct model_process *process, const char *arg)
{
	const char *first = process->header.args;

	arg = arg ? arg + strlen(arg) + 1 : first;
	return arg < first + process->header.args_len ? arg : NULL;
}
