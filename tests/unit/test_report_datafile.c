/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support_report.h"
#include "tools/report/datafile.h"

#define COUNTS	"5-6-0.counts"
#define SYMBOLS "5-6-0.0.symbols"

static const struct made_function functions[] = {
	{ "main", 0x1139, 2, 0, NULL, 0 },
	{ "parse", 0x1200, 1, 16, "parse_alias", 1 },
	{ "tiny", 0x1150, 0, 1, "tiny_alias", 0 },
};
static const struct made_symbols symbols_made = {
	.file = SYMBOLS,
	.modules = { "/bin/app", "/lib/libc.so.6" },
	.functions = functions,
	.nfunctions = 2,
	.nskipped = 1,
};
static const struct made_record records[] = {
	{ 0, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ 1, 1, 0x0102030405060708, 8, 2, 20000, 16000, 1000, 4000 },
	{ 1, 0, 0, 0, 0, 100, (uint64_t)-50, 0, 0 }, /* falsified times: more of callees than in all */
};
static const struct made_counts counts_made = {
	.file = COUNTS,
	.symbols = { SYMBOLS },
	.pid = 5,
	.image = 3,
	.start_time = 6,
	.mode = 2,
	.end = FORMAT_END_EXIT,
	.status = -1,
	.nthreads = 2,
	.records = records,
	.nrecords = 3,
};
static const uint32_t nids[] = { 2 };

static int write_and_open(char **dir, const char *file, const void *bytes, size_t size)
{
	*dir = made_dir();
	made_write(*dir, file, bytes, size);
	return open(*dir, O_RDONLY | O_DIRECTORY);
}

static void close_and_remove(int fd, char *dir)
{
	close(fd);
	made_remove(dir);
}

static void check_symbols(bool swapped)
{
	struct datafile_symbols symbols;
	struct datafile_fault fault;
	size_t size;
	uint8_t *bytes = made_symbols_bytes(&symbols_made, &size);
	char *dir;
	int fd;

	if (swapped)
		made_swap_symbols(bytes);
	fd = write_and_open(&dir, SYMBOLS, bytes, size);
	cr_assert(!datafile_read_symbols(&symbols, fd, SYMBOLS, &fault), "%s", fault.text);
	cr_expect_str_eq(symbols.file, SYMBOLS);
	cr_expect_eq(symbols.header.machine, 62);
	cr_expect_eq(symbols.header.nfunctions, 2);
	cr_expect_eq(datafile_functions(&symbols), 3);
	for (size_t i = 0; i < 3; i++) {
		const struct symbols_function *f = &symbols.functions[i];

		cr_expect_str_eq(datafile_symbol(&symbols, i), functions[i].name);
		cr_expect_str_eq(datafile_module_path(&symbols, i),
			symbols_made.modules[functions[i].module]);
		cr_expect_eq(datafile_module(&symbols, i)->build_id_len, 20, "function %zu", i);
		cr_expect_eq(f->address, functions[i].address, "function %zu", i);
		cr_expect_eq(f->choice, functions[i].choice, "function %zu", i);
		cr_expect_eq(f->reason, functions[i].reason, "function %zu", i);
		cr_assert_eq(f->naliases, functions[i].alias != NULL, "function %zu", i);
		if (f->naliases)
			cr_expect_str_eq(datafile_alias(&symbols, i, 0), functions[i].alias);
	}
	datafile_free_symbols(&symbols);
	free(bytes);
	close_and_remove(fd, dir);
}

