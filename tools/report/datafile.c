/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "contract.h"
#include "datafile.h"
#include "memory.h"

#define SYMBOLS_FILE_MAX (1ull << 30)

/* Bring an integer of another byte order into ours. */
#define SWAP(field)                                                                                \
	((field) = sizeof(field) == 8	? __builtin_bswap64(field)                                 \
		   : sizeof(field) == 4 ? __builtin_bswap32(field)                                 \
					: __builtin_bswap16(field))

static int datafile_refuse(struct datafile_fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int datafile_refuse(struct datafile_fault *fault, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(fault->text, sizeof(fault->text), format, ap);
	va_end(ap);
	return -1;
}

static int datafile_open(int dir, const char *name, struct stat *st, struct datafile_fault *fault)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = 0;

	if (fd < 0)
		return datafile_refuse(fault, "%s", strerror(errno));
	if (fstat(fd, st))
		error = datafile_refuse(fault, "%s", strerror(errno));
	else if (!S_ISREG(st->st_mode))
		error = datafile_refuse(fault, "not a regular file");
	if (error) {
		close(fd);
		return -1;
	}
	return fd;
}

/* All @n bytes at @offset, or a fault. */
static int datafile_read(int fd, void *to, size_t n, uint64_t offset, struct datafile_fault *fault)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return datafile_refuse(fault, "%s", strerror(errno));
		if (got == 0)
			return datafile_refuse(fault, "cut off at %llu bytes",
				(unsigned long long)(offset + done));
		done += (size_t)got;
	}
	return 0;
}

/* Tell the byte order by the magic; refuse what is no such file. */
static int datafile_check_magic(
	int fd, uint64_t expected, bool *swapped, struct datafile_fault *fault)
{
	uint64_t magic;

	if (datafile_read(fd, &magic, sizeof(magic), 0, fault))
		return -1;
	*swapped = magic == __builtin_bswap64(expected);
	if (magic == expected || *swapped)
		return 0;
	if (magic == 0)
		return datafile_refuse(fault, "incomplete: its writer did not get to the header");
	return datafile_refuse(fault, "not a data file of ftr (wrong magic)");
}

static int datafile_check_version(uint32_t version, struct datafile_fault *fault)
{
	if (version == FORMAT_VERSION)
		return 0;
	return datafile_refuse(
		fault, "format version %u, only version %u is known", version, FORMAT_VERSION);
}

/* ---- symbols files ---- */

static void datafile_swap_symbols_header(struct symbols_header *h)
{
	SWAP(h->magic);
	SWAP(h->version);
	SWAP(h->machine);
	SWAP(h->first_id);
	SWAP(h->nfunctions);
	SWAP(h->nskipped);
	SWAP(h->nmodules);
	SWAP(h->modules_offset);
	SWAP(h->functions_offset);
	SWAP(h->aliases_offset);
	SWAP(h->strings_offset);
	SWAP(h->strings_size);
	SWAP(h->naliases);
	SWAP(h->file_size);
}

static void datafile_swap_tables(struct symbols_module *modules, size_t nmodules,
	struct symbols_function *functions, size_t nfunctions, uint32_t *aliases, size_t naliases)
{
	for (struct symbols_module *m = modules; m < modules + nmodules; m++) {
		SWAP(m->path);
		SWAP(m->build_id_len);
		SWAP(m->bias);
		SWAP(m->image);
	}
	for (struct symbols_function *f = functions; f < functions + nfunctions; f++) {
		SWAP(f->address);
		SWAP(f->size);
		SWAP(f->module);
		SWAP(f->name);
		SWAP(f->alias);
		SWAP(f->naliases);
	}
	for (size_t i = 0; i < naliases; i++)
		SWAP(aliases[i]);
}

size_t datafile_functions(const struct datafile_symbols *symbols)
{
	return (size_t)symbols->header.nfunctions + symbols->header.nskipped;
}

/* Whether a table of @n items lies inside a file of @size bytes. */
static int datafile_check_table(uint64_t offset, uint64_t n, size_t item, size_t align,
	uint64_t size, const char *what, struct datafile_fault *fault)
{
	if (offset > size || n > (size - offset) / item || offset % align)
		return datafile_refuse(
			fault, "damaged: its table of %s is not inside the file", what);
	return 0;
}

