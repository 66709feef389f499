/* SPDX-License-Identifier: MIT */
/*
 * Static probes of sys/sdt.h: include/ftr/ftr.h. A probe is a nop somewhere in a function. A jump
 * takes its place and, where the nop is one byte, that of the instructions behind it, chosen by the
 * same rules as at a function's entry: for the planner a probe is a function that begins at the
 * nop. The detours of a module's probes are in memory near it, which is never writable and
 * executable: it is a file that was written before.
 *
 * A place counts who is between its first and its last look at its list of hooks; a list that was
 * replaced is given back once nobody is. The counters are in memory that a fork wipes, since the
 * child does not have its parent's other threads.
 */
#define _GNU_SOURCE 1
#include "../arch/mem.h"
#include "probe.h"
#include "session.h"
#include "stap.h"
#include "../arch/sys.h"
#include "../include/ftr/ftr.h"
#include "../trampolines/live.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define EXPORTED     __attribute__((visibility("default")))
#define PER_THREAD   __thread __attribute__((tls_model("initial-exec")))
#define PLACES_MAX   16384
#define NESTED_MAX   8
#define GAP_TRIES    16

struct usdt_hook {
	ftr_usdt_handler *handler;
	void *data;
	const struct ftr_usdt *owner;
};

/* Never changed while it is in use. */
struct usdt_hooks {
	struct arena arena; /* its own memory */
	struct usdt_hooks *next; /* once it was replaced */
	size_t n;
	struct usdt_hook list[];
};

/* Memory with detours of one module. */
struct usdt_region {
	struct usdt_region *next;
	uint64_t lo, hi; /* 0: given back */
	unsigned users;	 /* places that are patched */
};

/* A probe that was attached to. Never freed; made another one once nobody can know it any more. */
struct usdt_place {
	struct usdt_place *next;
	struct ftr_usdt_probe probe;
	struct stap_arg args[STAP_ARGS_MAX];
	uint16_t *semaphore;
	struct usdt_hooks *hooks, *replaced;
	uint32_t *running;
	struct usdt_region *region; /* where its detour is, or was; NULL: it had none */
	struct isa_patch patch, original;
	uint8_t window;
	bool patched;
	bool taken; /* patched, or about to be */
};

struct ftr_usdt {
	struct ftr_usdt *next;
	struct arena arena; /* its own memory */
	struct usdt_place **places; /* sorted by address */
	void **pins; /* handles that keep the modules loaded */
	size_t n, npins, room;
};

struct ftr_usdt_hit {
	const struct usdt_place *place;
	const struct arch_hit *state;
	const void *kept; /* see arch_hit_vector() */
};

static struct {
	uint32_t *wiped; /* the lock, then the places' counters */
	struct usdt_place *places;
	uint32_t nplaces;
	struct usdt_region *regions;
	struct ftr_usdt *attached;
	struct arena arena;
} usdt;

/* Whose handlers run in this thread, innermost last. */
static PER_THREAD const struct ftr_usdt *nested[NESTED_MAX];
static PER_THREAD unsigned depth;

/* ---- hits ---- */

int *__errno_location(void) __attribute__((weak, const));
static int64_t errno_offset; /* from the thread pointer; 0: the C library has none */

static bool is_blind(const struct ftr_usdt *owner)
{
	for (unsigned i = 0; i < depth; i++)
		if (nested[i] == owner)
			return true;
	return depth == NESTED_MAX;
}

static void run_hooks(const struct usdt_hooks *hooks, struct ftr_usdt_hit *hit)
{
	for (size_t i = 0; hooks && i < hooks->n; i++) {
		const struct usdt_hook *h = &hooks->list[i];

		if (is_blind(h->owner))
			continue;
		nested[depth++] = h->owner;
		__atomic_load_n(&h->handler, __ATOMIC_RELAXED)(hit, h->data);
		depth--;
	}
}

