/* SPDX-License-Identifier: MIT */
/*
 * Runtimes find their frames on the stack by looking up return addresses in tables of their own,
 * and some move or rewrite what they find. Whatever they may come upon is entry only:
 *
 * - Go: the whole module.
 * - OCaml: the code of its units. The collector follows their frames from one return address to the
 *   next; C code is beyond the frames that it looks at.
 * - Java: the whole virtual machine. Generated code calls any function of it, and the return
 *   address of that call is how the innermost Java frame is found.
 * - V8's built-in code has no unwind tables, and leaves by other return addresses than it was
 *   entered with. The C++ functions that it calls are ordinary, but V8 reads and rewrites their
 *   return addresses; it asks a resolver where these are kept, made for tracers like this one
 *   (v8::V8::SetReturnAddressLocationResolver).
 */
#include "runtimes.h"
#include "../rethook/shadow.h"
#include <elf.h>
#include <errno.h>

#define V8_SET_RESOLVER "_ZN2v82V832SetReturnAddressLocationResolverEPFmmE"
#define JVM_START	"JNI_CreateJavaVM"

static const struct symbol *find(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->symbols.count; i++)
		if (plan->symbols.list[i].name && str_eq(plan->symbols.list[i].name, name))
			return &plan->symbols.list[i];
	return NULL;
}

/* The first function at or behind @addr; the number of functions: none. */
static size_t first_from(const struct symbols *symbols, uint64_t addr)
{
	size_t lo = 0, hi = symbols->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (symbols->list[mid].start < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* How the number of OCaml units around a function changes with each, from the labels
 * camlUNIT__code_begin and camlUNIT__code_end, which are no functions. NULL: no memory. */
static int32_t *caml_units(const struct plan *plan)
{
	const struct elffile *elf = &plan->elf;
	bool full = elf->symtab.bytes;
	const struct elf_part *table = full ? &elf->symtab : &elf->dynsym;
	const Elf64_Sym *sym = (const void *)table->bytes;
	size_t size = (plan->symbols.count + 1) * sizeof(int32_t);
	int32_t *change = arena_alloc(plan->code.arena, size);

	if (!change)
		return NULL;
	memset(change, 0, size);
	for (size_t i = 0; sym && i < table->size / sizeof(*sym); i++) {
		const char *name =
			elffile_string(full ? &elf->strtab : &elf->dynstr, sym[i].st_name);

		if (sym[i].st_shndx == SHN_UNDEF || !str_starts(name, "caml"))
			continue;
		if (str_ends(name, "__code_begin"))
			change[first_from(&plan->symbols, sym[i].st_value)]++;
		else if (str_ends(name, "__code_end"))
			change[first_from(&plan->symbols, sym[i].st_value)]--;
	}
	return change;
}

int runtimes_mark(struct plan *plan)
{
	bool all = plan->elf.go || find(plan, JVM_START);
	const int32_t *change = caml_units(plan);
	int32_t units = 0;

	if (!change)
		return -ENOMEM;
	for (size_t i = 0; i < plan->symbols.count; i++) {
		struct symbol *s = &plan->symbols.list[i];
		bool v8 = !s->fde && s->name && str_starts(s->name, "Builtins_");

		units += change[i];
		if (s->reason == REASON_NONE && (all || units > 0 || v8))
			s->reason = REASON_FOREIGN_STACK;
	}
	return 0;
}

void runtimes_announce(const struct plan *plan)
{
	const struct symbol *s = find(plan, V8_SET_RESOLVER);
	void (*set_resolver)(uint64_t (*)(uint64_t));

	if (!s)
		return;
	set_resolver = (void (*)(uint64_t (*)(uint64_t)))(s->start + plan->module->bias);
	set_resolver(shadow_locate);
}