static void check_counts(bool swapped)
{
	struct datafile_counts counts;
	struct datafile_block block = { 0 };
	struct datafile_fault fault;
	const struct counts_header *h = &counts.header;
	size_t size;
	uint8_t *bytes = made_counts_bytes(&counts_made, nids, &size);
	char *dir;
	int fd;

	if (swapped)
		made_swap_counts(bytes);
	fd = write_and_open(&dir, COUNTS, bytes, size);
	cr_assert(!datafile_open_counts(&counts, fd, COUNTS, &fault), "%s", fault.text);
	cr_expect(h->pid == 5 && h->ppid == 1 && h->start_time == 6 && h->image == 3);
	cr_expect(h->mode == 2 && h->end == FORMAT_END_EXIT && h->status == -1);
	cr_expect(h->first.ticks == 1000 && h->last.ns == 100005000);
	cr_expect(h->nbatches == 1 && h->batches[0].count == 2);
	cr_expect_str_eq(h->batches[0].symbols, SYMBOLS);
	cr_expect_str_eq(h->exe, "/usr/bin/app");
	cr_assert_eq(h->nblocks, 2);
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert(!datafile_read_block(&counts, i, 2, &block, &fault), "%s", fault.text);
		cr_expect(block.thread.tid == 5 + i && block.thread.users == 1, "block %u", i);
		for (uint32_t id = 0; id < 2; id++) {
			const struct made_record *r = &records[i];

			cr_expect(block.records[id].calls == (id == r->id ? r->calls : 0),
				"block %u, function %u", i, id);
		}
	}
	cr_expect(block.records[1].returned == 8 && block.records[1].unwound == 2);
	cr_expect(block.records[1].total == 20000 && block.records[1].self == 16000);
	cr_expect(block.records[0].total == 100 && block.records[0].self == 0);
	cr_expect(block.records[1].nmin == ~1000ull && block.records[1].max == 4000);
	datafile_free_block(&block);
	datafile_close_counts(&counts);
	free(bytes);
	close_and_remove(fd, dir);
}

Test(report_datafile, reads_symbols)
{
	check_symbols(false);
}

Test(report_datafile, reads_symbols_of_the_other_byte_order)
{
	check_symbols(true);
}

Test(report_datafile, reads_counts)
{
	check_counts(false);
}

Test(report_datafile, reads_counts_of_the_other_byte_order)
{
	check_counts(true);
}

/* A field that holds something else, and what is said about it. */
struct damage {
	const char *name;
	size_t offset, width;
	uint64_t value;
	const char *said;
};
#define DAMAGE(type, field, value, said)                                                           \
	{                                                                                          \
#field " = " #value, offsetof(struct type, field),                                 \
			sizeof(((struct type *)0)->field), value, said                             \
	}
#define MODULE(field, value, said)                                                                 \
	{                                                                                          \
		"module." #field " = " #value,                                                     \
			sizeof(struct symbols_header) + offsetof(struct symbols_module, field),    \
			sizeof(((struct symbols_module *)0)->field), value, said                   \
	}
#define FUNCTION(field, value, said)                                                               \
	{                                                                                          \
		"function." #field " = " #value,                                                   \
			sizeof(struct symbols_header) + 2 * sizeof(struct symbols_module) +        \
				offsetof(struct symbols_function, field),                          \
			sizeof(((struct symbols_function *)0)->field), value, said                 \
	}

