/* SPDX-License-Identifier: MIT */
#include "support_qemu.h"
#include <criterion/criterion.h>

#include "tracer/ehframe.h"
#include "support_elf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* As the ports say it; here so that this test needs no port. */
static const struct isa x86_64 = { .ra_column = 16, .entry_cfa_base = 7, .entry_cfa_offset = 8,
	.entry_ra_offset = -8 };
static const struct isa arm64 = { .ra_column = 30, .entry_cfa_base = 31 };
static const struct isa powerpc = { .ra_column = 65, .entry_cfa_base = 1 };

static struct make_elf make;
static struct elffile elf;
static struct arena arena;
static struct eh_fde *fdes;
static size_t damaged;

/* ---- writing records ---- */

struct text {
	uint8_t bytes[1024];
	uint32_t n;
};

static void put(struct text *t, const void *bytes, uint32_t size)
{
	memcpy(t->bytes + t->n, bytes, size);
	t->n += size;
}

static void put_value(struct text *t, uint64_t value, uint32_t size)
{
	put(t, &value, size);
}

static void close_record(struct text *t, uint32_t at)
{
	uint32_t len;

	while (t->n % 4)
		t->bytes[t->n++] = 0;
	len = t->n - at - 4;
	memcpy(t->bytes + at, &len, 4);
}

/* A CIE: version, augmentation string, alignments 1 and -8, column 16, then @rest. */
static uint32_t put_cie(struct text *t, uint8_t version, const char *letters, const void *rest,
	uint32_t size)
{
	uint32_t at = t->n;

	put_value(t, 0, 8);
	put_value(t, version, 1);
	put(t, letters, (uint32_t)strlen(letters) + 1);
	put(t, "\x01\x78\x10", 3);
	put(t, rest, size);
	close_record(t, at);
	return at;
}

static void put_fde(struct text *t, uint32_t cie, const void *rest, uint32_t size)
{
	uint32_t at = t->n;

	put_value(t, 0, 4);
	put_value(t, at + 4 - cie, 4);
	put(t, rest, size);
	close_record(t, at);
}

/* Where records end up: nothing is added before them. */
#define FRAME_ADDR (MAKE_BASE + 0x400)

static long read_frame(const struct text *t)
{
	const char *why;

	make_begin(&make);
	make_section(&make, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, make_add(&make, t->bytes, t->n),
		t->n);
	make_dynamic(&make, (Elf64_Dyn[]){ { DT_PLTGOT, { 0x5000 } } }, 1);
	make_end(&make, true);
	cr_assert_eq(elffile_parse(&elf, make.bytes, MAKE_SIZE, &why), 0);
	cr_assert_eq(elf.eh_frame.addr, FRAME_ADDR);
	return ehframe_read(&elf, &arena, &fdes, &damaged);
}

/* ---- records ---- */

