/* SPDX-License-Identifier: MIT */
#include "support_qemu.h"
#include <criterion/criterion.h>

#include "tracer/symbols.h"
#include "support_elf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct isa x86_64 = { .ra_column = 16, .entry_cfa_base = 7, .entry_cfa_offset = 8,
	.entry_ra_offset = -8 };

#if defined(__aarch64__)
static const struct isa native = { .ra_column = 30, .entry_cfa_base = 31 };
#elif defined(__powerpc64__)
static const struct isa native = { .ra_column = 65, .entry_cfa_base = 1 };
#else
#define native x86_64
#endif

static struct make_elf make;
static struct elffile elf;
static struct arena arena;
static struct symbols symbols;

/* Where things are: offsets in the file and from MAKE_BASE. The tables lie before .text. */
enum {
	TEXT = 0x2000,
	TEXT_END = 0x3000,
	PLT = 0x3000,
	INIT = 0x3100,
	INIT_END = 0x3120,
	DATA = 0x3200,
};

struct in_symbol {
	const char *name;
	uint32_t at, size;
	uint8_t type, bind;
	bool dynamic;
	uint16_t section; /* 0: the first one */
};
#define UNDEFINED_SYMBOL SHN_HIRESERVE

struct in_fde {
	uint32_t at, size;
	enum { NO_FDE, ENTRY, FRAME, UNDEFINED, SIGNAL, LATER } kind;
};

/* Unwind instructions per kind of FDE. */
static const uint8_t fde_insns[][8] = {
	[FRAME] = { 0x0e, 32 },			 /* cfa = rsp+32 */
	[UNDEFINED] = { 0x07, 16 },
	[LATER] = { 0x50, 0x0e, 16, 0x50, 0x0e, 8 }, /* rsp+16 from 16 on, rsp+8 from 32 on */
};

struct words {
	uint8_t bytes[2048];
	uint32_t n;
};

static void put(struct words *out, const void *bytes, uint32_t size)
{
	memcpy(out->bytes + out->n, bytes, size);
	out->n += size;
}

static void put_fde(struct words *out, const struct in_fde *fde)
{
	uint32_t cie = fde->kind == SIGNAL ? 24 : 0;
	uint32_t head[2] = { 4 + 16 + 8, out->n + 4 - cie };
	uint64_t range[2] = { MAKE_BASE + fde->at, fde->size };

	put(out, head, sizeof(head));
	put(out, range, sizeof(range));
	put(out, fde->kind == SIGNAL ? (const uint8_t[8]){ 0 } : fde_insns[fde->kind], 8);
}

static void add_eh_frame(const struct in_fde *fdes)
{
	/* "" and "zS", both with cfa = rsp+8 and the return address at cfa-8 */
	static const uint8_t cies[] = { 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8,
		0x90, 1, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'S', 0, 1, 0x78, 16, 0,
		0x0c, 7, 8, 0x90, 1, 0, 0, 0 };
	struct words out = { .n = 0 };
	uint32_t hdr[4] = { 0x00001b01, 12 };
	uint64_t at;

	put(&out, hdr, sizeof(hdr));
	put(&out, cies, sizeof(cies));
	for (; fdes && fdes->kind != NO_FDE; fdes++) {
		/* distances count from the first CIE */
		struct words one = { .n = out.n - sizeof(hdr) };

		put_fde(&one, fdes);
		put(&out, one.bytes + out.n - sizeof(hdr), one.n - (out.n - (uint32_t)sizeof(hdr)));
	}
	put(&out, (uint32_t[1]){ 0 }, 4);
	at = make_add(&make, out.bytes, out.n);
	make_phdr(&make, PT_GNU_EH_FRAME, at, sizeof(hdr));
	make_section(&make, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, at + sizeof(hdr),
		out.n - sizeof(hdr));
}

