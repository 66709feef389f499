/* SPDX-License-Identifier: MIT */
/*
 * Three lists sorted by address are made first: the names of functions, the ranges of all symbols
 * in executable code, and the ranges of unwinding. One pass over names and unwind ranges then finds
 * the starts in order; all else is looked up beside it, so the whole is linear but for sorting.
 */
#include "symbols.h"
#include "radix.h"

#include <elf.h>
#include <errno.h>

/* ---- functions known by name ---- */

enum special_match {
	MATCH_WHOLE = 0,
	MATCH_BASE = 1 << 0, /* the name without its leading underscores */
	MATCH_PREFIX = 1 << 1,
	/* not part of the match: functions that jump here may have had their return address replaced */
	JUMPED_TO = 1 << 2,
};

/*
 * Where several rows match, the lowest reason counts: enum site_reason has those that refuse
 * before those that mean entry only.
 */
static const struct special {
	const char *name;
	uint8_t match; /* enum special_match */
	uint8_t reason;
} specials[] = {
	{ "setjmp", MATCH_BASE, REASON_RETURNS_TWICE },
	{ "sigsetjmp", MATCH_BASE, REASON_RETURNS_TWICE },
	{ "sigsetjmp_cancel", MATCH_BASE, REASON_RETURNS_TWICE },
	{ "vfork", MATCH_BASE, REASON_RETURNS_TWICE },
	{ "libc_vfork", MATCH_BASE, REASON_RETURNS_TWICE },
	{ "getcontext", MATCH_BASE, REASON_RETURNS_TWICE },
	{ "swapcontext", MATCH_BASE, REASON_RETURNS_TWICE },

	/* the loader's functions that ask which module called them */
	{ "dlopen", MATCH_BASE, REASON_READS_RETURN },
	{ "dlmopen", MATCH_BASE, REASON_READS_RETURN },
	{ "dlsym", MATCH_BASE, REASON_READS_RETURN },
	{ "dlvsym", MATCH_BASE, REASON_READS_RETURN },
	{ "dl_iterate_phdr", MATCH_BASE, REASON_READS_RETURN },
	{ "mcount", MATCH_BASE, REASON_READS_RETURN },
	{ "mcount_internal", MATCH_BASE, REASON_READS_RETURN },
	{ "__fentry__", MATCH_WHOLE, REASON_READS_RETURN },
	/* thunks that read or replace it */
	{ "__x86.get_pc_thunk.", MATCH_PREFIX, REASON_READS_RETURN },
	{ "__x86_indirect_thunk_", MATCH_PREFIX | JUMPED_TO, REASON_READS_RETURN },
	{ "__x86_return_thunk", MATCH_PREFIX | JUMPED_TO, REASON_READS_RETURN },
	{ "__llvm_retpoline_", MATCH_PREFIX | JUMPED_TO, REASON_READS_RETURN },

	{ "_Unwind_", MATCH_PREFIX | JUMPED_TO, REASON_READS_RETURN },
	{ "_Unwind_Resume", MATCH_WHOLE, REASON_UNWINDER },
	{ "_Unwind_SetGR", MATCH_WHOLE, REASON_UNWINDER },
	{ "_Unwind_SetIP", MATCH_WHOLE, REASON_UNWINDER },
	{ "_Unwind_GetIP", MATCH_WHOLE, REASON_UNWINDER },
	{ "_Unwind_GetCFA", MATCH_WHOLE, REASON_UNWINDER },

	{ "_dl_runtime_resolve", MATCH_PREFIX, REASON_RESOLVER },
	{ "_dl_runtime_profile", MATCH_PREFIX, REASON_RESOLVER },
	{ "_dl_tlsdesc_", MATCH_PREFIX, REASON_RESOLVER },
	{ "__tlsdesc_", MATCH_PREFIX, REASON_RESOLVER }, /* musl */

	/* not called by the rules: pieces of prologues and epilogues, contexts that are returned to */
	{ "_savegpr", MATCH_PREFIX, REASON_FRAGMENT },
	{ "_restgpr", MATCH_PREFIX, REASON_FRAGMENT },
	{ "_savefpr", MATCH_PREFIX, REASON_FRAGMENT },
	{ "_restfpr", MATCH_PREFIX, REASON_FRAGMENT },
	{ "_savevr", MATCH_PREFIX, REASON_FRAGMENT },
	{ "_restvr", MATCH_PREFIX, REASON_FRAGMENT },
	{ "OUTLINED_FUNCTION_", MATCH_PREFIX, REASON_FRAGMENT },
	{ "__morestack", MATCH_PREFIX, REASON_FRAGMENT },
	{ "__start_context", MATCH_WHOLE, REASON_FRAGMENT },

	{ "__restore_rt", MATCH_WHOLE, REASON_SIGNAL_FRAME },
	{ "_start", MATCH_WHOLE, REASON_NO_RETURN },
};
#define NSPECIALS (sizeof(specials) / sizeof(*specials))

