/* SPDX-License-Identifier: MIT */
/*
 * generate DIR: write the data files that report.sh reads.
 * generate DIR NFUNCTIONS NTHREADS: one process of that size, to see how long a report takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/support_report.h"

static const struct made_function functions[] = {
	{ "main", 0x1139, 2, 0, NULL, 0 },
	{ "_ZN3app5parseERKSs", 0x1200, 1, 0, "_ZN3app5parseERKSs.alias", 0 },
	{ "_RNvC6_123foo3bar", 0x1280, 3, 0, NULL, 0 },
	{ NULL, 0x1300, 3, 0, NULL, 0 },
	{ "setjmp", 0x9000, 2, 16, NULL, 1 },
	{ "never", 0x1380, 2, 0, NULL, 0 },
	{ "odd,\"name\"\n\x1b[31m\xff", 0x1400, 2, 0, NULL, 0 },
	{ "tiny", 0x1150, 0, 1, NULL, 0 },
	{ "loop", 0x1160, 0, 3, NULL, 0 },
	{ "tiny2", 0x9100, 0, 1, NULL, 1 },
};
static const struct made_symbols symbols = {
	.file = "100-7-0.0.symbols",
	.modules = { "/usr/bin/app", "/lib/libc.so.6" },
	.functions = functions,
	.nfunctions = 7,
	.nskipped = 3,
};
static const struct made_record records[] = {
	{ 0, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ 0, 1, 10, 8, 2, 20000, 16000, 1000, 4000 },
	{ 1, 1, 5, 5, 0, 10000, 8000, 500, 6000 },
	{ 1, 2, 3, 3, 0, 6000000, 3000000, 1000000, 3000000 },
	{ 0, 3, 2, 2, 0, 2468, 2468, 1000, 1468 },
	{ 0, 4, 4, 0, 0, 0, 0, 0, 0 },
	{ 0, 6, 1, 1, 0, 20, 20, 20, 20 },
};

static void generate_small(const char *dir)
{
	struct made_counts counts = {
		.file = "100-7-0.counts",
		.symbols = { "100-7-0.0.symbols" },
		.pid = 100,
		.start_time = 7,
		.mode = 2,
		.end = FORMAT_END_EXIT,
		.status = 3,
		.nthreads = 2,
		.records = records,
		.nrecords = sizeof(records) / sizeof(records[0]),
	};

	made_write_symbols(dir, &symbols);
	made_write_counts(dir, &counts, symbols.nfunctions);
	/* A forked child that was killed. */
	counts.file = "101-8-0.counts";
	counts.pid = 101;
	counts.start_time = 8;
	counts.end = FORMAT_END_NONE;
	made_write_counts(dir, &counts, symbols.nfunctions);
}

static void generate_large(const char *dir, uint32_t nfunctions, uint32_t nthreads)
{
	struct made_function *many = calloc(nfunctions, sizeof(*many));
	struct made_record *counters = calloc((size_t)nfunctions * nthreads, sizeof(*counters));
	struct made_symbols large = {
		.file = "200-9-0.0.symbols",
		.modules = { "/usr/bin/large" },
		.functions = many,
		.nfunctions = nfunctions,
	};
	struct made_counts counts = {
		.file = "200-9-0.counts",
		.symbols = { "200-9-0.0.symbols" },
		.pid = 200,
		.start_time = 9,
		.mode = 2,
		.end = FORMAT_END_EXIT,
		.nthreads = nthreads,
		.records = counters,
		.nrecords = (size_t)nfunctions * nthreads,
	};

	for (uint32_t i = 0; i < nfunctions; i++)
		many[i] = (struct made_function){ NULL, 0x1000 + 16 * i, 1, 0, NULL, 0 };
	for (size_t i = 0; i < counts.nrecords; i++) {
		uint32_t id = (uint32_t)(i % nfunctions);

		counters[i] = (struct made_record){ (uint32_t)(i / nfunctions), id, id + 1, id + 1,
			0, 100 * id, 50 * id, 10, 100 };
	}
	made_write_symbols(dir, &large);
	made_write_counts(dir, &counts, nfunctions);
	free(many);
	free(counters);
}

int main(int argc, char **argv)
{
	if (argc == 4)
		generate_large(argv[1], (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
	else if (argc == 2)
		generate_small(argv[1]);
	else
		return 2;
	return 0;
}
