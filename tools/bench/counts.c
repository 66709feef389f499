/* SPDX-License-Identifier: MIT */
/* Reads back what libftr.so counted, to check it against the calls that were made. */
#include "../../arch/arch.h"
#include "../../tracer/format.h"
#include "bench.h"
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct mapped {
	const uint8_t *bytes;
	size_t size;
};

static struct mapped map_file(const char *path)
{
	struct mapped file = {NULL, 0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return file;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (bytes != MAP_FAILED)
			file = (struct mapped){bytes, (size_t)st.st_size};
	}
	close(fd);
	return file;
}

static void unmap_file(struct mapped *file)
{
	if (file->bytes)
		munmap((void *)file->bytes, file->size);
}

/* @n items of @size at @offset, or NULL when the file does not have them. */
static const void *at(const struct mapped *file, uint64_t offset, uint64_t n, uint64_t size)
{
	if (offset > file->size || n > (file->size - offset) / size)
		return NULL;
	return file->bytes + offset;
}

static bool has_name(const struct mapped *file, const struct symbols_header *header, uint32_t name,
	const char *wanted)
{
	size_t len = strlen(wanted) + 1;
	const char *strings = at(file, header->strings_offset, header->strings_size, 1);

	return strings && name <= header->strings_size && header->strings_size - name >= len &&
	       memcmp(strings + name, wanted, len) == 0;
}

/* The id of the function called @name; false when this file has none. */
static bool find_id(const struct mapped *file, const char *name, uint32_t *id)
{
	const struct symbols_header *header = at(file, 0, 1, sizeof(*header));
	const struct symbols_function *functions;

	if (!header || header->magic != FORMAT_SYMBOLS_MAGIC)
		return false;
	functions = at(file, header->functions_offset, header->nfunctions, sizeof(*functions));
	for (uint32_t i = 0; functions && i < header->nfunctions; i++) {
		if (!has_name(file, header, functions[i].name, name))
			continue;
		*id = header->first_id + i;
		return true;
	}
	return false;
}

static const char *sum_records(
	const struct mapped *file, uint32_t id, uint64_t *calls, uint64_t *returned)
{
	const struct counts_header *header = at(file, 0, 1, sizeof(*header));

	if (!header || header->magic != FORMAT_COUNTS_MAGIC || id >= header->max_ids)
		return "the counts file is damaged";
	for (uint32_t i = 0; i < header->nblocks; i++) {
		const struct func_record *record = at(file,
			header->header_size + (uint64_t)i * header->block_size +
				header->thread_size + (uint64_t)id * FUNC_RECORD_SIZE,
			1, sizeof(*record));

		if (!record)
			return "the counts file is cut off";
		*calls += record->calls;
		*returned += record->returned;
	}
	return NULL;
}

/* The only file of that kind; empty when there is none. */
static struct mapped map_only(const char *dir, const char *pattern)
{
	struct mapped file = {NULL, 0};
	char path[512];
	glob_t found;

	snprintf(path, sizeof(path), "%s/%s", dir, pattern);
	if (glob(path, 0, NULL, &found) == 0 && found.gl_pathc == 1)
		file = map_file(found.gl_pathv[0]);
	globfree(&found);
	return file;
}

const char *counts_flushes(const char *dir, uint64_t *asked, uint64_t *done)
{
	struct mapped counts = map_only(dir, "*.counts");
	const struct counts_header *header = at(&counts, 0, 1, sizeof(*header));

	if (header) {
		*asked = header->flushes_asked;
		*done = header->flushes_done;
	}
	unmap_file(&counts);
	return header ? NULL : "libftr.so left no data: was it loaded?";
}

const char *counts_read(const char *dir, const char *function, uint64_t *calls, uint64_t *returned)
{
	struct mapped symbols = map_only(dir, "*.symbols"), counts = map_only(dir, "*.counts");
	const char *why;
	uint32_t id;

	*calls = *returned = 0;
	if (!symbols.bytes || !counts.bytes)
		why = "libftr.so left no data: was it loaded?";
	else if (!find_id(&symbols, function, &id))
		why = "libftr.so did not trace the function";
	else
		why = sum_records(&counts, id, calls, returned);
	unmap_file(&symbols);
	unmap_file(&counts);
	return why;
}