Test(report_datafile, refuses_damaged_symbols)
{
	static const struct damage rows[] = {
		DAMAGE(symbols_header, magic, 0, "incomplete"),
		DAMAGE(symbols_header, magic, FORMAT_COUNTS_MAGIC, "wrong magic"),
		DAMAGE(symbols_header, version, 1, "format version 1, only version 2 is known"),
		DAMAGE(symbols_header, file_size, 8, "impossible size 8"),
		DAMAGE(symbols_header, file_size, 100000, "cut off at"),
		DAMAGE(symbols_header, file_size, UINT64_MAX, "cut off at"),
		DAMAGE(symbols_header, modules_offset, 1ull << 40, "table of modules"),
		DAMAGE(symbols_header, modules_offset, 97, "table of modules"),
		DAMAGE(symbols_header, nmodules, UINT32_MAX, "table of modules"),
		DAMAGE(symbols_header, nmodules, 1, "function 1"),
		DAMAGE(symbols_header, functions_offset, UINT64_MAX - 7, "table of functions"),
		DAMAGE(symbols_header, nfunctions, UINT32_MAX, "table of functions"),
		DAMAGE(symbols_header, nskipped, UINT32_MAX, "table of functions"),
		DAMAGE(symbols_header, aliases_offset, UINT64_MAX - 3, "table of aliases"),
		DAMAGE(symbols_header, naliases, UINT32_MAX, "table of aliases"),
		DAMAGE(symbols_header, naliases, 1, "function 2"),
		DAMAGE(symbols_header, strings_offset, UINT64_MAX, "table of strings"),
		DAMAGE(symbols_header, strings_size, UINT64_MAX, "table of strings"),
		DAMAGE(symbols_header, strings_size, 0, "not terminated"),
		DAMAGE(symbols_header, strings_size, 3, "not terminated"),
		MODULE(path, UINT32_MAX, "module 0"),
		MODULE(build_id_len, 33, "module 0"),
		FUNCTION(module, 2, "function 0"),
		FUNCTION(name, UINT32_MAX, "function 0"),
		FUNCTION(alias, 3, "function 0"),
		FUNCTION(naliases, 3, "function 0"),
		FUNCTION(naliases, UINT16_MAX, "function 0"),
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct datafile_symbols symbols;
		struct datafile_fault fault = { "" };
		size_t size;
		uint8_t *bytes = made_symbols_bytes(&symbols_made, &size);
		char *dir;
		int fd;

		memcpy(bytes + rows[i].offset, &rows[i].value, rows[i].width);
		fd = write_and_open(&dir, SYMBOLS, bytes, size);
		cr_expect(datafile_read_symbols(&symbols, fd, SYMBOLS, &fault) == -1,
			"%s is accepted", rows[i].name);
		cr_expect(strstr(fault.text, rows[i].said), "%s: %s", rows[i].name, fault.text);
		free(bytes);
		close_and_remove(fd, dir);
	}
}

Test(report_datafile, refuses_damaged_counts)
{
	static const struct damage rows[] = {
		DAMAGE(counts_header, magic, 0, "incomplete"),
		DAMAGE(counts_header, magic, FORMAT_SYMBOLS_MAGIC, "wrong magic"),
		DAMAGE(counts_header, version, 1, "format version 1, only version 2 is known"),
		DAMAGE(counts_header, header_size, 0, "header size 0"),
		DAMAGE(counts_header, mode, 0, "unknown mode 0"),
		DAMAGE(counts_header, mode, 4, "unknown mode 4"),
		DAMAGE(counts_header, end, 2, "unknown kind of end 2"),
		DAMAGE(counts_header, nblocks, 3, "cut off at"),
		DAMAGE(counts_header, nblocks, UINT32_MAX, "cut off at"),
		DAMAGE(counts_header, block_size, 0, "do not fit"),
		DAMAGE(counts_header, block_size, 191, "do not fit"),
		DAMAGE(counts_header, block_size, UINT32_MAX, "cut off at"),
		DAMAGE(counts_header, max_ids, UINT32_MAX, "do not fit"),
		DAMAGE(counts_header, max_ids, 1, "batch 0 ends at function 2 of 1"),
		DAMAGE(counts_header, thread_size, 0, "do not fit"),
		DAMAGE(counts_header, thread_size, 65, "do not fit"),
		DAMAGE(counts_header, thread_size, UINT32_MAX & ~63, "do not fit"),
		DAMAGE(counts_header, nbatches, 513, "513 batches"),
		DAMAGE(counts_header, nbatches, UINT32_MAX, "batches"),
		DAMAGE(counts_header, batches[0].first_id, UINT32_MAX, "batch 0"),
		DAMAGE(counts_header, batches[0].count, UINT32_MAX, "batch 0"),
		DAMAGE(counts_header, nbatches, 2, "batch 1 of functions"),
		DAMAGE(counts_header, args_len, 4097, "4097 bytes of arguments"),
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct datafile_counts counts;
		struct datafile_fault fault = { "" };
		size_t size;
		uint8_t *bytes = made_counts_bytes(&counts_made, nids, &size);
		char *dir;
		int fd;

		memcpy(bytes + rows[i].offset, &rows[i].value, rows[i].width);
		fd = write_and_open(&dir, COUNTS, bytes, size);
		cr_expect(datafile_open_counts(&counts, fd, COUNTS, &fault) == -1, "%s is accepted",
			rows[i].name);
		cr_expect(strstr(fault.text, rows[i].said), "%s: %s", rows[i].name, fault.text);
		free(bytes);
		close_and_remove(fd, dir);
	}
}