/* A counter that a fork has wiped meanwhile stays 0. */
static void leave(uint32_t *running)
{
	uint32_t n = __atomic_load_n(running, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(
			    running, &n, n - 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void usdt_hit(struct arch_hit *state, const void *kept)
{
	struct usdt_place *place = (struct usdt_place *)state->record;
	struct ftr_usdt_hit hit = { place, state, kept };
	int *error = errno_offset ? (int *)(arch_thread_pointer() + (uint64_t)errno_offset) : NULL;
	int saved = error ? *error : 0;

	__atomic_fetch_add(place->running, 1, __ATOMIC_SEQ_CST);
	run_hooks(__atomic_load_n(&place->hooks, __ATOMIC_SEQ_CST), &hit);
	leave(place->running);
	if (error)
		*error = saved;
}

EXPORTED const struct ftr_usdt_probe *ftr_usdt_probe(const struct ftr_usdt_hit *hit)
{
	return &hit->place->probe;
}

static uint64_t register_value(const struct arch_hit *state, uint8_t reg)
{
	return reg < 16 ? state->regs[reg] : 0;
}

/* What a probe's description says of memory is not trusted. */
static int read_safely(uint64_t address, void *to, size_t size)
{
	struct {
		void *base;
		uint64_t size;
	} local = { to, size }, remote = { (void *)address, size };
	long got = sys_call(SYS_process_vm_readv, sys_getpid(), &local, 1, &remote, 1, 0);

	return got == (long)size ? 0 : got < 0 ? (int)got : -EFAULT;
}

/* Argument @n, if it is a number of that kind: what it says of itself, and its bits. */
static int read_argument(const struct ftr_usdt_hit *hit, unsigned n, bool is_float,
	const struct stap_arg **found, uint64_t *raw)
{
	const struct stap_arg *arg = &hit->place->args[n < STAP_ARGS_MAX ? n : 0];
	bool in_vector = arg->kind == STAP_REGISTER && arg->base >= STAP_FLOAT_REGISTER;

	*found = arg;
	*raw = (uint64_t)arg->value;
	if (n >= hit->place->probe.arguments)
		return -ENOENT;
	if (arg->kind == STAP_UNKNOWN || (arg->is_float || in_vector) != is_float
		|| (is_float && arg->size < 4))
		return -ENOTSUP;
	if (in_vector)
		return arch_hit_vector(hit->kept, arg->base - STAP_FLOAT_REGISTER, raw) ? 0
										 : -ENOTSUP;
	if (arg->kind == STAP_REGISTER)
		*raw = register_value(hit->state, arg->base);
	if (arg->kind != STAP_MEMORY)
		return 0;
	*raw += register_value(hit->state, arg->base);
	*raw += register_value(hit->state, arg->index) * arg->scale;
	return read_safely(*raw, raw, arg->size);
}

EXPORTED int ftr_usdt_argument(const struct ftr_usdt_hit *hit, unsigned n, int64_t *value)
{
	const struct stap_arg *arg;
	uint64_t raw;
	int err = read_argument(hit, n, false, &arg, &raw);

	if (!err)
		*value = stap_extend(arg, raw);
	return err;
}

EXPORTED int ftr_usdt_double(const struct ftr_usdt_hit *hit, unsigned n, double *value)
{
	const struct stap_arg *arg;
	uint64_t raw;
	int err = read_argument(hit, n, true, &arg, &raw);

	if (err)
		return err;
	raw = stap_double(arg, raw);
	memcpy(value, &raw, sizeof(raw));
	return 0;
}

/* ---- one at a time ---- */

static int prepare(void)
{
	uint32_t *none = NULL, *w;
	size_t size = (PLACES_MAX + 1) * sizeof(*w);

	if (!arch_isa->emit_hit || !arch_hit_prepare())
		return -ENOSYS;
	if (__errno_location)
		errno_offset = (int64_t)((uint64_t)__errno_location() - arch_thread_pointer());
	if (__atomic_load_n(&usdt.wiped, __ATOMIC_ACQUIRE))
		return 0;
	w = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(w))
		return -ENOMEM;
	if (sys_call(SYS_madvise, w, size, MADV_WIPEONFORK)
		|| !__atomic_compare_exchange_n(
			&usdt.wiped, &none, w, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		sys_munmap(w, size);
	return usdt.wiped ? 0 : -EPERM;
}

static void lock(void)
{
	while (__atomic_exchange_n(usdt.wiped, 1, __ATOMIC_ACQUIRE))
		threads_pause(50);
}

static void unlock(void)
{
	__atomic_store_n(usdt.wiped, 0, __ATOMIC_RELEASE);
}

/* ---- memory that is given back ---- */

static bool is_running(const struct usdt_place *place)
{
	return __atomic_load_n(place->running, __ATOMIC_SEQ_CST) != 0;
}

static void free_hooks(struct usdt_hooks *hooks)
{
	struct arena arena;

	if (!hooks)
		return;
	arena = hooks->arena;
	arena_free(&arena);
}

static void free_replaced(struct usdt_place *place)
{
	while (place->replaced && !is_running(place)) {
		struct usdt_hooks *hooks = place->replaced;

		place->replaced = hooks->next;
		free_hooks(hooks);
	}
}

static void free_region(struct usdt_region *region)
{
	struct code_range range = { region->lo, region->hi };

	/* A handler's own thread is in a detour, too. */
	if (!region->lo || region->users || depth || live_busy(&range, 1))
		return;
	sys_munmap((void *)region->lo, region->hi - region->lo);
	region->lo = 0;
}

/* What could not be given back when it was left. */
static void sweep(void)
{
	for (struct usdt_place *p = usdt.places; p; p = p->next)
		free_replaced(p);
	for (struct usdt_region *r = usdt.regions; r; r = r->next)
		free_region(r);
}

/* ---- which probes ---- */

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
	return !p->taken && !is_running(p) && !p->replaced && !(p->region && p->region->lo);
}

static struct usdt_place *vacant_place(void)
{
	struct usdt_place *p = usdt.places;

	while (p && !is_vacant(p))
		p = p->next;
	if (p || usdt.nplaces == PLACES_MAX)
		return p;
	p = arena_alloc(&usdt.arena, sizeof(*p));
	if (!p)
		return NULL;
	p->running = usdt.wiped + 1 + usdt.nplaces++;
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
	free_hooks(p->hooks);
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

struct search {
	const char *provider, *name, *module;
	struct ftr_usdt *result;
	struct maps maps;
	struct arena arena;
};

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
static bool semaphore_is_good(const struct search *s, const struct usdt_place *p)
{
	uint64_t at = (uint64_t)p->semaphore;
	const struct mapping *m = at ? maps_from(&s->maps, at) : NULL;

	return !at || (m && m->lo <= at && m->hi - at >= 2 && m->prot & PROT_WRITE);
}

/* Note the wanted probes of the module. 0 or -errno. */
static int find_places(struct search *s, const struct plan *plan)
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

	return x->start < y->start ? -1 : x->start > y->start;
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
	for (size_t i = 0; i < count; i++) {
		if (!list[i].inside)
			continue;
		if (!i || list[i].start <= list[i - 1].start || list[i].start >= list[i - 1].end)
			return -ENOTSUP; /* in no function, at its very start, or twice */
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

/* Write the detour of @place, to be at @at. Its size, or -errno. */
static int make_detour(struct usdt_place *place, const struct plan *plan, uint64_t at, uint8_t *out)
{
	uint64_t addr = (uint64_t)place->probe.address - plan->module->bias;
	uint32_t index = func_at(&plan->code, addr);
	const struct isa_func *func = &plan->code.funcs[index];
	struct isa_patch patches[2];
	struct isa_site site;
	struct isa_emit in = { .module = &plan->code, .func = func, .site = &site,
		.bias = (int64_t)plan->module->bias, .at = at };
	const uint8_t *bytes;
	uint8_t covered;
	int size;

	arch_isa->site(&plan->code, index, &site);
	covered = site.len > arch_isa->patch_size ? site.len : arch_isa->patch_size;
	if (site.choice == SITE_REFUSED || site.choice == SITE_HOP || site.offset)
		return -ENOTSUP;
	bytes = elffile_at(&plan->elf, addr, covered);
	if (!bytes || memcmp(bytes, place->probe.address, covered))
		return -ENOTSUP;
	size = arch_isa->emit_hit(&in, (uint64_t)arch_hit_stub, (uint64_t)place, out);
	if (size >= 0 && arch_isa->patch(&in, patches) != 1)
		return -ERANGE;
	place->patch = patches[0];
	place->window = site.len;
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

static int make_region(struct search *s, const struct plan *plan, struct usdt_place **places,
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

/* Give the module's places detours. 0 or -errno. */
static int make_detours(struct search *s, struct plan *plan, struct usdt_place **places, size_t n)
{
	struct gap_request request = session.settings.place;
	uint64_t refused[GAP_TRIES], page = request.page;
	const char *why;
	int err = add_symbols(plan, places, n, &s->arena);

	if (!err)
		err = plan_code(plan, &s->arena, &why);
	request.text_lo = plan->module->lo;
	request.text_hi = plan->module->hi;
	request.reach = arch_isa->reach;
	request.size = (n * HIT_DETOUR_MAX + page - 1) & ~(page - 1);
	request.refused = refused;
	while (!err) {
		uint64_t at = gap_find(&s->maps, &request);

		err = at ? make_region(s, plan, places, n, at, request.size) : -ERANGE;
		if (err != -ERANGE || !at || request.nrefused == GAP_TRIES)
			break;
		refused[request.nrefused++] = at;
		err = 0;
	}
	return err;
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

static int search_module(struct search *s, const struct module *module)
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

static int compare_places(const void *a, const void *b)
{
	const struct usdt_place *const *x = a, *const *y = b;

	return (*x)->patch.addr < (*y)->patch.addr ? -1 : (*x)->patch.addr > (*y)->patch.addr;
}

static int search_all(struct search *s)
{
	struct modules modules;
	int err = maps_read(&s->maps, "/proc/self/maps", &s->arena);

	if (err)
		return -EPERM;
	err = modules_find(&modules, &s->maps, session.phdr, session.phnum, &s->arena);
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
	mem_sort(s->result->places, s->result->n, sizeof(*s->result->places), compare_places);
	return err;
}

/* ---- hooks ---- */

/* The place's hooks but for those of @without, and @with behind them. NULL: no memory. */
static struct usdt_hooks *new_hooks(const struct usdt_place *place, const struct ftr_usdt *without,
	const struct usdt_hook *with)
{
	size_t n = place->hooks ? place->hooks->n : 0;
	struct arena arena = { 0 };
	struct usdt_hooks *hooks =
		arena_alloc(&arena, sizeof(*hooks) + (n + 1) * sizeof(hooks->list[0]));

	if (!hooks)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (place->hooks->list[i].owner != without)
			hooks->list[hooks->n++] = place->hooks->list[i];
	if (with)
		hooks->list[hooks->n++] = *with;
	hooks->arena = arena;
	return hooks;
}

static void publish(struct usdt_place *place, struct usdt_hooks *hooks)
{
	struct usdt_hooks *old = place->hooks;

	__atomic_store_n(&place->hooks, hooks, __ATOMIC_SEQ_CST);
	if (old) {
		old->next = place->replaced;
		place->replaced = old;
	}
}

static bool is_wanted(const struct usdt_place *place)
{
	return place->hooks && place->hooks->n;
}

static void raise_semaphores(const struct ftr_usdt *u, uint16_t by)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->places[i]->semaphore)
			__atomic_fetch_add(u->places[i]->semaphore, by, __ATOMIC_SEQ_CST);
}

/* ---- patches ---- */

/* Patch those of the places that are wanted and not patched, or restore the others. 0 or -errno. */
static int patch_places(struct ftr_usdt *u, bool wanted)
{
	struct arena arena = { 0 };
	struct isa_patch *patches = arena_alloc(&arena, u->n * 2 * sizeof(*patches));
	struct isa_patch *old = patches + u->n;
	uint8_t *windows = arena_alloc(&arena, u->n);
	int err = patches && windows ? 0 : -ENOMEM;
	size_t n = 0, i, k;

	for (i = 0; i < u->n && !err; i++)
		if (is_wanted(u->places[i]) == wanted && u->places[i]->patched != wanted) {
			windows[n] = u->places[i]->window;
			patches[n++] = wanted ? u->places[i]->patch : u->places[i]->original;
		}
	if (!err && n)
		err = live_store(patches, n, windows, old, &session.settings.patch);
	for (i = k = 0; i < u->n && k < n && !err; i++) {
		struct usdt_place *p = u->places[i];

		if (patches[k].addr != (uint64_t)p->probe.address)
			continue;
		if (wanted)
			p->original = old[k];
		p->patched = wanted;
		p->region->users += wanted ? 1 : -1u;
		k++;
	}
	arena_free(&arena);
	return err;
}

static void no_handler(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	(void)data;
}

/* Take the hooks of @u away; where there is no memory for that they stay, without a handler. */
static void take_hooks(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct usdt_place *p = u->places[i];
		struct usdt_hooks *hooks = new_hooks(p, u, NULL);

		if (hooks)
			publish(p, hooks);
		for (size_t k = 0; !hooks && p->hooks && k < p->hooks->n; k++)
			if (p->hooks->list[k].owner == u)
				__atomic_store_n(&p->hooks->list[k].handler, no_handler,
					__ATOMIC_SEQ_CST);
	}
}

static int put_hooks(const struct ftr_usdt *u, const struct usdt_hook *hook)
{
	for (size_t i = 0; i < u->n; i++) {
		struct usdt_hooks *hooks = new_hooks(u->places[i], u, hook);

		if (!hooks)
			return -ENOMEM;
		publish(u->places[i], hooks);
	}
	return 0;
}

/* @unpin: none of its places stays patched. */
static void free_attachment(struct ftr_usdt *u, bool unpin)
{
	struct arena arena = u->arena;

	for (size_t i = 0; i < u->npins && unpin; i++)
		dlclose(u->pins[i]);
	arena_free(&arena);
}

static void give_up_places(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n; i++)
		u->places[i]->taken = u->places[i]->patched;
}

/* ---- the functions ---- */

static int attach(struct search *s, const struct usdt_hook *hook)
{
	int err = search_all(s);

	if (!err)
		err = put_hooks(s->result, hook);
	if (!err)
		err = patch_places(s->result, true);
	if (err) {
		take_hooks(s->result);
		give_up_places(s->result);
	} else {
		raise_semaphores(s->result, 1);
	}
	return err;
}

static int fail(int err)
{
	static const struct {
		int err;
		const char *why;
	} reasons[] = {
		{ -ENOENT, "no loaded module has such a static probe" },
		{ -ENOTSUP, "a static probe has no room for a jump, or its code is not that of the file" },
		{ -ERANGE, "there is no free memory near enough to the static probes" },
		{ -EBUSY, "a thread does not leave the code at a static probe" },
		{ -ENOSYS, "static probes cannot be attached to on this CPU" },
		{ -EINVAL, "no handler, or no such attachment" },
	};
	const char *why = "static probes: no memory, or the system does not allow it";

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].err == err)
			why = reasons[i].why;
	return probe_fail(err, "%s", why);
}

EXPORTED int ftr_usdt_attach(const char *provider, const char *name, const char *module,
	ftr_usdt_handler *handler, void *data, struct ftr_usdt **attachment)
{
	struct search s = { .provider = provider, .name = name, .module = module };
	struct arena arena = { 0 };
	struct ftr_usdt *u;
	int err = handler && attachment ? prepare() : -EINVAL;

	if (err)
		return fail(err);
	u = arena_alloc(&arena, sizeof(*u));
	if (!u)
		return fail(-ENOMEM);
	u->arena = arena;
	s.result = u;
	lock();
	err = attach(&s, &(struct usdt_hook){ handler, data, u });
	sweep();
	if (!err) {
		u->next = usdt.attached;
		usdt.attached = u;
		*attachment = u;
	}
	unlock();
	arena_free(&s.arena);
	if (!err)
		return (int)u->n;
	free_attachment(u, true);
	return fail(err);
}

static bool unlink_attachment(struct ftr_usdt *u)
{
	struct ftr_usdt **at = &usdt.attached;

	while (*at && *at != u)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = u->next;
	return true;
}

/* Until no other thread can be in a handler of @u. */
static void await_handlers(const struct ftr_usdt *u)
{
	for (size_t i = 0; i < u->n && !depth; i++)
		while (is_running(u->places[i]))
			threads_pause(50);
}

EXPORTED int ftr_usdt_detach(struct ftr_usdt *u)
{
	int err;

	if (!u || !usdt.wiped)
		return fail(-EINVAL);
	lock();
	if (!unlink_attachment(u)) {
		unlock();
		return fail(-EINVAL);
	}
	raise_semaphores(u, (uint16_t)-1);
	take_hooks(u);
	err = patch_places(u, false);
	give_up_places(u);
	unlock();
	await_handlers(u);
	lock();
	sweep();
	unlock();
	free_attachment(u, !err);
	return err ? fail(err) : 0;
}
