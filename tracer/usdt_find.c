/* SPDX-License-Identifier: MIT */
/* Which static probes there are, where they are patched, and the detours they are sent to. */
#define _GNU_SOURCE 1
#include "../arch/mem.h"
#include "session.h"
#include "usdt.h"
#include "../arch/sys.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define GAP_TRIES 16
#define NOP_MAX	  16

/* ---- places ---- */

/* One that is patched is what it was: its module stays loaded. */
static struct usdt_place *patched_at(const void *address)
{
	struct usdt_place *p = usdt.places;

	while (p && !(p->patched && p->probe.address == address))
		p = p->next;
	return p;
}

/* Nobody attaches to it, nobody executes its detour or its handlers. */
static bool is_vacant(const struct usdt_place *p)
{
	return !p->taken && !usdt_is_running(p) && !p->replaced && !(p->region && p->region->lo);
}

static struct usdt_place *vacant_place(void)
{
	struct usdt_place *p = usdt.places;

	while (p && !is_vacant(p))
		p = p->next;
	if (p || usdt.nplaces == USDT_PLACES_MAX)
		return p;
	p = arena_alloc(&usdt.arena, sizeof(*p));
	if (!p)
		return NULL;
	p->running = &usdt.wiped->running[usdt.nplaces++];
	p->next = usdt.places;
	usdt.places = p;
	return p;
}

static uint64_t symbol_address(const struct plan *plan, const struct stap_arg *arg)
{
	for (size_t part = 0; part < 2; part++) {
		const struct elf_part *table = part ? &plan->elf.dynsym : &plan->elf.symtab;
		const struct elf_part *strings = part ? &plan->elf.dynstr : &plan->elf.strtab;

		for (uint64_t at = 0; table->bytes && at + 24 <= table->size; at += 24) {
			const uint8_t *sym = table->bytes + at; /* Elf64_Sym */
			uint32_t name;
			uint64_t value;
			const char *s;

			memcpy(&name, sym, 4);
			memcpy(&value, sym + 8, 8);
			s = elffile_string(strings, name);
			if (value && strlen(s) == arg->symbol_len
				&& !memcmp(s, arg->symbol, arg->symbol_len))
				return value + plan->module->bias;
		}
	}
	return 0;
}

static void describe_arguments(struct usdt_place *place, const struct plan *plan, const char *text)
{
	place->probe.arguments = stap_parse(plan->elf.machine, text, place->args);
	for (unsigned i = 0; i < place->probe.arguments; i++) {
		struct stap_arg *arg = &place->args[i];
		uint64_t address = arg->symbol ? symbol_address(plan, arg) : 0;

		if (arg->symbol && !address)
			arg->kind = STAP_UNKNOWN;
		arg->value += (int64_t)address;
		if (arg->low)
			arg->value &= 0xfff;
		arg->symbol = NULL; /* the file's bytes go */
	}
}

/* A string that stays; @kept if it is the same. */
static const char *keep(const char *kept, const char *s)
{
	return kept && str_eq(kept, s) ? kept : arena_str(&usdt.arena, s, strlen(s));
}

static struct usdt_place *new_place(const struct plan *plan, const struct stap_probe *found)
{
	struct usdt_place *p = vacant_place();

	if (!p)
		return NULL;
	usdt_free_hooks(p->hooks);
	*p = (struct usdt_place){ .next = p->next, .running = p->running, .taken = true,
		.probe = { .provider = keep(p->probe.provider, found->provider),
			.name = keep(p->probe.name, found->name),
			.module = keep(p->probe.module, plan->module->path),
			.address = (const void *)(found->addr + plan->module->bias) },
	};
	if (found->semaphore)
		p->semaphore = (uint16_t *)(found->semaphore + plan->module->bias);
	describe_arguments(p, plan, found->args);
	return p->probe.provider && p->probe.name && p->probe.module ? p : NULL;
}

static bool matches(const char *pattern, const char *s)
{
	return !pattern || str_glob(pattern, s);
}

static bool add_place(struct ftr_usdt *u, struct usdt_place *place)
{
	if (u->n == u->room) {
		size_t room = u->room ? 2 * u->room : 64;
		struct usdt_place **list = arena_alloc(&u->arena, room * sizeof(*list));

		if (!list)
			return false;
		if (u->n)
			memcpy(list, u->places, u->n * sizeof(*list));
		u->places = list;
		u->room = room;
	}
	u->places[u->n++] = place;
	return true;
}

/* A counter that cannot be written would let the program down. */
static bool semaphore_is_good(const struct usdt_search *s, const struct usdt_place *p)
{
	uint64_t at = (uint64_t)p->semaphore;
	const struct mapping *m = at ? maps_from(&s->maps, at) : NULL;

	return !at || (m && m->lo <= at && m->hi - at >= 2 && m->prot & PROT_WRITE);
}

