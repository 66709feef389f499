/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support_report.h"
#include "tools/report/model.h"
#include "tools/report/names.h"

#define SYMBOLS "s.symbols"

enum { MAIN, PARSE, WRITE, SETJMP, NEVER, NFUNCTIONS };
static const struct made_function functions[] = {
	[MAIN] = { "main", 0x1139, 2, 0, NULL, 0 },
	[PARSE] = { "_ZN3app5parseEi", 0x1200, 1, 0, "_Z4scanv", 0 },
	[WRITE] = { "write", 0x5000, 1, 0, NULL, 1 },
	[SETJMP] = { "setjmp", 0x6000, 2, 16, NULL, 1 },
	[NEVER] = { "never", 0x1400, 2, 0, NULL, 0 },
	{ "tiny", 0x1150, 0, 1, NULL, 0 },
	{ "small", 0x1160, 0, 1, NULL, 0 },
	{ "loop", 0x5100, 0, 3, NULL, 1 },
};
static const struct made_symbols symbols = {
	.file = SYMBOLS,
	.modules = { "/bin/app", "/lib/libc.so.6" },
	.functions = functions,
	.nfunctions = NFUNCTIONS,
	.nskipped = 3,
};
static const struct made_record records[] = {
	{ 0, MAIN, 1, 0, 0, 0, 0, 0, 0 },
	{ 0, PARSE, 10, 8, 2, 20000, 16000, 1000, 4000 },
	{ 1, PARSE, 5, 4, 0, 10001, 8000, 500, 6000 },
	{ 1, WRITE, 3, 3, 0, 90000, 90000, 20000, 40000 },
	{ 0, SETJMP, 4, 0, 0, 0, 0, 0, 0 },
};

static struct made_counts counts_of(uint32_t pid, const char *file)
{
	return (struct made_counts){
		.file = file,
		.symbols = { SYMBOLS },
		.pid = pid,
		.start_time = pid,
		.mode = 2,
		.end = FORMAT_END_EXIT,
		.nthreads = 2,
		.records = records,
		.nrecords = sizeof(records) / sizeof(records[0]),
	};
}

/* A model and all that was said while it was made. */
struct loaded {
	struct model model;
	struct model_options options;
	char *dir;
	char *said;
	size_t said_size;
	FILE *complaints;
};

static void load(struct loaded *loaded, char *dir, const struct model_options *options)
{
	loaded->options = *options;
	loaded->options.dir = dir;
	loaded->dir = dir;
	loaded->complaints = open_memstream(&loaded->said, &loaded->said_size);
	cr_assert(!model_load(&loaded->model, &loaded->options, loaded->complaints));
	fflush(loaded->complaints);
}

static void unload(struct loaded *loaded)
{
	model_free(&loaded->model);
	fclose(loaded->complaints);
	free(loaded->said);
	made_remove(loaded->dir);
}

/* Two processes that did the same. */
static void load_two(struct loaded *loaded, const struct model_options *options)
{
	struct made_counts first = counts_of(10, "10-10-0.counts");
	struct made_counts second = counts_of(20, "20-20-0.counts");
	char *dir = made_dir();

	made_write_symbols(dir, &symbols);
	made_write_counts(dir, &second, NFUNCTIONS);
	made_write_counts(dir, &first, NFUNCTIONS);
	load(loaded, dir, options);
	cr_assert_str_eq(loaded->said, "");
}

static const struct model_function *find(const struct model *model, const char *symbol)
{
	for (size_t i = 0; i < model->nfunctions; i++) {
		const struct model_function *f = &model->functions[i];

		if (!strcmp(datafile_symbol(f->symbols, f->index), symbol))
			return f;
	}
	cr_assert(false, "%s is not there", symbol);
	return NULL;
}

static void expect_counts(const struct model *model, const char *symbol, uint64_t calls,
	uint64_t returned, uint64_t unwound, uint64_t open)
{
	const struct model_function *f = find(model, symbol);

	cr_expect(f->calls == calls && f->returned == returned && f->unwound == unwound &&
			  f->open == open,
		"%s: %lu = %lu + %lu + %lu", symbol, f->calls, f->returned, f->unwound, f->open);
}

static void expect_times(const struct model *model, const char *symbol, uint64_t total,
	uint64_t self, uint64_t min, uint64_t max)
{
	const struct model_function *f = find(model, symbol);

	cr_expect(f->total == total && f->self == self && f->min == min && f->max == max,
		"%s: total %lu, self %lu, min %lu, max %lu", symbol, f->total, f->self, f->min,
		f->max);
}

