/* SPDX-License-Identifier: MIT */
/* Reads its input as an ELF file and asks for everything that can be asked of one. */
#include "tracer/stap.h"
#include "tracer/symbols.h"

#define CFI_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the port says it; here so that the target needs no port. */
static const struct isa x86_64 = { .ra_column = 16, .entry_cfa_base = 7, .entry_cfa_offset = 8,
	.entry_ra_offset = -8 };

static void check(bool right)
{
	if (!right)
		__builtin_trap();
}

static void read_fde(const struct eh_fde *fde, struct arena *arena)
{
	struct isa_cfi cfi[CFI_MAX];
	struct isa_row *rows;
	bool undefined;
	long n = ehframe_rows(fde, arena, &rows);

	check(fde->start < fde->end);
	for (long i = 1; i < n; i++)
		check(rows[i - 1].from < rows[i].from);
	ehframe_entry_row(fde, &x86_64, &undefined);
	n = ehframe_cfi(fde, fde->end - fde->start, cfi, CFI_MAX);
	for (long i = 0; i < n; i++)
		check(cfi[i].len && cfi[i].bytes);
}

static void read_symbols(const struct elffile *elf, struct arena *arena)
{
	struct symbols symbols;

	if (symbols_read(&symbols, elf, &x86_64, arena))
		return;
	for (size_t i = 0; i < symbols.count; i++) {
		const struct symbol *sym = &symbols.list[i];

		check(!i || sym[-1].start < sym->start);
		check(sym->start < sym->end && sym->end <= sym->limit);
		check(elffile_at(elf, sym->start, sym->end - sym->start));
		for (size_t k = 0; k < sym->naliases; k++)
			check(strlen(sym->aliases[k]) < elf->size);
		check(!sym->name || strlen(sym->name) < elf->size);
	}
	for (size_t i = 0; i < symbols.nfdes; i++)
		read_fde(&symbols.fdes[i], arena);
}

static void read_probes(const struct elffile *elf)
{
	struct stap_arg args[STAP_ARGS_MAX];
	struct stap_probe p;

	for (uint64_t at = 0; stap_next(elf, &at, &p);) {
		check(strlen(p.provider) + strlen(p.name) + strlen(p.args) < elf->size);
		check(stap_parse(elf->machine, p.args, args) <= STAP_ARGS_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct elffile elf;
	const char *why;

	if (!elffile_parse(&elf, data, size, &why)) {
		read_symbols(&elf, &arena);
		read_probes(&elf);
	} else {
		check(why);
	}
	arena_free(&arena);
	return 0;
}
