/* SPDX-License-Identifier: MIT */
/*
 * Data files for the tests of ftr-report, made from tracer/format.h alone: what they say is
 * whatever a test puts into these structures.
 */
#ifndef SUPPORT_REPORT_H
#define SUPPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tracer/format.h"

struct made_function {
	const char *name; /* NULL: none */
	uint64_t address;
	uint8_t choice, reason;
	const char *alias; /* NULL: none */
	uint32_t module;
};

struct made_symbols {
	const char *file;
	const char *modules[4]; /* paths */
	const struct made_function *functions;
	uint32_t nfunctions; /* with an id */
	uint32_t nskipped;
	uint32_t first_id;
};

#define MADE_THREADS_MAX 4

/* The counters of one function in one thread. */
struct made_record {
	uint32_t thread, id;
	uint64_t calls, returned, unwound, total, self, min, max; /* min: 0 is none */
};

struct made_counts {
	const char *file;
	const char *symbols[4]; /* files of the batches */
	uint32_t pid, image;
	uint64_t start_time;
	uint32_t mode, end;
	int32_t status;
	uint32_t nthreads; /* their ids are pid, pid + 1, ... */
	const struct made_record *records;
	size_t nrecords;
};

/* A file as bytes; free() it. */
uint8_t *made_symbols_bytes(const struct made_symbols *symbols, size_t *size);

/* @nids: functions in each of the batches, the first one from id 0 on. */
uint8_t *made_counts_bytes(const struct made_counts *counts, const uint32_t *nids, size_t *size);

/* Turn the integers of a file into those of a machine of the other byte order. */
void made_swap_symbols(uint8_t *bytes);
void made_swap_counts(uint8_t *bytes);

/* A new directory for data files, removed with all it holds by made_remove(). */
char *made_dir(void);
void made_remove(char *dir);
void made_write(const char *dir, const char *file, const void *bytes, size_t size);

/* What most tests need: one symbols file and counts files that refer to it. */
void made_write_symbols(const char *dir, const struct made_symbols *symbols);
void made_write_counts(const char *dir, const struct made_counts *counts, uint32_t nids);

/* The boot id as the tracer stores it, and this process's start time. */
void made_this_boot(uint64_t boot_id[2]);
uint64_t made_start_time(int pid);

#endif