static const char *special_base(const char *name)
{
	while (*name == '_')
		name++;
	return name;
}

/* A bit per letter: a cheap test that nearly all names fail, mangled ones among them. */
static uint32_t special_letter(const char *name)
{
	return 1u << (*special_base(name) & 31);
}

static uint32_t special_letters(void)
{
	uint32_t letters = 0;

	for (size_t i = 0; i < NSPECIALS; i++)
		letters |= special_letter(specials[i].name);
	return letters;
}

static bool special_matches(const struct special *special, const char *name)
{
	const char *want = special->name;

	if (special->match & MATCH_BASE)
		name = special_base(name);
	for (; *want; want++, name++)
		if (*name != *want)
			return false;
	return special->match & MATCH_PREFIX || !*name || *name == '@';
}

static uint8_t special_lower(uint8_t a, uint8_t b)
{
	return !a || (b && b < a) ? b : a;
}

static uint8_t special_reason(const char *name)
{
	static uint32_t letters;
	uint8_t reason = REASON_NONE;

	if (!letters)
		letters = special_letters();
	if (!(letters & special_letter(name)))
		return REASON_NONE;
	for (size_t i = 0; i < NSPECIALS; i++)
		if (special_matches(&specials[i], name))
			reason = special_lower(reason, specials[i].reason);
	return reason;
}

/* gcc's f.cold and f.isra.0.cold, clang's f.cold.1. They are always local symbols. */
static bool special_is_cold(const char *name)
{
	static const char cold[] = ".cold";

	while ((name = str_find(name, cold))) {
		name += sizeof(cold) - 1;
		if (!*name || *name == '.')
			return true;
	}
	return false;
}

/* An array, not NULL even when empty. */
static void *sym_alloc(struct arena *arena, size_t n, size_t size)
{
	return arena_alloc(arena, (n + 1) * size);
}

/* ---- where executable code is ---- */

struct region {
	uint64_t start, end;
	enum {
		REGION_TEXT,
		REGION_NAMED, /* .init and .fini: functions only where a symbol says so */
		REGION_PLT,   /* no functions at all */
	} kind;
};

struct scan {
	const struct elffile *elf;
	const struct isa *isa;
	struct symbols *out;
	struct arena scratch;
	struct region *regions;
	size_t nregions, region; /* the one used last */
	struct sym_name *names;
	struct radix_item *starts; /* by address; value: a struct sym_name * */
	size_t nstarts;
	struct ranges {
		struct radix_item *items; /* by start; value: the furthest end so far */
		size_t n;
		size_t cursor; /* first item at or behind the start being looked at */
	} symbols, unwind;
	const char **aliases;
	struct eh_walk walk; /* goes on where it was: starts are asked for in order */
};

