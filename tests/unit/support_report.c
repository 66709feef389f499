/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support_report.h"

#define MADE_STRINGS_MAX 65536
#define MADE_THREAD_SIZE 64
#define MADE_RECORD_SIZE 64

struct made_strings {
	char bytes[MADE_STRINGS_MAX];
	uint32_t size;
};

/* Offset of a copy of @s; NULL is the empty string at 0. */
static uint32_t made_string(struct made_strings *strings, const char *s)
{
	uint32_t offset = strings->size;
	size_t len = s ? strlen(s) + 1 : 0;

	if (len == 0)
		return 0;
	if (len > MADE_STRINGS_MAX - offset)
		abort();
	memcpy(strings->bytes + offset, s, len);
	strings->size += (uint32_t)len;
	return offset;
}

uint8_t *made_symbols_bytes(const struct made_symbols *symbols, size_t *size)
{
	uint32_t n = symbols->nfunctions + symbols->nskipped;
	struct made_strings *strings = calloc(1, sizeof(*strings));
	struct symbols_header h = {
		.magic = FORMAT_SYMBOLS_MAGIC,
		.version = FORMAT_VERSION,
		.machine = 62, /* EM_X86_64 */
		.first_id = symbols->first_id,
		.nfunctions = symbols->nfunctions,
		.nskipped = symbols->nskipped,
		.modules_offset = sizeof(h),
	};
	struct symbols_module modules[4] = { 0 };
	struct symbols_function *functions = calloc(n + 1, sizeof(*functions));
	uint32_t *aliases = calloc(n + 1, sizeof(*aliases));
	uint8_t *bytes;

	strings->size = 1;
	while (h.nmodules < 4 && symbols->modules[h.nmodules]) {
		modules[h.nmodules] = (struct symbols_module){
			.path = made_string(strings, symbols->modules[h.nmodules]),
			.build_id_len = 20,
			.build_id = { (uint8_t)h.nmodules },
		};
		h.nmodules++;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct made_function *f = &symbols->functions[i];

		functions[i] = (struct symbols_function){
			.address = f->address,
			.size = 16,
			.module = f->module,
			.name = made_string(strings, f->name),
			.alias = h.naliases,
			.naliases = f->alias != NULL,
			.choice = f->choice,
			.reason = f->reason,
		};
		if (f->alias)
			aliases[h.naliases++] = made_string(strings, f->alias);
	}
	h.functions_offset = h.modules_offset + h.nmodules * sizeof(modules[0]);
	h.aliases_offset = h.functions_offset + n * sizeof(functions[0]);
	h.strings_offset = h.aliases_offset + h.naliases * sizeof(aliases[0]);
	h.strings_size = strings->size;
	h.file_size = h.strings_offset + h.strings_size;

	bytes = calloc(1, h.file_size);
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + h.modules_offset, modules, h.nmodules * sizeof(modules[0]));
	memcpy(bytes + h.functions_offset, functions, n * sizeof(functions[0]));
	memcpy(bytes + h.aliases_offset, aliases, h.naliases * sizeof(aliases[0]));
	memcpy(bytes + h.strings_offset, strings->bytes, h.strings_size);
	free(strings);
	free(functions);
	free(aliases);
	*size = h.file_size;
	return bytes;
}

static void made_put_record(uint8_t *at, const struct made_record *r)
{
	const uint64_t words[MADE_RECORD_SIZE / 8] = { r->calls, r->returned, r->unwound,
		r->calls - r->returned - r->unwound, r->total, r->total - r->self, r->min ? ~r->min : 0,
		r->max };

	memcpy(at, words, sizeof(words));
}

uint8_t *made_counts_bytes(const struct made_counts *counts, const uint32_t *nids, size_t *size)
{
	static const char args[] = "app\0--verbose\0";
	struct counts_header h = {
		.magic = FORMAT_COUNTS_MAGIC,
		.version = FORMAT_VERSION,
		.header_size = FORMAT_HEADER_SIZE,
		.pid = counts->pid,
		.ppid = 1,
		.start_time = counts->start_time,
		.wall_ns = 1000 + counts->pid * 10 + counts->image,
		.mode = counts->mode,
		.end = counts->end,
		.status = counts->status,
		.image = counts->image,
		.first = { 1000, 5000 },
		.last = { 1000 + 200000000, 5000 + 100000000 }, /* two ticks take 1 ns */
		.nblocks = counts->nthreads,
		.thread_size = MADE_THREAD_SIZE,
		.args_len = sizeof(args) - 1,
		.exe = "/usr/bin/app",
	};
	uint8_t *bytes;

	memcpy(h.args, args, sizeof(args) - 1);
	made_this_boot(h.boot_id);
	while (h.nbatches < 4 && counts->symbols[h.nbatches]) {
		struct format_batch *batch = &h.batches[h.nbatches];

		strcpy(batch->symbols, counts->symbols[h.nbatches]);
		batch->first_id = h.max_ids;
		batch->count = nids[h.nbatches++];
		h.max_ids += batch->count;
	}
	h.block_size = (MADE_THREAD_SIZE + h.max_ids * MADE_RECORD_SIZE + 4095) & ~4095u;
	*size = h.header_size + (size_t)h.nblocks * h.block_size;
	bytes = calloc(1, *size);
	memcpy(bytes, &h, sizeof(h));
	for (uint32_t i = 0; i < h.nblocks; i++) {
		struct thread_header thread = { .tid = counts->pid + i, .users = 1 };

		memcpy(bytes + h.header_size + (size_t)i * h.block_size, &thread, sizeof(thread));
	}
	for (size_t i = 0; i < counts->nrecords; i++) {
		const struct made_record *r = &counts->records[i];

		made_put_record(bytes + h.header_size + (size_t)r->thread * h.block_size +
					MADE_THREAD_SIZE + (size_t)r->id * MADE_RECORD_SIZE,
			r);
	}
	return bytes;
}