static int datafile_check_symbols_header(
	const struct symbols_header *h, uint64_t size, struct datafile_fault *fault)
{
	uint64_t functions = (uint64_t)h->nfunctions + h->nskipped;

	if (datafile_check_version(h->version, fault))
		return -1;
	if (h->file_size > size)
		return datafile_refuse(fault, "cut off at %llu of %llu bytes",
			(unsigned long long)size, (unsigned long long)h->file_size);
	if (h->file_size < sizeof(*h) || h->file_size > SYMBOLS_FILE_MAX)
		return datafile_refuse(
			fault, "damaged: impossible size %llu", (unsigned long long)h->file_size);
	size = h->file_size;
	if (datafile_check_table(h->modules_offset, h->nmodules, sizeof(struct symbols_module),
		    _Alignof(struct symbols_module), size, "modules", fault) ||
		datafile_check_table(h->functions_offset, functions,
			sizeof(struct symbols_function), _Alignof(struct symbols_function), size,
			"functions", fault) ||
		datafile_check_table(h->aliases_offset, h->naliases, sizeof(uint32_t),
			_Alignof(uint32_t), size, "aliases", fault) ||
		datafile_check_table(
			h->strings_offset, h->strings_size, 1, 1, size, "strings", fault))
		return -1;
	return 0;
}

/* Every index and string offset of the tables. */
static int datafile_check_tables(const struct datafile_symbols *s, struct datafile_fault *fault)
{
	const struct symbols_header *h = &s->header;

	if (h->strings_size == 0 || s->strings[0] || s->strings[h->strings_size - 1])
		return datafile_refuse(fault, "damaged: its strings are not terminated");
	for (uint32_t i = 0; i < h->nmodules; i++) {
		const struct symbols_module *m = &s->modules[i];

		if (m->path >= h->strings_size || m->build_id_len > sizeof(m->build_id))
			return datafile_refuse(fault, "damaged: module %u", i);
	}
	for (uint32_t i = 0; i < h->naliases; i++)
		if (s->aliases[i] >= h->strings_size)
			return datafile_refuse(fault, "damaged: alias %u", i);
	for (size_t i = 0; i < datafile_functions(s); i++) {
		const struct symbols_function *f = &s->functions[i];

		if (f->module >= h->nmodules || f->name >= h->strings_size ||
			f->alias > h->naliases || f->naliases > h->naliases - f->alias)
			return datafile_refuse(fault, "damaged: function %zu", i);
	}
	return 0;
}

static int datafile_load_symbols(
	struct datafile_symbols *s, int fd, uint64_t size, struct datafile_fault *fault)
{
	struct symbols_header *h = &s->header;
	bool swapped;

	if (datafile_check_magic(fd, FORMAT_SYMBOLS_MAGIC, &swapped, fault) ||
		datafile_read(fd, h, sizeof(*h), 0, fault))
		return -1;
	if (swapped)
		datafile_swap_symbols_header(h);
	if (datafile_check_symbols_header(h, size, fault))
		return -1;
	s->bytes = memory_get(h->file_size, 1);
	if (datafile_read(fd, s->bytes, h->file_size, 0, fault))
		return -1;
	s->modules = (const struct symbols_module *)(s->bytes + h->modules_offset);
	s->functions = (const struct symbols_function *)(s->bytes + h->functions_offset);
	s->aliases = (const uint32_t *)(s->bytes + h->aliases_offset);
	s->strings = (const char *)s->bytes + h->strings_offset;
	if (swapped)
		datafile_swap_tables((struct symbols_module *)s->modules, h->nmodules,
			(struct symbols_function *)s->functions, datafile_functions(s),
			(uint32_t *)s->aliases, h->naliases);
	return datafile_check_tables(s, fault);
}

int datafile_read_symbols(
	struct datafile_symbols *symbols, int dir, const char *name, struct datafile_fault *fault)
{
	struct stat st;
	int fd, error;