static int region_compare(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void region_add(struct scan *scan, uint64_t addr, uint64_t size, const char *section)
{
	struct region *region = &scan->regions[scan->nregions];

	if (!size || !elffile_at(scan->elf, addr, size))
		return;
	*region = (struct region){ addr, addr + size, REGION_TEXT };
	if (str_starts(section, ".plt"))
		region->kind = REGION_PLT;
	else if (str_eq(section, ".init") || str_eq(section, ".fini"))
		region->kind = REGION_NAMED;
	scan->nregions++;
}

static int region_read(struct scan *scan)
{
	const struct elffile *elf = scan->elf;
	const struct elf_part names = { (const uint8_t *)elf->shstr, 0, elf->shstr_size };
	const Elf64_Shdr *sh = elf->shdrs;
	const Elf64_Phdr *ph = elf->phdrs;

	scan->regions = sym_alloc(&scan->scratch, (size_t)elf->nshdrs + elf->nphdrs,
		sizeof(*scan->regions));
	if (!scan->regions)
		return -ENOMEM;
	for (size_t i = 0; i < elf->nshdrs; i++)
		if (sh[i].sh_flags & SHF_ALLOC && sh[i].sh_flags & SHF_EXECINSTR
			&& sh[i].sh_type != SHT_NOBITS)
			region_add(scan, sh[i].sh_addr, sh[i].sh_size,
				elffile_string(&names, sh[i].sh_name));
	for (size_t i = 0; i < elf->nphdrs && (!elf->nshdrs || !scan->nregions); i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X)
			region_add(scan, ph[i].p_vaddr, ph[i].p_filesz, "");
	mem_sort(scan->regions, scan->nregions, sizeof(*scan->regions), region_compare);
	for (size_t i = 1; i < scan->nregions; i++) /* overlaps only in damaged files */
		if (scan->regions[i].start < scan->regions[i - 1].end)
			scan->regions[i - 1].end = scan->regions[i].start;
	return 0;
}

static const struct region *region_find(struct scan *scan, uint64_t addr)
{
	const struct region *regions = scan->regions;
	size_t low = 0, high = scan->nregions;

	if (!high)
		return NULL;
	if (addr < regions[scan->region].start || addr >= regions[scan->region].end) {
		while (high - low > 1) {
			size_t middle = low + (high - low) / 2;

			if (regions[middle].start <= addr)
				low = middle;
			else
				high = middle;
		}
		scan->region = low;
	}
	if (addr < regions[scan->region].start || addr >= regions[scan->region].end)
		return NULL;
	return &regions[scan->region];
}

/* ---- ranges ---- */

/* Sort by start; from then on each item's value is the furthest end of all up to it. */
static void ranges_close(struct ranges *ranges, struct radix_item *spare)
{
	struct radix_item *items = ranges->items;

	radix_sort(items, spare, ranges->n);
	for (size_t i = 1; i < ranges->n; i++)
		if (items[i].value < items[i - 1].value)
			items[i].value = items[i - 1].value;
}

static void ranges_go_to(struct ranges *ranges, uint64_t addr)
{
	while (ranges->cursor < ranges->n && ranges->items[ranges->cursor].key < addr)
		ranges->cursor++;
}

/* True when @addr, which is at the cursor, is inside a range that begins before it. */
static bool ranges_inside(const struct ranges *ranges, uint64_t addr)
{
	return ranges->cursor && ranges->items[ranges->cursor - 1].value > addr;
}

/* The first item that starts at or behind @addr, which is not before the cursor's. */
static size_t ranges_search(const struct ranges *ranges, uint64_t addr)
{
	size_t low = ranges->cursor, step = 1, high;

	while (low + step < ranges->n && ranges->items[low + step].key < addr) {
		low += step;
		step *= 2;
	}
	high = low + step < ranges->n ? low + step : ranges->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].key < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first start at or behind @addr. */
static uint64_t ranges_next(const struct ranges *ranges, uint64_t addr)
{
	size_t i = ranges_search(ranges, addr);

	return i < ranges->n ? ranges->items[i].key : UINT64_MAX;
}

/* The first byte at or behind @addr that is in a range or begins one. */
static uint64_t ranges_taken(const struct ranges *ranges, uint64_t addr)
{
	size_t i = ranges_search(ranges, addr);

	if (i && ranges->items[i - 1].value > addr)
		return addr;
	return i < ranges->n ? ranges->items[i].key : UINT64_MAX;
}

/* ---- symbol tables ---- */

struct sym_name {
	const char *name;
	uint64_t size;
	uint8_t bind;
	uint8_t local; /* offset of the local entry */
	bool ifunc;
	bool dynamic; /* from .dynsym */
};

/* ELFv2 ABI, 3.4.1: from the global entry, which the symbol's value is. */
static uint8_t sym_local_entry(const struct scan *scan, uint8_t other)
{
	return scan->isa->elf_machine == EM_PPC64 ? (1 << (other >> 5) >> 2) << 2 : 0;
}

static void sym_add(struct scan *scan, const Elf64_Sym *sym, const char *name, bool dynamic)
{
	const struct region *region;
	uint8_t type = ELF64_ST_TYPE(sym->st_info);
	struct sym_name *entry = &scan->names[scan->nstarts];
	uint64_t end;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON
		|| type == STT_TLS || type == STT_FILE || type == STT_SECTION)
		return;
	region = region_find(scan, sym->st_value);
	if (!region)
		return;
	if (__builtin_add_overflow(sym->st_value, sym->st_size, &end))
		end = UINT64_MAX;
	scan->symbols.items[scan->symbols.n++] = (struct radix_item){ sym->st_value, end };
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || region->kind == REGION_PLT || !*name)
		return;
	*entry = (struct sym_name){ name, sym->st_size, ELF64_ST_BIND(sym->st_info),
		sym_local_entry(scan, sym->st_other), type == STT_GNU_IFUNC, dynamic };
	scan->starts[scan->nstarts++] =
		(struct radix_item){ sym->st_value, (uint64_t)(uintptr_t)entry };
}

