/* SPDX-License-Identifier: MIT */
/*
 * ftr-report over a damaged pair of data files. An input is a list of edits of a good pair, for
 * random bytes would hardly ever get past the magic numbers. Whatever the files say, the report
 * ends in an orderly way and calls = returned + unwound + open.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/support_report.c"
#include "tools/report/output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COUNTS	"1-1-0.counts"
#define SYMBOLS "1-1-0.0.symbols"

static const struct made_function functions[] = {
	{ "main", 0x1139, 2, 0, NULL, 0 },
	{ "_ZN3app5parseERKSs", 0x1200, 1, 0, "_ZN3app5parseERKSsa", 0 },
	{ "_RINvC1a1fTTmmEEE", 0x1280, 3, 16, "other", 0 },
	{ NULL, 0x1300, 3, 0, NULL, 1 },
	{ "tiny", 0x1150, 0, 1, NULL, 1 },
};
static const struct made_record records[] = {
	{ 0, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ 0, 1, 10, 8, 2, 20000, 16000, 1000, 4000 },
	{ 1, 3, 5, 5, 0, 10000, 8000, 500, 6000 },
};

/* One file and its edited copy. */
struct pair_file {
	uint8_t *good, *edited;
	size_t size, edited_size;
};

struct pair {
	char *dir;
	FILE *nowhere;
	struct pair_file counts, symbols;
};

/* Where edits go: the parts that the reader interprets. */
static const struct {
	uint32_t start, size;
	bool symbols;
} regions[] = {
	{ 0, 160, false },
	{ offsetof(struct counts_header, exe), 1024 + 64, false },
	{ offsetof(struct counts_header, batches), 2 * sizeof(struct format_batch), false },
	{ FORMAT_HEADER_SIZE, 64 + 4 * 64, false },
	{ FORMAT_HEADER_SIZE + 4096, 64 + 4 * 64, false },
	{ 0, sizeof(struct symbols_header), true },
	{ sizeof(struct symbols_header), 2 * sizeof(struct symbols_module), true },
	{ sizeof(struct symbols_header), 1024, true },
};

struct edit {
	uint8_t where; /* region; beyond the last: shorten a file */
	uint8_t width;
	uint16_t offset;
	uint64_t value;
};
#define EDIT_SIZE 12

static void pair_remove(void);

static struct pair *pair_get(void)
{
	static struct pair pair;
	const struct made_symbols symbols = {
		.file = SYMBOLS,
		.modules = { "/usr/bin/app", "/lib/libc.so.6" },
		.functions = functions,
		.nfunctions = 4,
		.nskipped = 1,
	};
	const struct made_counts counts = {
		.file = COUNTS,
		.symbols = { SYMBOLS },
		.pid = 1,
		.start_time = 1,
		.mode = 2,
		.nthreads = 2,
		.records = records,
		.nrecords = sizeof(records) / sizeof(records[0]),
	};

	if (pair.dir)
		return &pair;
	pair.dir = made_dir();
	pair.nowhere = fopen("/dev/null", "w");
	pair.symbols.good = made_symbols_bytes(&symbols, &pair.symbols.size);
	pair.symbols.edited = malloc(pair.symbols.size);
	pair.counts.good = made_counts_bytes(&counts, &symbols.nfunctions, &pair.counts.size);
	pair.counts.edited = malloc(pair.counts.size);
	if (!pair.nowhere || !pair.symbols.edited || !pair.counts.edited)
		abort();
	atexit(pair_remove);
	return &pair;
}

static void pair_remove(void)
{
	made_remove(pair_get()->dir);
}

static void pair_restore(struct pair_file *file)
{
	memcpy(file->edited, file->good, file->size);
	file->edited_size = file->size;
}

static void pair_edit(struct pair *pair, const struct edit *edit)
{
	size_t n = sizeof(regions) / sizeof(regions[0]);
	size_t where = edit->where % (n + 1);
	struct pair_file *file = edit->width & 0x80 ? &pair->symbols : &pair->counts;
	size_t at, width = 1u << (edit->width & 3);

	if (where == n) {
		file->edited_size = edit->value % (file->size + 1);
		return;
	}
	file = regions[where].symbols ? &pair->symbols : &pair->counts;
	at = regions[where].start + edit->offset % regions[where].size;
	/* Fields are aligned; odd places are for text. */
	if (!(edit->width & 0x40))
		at -= at % width;
	if (at + width <= file->size)
		memcpy(file->edited + at, &edit->value, width);
}

static void pair_check(const struct model *model)
{
	for (size_t i = 0; i < model->nfunctions; i++) {
		const struct model_function *f = &model->functions[i];

		if (f->open > f->calls || f->unwound > f->calls - f->open ||
			f->returned != f->calls - f->open - f->unwound)
			abort();
	}
}

static void pair_report(struct pair *pair, uint8_t choice)
{
	const struct model_options options = {
		.dir = pair->dir,
		.filter = choice & 1 ? "*[ma]*" : NULL,
		.all = choice & 2,
		.merge = choice & 4,
		.sort = (enum model_sort)((choice >> 4) % (MODEL_SORT_NAME + 1)),
	};
	struct output_options output = { .skipped = choice & 8, .threads = !(choice & 8) };
	struct model model;

	if (!model_load(&model, &options, pair->nowhere)) {
		pair_check(&model);
		table_print(pair->nowhere, &model, &output);
		json_print(pair->nowhere, &model, &output);
		csv_print(pair->nowhere, &model, &output);
	}
	model_free(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pair *pair = pair_get();
	uint8_t choice = size ? data[0] : 0;

	pair_restore(&pair->counts);
	pair_restore(&pair->symbols);
	for (size_t at = 1; at + EDIT_SIZE <= size; at += EDIT_SIZE) {
		struct edit edit = { .where = data[at], .width = data[at + 1] };

		memcpy(&edit.offset, data + at + 2, sizeof(edit.offset));
		memcpy(&edit.value, data + at + 4, sizeof(edit.value));
		pair_edit(pair, &edit);
	}
	made_write(pair->dir, COUNTS, pair->counts.edited, pair->counts.edited_size);
	made_write(pair->dir, SYMBOLS, pair->symbols.edited, pair->symbols.edited_size);
	pair_report(pair, choice);
	return 0;
}
