/* SPDX-License-Identifier: MIT */
/*
 * Reading data files (tracer/format.h). Nothing in them is trusted: every function here checks
 * what it returns, so that its callers need not. Integers are returned in the host's byte order.
 * Files are read, never mapped: a writer that shortens one must not kill the reader.
 */
#ifndef REPORT_DATAFILE_H
#define REPORT_DATAFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tracer/format.h"

/* Why a file was refused: one line without its name. */
struct datafile_fault {
	char text[160];
};

/* struct func_record of arch/arch.h, with self in place of callees; contract.c compares them. */
struct datafile_record {
	uint64_t calls;
	uint64_t returned;
	uint64_t unwound;
	uint64_t left;
	uint64_t total;
	uint64_t self;
	uint64_t nmin;
	uint64_t max;
};

/* A symbols file. Every offset and index in the tables has been checked. */
struct datafile_symbols {
	char file[FORMAT_NAME_MAX];
	uint8_t *bytes;
	struct symbols_header header;
	const struct symbols_module *modules;
	const struct symbols_function *functions; /* nfunctions, then nskipped */
	const uint32_t *aliases;
	const char *strings;
	const char **shown; /* names.c: the name of each function for people, NULL: not yet made */
};

/* 0, or -1 with @fault filled. */
int datafile_read_symbols(
	struct datafile_symbols *symbols, int dir, const char *name, struct datafile_fault *fault);
void datafile_free_symbols(struct datafile_symbols *symbols);

/* The number of entries in functions[]. */
size_t datafile_functions(const struct datafile_symbols *symbols);
const char *datafile_symbol(const struct datafile_symbols *symbols, size_t index); /* "": none */
const char *datafile_alias(const struct datafile_symbols *symbols, size_t index, size_t alias);
const struct symbols_module *datafile_module(const struct datafile_symbols *symbols, size_t index);
const char *datafile_module_path(const struct datafile_symbols *symbols, size_t index);

/* An open counts file. */
struct datafile_counts {
	int fd;
	bool swapped; /* the writer's byte order is not ours */
	struct counts_header header;
};

int datafile_open_counts(
	struct datafile_counts *counts, int dir, const char *name, struct datafile_fault *fault);
void datafile_close_counts(struct datafile_counts *counts);

struct datafile_block {
	struct thread_header thread;
	struct datafile_record *records;
	uint8_t *bytes;
	size_t size;
};

/*
 * Read thread block @index and its first @nrecords records; both are within what the header says.
 * @block starts zeroed and is used again for the next block. 0, or -1 with @fault filled.
 */
int datafile_read_block(const struct datafile_counts *counts, uint32_t index, uint32_t nrecords,
	struct datafile_block *block, struct datafile_fault *fault);
void datafile_free_block(struct datafile_block *block);

#endif