	memset(symbols, 0, sizeof(*symbols));
	/* The name comes from another file: it may not lead out of the directory. */
	if (strlen(name) >= sizeof(symbols->file) || !*name || strchr(name, '/'))
		return datafile_refuse(fault, "not the name of a symbols file");
	strcpy(symbols->file, name);
	fd = datafile_open(dir, name, &st, fault);
	if (fd < 0)
		return -1;
	error = datafile_load_symbols(symbols, fd, (uint64_t)st.st_size, fault);
	close(fd);
	if (error)
		datafile_free_symbols(symbols);
	else
		symbols->shown = memory_get(datafile_functions(symbols), sizeof(*symbols->shown));
	return error;
}

void datafile_free_symbols(struct datafile_symbols *symbols)
{
	free(symbols->bytes);
	symbols->bytes = NULL;
	free(symbols->shown);
	symbols->shown = NULL;
}

const char *datafile_symbol(const struct datafile_symbols *symbols, size_t index)
{
	return symbols->strings + symbols->functions[index].name;
}

const char *datafile_alias(const struct datafile_symbols *symbols, size_t index, size_t alias)
{
	return symbols->strings + symbols->aliases[symbols->functions[index].alias + alias];
}

const struct symbols_module *datafile_module(const struct datafile_symbols *symbols, size_t index)
{
	return &symbols->modules[symbols->functions[index].module];
}

const char *datafile_module_path(const struct datafile_symbols *symbols, size_t index)
{
	return symbols->strings + datafile_module(symbols, index)->path;
}

/* ---- counts files ---- */

static void datafile_swap_counts_header(struct counts_header *h)
{
	SWAP(h->magic);
	SWAP(h->version);
	SWAP(h->header_size);
	SWAP(h->pid);
	SWAP(h->ppid);
	SWAP(h->start_time);
	SWAP(h->boot_id[0]);
	SWAP(h->boot_id[1]);
	SWAP(h->wall_ns);
	SWAP(h->mode);
	SWAP(h->end);
	SWAP(h->status);
	SWAP(h->image);
	SWAP(h->first.ticks);
	SWAP(h->first.ns);
	SWAP(h->last.ticks);
	SWAP(h->last.ns);
	SWAP(h->lost_calls);
	SWAP(h->lost_threads);
	SWAP(h->lost_processes);
	SWAP(h->lost_functions);
	SWAP(h->flushes_asked);
	SWAP(h->flushes_done);
	SWAP(h->nblocks);
	SWAP(h->block_size);
	SWAP(h->max_ids);
	SWAP(h->thread_size);
	SWAP(h->nbatches);
	SWAP(h->args_len);
	for (size_t i = 0; i < FORMAT_BATCHES_MAX; i++) {
		SWAP(h->batches[i].first_id);
		SWAP(h->batches[i].count);
	}
}

/* Batches are in the order of their ids, share none and have terminated names. */
static int datafile_check_batches(const struct counts_header *h, struct datafile_fault *fault)
{
	uint64_t next = 0;

	if (h->nbatches > FORMAT_BATCHES_MAX)
		return datafile_refuse(fault, "damaged: %u batches of functions", h->nbatches);
	for (uint32_t i = 0; i < h->nbatches; i++) {
		const struct format_batch *b = &h->batches[i];

		if (b->first_id < next || !memchr(b->symbols, 0, sizeof(b->symbols)))
			return datafile_refuse(fault, "damaged: batch %u of functions", i);
		next = (uint64_t)b->first_id + b->count;
		if (next > h->max_ids)
			return datafile_refuse(fault,
				"damaged: batch %u ends at function %llu of %u", i,
				(unsigned long long)next, h->max_ids);
	}
	return 0;
}

static int datafile_check_blocks(
	const struct counts_header *h, uint64_t size, struct datafile_fault *fault)
{
	uint64_t records = (uint64_t)h->max_ids * sizeof(struct datafile_record);
	uint64_t end = h->header_size + (uint64_t)h->nblocks * h->block_size;

	if (h->header_size != FORMAT_HEADER_SIZE)
		return datafile_refuse(fault, "damaged: header size %u", h->header_size);
	if (h->thread_size < sizeof(struct thread_header) ||
		h->thread_size % sizeof(struct datafile_record) ||
		h->thread_size + records > h->block_size)
		return datafile_refuse(fault,
			"damaged: %u functions do not fit into a thread block of %u bytes",
			h->max_ids, h->block_size);
	if (end > size)
		return datafile_refuse(fault, "cut off at %llu of %llu bytes",
			(unsigned long long)size, (unsigned long long)end);
	return 0;
}