Test(ehframe, reads_pointers_in_every_encoding)
{
	enum { AT = 0x400 + 28 }; /* where the FDE's pointer is, behind MAKE_BASE */
	static const struct {
		const char *what;
		uint8_t encoding, size;
		uint8_t bytes[16];
		uint64_t start, len; /* start 0: damaged */
	} rows[] = {
		{ "absptr", 0x00, 16, { 0, 0x20, 1, 0, 0, 0, 0, 0, 0x10 }, 0x12000, 0x10 },
		{ "udata8", 0x04, 16, { 0, 0x20, 1, 0, 0, 0, 0, 0, 0x10 }, 0x12000, 0x10 },
		{ "sdata8", 0x0c, 16, { 0, 0x20, 1, 0, 0, 0, 0, 0, 0x10 }, 0x12000, 0x10 },
		{ "udata4", 0x03, 8, { 0, 0, 0, 0x80, 0x10 }, 0x80000000, 0x10 },
		{ "sdata4", 0x0b, 8, { 0, 0, 0, 0x40, 0x10 }, 0x40000000, 0x10 },
		{ "udata2", 0x02, 4, { 0, 0x80, 0x10 }, 0x8000, 0x10 },
		{ "uleb", 0x01, 5, { 0x80, 0x80, 0x02, 0x90, 0x01 }, 0x8000, 0x90 },
		{ "sleb", 0x09, 5, { 0x80, 0x80, 0x02, 0x90, 0x01 }, 0x8000, 0x90 },
		{ "pcrel sdata4", 0x1b, 8, { 0xf0, 0xff, 0xff, 0xff, 0x10 }, MAKE_BASE + AT - 0x10,
			0x10 },
		{ "pcrel sdata2", 0x1a, 4, { 0xf0, 0xff, 0x10 }, MAKE_BASE + AT - 0x10, 0x10 },
		{ "pcrel sleb", 0x19, 3, { 0x70, 0x10 }, MAKE_BASE + AT - 0x10, 0x10 },
		{ "pcrel absptr", 0x10, 16, { 0x10, 0, 0, 0, 0, 0, 0, 0, 0x10 },
			MAKE_BASE + AT + 0x10, 0x10 },
		{ "datarel", 0x3b, 8, { 0x10, 0, 0, 0, 0x20 }, 0x5010, 0x20 },
		/* 4 bytes of padding; the length is an absptr as well */
		{ "aligned", 0x50, 16, { 9, 9, 9, 9, 0, 0x20, 1, 0, 0, 0, 0, 0, 0x10 }, 0x12000,
			0x10 },
		{ "textrel", 0x2b, 8, { 0x10, 0, 0, 0, 0x10 }, 0, 0 },
		{ "funcrel", 0x4b, 8, { 0x10, 0, 0, 0, 0x10 }, 0, 0 },
		{ "unknown base", 0x6b, 8, { 0x10, 0, 0, 0, 0x10 }, 0, 0 },
		{ "unknown format", 0x05, 8, { 0x10, 0, 0, 0, 0x10 }, 0, 0 },
		{ "signed", 0x08, 16, { 0x10, 0, 0, 0, 0, 0, 0, 0, 0x10 }, 0, 0 },
		{ "indirect", 0x9b, 8, { 0x10, 0, 0, 0, 0x10 }, 0, 0 },
		{ "cut off", 0x04, 12, { 0, 0x20, 1, 0, 0, 0, 0, 0, 0x10 }, 0, 0 },
		{ "negative length", 0x0b, 8, { 0, 0, 0, 0x40, 0xff, 0xff, 0xff, 0xff }, 0, 0 },
		{ "open uleb", 0x01, 4, { 0xff, 0xff, 0xff, 0xff }, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct text t = { .n = 0 };
		long n;

		put_cie(&t, 1, "zR", (uint8_t[]){ 1, rows[i].encoding, 0 }, 3);
		cr_assert_eq(t.n, 20);
		put_value(&t, 0, 4);
		put_value(&t, 24, 4);
		put(&t, rows[i].bytes, rows[i].size);
		if (rows[i].start)
			put_value(&t, 0, 8); /* no augmentation, then nops */
		close_record(&t, 20);
		n = read_frame(&t);
		cr_assert_eq(n, rows[i].start ? 1 : 0, "%s: %ld", rows[i].what, n);
		cr_expect_eq(damaged, rows[i].start ? 0u : 1u, "%s", rows[i].what);
		if (n != 1)
			continue;
		cr_expect_eq(fdes->start, rows[i].start, "%s: %lx", rows[i].what, fdes->start);
		cr_expect_eq(fdes->end - fdes->start, rows[i].len, "%s: %lx", rows[i].what,
			fdes->end - fdes->start);
	}
	arena_free(&arena);
}

Test(ehframe, reads_what_a_cie_says)
{
	static const struct {
		const char *what;
		uint8_t version;
		const char *letters;
		uint8_t rest[20];
		uint8_t size;
		uint8_t fde_augmentation[6];
		uint64_t lsda, personality;
		bool usable, indirect, signal_frame, b_key;
	} rows[] = {
		{ "none", 1, "", { 0 }, 1, { 0 }, 0, 0, .usable = true },
		{ "version 3", 3, "", { 0 }, 1, { 0 }, 0, 0, .usable = true },
		{ "version 2", 2, "", { 0 }, 1, { 0 }, 0, 0, .usable = false },
		{ "z", 1, "z", { 0 }, 1, { 0 }, 0, 0, .usable = true },
		{ "signal", 1, "zRS", { 1, 0 }, 2, { 0 }, 0, 0, .usable = true, .signal_frame = true },
		{ "B key", 1, "zRB", { 1, 0 }, 2, { 0 }, 0, 0, .usable = true, .b_key = true },
		{ "tags", 1, "zRG", { 1, 0 }, 2, { 0 }, 0, 0, .usable = true },
		{ "lsda", 1, "zLR", { 2, 0x03, 0 }, 3, { 4, 0x78, 0x56, 0, 0 }, 0x5678, 0, .usable = true },
		{ "no lsda", 1, "zLR", { 2, 0x1b, 0 }, 3, { 4, 0, 0, 0, 0 }, 0, 0, .usable = true },
		{ "lsda missing", 1, "zLR", { 2, 0x03, 0 }, 3, { 0 }, 0, 0, .usable = false },
		{ "lsda indirect", 1, "zLR", { 2, 0x83, 0 }, 3, { 4, 1, 0, 0, 0 }, 0, 0, .usable = false },
		{ "personality", 1, "zPLR", { 7, 0x03, 0x34, 0x12, 0, 0, 0xff, 0 }, 8, { 0 }, 0,
			0x1234, .usable = true },
		{ "personality by word", 1, "zPLR", { 7, 0x9b, 0, 1, 0, 0, 0xff, 0 }, 8, { 0 }, 0,
			FRAME_ADDR + 19 + 0x100, .usable = true, .indirect = true },
		{ "data longer than known", 1, "zR", { 4, 0, 9, 9, 9 }, 5, { 0 }, 0, 0, .usable = true },
		{ "data cut off", 1, "zPR", { 2, 0x03, 0 }, 3, { 0 }, 0, 0, .usable = false },
		{ "data outside", 1, "zR", { 0x70, 0 }, 2, { 0 }, 0, 0, .usable = false },
		{ "gcc 2", 1, "eh", { 0 }, 9, { 0 }, 0, 0, .usable = false },
		{ "unknown letter", 1, "zRX", { 1, 0 }, 2, { 0 }, 0, 0, .usable = false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t fde[16 + 6] = { 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20 };
		struct text t = { .n = 0 };
		long n;

		memcpy(fde + 16, rows[i].fde_augmentation, 6);
		put_cie(&t, rows[i].version, rows[i].letters, rows[i].rest, rows[i].size);
		put_fde(&t, 0, fde, sizeof(fde));
		n = read_frame(&t);
		cr_assert_eq(n, rows[i].usable ? 1 : 0, "%s", rows[i].what);
		cr_expect_eq(damaged, rows[i].usable ? 0u : 1u, "%s", rows[i].what);
		if (n != 1)
			continue;
		cr_expect_eq(fdes->start, 0x1000, "%s", rows[i].what);
		cr_expect_eq(fdes->end, 0x1020, "%s", rows[i].what);
		cr_expect_eq(fdes->lsda, rows[i].lsda, "%s: %lx", rows[i].what, fdes->lsda);
		cr_expect_eq(fdes->personality, rows[i].personality, "%s: %lx", rows[i].what,
			fdes->personality);
		cr_expect_eq(fdes->personality_indirect, rows[i].indirect, "%s", rows[i].what);
		cr_expect_eq(fdes->signal_frame, rows[i].signal_frame, "%s", rows[i].what);
		cr_expect_eq(fdes->b_key, rows[i].b_key, "%s", rows[i].what);
		cr_expect_eq(fdes->ra_column, 16, "%s", rows[i].what);
		cr_expect_eq(fdes->code_align, 1, "%s", rows[i].what);
		cr_expect_eq(fdes->data_align, -8, "%s", rows[i].what);
	}
	arena_free(&arena);
}

static void put_plain_fde(struct text *t, uint32_t cie, uint64_t start, uint64_t len)
{
	uint64_t range[2] = { start, len };

	put_fde(t, cie, range, sizeof(range));
}

Test(ehframe, sorts_and_leaves_out_what_is_discarded_or_damaged)
{
	static const uint64_t want[] = { 0x1000, 0x2000, 0x3000, 0x123456789000 };
	struct text t = { .n = 0 };
	uint32_t cie = put_cie(&t, 1, "", "", 0);

	put_plain_fde(&t, cie, 0x3000, 0x10);
	put_plain_fde(&t, cie, 0, 0x10);      /* discarded */
	put_plain_fde(&t, cie, 0x2800, 0);    /* empty */
	put_plain_fde(&t, cie + 4, 0x2900, 1); /* no CIE is there */
	put_plain_fde(&t, t.n + 64, 0x2a00, 1); /* before the section */
	put_plain_fde(&t, cie, -16ull, 0x11); /* wraps around */
	put_value(&t, 0, 4);		      /* a terminator in the middle */
	put_plain_fde(&t, cie, 0x123456789000, 0x10);
	put_plain_fde(&t, cie, 0x1000, 0x10);
	put_plain_fde(&t, cie, 0x2000, 0x10);
	put_value(&t, 0x1000, 4); /* longer than the section */
	put_value(&t, 0, 8);
	cr_assert_eq(read_frame(&t), 4);
	cr_expect_eq(damaged, 4, "%zu", damaged);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(fdes[i].start, want[i], "%zu: %lx", i, fdes[i].start);
	cr_expect_eq(ehframe_read(&elf, &arena, &fdes, NULL), 4, "the count is optional");
	arena_free(&arena);
}

Test(ehframe, reads_records_with_a_long_length)
{
	struct text t = { .n = 0 };

	put_cie(&t, 1, "", "", 0);
	put_value(&t, 0xffffffff, 4);
	put_value(&t, 4 + 16, 8);
	put_value(&t, t.n, 4); /* the CIE is at 0 */
	put_value(&t, 0x1000, 8);
	put_value(&t, 0x10, 8);
	put_value(&t, 0xffffffff, 4);
	put_value(&t, -12ull, 8);
	cr_assert_eq(read_frame(&t), 1);
	cr_expect_eq(fdes->start, 0x1000);
	cr_expect_eq(damaged, 1, "a length that wraps around");
	arena_free(&arena);
}

Test(ehframe, has_nothing_to_read_in_other_files)
{
	struct text t = { .n = 0 };

	cr_expect_eq(read_frame(&t), 0);
	cr_expect_eq(damaged, 0);
	elf.eh_frame = (struct elf_part){ 0 };
	cr_expect_eq(ehframe_read(&elf, &arena, &fdes, &damaged), 0);
	arena_free(&arena);
}

/* ---- rows ---- */

#define UNKNOWN 0xff

/* x86_64: def_cfa rsp+8; rip at cfa-8 */
static const uint8_t x86_initial[] = { 0x0c, 7, 8, 0x90, 1 };

static struct eh_fde x86_fde(const uint8_t *insns, size_t n)
{
	return (struct eh_fde){
		.start = 0x1000,
		.end = 0x1100,
		.ra_column = 16,
		.code_align = 1,
		.data_align = -8,
		.initial = x86_initial,
		.initial_end = x86_initial + sizeof(x86_initial),
		.insns = insns,
		.insns_end = insns + n,
	};
}

Test(ehframe, says_where_the_return_address_is)
{
	static const struct {
		const char *what;
		uint8_t insns[24];
		size_t len;
		struct isa_row rows[6];
		long nrows;
	} rows[] = {
		{ "none", { 0 }, 0, { { 0, 0, 7 } }, 1 },
		{ "push rbp; mov rsp,rbp; ...; leave",
			{ 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x50, 0x0c, 7, 8 }, 13,
			{ { 0, 0, 7 }, { 1, 8, 7 }, { 4, 8, 6 }, { 0x54, 0, 7 } }, 4 },
		{ "rows that say the same", { 0x41, 0x86, 2, 0x41, 0x0e, 8, 0x41, 0x83, 3 }, 9,
			{ { 0, 0, 7 } }, 1 },
		{ "remember and restore",
			{ 0x44, 0x0e, 32, 0x0a, 0x44, 0x0e, 8, 0x41, 0x0b, 0x41, 0x00 }, 11,
			{ { 0, 0, 7 }, { 4, 24, 7 }, { 8, 0, 7 }, { 9, 24, 7 } }, 4 },
		{ "long advances", { 0x03, 0x40, 0, 0x0e, 16, 0x04, 0x40, 0, 0, 0, 0x0e, 24 }, 12,
			{ { 0, 0, 7 }, { 0x40, 8, 7 }, { 0x80, 16, 7 } }, 3 },
		{ "behind the end", { 0x03, 0, 1, 0x0e, 16 }, 5, { { 0, 0, 7 } }, 1 },
		{ "an empty advance", { 0x40, 0x0e, 16 }, 3, { { 0, 8, 7 } }, 1 },
		{ "signed forms", { 0x41, 0x13, 0x7e, 0x41, 0x12, 6, 0x7d }, 7,
			{ { 0, 0, 7 }, { 1, 8, 7 }, { 2, 16, 6 } }, 3 },
		{ "cfa by expression", { 0x41, 0x0f, 2, 0x77, 8, 0x41, 0x0c, 7, 16 }, 9,
			{ { 0, 0, 7 }, { 1, 0, UNKNOWN }, { 2, 8, 7 } }, 3 },
		{ "return address by expression", { 0x41, 0x10, 16, 2, 0x77, 0, 0x41, 0xd0 }, 8,
			{ { 0, 0, 7 }, { 1, 0, UNKNOWN }, { 2, 0, 7 } }, 3 },
		{ "return address in a register", { 0x41, 0x09, 16, 2, 0x41, 0x05, 16, 2 }, 8,
			{ { 0, 0, 7 }, { 1, 0, UNKNOWN }, { 2, -8, 7 } }, 3 },
		{ "args_size and the like", { 0x2e, 16, 0x2d, 0x2f, 3, 1, 0x41, 0x0e, 16 }, 9,
			{ { 0, 0, 7 }, { 1, 8, 7 } }, 2 },
		{ "negative offset", { 0x41, 0x2f, 16, 2 }, 4, { { 0, 0, 7 }, { 1, 24, 7 } }, 2 },
		{ "undefined from the start", { 0x07, 16 }, 2, { { 0 } }, 0 },
		{ "unknown instruction", { 0x41, 0x0e, 16, 0x41, 0x3f }, 5,
			{ { 0, 0, 7 }, { 1, 8, 7 }, { 2, 0, UNKNOWN } }, 3 },
		{ "set_loc", { 0x41, 0x01, 0, 0, 0, 0 }, 6, { { 0, 0, 7 }, { 1, 0, UNKNOWN } }, 2 },
		{ "cut off", { 0x41, 0x0e }, 2, { { 0, 0, 7 }, { 1, 0, UNKNOWN } }, 2 },
		{ "restore without remember", { 0x41, 0x0b }, 2,
			{ { 0, 0, 7 }, { 1, 0, UNKNOWN } }, 2 },
		{ "remember too deep",
			{ 0x41, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a }, 10,
			{ { 0, 0, 7 }, { 1, 0, UNKNOWN } }, 2 },
		{ "offset too far", { 0x41, 0x0e, 0x80, 0x80, 0x80, 0x80, 0x20 }, 7,
			{ { 0, 0, 7 }, { 1, 0, UNKNOWN } }, 2 },
		{ "a block without end", { 0x41, 0x0f, 0xff, 0x7f, 0 }, 5,
			{ { 0, 0, 7 }, { 1, 0, UNKNOWN } }, 2 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct eh_fde fde = x86_fde(rows[i].insns, rows[i].len);
		struct isa_row *got;
		long n = ehframe_rows(&fde, &arena, &got);

		cr_assert_eq(n, rows[i].nrows, "%s: %ld", rows[i].what, n);
		for (long k = 0; k < n; k++) {
			const struct isa_row *want = &rows[i].rows[k];

			cr_expect_eq(got[k].from, want->from, "%s, %ld: %x", rows[i].what, k,
				got[k].from);
			cr_expect_eq(got[k].base, want->base, "%s, %ld: %d", rows[i].what, k,
				got[k].base);
			if (want->base != UNKNOWN)
				cr_expect_eq(got[k].offset, want->offset, "%s, %ld: %d",
					rows[i].what, k, got[k].offset);
		}
	}
	arena_free(&arena);
}

Test(ehframe, multiplies_advances_by_the_code_alignment)
{
	static const uint8_t insns[] = { 0x41, 0x0e, 16 };
	struct eh_fde fde = x86_fde(insns, sizeof(insns));
	struct isa_row *rows;

	fde.code_align = 4;
	cr_assert_eq(ehframe_rows(&fde, &arena, &rows), 2);
	cr_expect_eq(rows[1].from, 4);
	fde.code_align = UINT64_MAX;
	fde.end = UINT64_MAX;
	cr_expect_eq(ehframe_rows(&fde, &arena, &rows), 1, "an advance without bounds is the end");
	arena_free(&arena);
}

Test(ehframe, tells_entry_rows_from_others)
{
	static const struct {
		const char *what;
		const struct isa *isa;
		uint8_t column;
		uint8_t initial[8], ninitial;
		uint8_t insns[12], ninsns;
		bool entry, undefined;
	} rows[] = {
		{ "x86_64", &x86_64, 16, { 0x0c, 7, 8, 0x90, 1 }, 5, { 0 }, 0, true, false },
		{ "x86_64, later rows", &x86_64, 16, { 0x0c, 7, 8, 0x90, 1 }, 5,
			{ 0x41, 0x0e, 16, 0x07, 16 }, 5, true, false },
		{ "x86_64 .cold with a frame", &x86_64, 16, { 0x0c, 7, 8, 0x90, 1 }, 5,
			{ 0x0e, 32 }, 2, false, false },
		{ "x86_64 .cold with rbp", &x86_64, 16, { 0x0c, 7, 8, 0x90, 1 }, 5,
			{ 0x0c, 6, 16 }, 3, false, false },
		{ "x86_64 plt", &x86_64, 16, { 0x0c, 7, 8, 0x90, 1 }, 5, { 0x0e, 16, 0x46 }, 3,
			false, false },
		{ "x86_64 _start", &x86_64, 16, { 0x0c, 7, 8, 0x90, 1 }, 5, { 0x07, 16 }, 2, false,
			true },
		{ "x86_64 without rule", &x86_64, 16, { 0x0c, 7, 8 }, 3, { 0 }, 0, false, false },
		{ "x86_64 elsewhere", &x86_64, 16, { 0x0c, 7, 8, 0x90, 2 }, 5, { 0 }, 0, false,
			false },
		{ "x86_64 broken cie", &x86_64, 16, { 0x0c, 7 }, 2, { 0 }, 0, false, false },
		{ "x86_64 other column", &x86_64, 17, { 0x0c, 7, 8, 0x91, 1 }, 5, { 0 }, 0, false,
			false },
		{ "arm64", &arm64, 30, { 0x0c, 31, 0 }, 3, { 0x2d, 0x44, 0x0e, 16 }, 4, true,
			false },
		{ "arm64 with a frame", &arm64, 30, { 0x0c, 31, 0 }, 3, { 0x0e, 16, 0x9e, 1 }, 4,
			false, false },
		{ "arm64 saved lr", &arm64, 30, { 0x0c, 31, 0 }, 3, { 0x9e, 1 }, 2, false, false },
		{ "arm64 same value", &arm64, 30, { 0x0c, 31, 0 }, 3, { 0x08, 30 }, 2, true,
			false },
		{ "arm64 _start", &arm64, 30, { 0x0c, 31, 0 }, 3, { 0x07, 30 }, 2, false, true },
		{ "powerpc", &powerpc, 65, { 0x0c, 1, 0 }, 3, { 0x44, 0x11, 65, 0x7e }, 4, true,
			false },
		{ "powerpc with a frame", &powerpc, 65, { 0x0c, 1, 0 }, 3,
			{ 0x0e, 32, 0x11, 65, 0x7e }, 5, false, false },
		{ "powerpc, lr in r0", &powerpc, 65, { 0x0c, 1, 0 }, 3, { 0x09, 65, 0 }, 3, false,
			false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct eh_fde fde = x86_fde(rows[i].insns, rows[i].ninsns);
		bool undefined = !rows[i].undefined;

		fde.ra_column = rows[i].column;
		fde.initial = rows[i].initial;
		fde.initial_end = rows[i].initial + rows[i].ninitial;
		cr_expect_eq(ehframe_entry_row(&fde, rows[i].isa, &undefined), rows[i].entry, "%s",
			rows[i].what);
		cr_expect_eq(undefined, rows[i].undefined, "%s", rows[i].what);
	}
}

Test(ehframe, splits_raw_instructions_by_offset)
{
	static const struct {
		const char *what;
		uint8_t insns[20];
		size_t len;
		uint64_t upto;
		size_t max;
		long n; /* behind the CIE's */
		struct {
			uint32_t at, from, len;
		} want[3];
	} rows[] = {
		{ "none", { 0 }, 0, 100, 9, 0, { { 0 } } },
		{ "nops only", { 0, 0, 0 }, 3, 100, 9, 0, { { 0 } } },
		{ "all", { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0, 0 }, 10, 100, 9, 2,
			{ { 1, 1, 4 }, { 4, 6, 2 } } },
		{ "up to a row", { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 }, 8, 4, 9, 1,
			{ { 1, 1, 4 } } },
		{ "just into a row", { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 }, 8, 5, 9, 2,
			{ { 1, 1, 4 }, { 4, 6, 2 } } },
		{ "at the start", { 0x2d, 0x41, 0x0e, 16 }, 4, 1, 9, 1, { { 0, 0, 1 } } },
		{ "nothing", { 0x2d, 0x41, 0x0e, 16 }, 4, 0, 9, 0, { { 0 } } },
		{ "a nop between", { 0x2d, 0, 0x0e, 16 }, 4, 1, 9, 2,
			{ { 0, 0, 1 }, { 0, 2, 2 } } },
		{ "no room", { 0x41, 0x0e, 16, 0x41, 0x0e, 24 }, 6, 100, 2, -EINVAL, { { 0 } } },
		{ "unknown", { 0x41, 0x3f }, 2, 100, 9, -EINVAL, { { 0 } } },
		{ "unknown, behind", { 0x41, 0x3f }, 2, 1, 9, 0, { { 0 } } },
		{ "cut off", { 0x0e }, 1, 100, 9, -EINVAL, { { 0 } } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct eh_fde fde = x86_fde(rows[i].insns, rows[i].len);
		struct isa_cfi cfi[9];
		long n = ehframe_cfi(&fde, rows[i].upto, cfi, rows[i].max);

		cr_assert_eq(n, rows[i].n < 0 ? rows[i].n : rows[i].n + 1, "%s: %ld", rows[i].what,
			n);
		if (n < 0)
			continue;
		cr_expect(cfi[0].at == 0 && cfi[0].bytes == x86_initial
				&& cfi[0].len == sizeof(x86_initial),
			"%s", rows[i].what);
		for (long k = 0; k < n - 1; k++) {
			cr_expect_eq(cfi[k + 1].at, rows[i].want[k].at, "%s, %ld", rows[i].what,
				k);
			cr_expect_eq(cfi[k + 1].bytes - rows[i].insns, rows[i].want[k].from,
				"%s, %ld", rows[i].what, k);
			cr_expect_eq(cfi[k + 1].len, rows[i].want[k].len, "%s, %ld", rows[i].what,
				k);
		}
	}
}

Test(ehframe, refuses_raw_instructions_with_unusual_factors)
{
	struct eh_fde fde = x86_fde(NULL, 0);
	struct isa_cfi cfi[2];

	fde.data_align = -4;
	cr_expect_eq(ehframe_cfi(&fde, 1, cfi, 2), -EINVAL);
	fde.data_align = -8;
	fde.code_align = 4;
	cr_expect_eq(ehframe_cfi(&fde, 1, cfi, 2), 1);
}

/* ---- real files ---- */

/* Read a whole file; with @stripped, as sstrip leaves it: without section headers. */
static void read_file(const char *path, bool stripped)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint8_t *bytes;
	const char *why;

	cr_assert(fd >= 0 && !fstat(fd, &st), "%s", path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	close(fd);
	if (stripped)
		memset(bytes + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	cr_assert_eq(elffile_parse(&elf, bytes, (uint64_t)st.st_size, &why), 0, "%s", path);
}

/* Every range that readelf prints must be among ours, and as many. */
static void compare_with_readelf(const char *path)
{
	char command[4200], line[4096];
	long seen = 0, n = ehframe_read(&elf, &arena, &fdes, &damaged);
	uint64_t sum = 0, want = 0;
	FILE *f;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames '%s' 2>/dev/null", path);
	f = popen(command, "r");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		const char *pc = str_find(line, " pc=");
		uint64_t start, end;

		if (!pc || sscanf(pc, " pc=%lx..%lx", &start, &end) != 2 || !start || start == end)
			continue;
		seen++;
		want += start * 3 + end;
	}
	pclose(f);
	for (long i = 0; i < n; i++) {
		sum += fdes[i].start * 3 + fdes[i].end;
		cr_assert(!i || fdes[i - 1].start <= fdes[i].start, "%s: not sorted", path);
	}
	cr_expect_gt(seen, 0, "%s: readelf printed nothing", path);
	cr_expect_eq(n, seen, "%s: %ld, readelf %ld", path, n, seen);
	cr_expect_eq(sum, want, "%s: other ranges", path);
	cr_expect_eq(damaged, 0, "%s", path);
	arena_free(&arena);
}

Test(ehframe, agrees_with_readelf)
{
	static const char *const paths[] = { "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/aarch64-linux-gnu/libc.so.6", "/lib/powerpc64le-linux-gnu/libc.so.6" };
	char room[4096];

	if (system("readelf --version >/dev/null 2>&1"))
		cr_skip_test("no readelf");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		const char *path = support_real_path(paths[i], room, sizeof(room));

		if (access(path, R_OK))
			continue;
		read_file(path, false);
		compare_with_readelf(path);
		read_file(path, true);
		compare_with_readelf(path);
	}
}
