/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "tracer/elffile.h"
#include "support_elf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct make_elf make;

static int parse(struct elffile *elf, const char **why)
{
	return elffile_parse(elf, make.bytes, MAKE_SIZE, why);
}

Test(elffile, refuses_with_the_reason)
{
	static const struct {
		uint64_t at;
		uint8_t size;
		uint64_t value;
		const char *why;
	} rows[] = {
		{ 0, 1, 'e', "not an ELF file" },
		{ EI_CLASS, 1, ELFCLASS32, "wrong class" },
		{ EI_DATA, 1, ELFDATA2MSB, "wrong byte order" },
		{ offsetof(Elf64_Ehdr, e_type), 2, ET_REL, "not a program or library" },
		{ offsetof(Elf64_Ehdr, e_type), 2, ET_CORE, "not a program or library" },
		{ offsetof(Elf64_Ehdr, e_phnum), 2, 0, "no usable program headers" },
		{ offsetof(Elf64_Ehdr, e_phnum), 2, PN_XNUM, "no usable program headers" },
		{ offsetof(Elf64_Ehdr, e_phentsize), 2, 32, "no usable program headers" },
		{ offsetof(Elf64_Ehdr, e_phoff), 8, MAKE_SIZE, "program headers outside the file" },
		{ offsetof(Elf64_Ehdr, e_phoff), 8, 65, "program headers outside the file" },
		{ offsetof(Elf64_Ehdr, e_phoff), 8, -8ull, "program headers outside the file" },
		{ offsetof(Elf64_Ehdr, e_phnum), 2, 0x4000, "program headers outside the file" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct elffile elf;
		const char *why = "";

		make_begin(&make);
		make_end(&make, true);
		cr_assert_eq(parse(&elf, &why), 0, "row %zu: is right before it is damaged", i);
		memcpy(make.bytes + rows[i].at, &rows[i].value, rows[i].size);
		cr_expect_eq(parse(&elf, &why), -EINVAL, "row %zu", i);
		cr_expect_str_eq(why ? why : "", rows[i].why, "row %zu", i);
	}
}

Test(elffile, finds_bytes_by_address)
{
	static const struct {
		uint64_t addr, size;
		int64_t offset; /* -1: not in the file */
	} rows[] = {
		{ MAKE_BASE, 1, 0 },
		{ MAKE_BASE + 0x123, 0x10, 0x123 },
		{ MAKE_BASE + MAKE_SIZE - 1, 1, MAKE_SIZE - 1 },
		{ MAKE_BASE, MAKE_SIZE, 0 },
		{ MAKE_BASE, MAKE_SIZE + 1, -1 },
		{ MAKE_BASE - 1, 1, -1 },
		{ MAKE_BASE + MAKE_SIZE, 0, -1 },
		{ MAKE_BASE + 8, UINT64_MAX, -1 },
		{ MAKE_BASE + 8, -8ull, -1 },
		{ 0, 1, -1 },
		{ UINT64_MAX, 1, -1 },
		/* the second segment says 0x200 bytes, of which the file has 0x100 */
		{ 0x900000, 0x100, MAKE_SIZE - 0x100 },
		{ 0x900000, 0x101, -1 },
		{ 0x9000ff, 1, MAKE_SIZE - 1 },
		{ 0x900100, 1, -1 },
		/* the third begins behind the file's end */
		{ 0xa00000, 1, -1 },
	};
	struct elffile elf;
	const char *why;

	make_begin(&make);
	make_phdr(&make, PT_LOAD, MAKE_SIZE - 0x100, 0x200);
	make.phdrs[1].p_vaddr = 0x900000;
	make_phdr(&make, PT_LOAD, MAKE_SIZE + 0x1000, 0x200);
	make.phdrs[2].p_vaddr = 0xa00000;
	make_end(&make, false);
	cr_assert_eq(parse(&elf, &why), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const uint8_t *bytes = elffile_at(&elf, rows[i].addr, rows[i].size);

		cr_expect_eq(bytes ? bytes - make.bytes : -1, rows[i].offset, "row %zu", i);
	}
}

Test(elffile, gives_strings_only_from_inside_a_closed_table)
{
	static const struct {
		uint64_t size, offset;
		const char *string;
	} rows[] = {
		{ 9, 1, "one" }, { 9, 5, "two" }, { 9, 7, "o" }, { 9, 8, "" }, { 9, 9, "" },
		{ 9, UINT64_MAX, "" }, { 7, 5, "" }, { 7, 1, "" }, { 0, 0, "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct elf_part part = { (const uint8_t *)"\0one\0two", 0, rows[i].size };

		cr_expect_str_eq(elffile_string(&part, rows[i].offset), rows[i].string, "row %zu",
			i);
	}
	cr_expect_str_eq(elffile_string(&(struct elf_part){ 0 }, 0), "");
}

Test(elffile, finds_sections_by_name)
{
	static const uint32_t shoff = offsetof(Elf64_Ehdr, e_shoff);
	struct elffile elf;
	struct elf_part part;
	const char *why;
	uint64_t text, far = UINT64_MAX - 7;

	make_begin(&make);
	text = make_add(&make, "12345678", 8);
	make_section(&make, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, 8);
	make_section(&make, ".bss", SHT_NOBITS, SHF_ALLOC, text, 8);
	make_section(&make, ".huge", SHT_PROGBITS, SHF_ALLOC, text, UINT64_MAX - text + 1);
	make_section(&make, "__patchable_function_entries", SHT_PROGBITS, SHF_ALLOC, text, 8);
	make_end(&make, true);
	cr_assert_eq(parse(&elf, &why), 0);
	part = elffile_section(&elf, ".text");
	cr_expect_eq(part.bytes, make.bytes + text);
	cr_expect_eq(part.addr, MAKE_BASE + text);
	cr_expect_eq(part.size, 8);
	cr_expect_null(elffile_section(&elf, ".bss").bytes, "has no bytes");
	cr_expect_null(elffile_section(&elf, ".huge").bytes, "is not all in the file");
	cr_expect_null(elffile_section(&elf, ".tex").bytes, "does not exist");
	cr_expect_eq(elf.patchable.bytes, make.bytes + text);

	memcpy(make.bytes + shoff, &far, sizeof(far));
	cr_assert_eq(parse(&elf, &why), 0, "damaged section headers are as good as none");
	cr_expect_null(elf.shdrs);
	cr_expect_eq(elf.nshdrs, 0);
	cr_expect_null(elffile_section(&elf, ".text").bytes);
}

/* Five symbols, three of them in the hash table from index 2 on, in two buckets. */
static const uint32_t gnu_hash[] = { 2, 2, 1, 0, 0, 0, 2, 3, 0x10 | 1, 0x20, 0x30 | 1 };
static const uint32_t gnu_hash_empty[] = { 1, 5, 1, 0, 0, 0, 0 };
static const uint32_t gnu_hash_open[] = { 1, 2, 1, 0, 0, 0, 0x7fffffff };
static const uint32_t gnu_hash_huge[] = { 0xffffffff, 2, 0xffffffff, 0 };
static const uint32_t sysv_hash[] = { 1, 5, 0, 0, 0, 0, 0, 0 };
static const uint32_t sysv_hash_huge[] = { 1, 0xffffffff };

Test(elffile, works_out_how_many_dynamic_symbols_there_are)
{
	static const struct {
		const char *what;
		uint64_t tag;
		const uint32_t *table;
		size_t size;
		uint64_t count;
	} rows[] = {
		{ "chain", DT_GNU_HASH, gnu_hash, sizeof(gnu_hash), 5 },
		{ "no chain", DT_GNU_HASH, gnu_hash_empty, sizeof(gnu_hash_empty), 5 },
		{ "endless chain", DT_GNU_HASH, gnu_hash_open, sizeof(gnu_hash_open), 0 },
		{ "outside", DT_GNU_HASH, gnu_hash_huge, sizeof(gnu_hash_huge), 0 },
		{ "sysv", DT_HASH, sysv_hash, sizeof(sysv_hash), 5 },
		{ "sysv outside", DT_HASH, sysv_hash_huge, sizeof(sysv_hash_huge), 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		static const Elf64_Sym symbols[5];
		struct elffile elf;
		const char *why;
		uint64_t hash, symtab, strtab;

		make_begin(&make);
		hash = MAKE_BASE + make_add(&make, rows[i].table, rows[i].size);
		symtab = MAKE_BASE + make_add(&make, symbols, sizeof(symbols));
		strtab = MAKE_BASE + make_add(&make, "\0name", 6);
		make_dynamic(&make,
			(Elf64_Dyn[]){ { (int64_t)rows[i].tag, { hash } },
				{ DT_SYMTAB, { symtab } }, { DT_STRTAB, { strtab } },
				{ DT_STRSZ, { 6 } }, { DT_NULL, { 0 } }, { DT_TEXTREL, { 1 } } },
			6);
		make_end(&make, false);
		cr_assert_eq(parse(&elf, &why), 0, "%s", rows[i].what);
		cr_expect_eq(elf.dynsym.size, rows[i].count * sizeof(Elf64_Sym), "%s: %lu",
			rows[i].what, elf.dynsym.size / sizeof(Elf64_Sym));
		if (rows[i].count)
			cr_expect_str_eq(elffile_string(&elf.dynstr, 1), "name", "%s",
				rows[i].what);
		cr_expect_not(elf.textrel, "%s: nothing is read behind DT_NULL", rows[i].what);
	}
}

Test(elffile, relocations_tell_of_undefined_symbols_that_the_hash_table_leaves_out)
{
	static const uint32_t two[] = { 1, 2, 1, 0, 0, 0, 0 };
	static const struct {
		uint64_t symbol, count;
	} rows[] = { { 1, 2 }, { 4, 5 }, { 0x7fffffff, 2 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		static const Elf64_Sym symbols[5];
		const Elf64_Rela rela = { .r_info = ELF64_R_INFO(rows[i].symbol, 1) };

		for (int plt = 0; plt < 2; plt++) {
			struct elffile elf;
			const char *why;
			uint64_t hash, symtab, strtab, table;

			make_begin(&make);
			hash = MAKE_BASE + make_add(&make, two, sizeof(two));
			symtab = MAKE_BASE + make_add(&make, symbols, sizeof(symbols));
			strtab = MAKE_BASE + make_add(&make, "\0name", 6);
			table = MAKE_BASE + make_add(&make, &rela, sizeof(rela));
			make_dynamic(&make,
				(Elf64_Dyn[]){ { DT_GNU_HASH, { hash } }, { DT_SYMTAB, { symtab } },
					{ DT_STRTAB, { strtab } }, { DT_STRSZ, { 6 } },
					{ plt ? DT_JMPREL : DT_RELA, { table } },
					{ plt ? DT_PLTRELSZ : DT_RELASZ, { sizeof(rela) } },
					{ DT_PLTREL, { DT_RELA } }, { DT_NULL, { 0 } } },
				8);
			make_end(&make, false);
			cr_assert_eq(parse(&elf, &why), 0);
			cr_expect_eq(elf.dynsym.size, rows[i].count * sizeof(Elf64_Sym),
				"symbol %lx, plt %d: %lu", rows[i].symbol, plt, elf.dynsym.size);
		}
	}
}

Test(elffile, reads_the_dynamic_section)
{
	const Elf64_Dyn tags[] = {
		{ DT_RELA, { MAKE_BASE + 0x500 } }, { DT_RELASZ, { 48 } },
		{ DT_JMPREL, { MAKE_BASE + 0x600 } }, { DT_PLTRELSZ, { 24 } },
		{ DT_PLTREL, { DT_RELA } }, { DT_RELR, { MAKE_BASE + MAKE_SIZE } },
		{ DT_RELRSZ, { 8 } }, { DT_PLTGOT, { 0x1234 } }, { DT_FLAGS, { DF_TEXTREL } },
		{ -1, { 1 } }, { DT_NULL, { 0 } },
	};
	struct elffile elf;
	const char *why;

	make_begin(&make);
	make_dynamic(&make, tags, sizeof(tags) / sizeof(*tags));
	make_end(&make, false);
	cr_assert_eq(parse(&elf, &why), 0);
	cr_expect_eq(elf.rela.bytes, make.bytes + 0x500);
	cr_expect_eq(elf.rela.size, 48);
	cr_expect_eq(elf.plt_rela.bytes, make.bytes + 0x600);
	cr_expect_null(elf.relr.bytes, "lies outside the file");
	cr_expect_eq(elf.pltgot, 0x1234);
	cr_expect(elf.textrel);
}

Test(elffile, reads_notes)
{
	static const uint8_t id[] = { 0xa1, 0xa2, 0xa3, 0xa4, 0xa5 };
	static const struct {
		const char *what;
		Elf64_Nhdr first; /* a note before the one looked for */
		uint32_t id_size;
		bool found;
	} rows[] = {
		{ "the first", { 4, 0, NT_GNU_BUILD_ID }, 5, true },
		{ "cut off", { 4, 0, NT_GNU_BUILD_ID }, 900, false },
		{ "cut off near its end", { 4, 0, NT_GNU_BUILD_ID }, 9, false },
		{ "another type", { 4, 0, NT_GNU_ABI_TAG }, 5, false },
		{ "endless", { 4, 0xffffffff, NT_GNU_ABI_TAG }, 5, false },
		{ "endless name", { 0xffffffff, 0, NT_GNU_BUILD_ID }, 5, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		Elf64_Nhdr nh = rows[i].first;
		struct elffile elf;
		const char *why;
		uint64_t at;

		make_begin(&make);
		if (!nh.n_descsz)
			nh.n_descsz = rows[i].id_size;
		at = make_add(&make, &nh, sizeof(nh));
		memcpy(make.bytes + at + 12, "GNU", 4);
		memcpy(make.bytes + at + 16, id, sizeof(id));
		make_phdr(&make, PT_NOTE, at, 24);
		make_end(&make, false);
		cr_assert_eq(parse(&elf, &why), 0, "%s", rows[i].what);
		cr_expect_eq(!!elf.build_id.bytes, rows[i].found, "%s", rows[i].what);
		cr_expect_not(elf.go, "%s", rows[i].what);
		if (rows[i].found)
			cr_expect_eq(memcmp(elf.build_id.bytes, id, sizeof(id)), 0);
	}
}

Test(elffile, knows_go_programs)
{
	static const struct {
		const char *section;
		const char *owner;
		bool go;
	} rows[] = {
		{ ".text", "GNU", false }, { ".text", "Go\0", true }, { ".gopclntab", "GNU", true },
		{ ".data.rel.ro.gopclntab", "GNU", true }, { ".note.go.buildid", "GNU", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		Elf64_Nhdr nh = { 4, 4, 4 };
		struct elffile elf;
		const char *why;
		uint64_t at;

		make_begin(&make);
		at = make_add(&make, &nh, sizeof(nh));
		memcpy(make.bytes + at + 12, rows[i].owner, 4);
		make_phdr(&make, PT_NOTE, at, 20);
		make_section(&make, rows[i].section, SHT_PROGBITS, SHF_ALLOC, at, 20);
		make_end(&make, true);
		cr_assert_eq(parse(&elf, &why), 0, "row %zu", i);
		cr_expect_eq(elf.go, rows[i].go, "row %zu: %s", i, rows[i].section);
	}
}

Test(elffile, finds_eh_frame_without_section_headers)
{
	static const struct {
		const char *what;
		uint8_t head[2];
		int32_t distance; /* from the pointer to the records */
		uint32_t last;	  /* length of a third record */
		uint64_t size;
	} rows[] = {
		{ "usual", { 1, 0x1b }, 12, 0, 4 + 8 + 12 + 8 },
		{ "up to what does not fit", { 1, 0x1b }, 12, MAKE_SIZE, 4 + 8 + 12 + 8 },
		{ "unknown version", { 2, 0x1b }, 12, 0, 0 },
		{ "unknown encoding", { 1, 0x3b }, 12, 0, 0 },
		{ "points outside", { 1, 0x1b }, 0x7000000, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		/* header, then at 16: a record of 8, one of 8 with a 64-bit length, the last */
		uint32_t words[32] = { 0, (uint32_t)rows[i].distance, 0, 0, 8, 0, 0, 0xffffffff, 8,
			0, 1, 1, rows[i].last, 77 };
		struct elffile elf;
		const char *why;
		uint64_t at;

		make_begin(&make);
		memcpy(words, rows[i].head, 2);
		at = make_add(&make, words, sizeof(words));
		make_phdr(&make, PT_GNU_EH_FRAME, at, 16);
		make_end(&make, false);
		cr_assert_eq(parse(&elf, &why), 0, "%s", rows[i].what);
		cr_expect_eq(elf.eh_frame.size, rows[i].size, "%s: %lu", rows[i].what,
			elf.eh_frame.size);
		if (rows[i].size)
			cr_expect_eq(elf.eh_frame.bytes, make.bytes + at + 16, "%s", rows[i].what);
	}
}

/* Every cut of a real file, from an allocation of just that size. */
Test(elffile, stays_inside_a_file_that_is_cut_off)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	static uint8_t bytes[1 << 16];
	size_t size = fread(bytes, 1, sizeof(bytes), f);

	fclose(f);
	for (size_t n = 0; n < size; n += n < 4096 ? 1 : 997) {
		uint8_t *copy = malloc(n ? n : 1);
		struct elffile elf;
		const char *why;

		memcpy(copy, bytes, n);
		cr_expect_eq(elffile_parse(&elf, copy, n, &why), elf.phdrs ? 0 : -EINVAL, "%zu",
			n);
		free(copy);
	}
}