static void sym_add_table(struct scan *scan, const struct elf_part *table,
	const struct elf_part *strings, bool dynamic)
{
	for (uint64_t at = 0; table->size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;

		memcpy(&sym, table->bytes + at, sizeof(sym));
		sym_add(scan, &sym, elffile_string(strings, sym.st_name), dynamic);
	}
}

static int sym_read(struct scan *scan)
{
	const struct elffile *elf = scan->elf;
	size_t n = elf->symtab.size / sizeof(Elf64_Sym) + elf->dynsym.size / sizeof(Elf64_Sym);
	struct radix_item *spare = sym_alloc(&scan->scratch, n, sizeof(*spare));

	scan->names = sym_alloc(&scan->scratch, n, sizeof(*scan->names));
	scan->starts = sym_alloc(&scan->scratch, n, sizeof(*scan->starts));
	scan->symbols.items = sym_alloc(&scan->scratch, n, sizeof(*scan->symbols.items));
	if (!spare || !scan->names || !scan->starts || !scan->symbols.items)
		return -ENOMEM;
	sym_add_table(scan, &elf->symtab, &elf->strtab, false);
	sym_add_table(scan, &elf->dynsym, &elf->dynstr, true);
	ranges_close(&scan->symbols, spare);
	radix_sort(scan->starts, spare, scan->nstarts);
	return 0;
}

static int fde_read(struct scan *scan, struct arena *arena)
{
	struct symbols *out = scan->out;
	long n = ehframe_read(scan->elf, arena, &out->fdes, &out->damaged_fdes);

	if (n < 0)
		return (int)n;
	out->nfdes = (size_t)n;
	scan->unwind.n = out->nfdes;
	scan->unwind.items =
		sym_alloc(&scan->scratch, out->nfdes, sizeof(*scan->unwind.items));
	if (!scan->unwind.items)
		return -ENOMEM;
	for (size_t i = 0; i < out->nfdes; i++)
		scan->unwind.items[i] = (struct radix_item){ out->fdes[i].start, out->fdes[i].end };
	ranges_close(&scan->unwind, NULL); /* sorted already */
	return 0;
}

/* ---- one address ---- */

static uint8_t name_rank(const struct sym_name *name)
{
	return name->bind == STB_LOCAL ? 2 : name->bind == STB_WEAK ? 1 : 0;
}

/*
 * The name to show first: global or weak before local, so that no name of an implementation's own
 * is shown for one of its interface; then the plainest: fewer leading underscores; global before
 * weak; shorter; alphabet.
 */
static int name_compare(const void *a, const void *b)
{
	const struct sym_name *x = (void *)(uintptr_t)((const struct radix_item *)a)->value;
	const struct sym_name *y = (void *)(uintptr_t)((const struct radix_item *)b)->value;
	ptrdiff_t order = (x->bind == STB_LOCAL) - (y->bind == STB_LOCAL);
	int equal = str_cmp(x->name, y->name);

	if (!equal) /* of one name the better binding */
		return name_rank(x) - name_rank(y);
	if (!order)
		order = (special_base(x->name) - x->name) - (special_base(y->name) - y->name);
	if (!order)
		order = name_rank(x) - name_rank(y);
	if (!order)
		order = (ptrdiff_t)strlen(x->name) - (ptrdiff_t)strlen(y->name);
	return order ? (order < 0 ? -1 : 1) : equal;
}

/* Take over the @n names of a start. Returns the reason that one of them gives. */
static uint8_t sym_set_names(struct scan *scan, struct symbol *sym, struct radix_item *names,
	size_t n, uint64_t *size)
{
	const char *last = NULL;
	uint8_t reason = REASON_NONE;

	mem_sort(names, n, sizeof(*names), name_compare);
	sym->aliases = scan->aliases;
	for (size_t i = 0; i < n; i++) {
		const struct sym_name *name = (void *)(uintptr_t)names[i].value;

		sym->ifunc = sym->ifunc || name->ifunc;
		sym->exported = sym->exported || name->dynamic;
		sym->local = name->local;
		if (name->size > *size)
			*size = name->size;
		if (last && str_eq(name->name, last))
			continue;
		last = name->name;
		reason = special_lower(reason, special_reason(last));
		if (name->bind == STB_LOCAL && special_is_cold(last))
			reason = special_lower(reason, REASON_FRAGMENT);
		if (!sym->name)
			sym->name = last;
		else if (sym->naliases < UINT16_MAX)
			sym->aliases[sym->naliases++] = last;
	}
	scan->aliases += sym->naliases;
	return reason;
}

