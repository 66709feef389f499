/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "catalog.h"
#include "session.h"
#include "../trampolines/image.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>

static struct {
	struct catalog_module *first;
	struct arena arena;
	uint64_t loads, unloads; /* of the loader, when it was looked at */
	bool looked;
} catalog;

static struct catalog_module *known(const struct module *m)
{
	struct catalog_module *c = catalog.first;

	while (c && (c->gone || c->module.bias != m->bias || c->module.ld != m->ld
			    || !str_eq(c->module.path, m->path)))
		c = c->next;
	return c;
}

static int add(const struct module *m)
{
	struct catalog_module *c = arena_alloc(&catalog.arena, sizeof(*c));
	char *path = arena_str(&catalog.arena, m->path, strlen(m->path));

	if (!c || !path)
		return -ENOMEM;
	c->module = *m;
	c->module.path = path;
	c->next = catalog.first;
	catalog.first = c;
	return 0;
}

static void is_gone(struct catalog_module *c)
{
	c->gone = true;
	if (c->has_names)
		plan_close(&c->plan);
	arena_free(&c->arena);
	c->has_names = c->has_code = false;
	c->problem = "it has been unloaded";
	c->error = -ENOENT;
}

static int read_modules(struct arena *arena)
{
	struct modules modules;
	struct maps maps;
	int err = session_modules(&modules, &maps, arena);

	if (err)
		return err;
	for (struct catalog_module *c = catalog.first; c; c = c->next) {
		bool loaded = false;

		for (size_t i = 0; i < modules.count; i++)
			loaded |= known(&modules.list[i]) == c;
		if (!loaded && !c->gone)
			is_gone(c);
	}
	for (size_t i = 0; !err && i < modules.count; i++)
		if (!modules.list[i].ours && !known(&modules.list[i]))
			err = add(&modules.list[i]);
	return err;
}

/* While the loader's list stands still (dl_iterate_phdr(3)). */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct arena arena = { 0 };
	int *err = arg;

	if (size < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		catalog.looked = false; /* a loader that does not tell */
	else if (catalog.looked && info->dlpi_adds == catalog.loads
		&& info->dlpi_subs == catalog.unloads)
		return 1;
	*err = read_modules(&arena);
	arena_free(&arena);
	catalog.loads = info->dlpi_adds;
	catalog.unloads = info->dlpi_subs;
	catalog.looked = !*err;
	return 1;
}

int catalog_refresh(void)
{
	int err = 0;

	dl_iterate_phdr(look, &err);
	return err;
}

struct catalog_module *catalog_first(void)
{
	return catalog.first;
}

bool catalog_lacks(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

static bool is_final(const struct catalog_module *c)
{
	return c->problem && !catalog_lacks(c->error);
}

int catalog_names(struct catalog_module *c)
{
	if (c->has_names)
		return 0;
	if (is_final(c))
		return c->error;
	c->error = plan_names(&c->plan, &c->module, &session.settings, &c->arena, &c->problem);
	if (!c->error)
		c->problem = NULL;
	else if (c->plan.elf.bytes && catalog_lacks(c->error))
		plan_close(&c->plan);
	c->has_names = !c->error;
	return c->error;
}

int catalog_code(struct catalog_module *c)
{
	int err = catalog_names(c);

	if (err || c->has_code)
		return err;
	if (is_final(c))
		return c->error;
	c->error = plan_code(&c->plan, &c->arena, &c->problem);
	if (!c->error)
		c->problem = NULL;
	c->has_code = !c->error;
	return c->error;
}

struct catalog_module *catalog_at(uint64_t addr)
{
	struct catalog_module *c = catalog.first;

	while (c && (c->gone || addr - c->module.lo >= c->module.hi - c->module.lo))
		c = c->next;
	return c;
}

const struct symbol *catalog_symbol(const struct catalog_module *c, uint64_t addr)
{
	size_t low = 0, high = c->plan.symbols.count;

	addr -= c->module.bias;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct symbol *s = &c->plan.symbols.list[middle];

		if (s->start == addr)
			return s;
		if (s->start < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void *catalog_pin(const struct catalog_module *c)
{
	return c->module.main ? NULL
			      : image_loader.open(c->module.path, RTLD_LAZY | RTLD_NOLOAD);
}

void catalog_unpin(void *pin)
{
	if (pin)
		image_loader.close(pin);
}

/* The module's own calls tell, where it makes any. The loader knows what other modules can call. */
uint64_t catalog_resolve(const struct catalog_module *c, const struct symbol *symbol)
{
	uint64_t slot = symbols_resolved_at(&c->plan.elf, symbol->start) + c->module.bias, addr = 0;
	void *handle;

	if (slot % 8 == 0 && slot >= c->module.lo && slot < c->module.hi)
		addr = *(const uint64_t *)slot;
	if (addr)
		return addr;
	handle = image_loader.open(c->module.main ? NULL : c->module.path, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return 0;
	addr = (uint64_t)dlsym(handle, symbol->name);
	image_loader.close(handle);
	return addr;
}