/* Note the wanted probes of the module. 0 or -errno. */
static int find_places(struct usdt_search *s, const struct plan *plan)
{
	struct stap_probe found;

	for (uint64_t at = 0; stap_next(&plan->elf, &at, &found);) {
		struct usdt_place *p;

		if (!matches(s->provider, found.provider) || !matches(s->name, found.name))
			continue;
		p = patched_at((const void *)(found.addr + plan->module->bias));
		if (!p)
			p = new_place(plan, &found);
		if (!p || !add_place(s->result, p))
			return -ENOMEM;
		if (!semaphore_is_good(s, p))
			return -ENOTSUP;
	}
	return 0;
}

/* ---- detours ---- */

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (int)x->inside - (int)y->inside;
}

/* Of one address; a place goes behind the function that begins there, and replaces it. */
static size_t drop_replaced(struct symbol *list, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (i && list[i].inside && list[i].start == list[i - 1].start && !list[i - 1].inside) {
			list[n - 1].inside = true;
			continue;
		}
		list[n++] = list[i];
	}
	return n;
}

/* Make a symbol of each place that is not patched, in the function that it is in. 0 or -errno. */
static int add_symbols(struct plan *plan, struct usdt_place **places, size_t n, struct arena *arena)
{
	struct symbols *symbols = &plan->symbols;
	struct symbol *list = arena_alloc(arena, (symbols->count + n) * sizeof(*list));
	size_t count = symbols->count;

	if (!list)
		return -ENOMEM;
	memcpy(list, symbols->list, count * sizeof(*list));
	for (size_t i = 0; i < n; i++)
		if (!places[i]->patched)
			list[count++] = (struct symbol){ .name = places[i]->probe.name,
				.start = (uint64_t)places[i]->probe.address - plan->module->bias,
				.inside = true };
	mem_sort(list, count, sizeof(*list), compare_symbols);
	count = drop_replaced(list, count);
	for (size_t i = 0; i < count; i++) {
		if (!list[i].inside || list[i].end)
			continue;
		if (!i || list[i].start <= list[i - 1].start || list[i].start >= list[i - 1].end)
			return -ENOTSUP; /* in no function, or twice */
		list[i].end = list[i - 1].end;
		list[i].limit = list[i - 1].limit;
		list[i - 1].end = list[i - 1].limit = list[i].start;
	}
	symbols->list = list;
	symbols->count = count;
	return 0;
}

static uint32_t func_at(const struct isa_module *code, uint64_t addr)
{
	uint32_t i = 0;

	while (i < code->nfuncs && code->funcs[i].start != addr)
		i++;
	return i;
}

/* libc and the loader run functions of their own with all signals blocked. */
static bool may_break(const struct plan *plan)
{
	uint64_t loader = session.settings.place.loader;

	return !plan->is_libc && loader - plan->module->lo >= plan->module->hi - plan->module->lo;
}

/* How the nop at the start of the code's function @index is replaced. False: not at all. */
static bool choose_site(const struct plan *plan, uint32_t index, struct isa_site *site)
{
	const struct isa_func *func = &plan->code.funcs[index];
	const uint8_t *nop = elffile_at(&plan->elf, func->start, 1);
	uint8_t len = nop ? (uint8_t)arch_isa->nop(nop, func->end - func->start) : 0;

	*site = (struct isa_site){ .choice = SITE_ONE, .len = len };
	if (len >= arch_isa->patch_size)
		return true;
	arch_isa->site(&plan->code, index, site);
	if (site->choice != SITE_REFUSED && site->choice != SITE_HOP && !site->offset)
		return true;
	*site = (struct isa_site){ .choice = SITE_TRAP, .len = len };
	return len && may_break(plan);
}

/* Write the detour of @place, to be at @at. Its size, or -errno. */
static int make_detour(struct usdt_place *place, const struct plan *plan, uint64_t at, uint8_t *out)
{
	uint64_t addr = (uint64_t)place->probe.address - plan->module->bias;
	uint32_t index = func_at(&plan->code, addr);
	struct isa_patch patches[2];
	struct isa_site site;
	struct isa_emit in = { .module = &plan->code, .func = &plan->code.funcs[index], .site = &site,
		.bias = (int64_t)plan->module->bias, .at = at };
	const uint8_t *bytes;
	uint8_t covered;
	int size;

	if (!choose_site(plan, index, &site))
		return -ENOTSUP;
	place->trap = site.choice == SITE_TRAP;
	covered = place->trap || site.len > arch_isa->patch_size ? site.len : arch_isa->patch_size;
	bytes = elffile_at(&plan->elf, addr, covered);
	if (!bytes || memcmp(bytes, place->probe.address, covered))
		return -ENOTSUP;
	size = arch_isa->emit_hit(&in, (uint64_t)arch_hit_stub, (uint64_t)place, out);
	if (size < 0)
		return size == -EINVAL ? -ENOTSUP : size;
	if (arch_isa->patch(&in, patches) != 1)
		return -ERANGE;
	place->detour = at;
	place->patch = patches[0];
	place->window = site.choice == SITE_ONE ? 0 : site.len; /* nobody is inside of a nop */
	return size;
}