Test(report_model, sums_up_threads)
{
	struct loaded l;

	load_two(&l, &(struct model_options){ 0 });
	cr_expect_eq(l.model.nprocesses, 2);
	cr_expect_eq(l.model.nfunctions, 8);
	expect_counts(&l.model, "main", 1, 0, 0, 1);
	expect_counts(&l.model, "_ZN3app5parseEi", 15, 12, 2, 1);
	expect_counts(&l.model, "write", 3, 3, 0, 0);
	expect_counts(&l.model, "setjmp", 4, 4, 0, 0);
	/* two ticks are 1 ns */
	expect_times(&l.model, "_ZN3app5parseEi", 15000, 12000, 250, 3000);
	expect_times(&l.model, "write", 45000, 45000, 10000, 20000);
	expect_times(&l.model, "main", 0, 0, MODEL_NONE, MODEL_NONE);
	expect_times(&l.model, "setjmp", MODEL_NONE, MODEL_NONE, MODEL_NONE, MODEL_NONE);
	cr_expect(model_entry_only(find(&l.model, "setjmp")));
	cr_expect(!model_entry_only(find(&l.model, "write")));
	cr_expect_eq(model_average(find(&l.model, "write")), 15000);
	cr_expect_eq(model_average(find(&l.model, "main")), MODEL_NONE);
	cr_expect_eq(model_average(find(&l.model, "setjmp")), MODEL_NONE);
	unload(&l);
}

/* A damaged record: times without a call. */
Test(report_model, averages_no_calls)
{
	static const struct made_record times[] = { { 0, PARSE, 0, 0, 0, 20000, 16000, 1000, 4000 } };
	struct made_counts counts = counts_of(10, "10-10-0.counts");
	char *dir = made_dir();
	struct loaded l;

	counts.records = times;
	counts.nrecords = 1;
	made_write_symbols(dir, &symbols);
	made_write_counts(dir, &counts, NFUNCTIONS);
	load(&l, dir, &(struct model_options){ .all = true });
	expect_times(&l.model, "_ZN3app5parseEi", 10000, 8000, 500, 2000);
	cr_expect_eq(model_average(find(&l.model, "_ZN3app5parseEi")), MODEL_NONE);
	unload(&l);
}

Test(report_model, merges_processes)
{
	struct loaded l;

	load_two(&l, &(struct model_options){ .merge = true });
	cr_expect_eq(l.model.nfunctions, 4);
	expect_counts(&l.model, "_ZN3app5parseEi", 30, 24, 4, 2);
	expect_times(&l.model, "_ZN3app5parseEi", 30000, 24000, 250, 3000);
	expect_times(&l.model, "main", 0, 0, MODEL_NONE, MODEL_NONE);
	expect_times(&l.model, "setjmp", MODEL_NONE, MODEL_NONE, MODEL_NONE, MODEL_NONE);
	cr_expect_eq(model_average(find(&l.model, "write")), 15000);
	cr_expect_eq(l.model.nskipped, 3);
	unload(&l);
}

Test(report_model, counts_different_functions)
{
	struct made_symbols copy = symbols;
	struct made_counts first = counts_of(10, "10-10-0.counts");
	struct made_counts second = counts_of(20, "20-20-0.counts");
	struct loaded l;
	char *dir = made_dir();

	/* Not forked: it has a file of its own that describes the same modules. */
	copy.file = second.symbols[0] = "t.symbols";
	made_write_symbols(dir, &symbols);
	made_write_symbols(dir, &copy);
	made_write_counts(dir, &first, NFUNCTIONS);
	made_write_counts(dir, &second, NFUNCTIONS);
	load(&l, dir, &(struct model_options){ 0 });
	cr_expect_eq(l.model.traced, NFUNCTIONS);
	cr_expect_eq(l.model.refused, 3);
	cr_expect_eq(l.model.reasons[1], 2);
	cr_expect_eq(l.model.reasons[3], 1);
	cr_expect_eq(l.model.nskipped, 6, "of each process");
	unload(&l);
}