/* Look at the row in force at @addr. False when there is none that is known. */
static bool sym_find_row(struct scan *scan, const struct eh_fde *fde, uint64_t addr)
{
	struct eh_walk *walk = &scan->walk;
	uint64_t offset = addr - fde->start;

	if (walk->fde != fde)
		ehframe_walk(walk, fde);
	while (walk->row.to <= offset)
		if (!ehframe_next(walk))
			return false;
	return true;
}

/* Why the function that starts here cannot be traced as any other. @cover: the unwind range that
 * it lies in; @by_name: what its names say. */
static uint8_t sym_reason(struct scan *scan, const struct symbol *sym, const struct eh_fde *cover,
	uint8_t by_name)
{
	bool known;

	if (cover && cover->signal_frame)
		return REASON_SIGNAL_FRAME;
	if (by_name && by_name < REASON_RETURNS_TWICE)
		return by_name;
	if (!cover)
		return by_name;
	if (!sym->name && ranges_inside(&scan->symbols, sym->start))
		return REASON_FRAGMENT;
	known = sym_find_row(scan, cover, sym->start);
	if (known && ehframe_row_is_entry(&scan->walk, scan->isa))
		return by_name;
	/* a thread's first frame is jumped to as well, but has no name of its own */
	if (known && sym->fde && scan->walk.row.ra == EH_RA_UNDEFINED
		&& (sym->name || sym->start == scan->elf->entry))
		return REASON_NO_RETURN;
	return REASON_FRAGMENT;
}

static uint64_t sym_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void sym_set_extent(struct scan *scan, struct symbol *sym, const struct region *region,
	const struct eh_fde *cover, uint64_t size)
{
	const struct ranges *symbols = &scan->symbols, *unwind = &scan->unwind;

	if (size)
		sym->end = size < region->end - sym->start ? sym->start + size : region->end;
	else if (cover)
		sym->end = cover->end;
	else
		sym->end = sym_min(ranges_next(symbols, sym->start + 1),
			ranges_next(unwind, sym->start + 1));
	sym->end = sym_min(sym->end, region->end);
	sym->limit = sym_min(ranges_taken(symbols, sym->end), ranges_taken(unwind, sym->end));
	sym->limit = sym_min(sym->limit, region->end);
}

/* Add the start at @addr, which has @n names. @fde: the last unwind range at or before it. */
static void sym_add_start(struct scan *scan, uint64_t addr, struct radix_item *names, size_t n,
	const struct eh_fde *fde)
{
	const struct region *region = region_find(scan, addr);
	struct symbol *sym = &scan->out->list[scan->out->count];
	const struct eh_fde *cover = fde && addr < fde->end ? fde : NULL;
	uint64_t size = 0;
	uint8_t by_name;

	if (!region || (!n && region->kind != REGION_TEXT))
		return;
	scan->out->count++;
	ranges_go_to(&scan->symbols, addr);
	ranges_go_to(&scan->unwind, addr);
	sym->start = addr;
	sym->fde = cover && cover->start == addr ? cover : NULL;
	by_name = sym_set_names(scan, sym, names, n, &size);
	sym_set_extent(scan, sym, region, cover, size);
	sym->reason = sym_reason(scan, sym, cover, by_name);
}

static int sym_merge(struct scan *scan, struct arena *arena)
{
	struct symbols *out = scan->out;
	size_t name = 0, fde = 0;

	out->list = sym_alloc(arena, scan->nstarts + out->nfdes, sizeof(*out->list));
	scan->aliases = sym_alloc(arena, scan->nstarts, sizeof(*scan->aliases));
	if (!out->list || !scan->aliases)
		return -ENOMEM;
	while (name < scan->nstarts || fde < out->nfdes) {
		size_t first = name;
		uint64_t addr = UINT64_MAX;

		if (name < scan->nstarts)
			addr = scan->starts[name].key;
		if (fde < out->nfdes)
			addr = sym_min(addr, out->fdes[fde].start);
		while (name < scan->nstarts && scan->starts[name].key == addr)
			name++;
		while (fde < out->nfdes && out->fdes[fde].start == addr)
			fde++;
		sym_add_start(scan, addr, scan->starts + first, name - first,
			fde ? &out->fdes[fde - 1] : NULL);
	}
	return 0;
}