/* Map @size bytes of @code, executable, at @at. */
static bool map_code(uint64_t at, const uint8_t *code, size_t size)
{
	int fd = (int)sys_call(SYS_memfd_create, "ftr-usdt", 1 /* MFD_CLOEXEC */);
	void *got = NULL;

	if (fd < 0)
		return false;
	if (!sys_write_all(fd, code, size))
		got = sys_mmap((void *)at, size, PROT_READ | PROT_EXEC,
			MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	sys_close(fd);
	if ((uint64_t)got == at)
		return true;
	if (got && !sys_failed(got)) /* an old kernel takes it as a hint */
		sys_munmap(got, size);
	return false;
}

static int make_region(struct usdt_search *s, const struct plan *plan, struct usdt_place **places,
	size_t n, uint64_t at, size_t size)
{
	struct usdt_region *region = arena_alloc(&usdt.arena, sizeof(*region));
	uint8_t *code = arena_alloc(&s->arena, size);
	size_t used = 0;

	if (!region || !code)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int got = 0;

		if (!places[i]->patched)
			got = make_detour(places[i], plan, at + used, code + used);
		if (got < 0)
			return got;
		used += ((size_t)got + 15) & ~15ul;
	}
	if (!map_code(at, code, size))
		return -ERANGE;
	region->lo = at;
	region->hi = at + size;
	region->next = usdt.regions;
	usdt.regions = region;
	for (size_t i = 0; i < n; i++)
		if (!places[i]->patched)
			places[i]->region = region;
	return 0;
}

/* One region for all of @places, which are sorted. -ERANGE: nothing is near enough to all of them. */
static int serve_together(struct usdt_search *s, const struct plan *plan, struct usdt_place **places,
	size_t n)
{
	struct gap_request request = session.settings.place;
	uint64_t refused[GAP_TRIES], page = request.page;
	int err = -ERANGE;

	request.text_lo = (uint64_t)places[0]->probe.address;
	request.text_hi = (uint64_t)places[n - 1]->probe.address + NOP_MAX;
	request.reach = arch_isa->reach;
	request.size = (n * HIT_DETOUR_MAX + page - 1) & ~(page - 1);
	request.refused = refused;
	while (err == -ERANGE && request.nrefused < GAP_TRIES) {
		uint64_t at = gap_find(&s->maps, &request);

		if (!at)
			break;
		err = make_region(s, plan, places, n, at, request.size);
		refused[request.nrefused++] = at;
	}
	return err;
}

static int serve(struct usdt_search *s, const struct plan *plan, struct usdt_place **places, size_t n)
{
	int err = serve_together(s, plan, places, n);

	if (err != -ERANGE || n == 1)
		return err;
	err = serve(s, plan, places, n / 2);
	return err ? err : serve(s, plan, places + n / 2, n - n / 2);
}

static int compare_addresses(const void *a, const void *b)
{
	const struct usdt_place *const *x = a, *const *y = b;

	return (*x)->probe.address < (*y)->probe.address ? -1
		: (*x)->probe.address > (*y)->probe.address;
}

/* Give the module's places detours. 0 or -errno. */
static int make_detours(struct usdt_search *s, struct plan *plan, struct usdt_place **places, size_t n)
{
	const char *why;
	int err = add_symbols(plan, places, n, &s->arena);

	mem_sort(places, n, sizeof(*places), compare_addresses);
	if (!err)
		err = plan_code(plan, &s->arena, &why);
	return err ? err : serve(s, plan, places, n);
}

/* ---- modules ---- */

static bool all_patched(struct usdt_place *const *places, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!places[i]->patched)
			return false;
	return true;
}

static int pin_module(struct ftr_usdt *u, const struct module *module)
{
	void *pin = module->main ? NULL : dlopen(module->path, RTLD_LAZY | RTLD_NOLOAD);

	if (pin)
		u->pins[u->npins++] = pin;
	return pin || module->main ? 0 : -ENOENT;
}

static int search_module(struct usdt_search *s, const struct module *module)
{
	size_t first = s->result->n;
	struct plan plan;
	const char *why;
	int err;

	if (plan_names(&plan, module, &session.settings, &s->arena, &why))
		err = 0; /* nothing of ours */
	else
		err = find_places(s, &plan);
	if (!err && s->result->n > first) {
		struct usdt_place **places = s->result->places + first;
		size_t n = s->result->n - first;

		err = pin_module(s->result, module);
		if (!err && !all_patched(places, n))
			err = make_detours(s, &plan, places, n);
	}
	plan_close(&plan);
	return err;
}

int usdt_find(struct usdt_search *s)
{
	struct modules modules;
	int err = session_modules(&modules, &s->maps, &s->arena);

	if (!err) {
		s->result->pins = arena_alloc(
			&s->result->arena, (modules.count + 1) * sizeof(*s->result->pins));
		err = s->result->pins ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !err && i < modules.count; i++) {
		const struct module *m = &modules.list[i];

		if (m->ours && !m->main) /* the library may be linked into the program */
			continue;
		if (matches(s->module, m->path) || matches(s->module, str_base(m->path)))
			err = search_module(s, m);
	}
	if (!err && !s->result->n)
		err = -ENOENT;
	mem_sort(s->result->places, s->result->n, sizeof(*s->result->places),
		compare_addresses);
	return err;
}