Test(report_model, lists_threads)
{
	struct loaded l;
	const struct model_thread *t;

	load_two(&l, &(struct model_options){ .pid = 20 });
	t = l.model.threads;
	cr_assert_eq(l.model.nthreads, 2);
	cr_expect(t[0].tid == 20 && t[0].users == 1 && t[0].calls == 15 && t[0].self == 8000);
	cr_expect(t[1].tid == 21 && t[1].users == 1 && t[1].calls == 8 && t[1].self == 49000);
	cr_expect_eq(t[0].top_index, PARSE);
	cr_expect_eq(t[1].top_index, WRITE);
	unload(&l);
}

Test(report_model, has_no_times_in_count_mode)
{
	struct made_counts counts = counts_of(10, "10-10-0.counts");
	struct loaded l;
	char *dir = made_dir();

	counts.mode = 1;
	made_write_symbols(dir, &symbols);
	made_write_counts(dir, &counts, NFUNCTIONS);
	load(&l, dir, &(struct model_options){ 0 });
	expect_counts(&l.model, "_ZN3app5parseEi", 15, 12, 2, 1);
	expect_times(&l.model, "write", MODEL_NONE, MODEL_NONE, MODEL_NONE, MODEL_NONE);
	cr_expect(!l.model.timed && !l.model.no_rate);
	cr_expect_eq(l.model.threads[0].self, MODEL_NONE);
	cr_expect_eq(l.model.threads[0].top_index, PARSE, "by calls");
	unload(&l);
}