static void add_symbols(const struct in_symbol *in)
{
	struct words strings[2] = { { .n = 1 }, { .n = 1 } }, tables[2] = { { .n = 24 }, { .n = 24 } };
	uint64_t table[2], names[2], hash;
	uint16_t link;

	for (; in && in->name; in++) {
		Elf64_Sym sym = {
			.st_name = strings[in->dynamic].n,
			.st_info = ELF64_ST_INFO(in->bind, in->type),
			.st_shndx = in->section ? in->section : 1,
			.st_value = MAKE_BASE + in->at,
			.st_size = in->size,
		};

		if (in->section == UNDEFINED_SYMBOL)
			sym.st_shndx = SHN_UNDEF;
		put(&strings[in->dynamic], in->name, (uint32_t)strlen(in->name) + 1);
		put(&tables[in->dynamic], &sym, sizeof(sym));
	}
	for (int i = 0; i < 2; i++) {
		names[i] = make_add(&make, strings[i].bytes, strings[i].n);
		table[i] = make_add(&make, tables[i].bytes, tables[i].n);
	}
	link = make_section(&make, ".strtab", SHT_STRTAB, 0, names[0], strings[0].n);
	make.shdrs[make_section(&make, ".symtab", SHT_SYMTAB, 0, table[0], tables[0].n)].sh_link =
		link;
	hash = make_add(&make, (uint32_t[]){ 0, tables[1].n / 24 }, 8);
	make_dynamic(&make,
		(Elf64_Dyn[]){ { DT_HASH, { MAKE_BASE + hash } },
			{ DT_SYMTAB, { MAKE_BASE + table[1] } },
			{ DT_STRTAB, { MAKE_BASE + names[1] } }, { DT_STRSZ, { strings[1].n } } },
		4);
}

static void read_made(const struct in_symbol *in, const struct in_fde *fdes, bool sections)
{
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
	const char *why;

	arena_free(&arena);
	make_begin(&make);
	make_section(&make, ".text", SHT_PROGBITS, code, TEXT, TEXT_END - TEXT);
	make_section(&make, ".plt.sec", SHT_PROGBITS, code, PLT, INIT - PLT);
	make_section(&make, ".init", SHT_PROGBITS, code, INIT, INIT_END - INIT);
	make_section(&make, ".data", SHT_PROGBITS, SHF_ALLOC, DATA, 0x100);
	add_eh_frame(fdes);
	add_symbols(in);
	cr_assert_lt(make.next, TEXT);
	make_end(&make, false);
	if (sections) {
		make.next = DATA + 0x100;
		make_end(&make, true);
	}
	cr_assert_eq(elffile_parse(&elf, make.bytes, MAKE_SIZE, &why), 0);
	cr_assert_eq(symbols_read(&symbols, &elf, &x86_64, &arena), 0);
	cr_assert_eq(symbols.damaged_fdes, 0);
}

#define FUNC  STT_FUNC, STB_GLOBAL, false, 0
#define WEAK  STT_FUNC, STB_WEAK, false, 0
#define LOCAL STT_FUNC, STB_LOCAL, false, 0
#define DYN   STT_FUNC, STB_GLOBAL, true, 0
#define LABEL STT_NOTYPE, STB_LOCAL, false, 0