/* At every length a file either is refused or is complete. */
Test(report_datafile, refuses_files_cut_off_anywhere)
{
	struct datafile_symbols symbols;
	struct datafile_counts counts;
	struct datafile_fault fault;
	size_t nsymbols, ncounts;
	uint8_t *sbytes = made_symbols_bytes(&symbols_made, &nsymbols);
	uint8_t *cbytes = made_counts_bytes(&counts_made, nids, &ncounts);
	char *dir = made_dir();
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	for (size_t size = 0; size < nsymbols; size++) {
		made_write(dir, SYMBOLS, sbytes, size);
		cr_expect(datafile_read_symbols(&symbols, fd, SYMBOLS, &fault) == -1,
			"symbols cut off at %zu", size);
	}
	for (size_t size = 0; size < ncounts; size += size < 256 ? 1 : 4095) {
		made_write(dir, COUNTS, cbytes, size);
		cr_expect(datafile_open_counts(&counts, fd, COUNTS, &fault) == -1,
			"counts cut off at %zu", size);
	}
	free(sbytes);
	free(cbytes);
	close_and_remove(fd, dir);
}

/* A file that gets shorter while it is read: a fault, not a signal. */
Test(report_datafile, survives_a_shrinking_file)
{
	struct datafile_counts counts;
	struct datafile_block block = { 0 };
	struct datafile_fault fault;
	size_t size;
	uint8_t *bytes = made_counts_bytes(&counts_made, nids, &size);
	char *dir;
	int fd = write_and_open(&dir, COUNTS, bytes, size);

	cr_assert(!datafile_open_counts(&counts, fd, COUNTS, &fault), "%s", fault.text);
	made_write(dir, COUNTS, bytes, FORMAT_HEADER_SIZE + 100);
	cr_expect_eq(datafile_read_block(&counts, 0, 2, &block, &fault), -1);
	cr_expect_str_eq(fault.text, "cut off at 65636 bytes");
	datafile_free_block(&block);
	datafile_close_counts(&counts);
	free(bytes);
	close_and_remove(fd, dir);
}

Test(report_datafile, reads_regular_files_of_the_directory_only)
{
	static const struct {
		const char *name, *said;
	} rows[] = {
		{ "fifo", "not a regular file" }, /* and does not wait for a writer */
		{ "dir", "not a regular file" },
		{ "absent", "No such file or directory" },
		{ "../etc", "not the name of a symbols file" },
		{ "/etc/passwd", "not the name of a symbols file" },
		{ "", "not the name of a symbols file" },
	};
	struct datafile_symbols symbols;
	char *dir = made_dir();
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	cr_assert(!mkfifoat(fd, "fifo", 0600));
	cr_assert(!mkdirat(fd, "dir", 0700));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct datafile_fault fault = { "" };

		cr_expect(datafile_read_symbols(&symbols, fd, rows[i].name, &fault) == -1,
			"%s is accepted", rows[i].name);
		cr_expect_str_eq(fault.text, rows[i].said, "%s", rows[i].name);
	}
	close_and_remove(fd, dir);
}

Test(report_datafile, terminates_arguments_that_were_cut_off)
{
	struct datafile_counts counts;
	struct datafile_fault fault;
	size_t size;
	uint8_t *bytes = made_counts_bytes(&counts_made, nids, &size);
	struct counts_header *h = (struct counts_header *)bytes;
	char *dir;
	int fd;

	h->args_len = sizeof(h->args);
	memset(h->args, 'a', sizeof(h->args));
	fd = write_and_open(&dir, COUNTS, bytes, size);
	cr_assert(!datafile_open_counts(&counts, fd, COUNTS, &fault), "%s", fault.text);
	cr_expect_eq(strnlen(counts.header.args, sizeof(h->args)), sizeof(h->args) - 1);
	datafile_close_counts(&counts);
	free(bytes);
	close_and_remove(fd, dir);
}