Test(report_model, selects_functions)
{
	static const struct {
		struct model_options options;
		const char *symbols[8]; /* in this order */
		size_t matched;
	} rows[] = {
		{ { 0 }, { "write", "_ZN3app5parseEi", "setjmp", "main" }, 4 },
		{ { .sort = MODEL_SORT_TOTAL }, { "write", "_ZN3app5parseEi", "setjmp", "main" },
			4 },
		{ { .sort = MODEL_SORT_CALLS }, { "_ZN3app5parseEi", "setjmp", "write", "main" },
			4 },
		{ { .sort = MODEL_SORT_AVG }, { "write", "_ZN3app5parseEi", "setjmp", "main" }, 4 },
		{ { .sort = MODEL_SORT_MAX, .top = 1 }, { "write" }, 4 },
		{ { .sort = MODEL_SORT_SELF, .top = 2 }, { "write", "_ZN3app5parseEi" }, 4 },
		{ { .sort = MODEL_SORT_NAME }, { "_ZN3app5parseEi", "main", "setjmp", "write" },
			4 },
		{ { .sort = MODEL_SORT_NAME, .all = true },
			{ "_ZN3app5parseEi", "main", "never", "setjmp", "write" }, 5 },
		{ { .filter = "app::*" }, { "_ZN3app5parseEi" }, 1 },
		{ { .filter = "_ZN3app*" }, { "_ZN3app5parseEi" }, 1 },
		{ { .filter = "_Z4scanv" }, { "_ZN3app5parseEi" }, 1 },
		{ { .filter = "scan()" }, { "_ZN3app5parseEi" }, 1 },
		{ { .filter = "[mw]*" }, { "write", "main" }, 2 },
		{ { .filter = "mai" }, { NULL }, 0 },
		{ { .filter = "never" }, { NULL }, 0 },
		{ { .filter = "never", .all = true }, { "never" }, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model_options options = rows[i].options;
		size_t n = 0;
		struct loaded l;

		options.pid = 10;
		load_two(&l, &options);
		for (; rows[i].symbols[n]; n++) {
			const struct model_function *f = &l.model.functions[n];

			cr_assert(n < l.model.nfunctions, "row %zu: only %zu", i, n);
			cr_expect_str_eq(datafile_symbol(f->symbols, f->index), rows[i].symbols[n],
				"row %zu, place %zu", i, n);
		}
		cr_expect(l.model.nfunctions == n, "row %zu: %zu", i, l.model.nfunctions);
		cr_expect(l.model.matched == rows[i].matched, "row %zu: %zu", i, l.model.matched);
		unload(&l);
	}
}

Test(report_model, filters_skipped_functions)
{
	struct loaded l;

	load_two(&l, &(struct model_options){ .pid = 10, .filter = "t*" });
	cr_assert_eq(l.model.nskipped, 1);
	cr_expect_eq(l.model.skipped[0].index, NFUNCTIONS);
	cr_expect_eq(l.model.refused, 3, "the summary is of all");
	unload(&l);
}

/* Counters of a process that is read while it runs, or of a damaged file. */
Test(report_model, calls_are_returned_and_unwound_and_open)
{
	static const struct {
		uint64_t calls, returned, unwound; /* in the file */
		uint64_t shown[4]; /* and in the report */
		bool contradiction;
	} rows[] = {
		{ 5, 3, 1, { 5, 3, 1, 1 }, false },
		{ 5, 5, 1, { 6, 5, 1, 0 }, true },
		{ 0, 1, 0, { 1, 1, 0, 0 }, true },
		{ 0, UINT64_MAX, 1, { UINT64_MAX, UINT64_MAX, 0, 0 }, true },
		{ UINT64_MAX, 1, UINT64_MAX, { UINT64_MAX, 1, UINT64_MAX - 1, 0 }, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int running = 0; running < 2; running++) {
			struct made_record record = { 0, WRITE, rows[i].calls, rows[i].returned,
				rows[i].unwound, 2, 2, 2, 2 };
			struct made_counts counts = counts_of((uint32_t)getpid(), "x.counts");
			char *dir = made_dir();
			struct loaded l;

			counts.records = &record;
			counts.nrecords = 1;
			if (running) {
				counts.start_time = made_start_time(getpid());
				counts.end = FORMAT_END_NONE;
			}
			made_write_symbols(dir, &symbols);
			made_write_counts(dir, &counts, NFUNCTIONS);
			load(&l, dir, &(struct model_options){ 0 });
			expect_counts(&l.model, "write", rows[i].shown[0], rows[i].shown[1],
				rows[i].shown[2], rows[i].shown[3]);
			cr_expect(l.model.faults == (rows[i].contradiction && !running),
				"row %zu, running %d: %s", i, running, l.said);
			unload(&l);
		}
}

static pid_t start_and_kill(void)
{
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return child;
}

Test(report_model, tells_how_a_process_ended)
{
	uint32_t self = (uint32_t)getpid(), gone = (uint32_t)start_and_kill();
	uint64_t start = made_start_time(getpid());
	const struct {
		const char *name;
		uint32_t pid;
		uint64_t start_time;
		uint32_t end;
		bool other_boot, later_image;
		const char *shown;
		bool has_status;
		int status;
	} rows[] = {
		{ "exit", gone, 1, FORMAT_END_EXIT, false, false, "exit", true, 3 },
		{ "exit before boot", gone, 1, FORMAT_END_EXIT, true, false, "exit", true, 3 },
		{ "killed", gone, 1, FORMAT_END_NONE, false, false, "signal", false, 0 },
		{ "not of this boot", gone, 1, FORMAT_END_NONE, true, false, "unknown", false, 0 },
		{ "running", self, start, FORMAT_END_NONE, false, false, "running", false, 0 },
		{ "reused pid", self, start + 1, FORMAT_END_NONE, false, false, "signal", false,
			0 },
		{ "exec", self, start, FORMAT_END_NONE, false, true, "exec", true, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made_counts counts = counts_of(rows[i].pid, "x-0.counts");
		uint32_t nids = NFUNCTIONS;
		size_t size;
		uint8_t *bytes;
		char *dir = made_dir();
		struct model_process *process;
		struct loaded l;

		counts.start_time = rows[i].start_time;
		counts.end = rows[i].end;
		counts.status = 3;
		bytes = made_counts_bytes(&counts, &nids, &size);
		((struct counts_header *)bytes)->boot_id[0] ^= rows[i].other_boot;
		made_write_symbols(dir, &symbols);
		made_write(dir, counts.file, bytes, size);
		counts.image = 1;
		counts.file = "x-1.counts";
		if (rows[i].later_image)
			made_write_counts(dir, &counts, NFUNCTIONS);
		load(&l, dir, &(struct model_options){ 0 });
		cr_expect_str_eq(l.said, "", "%s", rows[i].name);
		process = l.model.processes[0];
		cr_expect_str_eq(model_end_name(process->end), rows[i].shown, "%s", rows[i].name);
		cr_expect(model_has_status(process) == rows[i].has_status, "%s", rows[i].name);
		cr_expect(!rows[i].has_status || model_status(process) == rows[i].status, "%s: %d",
			rows[i].name, model_status(process));
		free(bytes);
		unload(&l);
	}
}

Test(report_model, converts_ticks)
{
	static const struct {
		const char *name;
		struct format_anchor first, last;
		uint64_t max, shown;
	} rows[] = {
		{ "1 GHz", { 0, 0 }, { 100000000, 100000000 }, 12345, 12345 },
		{ "3 GHz", { 7, 9 }, { 300000007, 100000009 }, 3000, 1000 },
		{ "10 MHz", { 0, 0 }, { 1000000, 100000000 }, 5, 500 },
		{ "more than 64 bits between", { 0, 0 }, { 3ull << 62, 1ull << 62 }, 3ull << 61,
			1ull << 61 },
		{ "more than 64 bits", { 0, 0 }, { 1, 1ull << 40 }, 1ull << 40, MODEL_NONE - 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made_record record = { 0, WRITE, 1, 1, 0, 1, 1, 1, rows[i].max };
		struct made_counts counts = counts_of(10, "x.counts");
		uint32_t nids = NFUNCTIONS;
		struct counts_header *h;
		struct loaded l;
		size_t size;
		uint8_t *bytes;
		char *dir = made_dir();

		counts.records = &record;
		counts.nrecords = 1;
		bytes = made_counts_bytes(&counts, &nids, &size);
		h = (struct counts_header *)bytes;
		h->first = rows[i].first;
		h->last = rows[i].last;
		made_write_symbols(dir, &symbols);
		made_write(dir, counts.file, bytes, size);
		load(&l, dir, &(struct model_options){ 0 });
		cr_expect(find(&l.model, "write")->max == rows[i].shown, "%s: %lu", rows[i].name,
			find(&l.model, "write")->max);
		free(bytes);
		unload(&l);
	}
}

/* The program was killed before it took a second anchor, or right after the first. */
Test(report_model, measures_a_rate_when_the_anchors_give_none)
{
	static const struct {
		const char *name;
		struct format_anchor last;
		bool other_boot;
		uint64_t shown; /* 0: whatever this machine's clock says */
	} rows[] = {
		{ "none, this boot", { 0, 0 }, false, 0 },
		{ "too near, this boot", { 1000 + 1, 5000 + 1000000 }, false, 0 },
		{ "none, other boot", { 0, 0 }, true, MODEL_NONE },
		{ "too near, other boot", { 1000 + 2000, 5000 + 1000 }, true, 500000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made_record record = { 0, WRITE, 1, 1, 0, 1, 1, 1, 1000000 };
		struct made_counts counts = counts_of(10, "x.counts");
		uint32_t nids = NFUNCTIONS;
		struct counts_header *h;
		uint64_t shown;
		struct loaded l;
		size_t size;
		uint8_t *bytes;
		char *dir = made_dir();

		counts.records = &record;
		counts.nrecords = 1;
		bytes = made_counts_bytes(&counts, &nids, &size);
		h = (struct counts_header *)bytes;
		h->last = rows[i].last;
		h->boot_id[0] ^= rows[i].other_boot;
		made_write_symbols(dir, &symbols);
		made_write(dir, counts.file, bytes, size);
		load(&l, dir, &(struct model_options){ 0 });
		shown = find(&l.model, "write")->max;
		if (rows[i].shown)
			cr_expect(shown == rows[i].shown, "%s: %lu", rows[i].name, shown);
#if defined(__x86_64__)
		else /* between 0.1 and 10 GHz */
			cr_expect(
				shown > 100000 && shown < 10000000, "%s: %lu", rows[i].name, shown);
#endif
		cr_expect(l.model.no_rate == (shown == MODEL_NONE), "%s", rows[i].name);
		free(bytes);
		unload(&l);
	}
}

Test(report_model, reads_the_good_among_bad_files)
{
	struct made_counts good = counts_of(10, "10-10-0.counts");
	struct made_counts lost = counts_of(20, "20-20-0.counts");
	struct made_counts copy = counts_of(10, "copy.counts");
	struct made_counts wrong = counts_of(30, "30-30-0.counts");
	struct loaded l;
	char *dir = made_dir();
	char expected[8192];

	lost.symbols[0] = "absent.symbols";
	made_write_symbols(dir, &symbols);
	made_write_counts(dir, &good, NFUNCTIONS);
	made_write_counts(dir, &lost, NFUNCTIONS);
	made_write_counts(dir, &copy, NFUNCTIONS);
	made_write_counts(dir, &wrong, NFUNCTIONS + 1);
	made_write(dir, "empty.counts", "", 0);
	made_write(dir, "foreign\x1b.counts", "#!/bin/sh\n", 10);
	made_write(dir, "README", "not ours", 8);
	load(&l, dir, &(struct model_options){ 0 });
	snprintf(expected, sizeof(expected),
		"ftr-report: %s/empty.counts: empty: its writer did not get to the header\n"
		"ftr-report: %s/foreign\\x1b.counts: not a data file of ftr (wrong magic)\n"
		"ftr-report: %s/copy.counts: the same process as another file: left out\n"
		"ftr-report: %s/absent.symbols: No such file or directory\n"
		"ftr-report: %s/s.symbols: not the functions that its counts files count\n",
		dir, dir, dir, dir, dir);
	cr_expect_str_eq(l.said, expected);
	cr_expect_eq(l.model.faults, 5);
	cr_expect_eq(l.model.nprocesses, 3);
	cr_expect_eq(l.model.nfunctions, 4, "of the good one");
	expect_counts(&l.model, "_ZN3app5parseEi", 15, 12, 2, 1);
	unload(&l);
}

/* A program that was killed before its first traced call. */
Test(report_model, lists_processes_without_threads)
{
	struct made_counts counts = counts_of(10, "10-10-0.counts");
	struct loaded l;
	char *dir = made_dir();

	counts.nthreads = 0;
	counts.nrecords = 0;
	made_write_symbols(dir, &symbols);
	made_write_counts(dir, &counts, NFUNCTIONS);
	load(&l, dir, &(struct model_options){ .all = true });
	cr_expect_str_eq(l.said, "");
	cr_expect_eq(l.model.nprocesses, 1);
	cr_expect_eq(l.model.nthreads, 0);
	cr_expect_eq(l.model.nfunctions, NFUNCTIONS);
	expect_counts(&l.model, "write", 0, 0, 0, 0);
	unload(&l);
}

Test(report_model, says_when_there_is_nothing)
{
	static const struct {
		uint32_t pid;
		bool data;
		const char *said;
	} rows[] = {
		{ 0, false, "no data files of ftr here" },
		{ 7, false, "no data files of ftr here" },
		{ 7, true, "no data of process 7" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made_counts counts = counts_of(10, "10-10-0.counts");
		struct loaded l;
		char *dir = made_dir();

		made_write_symbols(dir, &symbols);
		if (rows[i].data)
			made_write_counts(dir, &counts, NFUNCTIONS);
		load(&l, dir, &(struct model_options){ .pid = rows[i].pid });
		cr_expect(strstr(l.said, rows[i].said), "row %zu: %s", i, l.said);
		cr_expect(l.model.faults == 1, "row %zu", i);
		unload(&l);
	}
}

Test(report_model, refuses_what_is_no_directory)
{
	const struct model_options options = { .dir = "/dev/null" };
	struct model model;
	char *said;
	size_t size;
	FILE *complaints = open_memstream(&said, &size);

	cr_expect_eq(model_load(&model, &options, complaints), -1);
	model_free(&model);
	fclose(complaints);
	cr_expect_str_eq(said, "ftr-report: /dev/null: Not a directory\n");
	free(said);
}

Test(report_model, adds_up_what_processes_say)
{
	struct loaded l;
	char *dir = made_dir();

	made_write_symbols(dir, &symbols);
	for (uint32_t pid = 10; pid < 12; pid++) {
		struct made_counts counts = counts_of(pid, pid == 10 ? "a.counts" : "b.counts");
		uint32_t nids = NFUNCTIONS;
		size_t size;
		uint8_t *bytes = made_counts_bytes(&counts, &nids, &size);
		struct counts_header *h = (struct counts_header *)bytes;

		h->lost_calls = 100;
		h->lost_threads = 10;
		h->lost_processes = 1;
		h->lost_functions = 7;
		h->flushes_asked = 30;
		h->flushes_done = 20;
		made_write(dir, counts.file, bytes, size);
		free(bytes);
	}
	load(&l, dir, &(struct model_options){ 0 });
	cr_expect_eq(l.model.lost_calls, 200);
	cr_expect_eq(l.model.lost_threads, 20);
	cr_expect_eq(l.model.lost_processes, 2);
	cr_expect_eq(l.model.lost_functions, 14);
	cr_expect_eq(l.model.flushes_asked, 60);
	cr_expect_eq(l.model.flushes_done, 40);
	unload(&l);
}