Test(symbols, finds_functions_and_their_ranges)
{
	static const struct {
		const char *what;
		struct in_symbol in[6];
		struct in_fde fdes[4];
		struct {
			uint32_t start, end, limit;
			uint8_t reason;
			const char *name;
			bool fde;
		} want[5];
	} rows[] = {
		{ "nothing", { { 0 } }, { { 0 } }, { { 0 } } },
		{ "symbols only", { { "a", TEXT + 0x40, 0x18, FUNC }, { "b", TEXT + 0x80, 8, FUNC } },
			{ { 0 } },
			{ { TEXT + 0x40, TEXT + 0x58, TEXT + 0x80, 0, "a", false },
				{ TEXT + 0x80, TEXT + 0x88, TEXT_END, 0, "b", false } } },
		{ "unwind ranges only", { { 0 } },
			{ { TEXT + 0x80, 0x10, ENTRY }, { TEXT + 0x40, 0x18, ENTRY } },
			{ { TEXT + 0x40, TEXT + 0x58, TEXT + 0x80, 0, NULL, true },
				{ TEXT + 0x80, TEXT + 0x90, TEXT_END, 0, NULL, true } } },
		{ "both", { { "a", TEXT, 0x18, FUNC } },
			{ { TEXT, 0x18, ENTRY }, { TEXT + 0x20, 0x10, ENTRY } },
			{ { TEXT, TEXT + 0x18, TEXT + 0x20, 0, "a", true },
				{ TEXT + 0x20, TEXT + 0x30, TEXT_END, 0, NULL, true } } },
		{ "dynamic only", { { "a", TEXT, 0x18, DYN } }, { { 0 } },
			{ { TEXT, TEXT + 0x18, TEXT_END, 0, "a", false } } },

		{ "no size, unwind range", { { "a", TEXT, 0, FUNC } }, { { TEXT, 0x18, ENTRY } },
			{ { TEXT, TEXT + 0x18, TEXT_END, 0, "a", true } } },
		{ "no size, next symbol", { { "a", TEXT, 0, FUNC }, { "b", TEXT + 0x10, 8, LABEL } },
			{ { 0 } }, { { TEXT, TEXT + 0x10, TEXT + 0x10, 0, "a", false } } },
		{ "no size, next unwind range", { { "a", TEXT, 0, FUNC } },
			{ { TEXT + 0x10, 8, ENTRY } },
			{ { TEXT, TEXT + 0x10, TEXT + 0x10, 0, "a", false },
				{ TEXT + 0x10, TEXT + 0x18, TEXT_END, 0, NULL, true } } },
		{ "no size, end of section", { { "a", TEXT, 0, FUNC } }, { { 0 } },
			{ { TEXT, TEXT_END, TEXT_END, 0, "a", false } } },
		{ "size beyond the section", { { "a", TEXT + 8, 0xffffffff, FUNC } }, { { 0 } },
			{ { TEXT + 8, TEXT_END, TEXT_END, 0, "a", false } } },
		{ "unwind range beyond the section", { { 0 } }, { { TEXT + 8, 0xffffffff, ENTRY } },
			{ { TEXT + 8, TEXT_END, TEXT_END, 0, NULL, true } } },

		{ "limit by a label", { { "a", TEXT, 8, FUNC }, { "l", TEXT + 0xc, 0, LABEL } },
			{ { 0 } }, { { TEXT, TEXT + 8, TEXT + 0xc, 0, "a", false } } },
		{ "limit by data",
			{ { "a", TEXT, 8, FUNC },
				{ "d", TEXT + 9, 4, STT_OBJECT, STB_LOCAL, false, 0 } },
			{ { 0 } }, { { TEXT, TEXT + 8, TEXT + 9, 0, "a", false } } },
		{ "labels inside are not limits",
			{ { "a", TEXT, 8, FUNC }, { "l", TEXT + 4, 0, LABEL } }, { { 0 } },
			{ { TEXT, TEXT + 8, TEXT_END, 0, "a", false } } },
		{ "no padding inside another symbol",
			{ { "all", TEXT, 0x40, LABEL }, { "a", TEXT + 0x10, 8, FUNC } }, { { 0 } },
			{ { TEXT + 0x10, TEXT + 0x18, TEXT + 0x18, 0, "a", false } } },
		{ "no padding inside an unwind range", { { "a", TEXT, 8, FUNC } },
			{ { TEXT, 0x10, ENTRY } },
			{ { TEXT, TEXT + 8, TEXT + 8, 0, "a", true } } },

		{ "not functions",
			{ { "undefined", TEXT, 8, STT_FUNC, STB_GLOBAL, true, UNDEFINED_SYMBOL },
				{ "abs", TEXT, 8, STT_FUNC, STB_GLOBAL, false, SHN_ABS },
				{ "tls", TEXT, 8, STT_TLS, STB_GLOBAL, false, 0 },
				{ "data", DATA, 8, FUNC }, { "headers", 0x40, 8, FUNC } },
			{ { DATA, 8, ENTRY } }, { { 0 } } },
		{ "nothing is in .plt", { { "a", PLT, 8, FUNC } },
			{ { PLT + 0x10, 0x10, ENTRY }, { PLT, 8, ENTRY } }, { { 0 } } },
		{ ".init without a symbol", { { 0 } }, { { INIT, 0x10, ENTRY } }, { { 0 } } },
		{ ".init with a symbol", { { "_init", INIT, 0, FUNC } }, { { INIT, 0x10, ENTRY } },
			{ { INIT, INIT + 0x10, INIT_END, 0, "_init", true } } },

		{ "cold by name",
			{ { "a.cold", TEXT, 8, LOCAL }, { "_ZN1aEv.cold", TEXT + 8, 8, LOCAL },
				{ "a.cold.3", TEXT + 16, 8, LOCAL } },
			{ { 0 } },
			{ { TEXT, TEXT + 8, TEXT + 8, REASON_FRAGMENT, "a.cold", false },
				{ TEXT + 8, TEXT + 16, TEXT + 16, REASON_FRAGMENT, "_ZN1aEv.cold",
					false },
				{ TEXT + 16, TEXT + 24, TEXT_END, REASON_FRAGMENT, "a.cold.3",
					false } } },
		{ "not cold",
			{ { "a.colder", TEXT, 8, LOCAL }, { "a.part.0", TEXT + 8, 8, LOCAL },
				{ "a.isra.0", TEXT + 16, 8, LOCAL }, { "cold", TEXT + 24, 8, LOCAL } },
			{ { 0 } },
			{ { TEXT, TEXT + 8, TEXT + 8, 0, "a.colder", false },
				{ TEXT + 8, TEXT + 16, TEXT + 16, 0, "a.part.0", false },
				{ TEXT + 16, TEXT + 24, TEXT + 24, 0, "a.isra.0", false },
				{ TEXT + 24, TEXT + 32, TEXT_END, 0, "cold", false } } },
		{ "fragment by its row", { { "b", TEXT + 0x20, 8, FUNC } },
			{ { TEXT, 0x10, FRAME }, { TEXT + 0x20, 8, FRAME } },
			{ { TEXT, TEXT + 0x10, TEXT + 0x20, REASON_FRAGMENT, NULL, true },
				{ TEXT + 0x20, TEXT + 0x28, TEXT_END, REASON_FRAGMENT, "b",
					true } } },
		{ "fragment inside a symbol", { { "a", TEXT, 0x20, FUNC } },
			{ { TEXT, 0x10, ENTRY }, { TEXT + 0x10, 0x10, ENTRY } },
			{ { TEXT, TEXT + 0x20, TEXT_END, 0, "a", true },
				{ TEXT + 0x10, TEXT + 0x20, TEXT_END, REASON_FRAGMENT, NULL,
					true } } },
		{ "entries inside an unwind range",
			{ { "a", TEXT, 0x40, FUNC }, { "entry", TEXT + 8, 0, FUNC },
				{ "inner", TEXT + 0x10, 0x10, FUNC },
				{ "again", TEXT + 0x20, 0x20, FUNC } },
			{ { TEXT, 0x40, LATER } },
			{ { TEXT, TEXT + 0x40, TEXT_END, 0, "a", true },
				{ TEXT + 8, TEXT + 0x40, TEXT_END, 0, "entry", false },
				{ TEXT + 0x10, TEXT + 0x20, TEXT + 0x20, REASON_FRAGMENT, "inner",
					false },
				{ TEXT + 0x20, TEXT + 0x40, TEXT_END, 0, "again", false } } },

		{ "signal frame that begins one byte early", { { "r", TEXT + 0x11, 9, FUNC } },
			{ { TEXT + 0x10, 10, SIGNAL } },
			{ { TEXT + 0x10, TEXT + 0x1a, TEXT_END, REASON_SIGNAL_FRAME, NULL, true },
				{ TEXT + 0x11, TEXT + 0x1a, TEXT_END, REASON_SIGNAL_FRAME, "r",
					false } } },
		{ "no return address", { { "main_loop", TEXT, 8, FUNC } },
			{ { TEXT, 8, UNDEFINED }, { TEXT + 8, 8, UNDEFINED } },
			{ { TEXT, TEXT + 8, TEXT + 8, REASON_NO_RETURN, "main_loop", true },
				{ TEXT + 8, TEXT + 16, TEXT_END, REASON_FRAGMENT, NULL, true } } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *what = rows[i].what;
		size_t k = 0;

		read_made(rows[i].in, rows[i].fdes, true);
		for (; k < 5 && rows[i].want[k].start && k < symbols.count; k++) {
			const struct symbol *got = &symbols.list[k];

			cr_expect_eq(got->start - MAKE_BASE, rows[i].want[k].start,
				"%s, %zu: start %lx", what, k, got->start - MAKE_BASE);
			cr_expect_eq(got->end - MAKE_BASE, rows[i].want[k].end,
				"%s, %zu: end %lx", what, k, got->end - MAKE_BASE);
			cr_expect_eq(got->limit - MAKE_BASE, rows[i].want[k].limit,
				"%s, %zu: limit %lx", what, k, got->limit - MAKE_BASE);
			cr_expect_eq(got->reason, rows[i].want[k].reason, "%s, %zu: reason %d",
				what, k, got->reason);
			cr_expect_str_eq(got->name ? got->name : "-",
				rows[i].want[k].name ? rows[i].want[k].name : "-", "%s, %zu: %s",
				what, k, got->name);
			cr_expect_eq(!!got->fde, rows[i].want[k].fde, "%s, %zu", what, k);
		}
		cr_expect_eq(symbols.count, k, "%s: %zu", what, symbols.count);
		cr_expect(k == 5 || !rows[i].want[k].start, "%s: %zu are missing", what, k);
	}
	arena_free(&arena);
}

/* The first byte behind a function that is taken is found past any number of labels inside. */
Test(symbols, passes_over_labels_inside)
{
	enum { LABELS = 40, SIZE = 0x100 };

	for (uint32_t n = 0; n <= LABELS; n++) {
		struct in_symbol in[LABELS + 6] = { { "f", TEXT, SIZE, FUNC } };
		uint32_t k = 1;

		for (; k <= n; k++)
			in[k] = (struct in_symbol){ "l", TEXT + k, 0, LABEL };
		for (uint32_t behind = 4; behind; behind--)
			in[k++] = (struct in_symbol){ "b", TEXT + SIZE + behind, 0, LABEL };
		read_made(in, NULL, true);
		cr_assert_eq(symbols.count, 1);
		cr_expect_eq(symbols.list->limit, MAKE_BASE + TEXT + SIZE + 1, "%u labels: %lx", n,
			symbols.list->limit - MAKE_BASE);
	}
	arena_free(&arena);
}

Test(symbols, chooses_one_name_per_address)
{
	static const struct {
		const char *what;
		struct in_symbol in[6];
		const char *names[6];
		bool exported, ifunc;
	} rows[] = {
		{ "local last, then the plainest",
			{ { "a", TEXT, 8, LOCAL }, { "bb", TEXT, 8, WEAK }, { "__ccc", TEXT, 8, FUNC } },
			{ "bb", "__ccc", "a" }, false, false },
		{ "global before weak",
			{ { "a", TEXT, 8, WEAK }, { "ccc", TEXT, 8, FUNC } }, { "ccc", "a" }, false, false },
		{ "fewer underscores",
			{ { "__a", TEXT, 8, FUNC }, { "_bb", TEXT, 8, FUNC }, { "ccc", TEXT, 8, FUNC } },
			{ "ccc", "_bb", "__a" }, false, false },
		{ "shorter, then by alphabet",
			{ { "bb", TEXT, 8, FUNC }, { "aaa", TEXT, 8, FUNC }, { "ab", TEXT, 8, FUNC } },
			{ "ab", "bb", "aaa" }, false, false },
		{ "both tables",
			{ { "write", TEXT, 8, FUNC }, { "__write", TEXT, 8, FUNC },
				{ "write", TEXT, 8, DYN }, { "__write", TEXT, 8, DYN },
				{ "hidden", TEXT, 8, LOCAL } },
			{ "write", "__write", "hidden" }, true, false },
		{ "versions are kept",
			{ { "f@@V2", TEXT, 8, FUNC }, { "f@V1", TEXT, 8, FUNC }, { "f", TEXT, 8, DYN } },
			{ "f", "f@V1", "f@@V2" }, true, false },
		{ "resolver", { { "f", TEXT, 8, STT_GNU_IFUNC, STB_GLOBAL, false, 0 } }, { "f" },
			false, true },
		{ "without name", { { "", TEXT, 8, FUNC }, { "f", TEXT, 8, FUNC } }, { "f" }, false,
			false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = 0;

		read_made(rows[i].in, NULL, true);
		cr_assert_eq(symbols.count, 1, "%s", rows[i].what);
		cr_expect_str_eq(symbols.list->name, rows[i].names[0], "%s: %s", rows[i].what,
			symbols.list->name);
		for (; rows[i].names[n + 1] && n < symbols.list->naliases; n++)
			cr_expect_str_eq(symbols.list->aliases[n], rows[i].names[n + 1],
				"%s: %zu: %s", rows[i].what, n, symbols.list->aliases[n]);
		cr_expect_eq(symbols.list->naliases, n, "%s", rows[i].what);
		cr_expect_null(rows[i].names[n + 1], "%s: aliases are missing", rows[i].what);
		cr_expect_eq(symbols.list->exported, rows[i].exported, "%s", rows[i].what);
		cr_expect_eq(symbols.list->ifunc, rows[i].ifunc, "%s", rows[i].what);
	}
	arena_free(&arena);
}

Test(symbols, keeps_the_aliases_of_addresses_apart)
{
	static const struct in_symbol in[] = { { "b2", TEXT + 8, 8, WEAK }, { "a1", TEXT, 8, FUNC },
		{ "b1", TEXT + 8, 8, FUNC }, { "a2", TEXT, 8, WEAK }, { NULL, 0, 0, FUNC } };

	read_made(in, NULL, true);
	cr_assert_eq(symbols.count, 2);
	cr_assert_eq(symbols.list[0].naliases, 1);
	cr_assert_eq(symbols.list[1].naliases, 1);
	cr_expect_str_eq(symbols.list[0].aliases[0], "a2");
	cr_expect_str_eq(symbols.list[1].aliases[0], "b2");
	arena_free(&arena);
}

Test(symbols, knows_functions_that_need_care_by_name)
{
	static const struct {
		const char *name;
		uint8_t reason;
	} rows[] = {
		{ "setjmp", REASON_RETURNS_TWICE }, { "_setjmp", REASON_RETURNS_TWICE },
		{ "__sigsetjmp", REASON_RETURNS_TWICE }, { "sigsetjmp", REASON_RETURNS_TWICE },
		{ "vfork", REASON_RETURNS_TWICE }, { "__vfork", REASON_RETURNS_TWICE },
		{ "getcontext", REASON_RETURNS_TWICE }, { "__swapcontext", REASON_RETURNS_TWICE },
		{ "setjmp@@GLIBC_2.2.5", REASON_RETURNS_TWICE }, { "vfork@V1", REASON_RETURNS_TWICE },
		{ "longjmp", 0 }, { "setjmp2", 0 }, { "my_setjmp", 0 }, { "fork", 0 },
		{ "_ZN3lib6setjmpEv", 0 },
		{ "dlsym", REASON_READS_RETURN }, { "dlvsym", REASON_READS_RETURN },
		{ "dlopen", REASON_READS_RETURN }, { "dlmopen", REASON_READS_RETURN },
		{ "dl_iterate_phdr", REASON_READS_RETURN }, { "dlclose", 0 }, { "dlerror", 0 },
		{ "mcount", REASON_READS_RETURN }, { "_mcount", REASON_READS_RETURN },
		{ "__fentry__", REASON_READS_RETURN }, { "__mcount_internal", REASON_READS_RETURN },
		{ "__x86.get_pc_thunk.bx", REASON_READS_RETURN },
		{ "__x86_indirect_thunk_rax", REASON_READS_RETURN },
		{ "__x86_return_thunk", REASON_READS_RETURN },
		{ "_Unwind_Backtrace", REASON_READS_RETURN },
		{ "_Unwind_Resume_or_Rethrow", REASON_READS_RETURN },
		{ "_Unwind_GetIPInfo", REASON_READS_RETURN },
		{ "_Unwind_Resume", REASON_UNWINDER }, { "_Unwind_SetGR", REASON_UNWINDER },
		{ "_Unwind_SetIP", REASON_UNWINDER }, { "_Unwind_GetIP", REASON_UNWINDER },
		{ "_Unwind_GetCFA", REASON_UNWINDER }, { "_Unwind_Resume@@GCC_3.0", REASON_UNWINDER },
		{ "_start", REASON_NO_RETURN }, { "start", 0 }, { "__start", 0 },
		{ "_dl_runtime_resolve_xsavec", REASON_RESOLVER },
		{ "_dl_runtime_profile_avx512", REASON_RESOLVER },
		{ "_dl_tlsdesc_return", REASON_RESOLVER }, { "_dl_runtime", 0 },
		{ "__restore_rt", REASON_SIGNAL_FRAME }, { "restore_rt", 0 },
		{ "__morestack", REASON_FRAGMENT }, { "_savegpr0_14", REASON_FRAGMENT },
		{ "__start_context", REASON_FRAGMENT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		/* as the only name, then as an alias of another */
		struct in_symbol in[] = { { rows[i].name, TEXT, 8, LOCAL },
			{ NULL, TEXT, 8, FUNC }, { NULL, 0, 0, FUNC } };

		read_made(in, NULL, true);
		cr_assert_eq(symbols.count, 1);
		cr_expect_eq(symbols.list->reason, rows[i].reason, "%s: %d", rows[i].name,
			symbols.list->reason);
		in[1].name = "other";
		read_made(in, NULL, true);
		cr_expect_str_eq(symbols.list->name, "other");
		cr_expect_eq(symbols.list->reason, rows[i].reason, "alias %s: %d", rows[i].name,
			symbols.list->reason);
	}
	arena_free(&arena);
}

Test(symbols, knows_whom_nobody_may_jump_to_with_a_return_point)
{
	static const struct {
		const char *name, *alias;
		uint8_t reason;
	} rows[] = {
		{ "_setjmp", NULL, REASON_RETURNS_TWICE },
		{ "dlsym", NULL, REASON_READS_RETURN },
		{ "wrapper", "__vfork", REASON_RETURNS_TWICE },
		{ "puts", "fputs", 0 },
		{ "_Unwind_Backtrace", NULL, 0 }, /* return points can be unwound */
		{ "__x86_return_thunk", NULL, 0 },
		{ "_start", NULL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct in_symbol in[] = { { rows[i].name, TEXT, 8, FUNC },
			{ rows[i].alias, TEXT, 8, LOCAL }, { NULL, 0, 0, FUNC } };

		read_made(in, NULL, true);
		cr_assert_eq(symbols.count, 1);
		cr_expect_eq(symbols_keeps_return(symbols.list), rows[i].reason, "%s: %d",
			rows[i].name, symbols_keeps_return(symbols.list));
	}
	arena_free(&arena);
}

static struct elf_part add_part(const void *bytes, uint64_t size)
{
	uint64_t at = make_add(&make, bytes, size);

	return (struct elf_part){ make.bytes + at, MAKE_BASE + at, size };
}

Test(symbols, finds_words_with_the_addresses_of_such_functions)
{
	static const char names[] = "\0puts\0dlsym\0_setjmp\0_Unwind_Backtrace";
	static const Elf64_Sym syms[] = { { 0 }, { .st_name = 1 }, { .st_name = 6 },
		{ .st_name = 12 }, { .st_name = 20 } };
	static const Elf64_Rela data[] = { { DATA + 8, ELF64_R_INFO(3, 6), 0 },
		{ DATA + 16, ELF64_R_INFO(4, 6), 0 }, { DATA + 24, ELF64_R_INFO(0, 8), 12 },
		{ DATA + 32, ELF64_R_INFO(0xffffffff, 6), 0 } };
	static const Elf64_Rela plt[] = { { DATA + 40, ELF64_R_INFO(1, 7), 0 },
		{ DATA, ELF64_R_INFO(2, 7), 0 } };
	struct isa_slot *slots;
	const char *why;

	make_begin(&make);
	make_end(&make, false);
	cr_assert_eq(elffile_parse(&elf, make.bytes, sizeof(make.bytes), &why), 0);
	elf.dynsym = add_part(syms, sizeof(syms));
	elf.dynsym.size = sizeof(syms[0]); /* no more is known without exported symbols */
	elf.dynstr = add_part(names, sizeof(names));
	elf.rela = add_part(data, sizeof(data));
	elf.plt_rela = add_part(plt, sizeof(plt));
	cr_assert_eq(symbols_slots(&elf, &arena, &slots), 2);
	cr_expect_eq(slots[0].addr, DATA);
	cr_expect_eq(slots[0].keeps, REASON_READS_RETURN);
	cr_expect_eq(slots[1].addr, DATA + 8);
	cr_expect_eq(slots[1].keeps, REASON_RETURNS_TWICE);
	elf.dynsym = (struct elf_part){ 0 };
	cr_expect_eq(symbols_slots(&elf, &arena, &slots), 0);
	arena_free(&arena);
}

Test(symbols, a_refusal_weighs_more_than_entry_only)
{
	static const struct in_symbol in[] = { { "setjmp", TEXT, 8, FUNC },
		{ "_Unwind_Resume", TEXT, 8, FUNC }, { "dlsym", TEXT + 8, 8, FUNC },
		{ NULL, 0, 0, FUNC } };
	static const struct in_fde fdes[] = { { TEXT + 8, 8, FRAME }, { 0 } };

	read_made(in, fdes, true);
	cr_assert_eq(symbols.count, 2);
	cr_expect_eq(symbols.list[0].reason, REASON_UNWINDER);
	cr_expect_eq(symbols.list[1].reason, REASON_FRAGMENT);
	arena_free(&arena);
}

Test(symbols, reads_files_without_section_headers)
{
	static const struct in_symbol in[] = { { "lost", TEXT, 8, FUNC },
		{ "kept", TEXT + 0x20, 8, DYN }, { NULL, 0, 0, FUNC } };
	static const struct in_fde fdes[] = { { TEXT, 8, ENTRY }, { TEXT + 0x20, 8, ENTRY }, { 0 } };

	read_made(in, fdes, false);
	cr_expect_null(elf.shdrs);
	cr_assert_eq(symbols.count, 2);
	cr_expect_null(symbols.list[0].name);
	cr_expect_eq(symbols.list[0].limit, MAKE_BASE + TEXT + 0x20);
	cr_expect_str_eq(symbols.list[1].name, "kept");
	cr_expect_eq(symbols.list[1].limit, MAKE_BASE + MAKE_SIZE, "the segment's end");
	arena_free(&arena);
}

/* ---- real files ---- */

static void read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	void *bytes;
	const char *why;

	cr_assert(fd >= 0 && !fstat(fd, &st), "%s", path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	close(fd);
	cr_assert_eq(elffile_parse(&elf, bytes, (uint64_t)st.st_size, &why), 0, "%s", path);
	cr_assert_eq(symbols_read(&symbols, &elf, &native, &arena), 0, "%s", path);
}

static struct symbol *find(uint64_t start)
{
	for (size_t i = 0; i < symbols.count; i++)
		if (symbols.list[i].start == start)
			return &symbols.list[i];
	return NULL;
}

static bool has_name(const struct symbol *sym, const char *name)
{
	bool found = sym->name && str_eq(sym->name, name);

	for (size_t i = 0; i < sym->naliases && !found; i++)
		found = str_eq(sym->aliases[i], name);
	return found;
}

static void check_order(const char *path)
{
	for (size_t i = 0; i < symbols.count; i++) {
		const struct symbol *sym = &symbols.list[i];

		cr_assert(!i || sym[-1].start < sym->start, "%s: %lx: order", path, sym->start);
		cr_assert(sym->start < sym->end && sym->end <= sym->limit, "%s: %lx: range", path,
			sym->start);
	}
}

/* Every defined function that nm prints is there by that name, and no other name is. */
static void compare_with_nm(const char *path)
{
	char command[3 * 4096], line[4096], name[3000], type[16];
	size_t seen = 0, named = 0;
	FILE *f;

	snprintf(command, sizeof(command),
		"(nm -f sysv --defined-only '%s'; nm -D -f sysv --defined-only '%s') 2>/dev/null"
		" | tr -d ' '", path, path);
	f = popen(command, "r");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		uint64_t start;
		struct symbol *sym;

		if (sscanf(line, "%2999[^|]|%lx|%*c|%15[A-Z]|", name, &start, type) != 3
			|| (!str_eq(type, "FUNC") && !str_eq(type, "IFUNC")))
			continue;
		seen++;
		if (str_find(name, "@"))
			*(char *)(uintptr_t)str_find(name, "@") = 0;
		sym = find(start);
		cr_expect(sym && has_name(sym, name), "%s: %s at %lx", path, name, start);
	}
	pclose(f);
	cr_expect_gt(seen, 0, "%s: nm printed nothing", path);
	for (size_t i = 0; i < symbols.count; i++)
		named += symbols.list[i].name ? 1u + symbols.list[i].naliases : 0;
	cr_expect_leq(named, seen, "%s: %zu names, nm has %zu", path, named, seen);
}

Test(symbols, agrees_with_nm)
{
	static const char *const paths[] = { "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/aarch64-linux-gnu/libc.so.6", "/lib/powerpc64le-linux-gnu/libc.so.6" };
	char room[4096];

	if (system("nm --version >/dev/null 2>&1"))
		cr_skip_test("no nm");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		const char *path = support_real_path(paths[i], room, sizeof(room));

		if (access(path, R_OK))
			continue;
		read_file(path);
		check_order(path);
		compare_with_nm(path);
		arena_free(&arena);
	}
}

__attribute__((noinline, used)) static void function_of_this_program(void)
{
	__asm__ volatile("");
}

Test(symbols, describes_this_program)
{
	const struct symbol *found = NULL;

	read_file("/proc/self/exe");
	for (size_t i = 0; i < symbols.count; i++)
		if (symbols.list[i].name && str_eq(symbols.list[i].name, "function_of_this_program"))
			found = &symbols.list[i];
	cr_assert_not_null(found);
	function_of_this_program();
	cr_expect_eq((found->start ^ (uintptr_t)function_of_this_program) & 0xfff, 0);
	cr_assert_not_null(found->fde);
	cr_expect_eq(found->fde->end, found->end);
	cr_expect_eq(found->reason, 0);
	arena_free(&arena);
}
