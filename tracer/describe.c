/* SPDX-License-Identifier: MIT */
#include "describe.h"
#include "demangle.h"
#include "../include/ftr/ftr.h"
#include "../rethook/hook.h"
#include <errno.h>

#define EXPORTED __attribute__((visibility("default")))
#define NAME_MAX_SHOWN 256

void describe_begin(struct describer *describer)
{
	*describer = (struct describer){ 0 };
	if (shadow_hooks.sealed || maps_read(&describer->maps, "/proc/self/maps", &describer->arena))
		describer->maps.count = 0;
}

static void close_module(struct describer *describer)
{
	if (describer->elf.bytes)
		modules_close(&describer->elf);
	arena_free(&describer->module_arena);
	describer->module = (struct module){ 0 };
}

void describe_end(struct describer *describer)
{
	close_module(describer);
	arena_free(&describer->arena);
}

int describe_open(struct describer *describer, uint64_t address)
{
	struct module *m = &describer->module;
	const char *why;
	int err;

	if (address >= m->lo && address < m->hi)
		return describer->elf.bytes ? 0 : -ENOENT;
	close_module(describer);
	if (!modules_at(m, &describer->maps, address)) {
		*m = (struct module){ 0 };
		return -ENOENT;
	}
	err = modules_open(m, &describer->elf, &why);
	if (err) {
		describer->elf.bytes = NULL;
		return err;
	}
	return symbols_read(&describer->symbols, &describer->elf, arch_isa,
		&describer->module_arena);
}

/* The function that link-time address @addr is in; NULL: none. */
static const struct symbol *symbol_at(const struct symbols *symbols, uint64_t addr)
{
	size_t lo = 0, hi = symbols->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (symbols->list[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < symbols->list[lo - 1].end ? &symbols->list[lo - 1] : NULL;
}

bool describe(struct describer *describer, uint64_t address, char *text, size_t size)
{
	const struct module *m = &describer->module;
	const struct symbol *symbol = NULL;
	char name[NAME_MAX_SHOWN];
	uint64_t link;

	/* A return address may be that of what follows the caller. */
	if (!describe_open(describer, address - 1))
		symbol = symbol_at(&describer->symbols, address - 1 - m->bias);
	link = address - m->bias;
	if (symbol && symbol->name) {
		if (!demangle_name(symbol->name, name, sizeof(name)))
			str_print(name, sizeof(name), "%s", symbol->name);
		str_print(text, size, "%s+0x%lx in %s", name, link - symbol->start,
			str_base(m->path));
		return true;
	}
	if (m->path)
		str_print(text, size, "%s+0x%lx", str_base(m->path), link);
	else
		str_print(text, size, "0x%lx", address);
	return symbol != NULL;
}

EXPORTED int ftr_describe(const void *address, char *text, size_t size)
{
	struct describer describer;
	bool found;

	if (hook_in_handler() || shadow_hooks.sealed)
		return -EPERM;
	describe_begin(&describer);
	found = describe(&describer, (uint64_t)address, text, size);
	describe_end(&describer);
	return found ? 0 : -ENOENT;
}