static int datafile_check_counts_header(const struct counts_header *h, struct datafile_fault *fault)
{
	if (datafile_check_version(h->version, fault) || datafile_check_batches(h, fault))
		return -1;
	if (!contract_mode(h->mode))
		return datafile_refuse(fault, "damaged: unknown mode %u", h->mode);
	if (h->end > FORMAT_END_EXIT)
		return datafile_refuse(fault, "damaged: unknown kind of end %u", h->end);
	if (h->args_len > sizeof(h->args))
		return datafile_refuse(fault, "damaged: %u bytes of arguments", h->args_len);
	if (!memchr(h->exe, 0, sizeof(h->exe)))
		return datafile_refuse(fault, "damaged: the program's path is not terminated");
	return 0;
}

static int datafile_load_counts(struct datafile_counts *counts, struct datafile_fault *fault)
{
	struct counts_header *h = &counts->header;
	struct stat st;

	if (datafile_check_magic(counts->fd, FORMAT_COUNTS_MAGIC, &counts->swapped, fault) ||
		datafile_read(counts->fd, h, sizeof(*h), 0, fault))
		return -1;
	if (counts->swapped)
		datafile_swap_counts_header(h);
	if (datafile_check_counts_header(h, fault))
		return -1;
	if (h->args_len)
		h->args[h->args_len - 1] = 0; /* cut off */
	/* Asked after the header was read: a running writer lengthens the file first. */
	if (fstat(counts->fd, &st))
		return datafile_refuse(fault, "%s", strerror(errno));
	return datafile_check_blocks(h, (uint64_t)st.st_size, fault);
}

int datafile_open_counts(
	struct datafile_counts *counts, int dir, const char *name, struct datafile_fault *fault)
{
	struct stat st;

	counts->fd = datafile_open(dir, name, &st, fault);
	if (counts->fd < 0)
		return -1;
	if (st.st_size == 0)
		datafile_refuse(fault, "empty: its writer did not get to the header");
	else if (!datafile_load_counts(counts, fault))
		return 0;
	datafile_close_counts(counts);
	return -1;
}

void datafile_close_counts(struct datafile_counts *counts)
{
	close(counts->fd);
}

static void datafile_swap_block(struct datafile_block *block, uint32_t nrecords)
{
	SWAP(block->thread.tid);
	SWAP(block->thread.users);
	SWAP(block->thread.start);
	for (struct datafile_record *r = block->records; r < block->records + nrecords; r++) {
		SWAP(r->calls);
		SWAP(r->returned);
		SWAP(r->unwound);
		SWAP(r->left);
		SWAP(r->total);
		SWAP(r->self);
		SWAP(r->nmin);
		SWAP(r->max);
	}
}

/* In the file it is what of `total` is not the function's own. A time that a signal has falsified may be less. */
static void datafile_make_self(struct datafile_record *records, uint32_t n)
{
	for (struct datafile_record *r = records; r < records + n; r++) {
		r->self = r->total - r->self;
		if ((int64_t)r->self < 0)
			r->self = 0;
	}
}

int datafile_read_block(const struct datafile_counts *counts, uint32_t index, uint32_t nrecords,
	struct datafile_block *block, struct datafile_fault *fault)
{
	const struct counts_header *h = &counts->header;
	size_t size = h->thread_size + (size_t)nrecords * sizeof(struct datafile_record);

	if (block->size < size) {
		datafile_free_block(block);
		block->bytes = memory_get(size, 1);
		block->size = size;
	}
	if (datafile_read(counts->fd, block->bytes, size,
		    h->header_size + (uint64_t)index * h->block_size, fault))
		return -1;
	memcpy(&block->thread, block->bytes, sizeof(block->thread));
	block->records = (struct datafile_record *)(block->bytes + h->thread_size);
	if (counts->swapped)
		datafile_swap_block(block, nrecords);
	datafile_make_self(block->records, nrecords);
	return 0;
}

void datafile_free_block(struct datafile_block *block)
{
	free(block->bytes);
	memset(block, 0, sizeof(*block));
}