/* Reverse the bytes of each of @n integers of @width bytes. */
static void made_reverse(void *integers, size_t n, size_t width)
{
	for (uint8_t *at = integers; n--; at += width)
		for (size_t i = 0; i < width / 2; i++) {
			uint8_t byte = at[i];

			at[i] = at[width - 1 - i];
			at[width - 1 - i] = byte;
		}
}

void made_swap_symbols(uint8_t *bytes)
{
	struct symbols_header h;

	memcpy(&h, bytes, sizeof(h));
	for (uint32_t i = 0; i < h.nmodules; i++) {
		uint8_t *m = bytes + h.modules_offset + i * sizeof(struct symbols_module);

		made_reverse(m, 2, 4);
		made_reverse(m + offsetof(struct symbols_module, bias), 2, 8);
	}
	for (uint32_t i = 0; i < h.nfunctions + h.nskipped; i++) {
		uint8_t *f = bytes + h.functions_offset + i * sizeof(struct symbols_function);

		made_reverse(f, 1, 8);
		made_reverse(f + offsetof(struct symbols_function, size), 4, 4);
		made_reverse(f + offsetof(struct symbols_function, naliases), 1, 2);
	}
	made_reverse(bytes + h.aliases_offset, h.naliases, 4);
	made_reverse(bytes, 1, 8);
	made_reverse(bytes + offsetof(struct symbols_header, version), 6, 4);
	made_reverse(bytes + offsetof(struct symbols_header, modules_offset), 5, 8);
	made_reverse(bytes + offsetof(struct symbols_header, naliases), 2, 4);
	made_reverse(bytes + offsetof(struct symbols_header, file_size), 1, 8);
}

void made_swap_counts(uint8_t *bytes)
{
	struct counts_header h;

	memcpy(&h, bytes, sizeof(h));
	for (uint32_t i = 0; i < h.nblocks; i++) {
		uint8_t *block = bytes + h.header_size + (size_t)i * h.block_size;

		made_reverse(block, 2, 4);
		made_reverse(block + 8, 1, 8);
		made_reverse(block + MADE_THREAD_SIZE, h.max_ids * 8, 8);
	}
	for (size_t i = 0; i < FORMAT_BATCHES_MAX; i++)
		made_reverse(bytes + offsetof(struct counts_header, batches) +
				     i * sizeof(struct format_batch) +
				     offsetof(struct format_batch, first_id),
			2, 4);
	made_reverse(bytes, 1, 8);
	made_reverse(bytes + offsetof(struct counts_header, version), 4, 4);
	made_reverse(bytes + offsetof(struct counts_header, start_time), 4, 8);
	made_reverse(bytes + offsetof(struct counts_header, mode), 4, 4);
	made_reverse(bytes + offsetof(struct counts_header, first), 7, 8);
	made_reverse(bytes + offsetof(struct counts_header, nblocks), 6, 4);
}

char *made_dir(void)
{
	const char *parent = getenv("TMPDIR");
	char *dir = malloc(4096);

	snprintf(dir, 4096, "%s/ftr-report.XXXXXX", parent && *parent ? parent : "/tmp");
	if (!mkdtemp(dir))
		abort();
	return dir;
}

void made_remove(char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			unlinkat(dirfd(dir), entry->d_name, 0))
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	closedir(dir);
	rmdir(path);
	free(path);
}

void made_write(const char *dir, const char *file, const void *bytes, size_t size)
{
	char path[8192];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	to = fopen(path, "w");
	if (!to || fwrite(bytes, 1, size, to) != size || fclose(to))
		abort();
}

void made_write_symbols(const char *dir, const struct made_symbols *symbols)
{
	size_t size;
	uint8_t *bytes = made_symbols_bytes(symbols, &size);

	made_write(dir, symbols->file, bytes, size);
	free(bytes);
}

void made_write_counts(const char *dir, const struct made_counts *counts, uint32_t nids)
{
	size_t size;
	uint8_t *bytes = made_counts_bytes(counts, &nids, &size);

	made_write(dir, counts->file, bytes, size);
	free(bytes);
}

void made_this_boot(uint64_t boot_id[2])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	unsigned int part[4];
	unsigned long long node;

	if (!file || fscanf(file, "%8x-%4x-%4x-%4x-%12llx", &part[0], &part[1], &part[2], &part[3],
			     &node) != 5)
		abort();
	fclose(file);
	boot_id[0] = (uint64_t)part[0] << 32 | part[1] << 16 | part[2];
	boot_id[1] = (uint64_t)part[3] << 48 | node;
}

uint64_t made_start_time(int pid)
{
	char path[64], stat[1024];
	const char *field;
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		abort();
	len = fread(stat, 1, sizeof(stat) - 1, file);
	fclose(file);
	stat[len] = 0;
	field = strrchr(stat, ')');
	for (int i = 2; i < 22; i++)
		field = strchr(field + 1, ' ');
	return strtoull(field, NULL, 10);
}
