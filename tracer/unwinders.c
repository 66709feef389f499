/* SPDX-License-Identifier: MIT */
#include "unwinders.h"
#include "modules.h"
#include <elf.h>

static void note(struct unwinder *u, const char *name, uint64_t addr)
{
	static const char prefix[] = "_Unwind_";

	if (!str_starts(name, prefix))
		return;
	name += sizeof(prefix) - 1;
	if (str_eq(name, "GetIP"))
		u->get_ip = (uint64_t(*)(struct unwind_context *))addr;
	else if (str_eq(name, "SetIP"))
		u->set_ip = (void (*)(struct unwind_context *, uint64_t))addr;
	else if (str_eq(name, "SetGR"))
		u->set_gr = (void (*)(struct unwind_context *, int, uint64_t))addr;
	else if (str_eq(name, "Resume"))
		u->resume = addr;
}

static void note_table(struct unwinder *u, const struct elf_part *symbols,
	const struct elf_part *strings, uint64_t bias)
{
	const Elf64_Sym *sym = (const void *)symbols->bytes;

	for (size_t i = 0; sym && i < symbols->size / sizeof(*sym); i++)
		if (sym[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC)
			note(u, elffile_string(strings, sym[i].st_name), sym[i].st_value + bias);
}

static bool complete(const struct unwinder *u)
{
	return u->get_ip && u->set_ip && u->set_gr && u->resume;
}

bool unwinders_read(const struct elffile *elf, uint64_t bias, uint64_t lo, uint64_t hi,
	struct unwinder *out)
{
	*out = (struct unwinder){ .lo = lo, .hi = hi };
	note_table(out, &elf->dynsym, &elf->dynstr, bias);
	if (!complete(out))
		note_table(out, &elf->symtab, &elf->strtab, bias);
	return complete(out);
}

bool unwinders_find(uint64_t addr, struct unwinder *out)
{
	struct arena arena = { 0 };
	struct module m;
	struct maps maps;
	struct elffile elf;
	const char *why;
	bool found = false;

	if (!maps_read(&maps, "/proc/self/maps", &arena) && modules_at(&m, &maps, addr)
		&& !modules_open(&m, &elf, &why)) {
		found = unwinders_read(&elf, m.bias, m.lo, m.hi, out);
		modules_close(&elf);
	}
	arena_free(&arena);
	return found;
}