int symbols_read(struct symbols *symbols, const struct elffile *elf, const struct isa *isa,
	struct arena *arena)
{
	struct scan scan = { .elf = elf, .isa = isa, .out = symbols };
	int err;

	*symbols = (struct symbols){ 0 };
	err = region_read(&scan);
	if (!err)
		err = fde_read(&scan, arena);
	if (!err)
		err = sym_read(&scan);
	if (!err)
		err = sym_merge(&scan, arena);
	arena_free(&scan.scratch);
	return err;
}

/* ---- functions that must see their caller's own return address ---- */

static uint8_t keeps_reason(const char *name)
{
	uint8_t reason = special_reason(name);

	if (reason != REASON_RETURNS_TWICE && reason != REASON_READS_RETURN)
		return REASON_NONE;
	for (size_t i = 0; i < NSPECIALS; i++)
		if (specials[i].match & JUMPED_TO && special_matches(&specials[i], name))
			return REASON_NONE;
	return reason;
}

uint8_t symbols_keeps_return(const struct symbol *symbol)
{
	uint8_t reason = symbol->reason && symbol->name ? keeps_reason(symbol->name) : REASON_NONE;

	for (size_t i = 0; symbol->reason && !reason && i < symbol->naliases; i++)
		reason = keeps_reason(symbol->aliases[i]);
	return reason;
}

/* What the name of a relocation's symbol says. A hash table counts no undefined symbols, so this
 * one may lie behind the extent of .dynsym that is known. */
static uint8_t slot_reason(const struct elffile *elf, const Elf64_Rela *rela)
{
	uint64_t index = ELF64_R_SYM(rela->r_info);
	const uint8_t *bytes = NULL;
	Elf64_Sym sym;

	if (index && elf->dynsym.bytes)
		bytes = elffile_at(elf, elf->dynsym.addr + index * sizeof(sym), sizeof(sym));
	if (!bytes)
		return REASON_NONE;
	memcpy(&sym, bytes, sizeof(sym));
	return keeps_reason(elffile_string(&elf->dynstr, sym.st_name));
}

static size_t slot_read(const struct elffile *elf, const struct elf_part *part,
	struct isa_slot *slots)
{
	size_t n = 0;

	for (uint64_t at = 0; part->size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;
		uint8_t reason;

		memcpy(&rela, part->bytes + at, sizeof(rela));
		reason = slot_reason(elf, &rela);
		if (!reason)
			continue;
		if (slots)
			slots[n] = (struct isa_slot){ rela.r_offset, reason };
		n++;
	}
	return n;
}

static int slot_compare(const void *a, const void *b)
{
	const struct isa_slot *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

long symbols_slots(const struct elffile *elf, struct arena *arena, struct isa_slot **slots)
{
	size_t n = slot_read(elf, &elf->rela, NULL) + slot_read(elf, &elf->plt_rela, NULL);

	*slots = sym_alloc(arena, n, sizeof(**slots));
	if (!*slots)
		return -ENOMEM;
	n = slot_read(elf, &elf->rela, *slots);
	n += slot_read(elf, &elf->plt_rela, *slots + n);
	mem_sort(*slots, n, sizeof(**slots), slot_compare);
	return (long)n;
}

static bool is_irelative(const struct elffile *elf, uint64_t type)
{
	switch (elf->machine) {
	case EM_X86_64:
		return type == R_X86_64_IRELATIVE;
	case EM_AARCH64:
		return type == R_AARCH64_IRELATIVE;
	case EM_PPC64:
		return type == R_PPC64_IRELATIVE || type == R_PPC64_JMP_IREL;
	default:
		return false;
	}
}

static uint64_t find_irelative(const struct elffile *elf, const struct elf_part *part, uint64_t resolver)
{
	for (uint64_t at = 0; part->size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, part->bytes + at, sizeof(rela));
		if ((uint64_t)rela.r_addend == resolver
			&& is_irelative(elf, ELF64_R_TYPE(rela.r_info)))
			return rela.r_offset;
	}
	return 0;
}

uint64_t symbols_resolved_at(const struct elffile *elf, uint64_t resolver)
{
	uint64_t at = find_irelative(elf, &elf->rela, resolver);

	return at ? at : find_irelative(elf, &elf->plt_rela, resolver);
}
