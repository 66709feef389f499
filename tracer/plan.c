/* SPDX-License-Identifier: MIT */
#include "plan.h"
#include "demangle.h"
#include "lsda.h"
#include "record.h"
#include "runtimes.h"
#include "../trampolines/flush.h"
#include "../trampolines/trap.h"
#include "watch.h"
#include "where.h"
#include "../arch/sys.h"
#include "../rethook/shadow.h"
#include "../trampolines/image.h"
#include "../trampolines/reserve.h"
#include <elf.h>
#include <errno.h>
#include <sys/mman.h>

#define TRIES	     4	  /* of other gaps, when an image lands elsewhere */
#define PATCHED_MAX  256 /* what is patched of a function, or branched back to, ends before */
#define SPLIT_MIN    (1u << 20) /* functions as close as this share their gaps */
#define DETOUR_USUAL 1024 /* address space to set aside for each: code, rows, symbols */

/* ---- reading ---- */

static bool is_code(const Elf64_Phdr *ph)
{
	return ph->p_type == PT_LOAD && (ph->p_flags & PF_X);
}

static int read_segments(struct plan *plan, struct arena *arena)
{
	const Elf64_Phdr *ph = plan->elf.phdrs;
	struct isa_text *texts = arena_alloc(arena, 2 * plan->elf.nphdrs * sizeof(*texts));
	struct isa_text *datas = texts + plan->elf.nphdrs;

	if (!texts)
		return -ENOMEM;
	plan->code.texts = texts;
	plan->code.datas = datas;
	for (int i = 0; i < plan->elf.nphdrs; i++, ph++) {
		struct isa_text part = { .bytes = plan->elf.bytes + ph->p_offset,
			.addr = ph->p_vaddr, .size = ph->p_filesz };

		if (ph->p_type != PT_LOAD || !ph->p_filesz)
			continue;
		if (is_code(ph))
			texts[plan->code.ntexts++] = part;
		datas[plan->code.ndatas++] = part;
	}
	return 0;
}

static int compare_words(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool in_text(const struct plan *plan, uint64_t addr)
{
	for (size_t i = 0; i < plan->code.ntexts; i++)
		if (addr - plan->code.texts[i].addr < plan->code.texts[i].size)
			return true;
	return false;
}

/* RELR (gABI, "Relative Relocation Table"): the addends are in the words themselves. */
static size_t relr_pointers(const struct plan *plan, uint64_t *out)
{
	const uint64_t *entry = (const void *)plan->elf.relr.bytes;
	uint64_t where = 0;
	size_t n = 0;

	for (size_t i = 0; entry && i < plan->elf.relr.size / 8; i++) {
		uint64_t bits = entry[i] & 1 ? entry[i] >> 1 : 1;

		if (!(entry[i] & 1))
			where = entry[i];
		for (uint64_t at = where; bits; bits >>= 1, at += 8) {
			const uint8_t *word = bits & 1 ? elffile_at(&plan->elf, at, 8) : NULL;
			uint64_t value;

			if (!word)
				continue;
			memcpy(&value, word, 8);
			if (!in_text(plan, value))
				continue;
			if (out)
				out[n] = value;
			n++;
		}
		where += entry[i] & 1 ? 63 * 8 : 8;
	}
	return n;
}

static size_t rela_pointers(const struct plan *plan, uint64_t *out)
{
	const Elf64_Rela *rela = (const void *)plan->elf.rela.bytes;
	size_t n = 0;

	for (size_t i = 0; rela && i < plan->elf.rela.size / sizeof(*rela); i++) {
		if (!in_text(plan, (uint64_t)rela[i].r_addend))
			continue;
		if (out)
			out[n] = (uint64_t)rela[i].r_addend;
		n++;
	}
	return n;
}

/* What relocations make point into the code. Without relocations the port searches the data. */
static int read_pointers(struct plan *plan, struct arena *arena)
{
	size_t n = rela_pointers(plan, NULL) + relr_pointers(plan, NULL);
	uint64_t *pointers;

	if (plan->elf.type == ET_EXEC)
		return 0;
	pointers = arena_alloc(arena, (n + 1) * sizeof(*pointers));
	if (!pointers)
		return -ENOMEM;
	n = rela_pointers(plan, pointers);
	n += relr_pointers(plan, pointers + n);
	mem_sort(pointers, n, sizeof(*pointers), compare_words);
	plan->code.pointers = pointers;
	plan->code.npointers = n;
	return 0;
}

static int read_slots(struct plan *plan, struct arena *arena)
{
	struct isa_slot *slots;
	long n = symbols_slots(&plan->elf, arena, &slots);

	if (n < 0)
		return (int)n;
	plan->code.slots = slots;
	plan->code.nslots = (size_t)n;
	return 0;
}

static uint32_t watch_of(const struct plan *plan, const struct symbol *s)
{
	bool any = plan->is_libc || plan->is_loader;
	uint32_t watch = any && s->name ? watch_name(s->name, plan->is_loader) : 0;

	for (size_t i = 0; any && !watch && i < s->naliases; i++)
		watch = watch_name(s->aliases[i], plan->is_loader);
	return watch;
}

void plan_symbol_names(const struct plan *plan, const struct symbol *s, bool demangled,
	char *scratch, const char *names[3])
{
	names[0] = s->name;
	names[1] = names[2] = NULL;
	if (!s->name) {
		str_print(scratch, PLAN_NAME_MAX, "%s+0x%lx", str_base(plan->module->path),
			s->start);
		names[0] = scratch;
	} else if (demangled && demangle(s->name, scratch, PLAN_NAME_MAX)) {
		names[1] = scratch;
		/* The name alone as well: "ns::f" for "ns::f(int)". */
		names[2] = demangle_name(s->name, scratch + PLAN_NAME_MAX, PLAN_NAME_MAX)
			? scratch + PLAN_NAME_MAX
			: NULL;
	}
}

static bool wanted(const struct symbol *s, const struct plan *plan,
	const struct plan_settings *settings, char *scratch)
{
	const char *names[3];

	plan_symbol_names(plan, s, settings->demangle, scratch, names);
	if (s->naliases && !filter_match(settings->functions, names, 3))
		return filter_match(settings->functions, s->aliases, s->naliases)
			&& settings->functions->count;
	return filter_match(settings->functions, names, 3);
}

static int choose_functions(struct plan *plan, const struct plan_settings *settings,
	struct arena *arena)
{
	struct symbols *symbols = &plan->symbols;
	char *scratch = arena_alloc(arena, 2 * PLAN_NAME_MAX);

	plan->functions = arena_alloc(arena, symbols->count * sizeof(*plan->functions));
	if (!plan->functions || !scratch)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->count; i++)
		if (settings->watch_only ? watch_of(plan, &symbols->list[i])
					 : wanted(&symbols->list[i], plan, settings, scratch))
			plan->functions[plan->count++] = (struct plan_function){
				.symbol = &symbols->list[i], .index = (uint32_t)i
			};
	return 0;
}

static int set_func(struct isa_func *func, const struct symbol *s, struct arena *arena)
{
	struct isa_row *rows = NULL;
	long n = s->fde ? ehframe_rows(s->fde, arena, &rows) : 0;

	*func = (struct isa_func){ .start = s->start, .end = s->end, .limit = s->limit,
		.rows = n > 0 ? rows : NULL, .nrows = n > 0 ? (uint32_t)n : 0,
		.anonymous = !s->name, .inside = s->inside, .local = s->local,
		.keeps = symbols_keeps_return(s) };
	return n < 0 ? (int)n : 0;
}

/* The port is told of all functions, so that it can tell a branch from data that looks like one. */
static int make_funcs(struct plan *plan, struct arena *arena)
{
	size_t count = plan->symbols.count;
	struct isa_func *funcs = arena_alloc(arena, count * sizeof(*funcs));
	int err = funcs ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count; i++)
		err = set_func(&funcs[i], &plan->symbols.list[i], arena);
	plan->code.funcs = funcs;
	plan->code.nfuncs = count;
	return err;
}

/*
 * What we watch are small exported functions of libc, which nothing enters but at the start:
 * their own code is all that is looked at. All of libc would be most of a small program's start.
 */
static int make_watched(struct plan *plan, struct arena *arena)
{
	struct isa_func *funcs = arena_alloc(arena, plan->count * sizeof(*funcs));
	struct isa_text *texts = arena_alloc(arena, plan->count * sizeof(*texts));
	int err = funcs && texts ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < plan->count; i++) {
		const struct symbol *s = plan->functions[i].symbol;
		uint64_t size = s->limit - s->start;

		plan->functions[i].index = (uint32_t)i;
		texts[i] = (struct isa_text){ .bytes = elffile_at(&plan->elf, s->start, size),
			.addr = s->start, .size = size };
		err = texts[i].bytes ? set_func(&funcs[i], s, arena) : -EINVAL;
	}
	plan->code.texts = texts;
	plan->code.ntexts = plan->code.nfuncs = plan->count;
	plan->code.funcs = funcs;
	return err;
}

/* ---- sites ---- */

/*
 * Exceptions can only pass return points with the help of the unwinder at work. One that is
 * linked into the module and has lost its names cannot be called.
 */
static bool hides_unwinder(const struct plan *plan)
{
	const Elf64_Sym *sym = (const void *)plan->elf.dynsym.bytes;
	bool throws = false;

	if (plan->is_libc)
		return false; /* it opens libgcc_s for its cleanups */
	for (size_t i = 0; i < plan->symbols.nfdes && !throws; i++)
		throws = plan->symbols.fdes[i].personality;
	if (!throws || plan->has_unwinder)
		return false;
	for (size_t i = 0; sym && i < plan->elf.dynsym.size / sizeof(*sym); i++) {
		const char *name = elffile_string(&plan->elf.dynstr, sym[i].st_name);

		/* With an imported personality routine comes an imported unwinder. */
		if (str_starts(name, "_Unwind_")
			|| (sym[i].st_shndx == SHN_UNDEF && str_find(name, "_personality_")))
			return false;
	}
	return true;
}

static bool entry_only_reason(uint8_t reason)
{
	return reason >= REASON_RETURNS_TWICE;
}

static void refuse(struct isa_site *site, enum site_reason reason)
{
	*site = (struct isa_site){ .choice = SITE_REFUSED, .reason = (uint8_t)reason };
}

static void fill_emit(const struct plan *plan, const struct plan_settings *settings,
	const struct plan_function *f, struct isa_emit *in)
{
	*in = (struct isa_emit){ .env = settings->env, .module = &plan->code,
		.func = &plan->code.funcs[f->index], .site = &f->site, .id = f->id,
		.watch = f->watch, .point = (uint64_t)f->point, .hook_return = f->hook_return,
		.at = f->detour, .bias = (int64_t)plan->module->bias };
}

int plan_patch(const struct plan *plan, const struct plan_settings *settings,
	const struct plan_function *f, struct isa_patch *patches)
{
	struct isa_emit in;

	fill_emit(plan, settings, f, &in);
	return arch_isa->patch(&in, patches);
}

/* Is the byte at run-time address @addr one that @patches put there? */
static bool is_patched(const struct isa_patch *patches, int n, uint64_t addr)
{
	for (int i = 0; i < n; i++)
		if (addr - patches[i].addr < patches[i].len)
			return patches[i].bytes[addr - patches[i].addr] == *(const uint8_t *)addr;
	return false;
}

/* Make a patch that reaches further of it. False: there is none. */
static bool lengthen(struct isa_site *site)
{
	if (!site->far_len)
		return false;
	site->len = site->far_len;
	site->far_len = 0;
	site->choice = SITE_SEVERAL;
	return true;
}

/*
 * The bytes about to be replaced must be those of the file, or of our own @patches: nobody else's
 * patch or breakpoint.
 */
static bool memory_agrees(const struct plan *plan, uint64_t addr, size_t len,
	const struct isa_patch *patches, int npatches)
{
	const uint8_t *file = elffile_at(&plan->elf, addr, len);
	const uint8_t *memory = (const void *)(addr + plan->module->bias);

	for (size_t i = 0; file && i < len; i++)
		if (file[i] != memory[i] && !is_patched(patches, npatches, (uint64_t)&memory[i]))
			return false;
	return file;
}

/* Does an exception land before offset @end of the function? */
static bool has_pad(const struct plan *plan, const struct symbol *s, uint64_t end)
{
	uint64_t pad;

	return s->fde && s->fde->lsda
		&& lsda_pads(&plan->elf, s->fde, s->start, s->start + end, &pad, 1);
}

void plan_site(struct plan *plan, struct plan_function *f, const struct plan_settings *settings,
	uint64_t detour)
{
	struct isa_patch patches[2];
	const struct symbol *s = f->symbol;
	struct isa_site *site = &f->site;
	uint64_t window;
	int npatches = 0;

	if (plan->elf.textrel) {
		refuse(site, REASON_TEXT_RELOCATIONS);
		return;
	}
	if (s->reason && !entry_only_reason(s->reason)) {
		refuse(site, s->reason);
		return;
	}
	plan->code.isa->site(&plan->code, f->index, site);
	window = site->len < arch_isa->patch_size ? arch_isa->patch_size : site->len;
	if (site->choice == SITE_REFUSED && settings->trap
		&& (site->reason == REASON_TOO_SHORT || site->reason == REASON_JUMP_INSIDE)
		&& site->len) {
		/* libc and the loader run functions of their own with all signals blocked. */
		bool safe = !plan->is_libc && !plan->is_loader;

		site->choice = safe ? SITE_TRAP : SITE_REFUSED;
		site->reason = safe ? REASON_NONE : REASON_TRAP_UNSAFE;
	}
	if (site->choice == SITE_REFUSED)
		return;
	if (has_pad(plan, s, site->offset + window)) {
		refuse(site, REASON_FRAGMENT);
		return;
	}
	if (detour) {
		f->detour = detour;
		npatches = plan_patch(plan, settings, f, patches);
		if (npatches < 0 && lengthen(site)) {
			window = site->len;
			npatches = plan_patch(plan, settings, f, patches);
		}
	}
	if (site->far_len
		&& (has_pad(plan, s, site->offset + site->far_len)
			|| !memory_agrees(plan, s->start, site->offset + site->far_len, patches,
				npatches)))
		site->far_len = 0;
	if (!memory_agrees(plan, s->start, site->offset + window, patches, npatches)
		|| (site->choice == SITE_HOP
			&& !memory_agrees(plan, site->hop, arch_isa->patch_size, patches,
				npatches))) {
		refuse(site, REASON_MEMORY_DIFFERS);
		return;
	}
	f->watch = watch_of(plan, s);
	if (f->watch)
		site->reason = REASON_WATCHED;
	else if (entry_only_reason(s->reason))
		site->reason = s->reason;
	else if (site->entry_only)
		return;
	else if (plan->hides_unwinder)
		site->reason = REASON_HIDDEN_UNWINDER;
	else
		return;
	site->entry_only = true;
}

static int open_module(struct plan *plan, const struct module *module,
	const struct plan_settings *settings, struct arena *arena, const char **why)
{
	int err;

	*plan = (struct plan){ .module = module };
	plan->is_libc = str_starts(str_base(module->path), "libc.so")
		|| str_starts(str_base(module->path), "libc-2.")
		|| str_starts(str_base(module->path), "ld-musl");
	plan->is_loader = settings->later && settings->place.loader >= module->lo
		&& settings->place.loader < module->hi;
	if (settings->watch_only && !plan->is_libc && !plan->is_loader)
		return 0;
	err = modules_open(module, &plan->elf, why);
	if (err)
		return err;
	*why = "is for another CPU";
	if (plan->elf.machine != arch_isa->elf_machine)
		return -EINVAL;
	*why = "no memory";
	plan->code.isa = arch_isa;
	plan->code.arena = arena;
	err = symbols_read(&plan->symbols, &plan->elf, arch_isa, arena);
	return err ? err : runtimes_mark(plan);
}

int plan_names(struct plan *plan, const struct module *module,
	const struct plan_settings *settings, struct arena *arena, const char **why)
{
	return open_module(plan, module, settings, arena, why);
}

static int scan(struct plan *plan, const char **why)
{
	int err = arch_isa->scan(&plan->code);

	*why = err == -ENOENT ? "the instruction decoder is of another version" : "no memory";
	plan->has_unwinder = unwinders_read(&plan->elf, plan->module->bias, plan->module->lo,
		plan->module->hi, &plan->unwinder);
	plan->hides_unwinder = hides_unwinder(plan);
	return err;
}

int plan_code(struct plan *plan, struct arena *arena, const char **why)
{
	int err = read_segments(plan, arena);

	*why = "no memory";
	if (!err)
		err = read_pointers(plan, arena);
	if (!err)
		err = read_slots(plan, arena);
	if (!err)
		err = make_funcs(plan, arena);
	return err ? err : scan(plan, why);
}

int plan_module(struct plan *plan, const struct module *module,
	const struct plan_settings *settings, struct arena *arena, const char **why)
{
	int err = open_module(plan, module, settings, arena, why);

	if (!err && plan->symbols.count)
		err = choose_functions(plan, settings, arena);
	if (err || !plan->count)
		return err;
	err = settings->watch_only ? make_watched(plan, arena) : 0;
	if (!err)
		err = settings->watch_only ? scan(plan, why) : plan_code(plan, arena, why);
	for (size_t i = 0; !err && i < plan->count; i++) {
		plan_site(plan, &plan->functions[i], settings, 0);
		plan->patchable += plan->functions[i].site.choice != SITE_REFUSED;
	}
	return err;
}

/* ---- the image ---- */

#define CFI_MAX 32

static int compare_patches(const void *a, const void *b)
{
	const struct isa_patch *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* One function's detour and patches. 0, or -errno and it gets no detour. */
static int add_detour(struct plan *plan, const struct plan_settings *settings, struct image *im,
	struct plan_function *f)
{
	struct isa_cfi cfi[CFI_MAX];
	struct isa_detour detour;
	struct isa_emit in;
	uint8_t *out;
	long n = 0;
	int err, npatches;

	fill_emit(plan, settings, f, &in);
	in.common = image_common(im);
	in.at = image_next(im, &out);
	if (f->symbol->fde)
		n = ehframe_cfi(f->symbol->fde, (uint64_t)f->site.offset + f->site.len + 1, cfi,
			CFI_MAX);
	if (n > 0) {
		in.cfi = cfi;
		in.ncfi = (uint32_t)n;
	}
	err = arch_isa->emit(&in, out, &detour);
	if (err)
		return err;
	npatches = arch_isa->patch(&in, plan->patches + plan->npatches);
	if (npatches < 0)
		return npatches;
	err = image_add(im, &detour, f->symbol->name, f->symbol->start);
	f->detour = in.at;
	if (settings->env->infos && detour.info && in.id < INFOS_MAX)
		__atomic_store_n(&settings->env->infos[in.id],
			(const struct detour_info *)(in.at + detour.info), __ATOMIC_RELAXED);
	f->returns = detour.ret ? in.at + detour.ret : 0;
	if (f->has_id)
		where_forget(f->id);
	if (!err)
		plan->npatches += (size_t)npatches;
	return err;
}

/* Functions that share an image: those of functions[from] to functions[to - 1] that have a site and
 * whose turn it is. */
struct run {
	size_t from, to;
	uint8_t turn;
	uint64_t reach;
};

static bool in_run(const struct run *run, const struct plan_function *f)
{
	return f->site.choice != SITE_REFUSED && f->turn == run->turn;
}

static int build(struct plan *plan, const struct plan_settings *settings, const struct run *run,
	struct image *im, uint32_t *next_id)
{
	for (size_t i = run->from; i < run->to; i++) {
		struct plan_function *f = &plan->functions[i];
		bool counted = !settings->watch_only && !f->has_id;
		int err;

		if (!in_run(run, f))
			continue;
		if (!f->has_id)
			f->id = counted ? *next_id : ID_NONE;
		err = add_detour(plan, settings, im, f);
		if (err == -ENOMEM || err == -ENOSPC)
			return err;
		if (err)
			refuse(&f->site, err == -ERANGE ? REASON_OUT_OF_REACH
							: REASON_NOT_RELOCATABLE);
		if (err && !f->has_id)
			f->id = 0;
		*next_id += counted && !err;
	}
	return 0;
}

/* What a place for the image of @run must be like. False: it is for no function. */
static bool set_place(const struct plan *plan, const struct run *run, struct gap_request *place)
{
	uint64_t lo = ~0ull, hi = 0;

	place->reach = run->reach;
	place->size = 16 * place->page;
	for (size_t i = run->from; i < run->to; i++) {
		const struct plan_function *f = &plan->functions[i];
		uint64_t at = f->site.choice == SITE_ISLAND ? f->site.hop : f->symbol->start;

		if (!in_run(run, f))
			continue;
		lo = at < lo ? at : lo;
		hi = at > hi ? at : hi;
		place->size += DETOUR_USUAL;
		place->size += f->symbol->name ? 3 * strlen(f->symbol->name) : 0;
	}
	place->text_lo = lo + plan->module->bias;
	place->text_hi = hi + PATCHED_MAX + plan->module->bias;
	place->size = (place->size + place->page - 1) & -place->page;
	return hi >= lo;
}

/* The record names the first one. */
static void note_image(struct plan *plan, const char *path)
{
	if (!plan->image_path[0])
		str_print(plan->image_path, sizeof(plan->image_path), "%s", str_base(path));
}

/* image_memfd() has failed. */
static int no_memfd(int err, const char **why)
{
	if (image_lacks(err, why))
		return err;
	*why = err == -EFBIG ? "RLIMIT_FSIZE is smaller than the detour image"
			     : "memfd_create(2) is not allowed";
	return -EPERM;
}

/* Put the bytes where the loader can take them from, and load them at image->lo. */
static int write_and_load(struct plan *plan, const void *bytes, size_t size,
	struct plan_image *image, size_t page, const char *path, const char **why)
{
	char memfd_path[64];
	int fd, err = image_write(bytes, size, path);

	reserve_open(image->lo, image->lo + ((size + page - 1) & -page));
	if (!err) {
		err = image_load(path, image->lo, &image->handle, why);
		if (!err)
			note_image(plan, path);
		else
			sys_call(SYS_unlinkat, -100 /* AT_FDCWD */, path, 0);
		if (!err || err == -EADDRNOTAVAIL)
			return err;
	}
	/* Not writable, full, or mounted noexec. */
	fd = image_memfd(bytes, size, memfd_path);
	if (fd < 0)
		return no_memfd(fd, why);
	err = image_load(memfd_path, image->lo, &image->handle, why);
	sys_close(fd);
	return err;
}

static void add_image(struct plan *plan, struct plan_image *image)
{
	image->next = plan->images;
	plan->images = image;
	if (!plan->images_hi || image->lo < plan->images_lo)
		plan->images_lo = image->lo;
	if (image->hi > plan->images_hi)
		plan->images_hi = image->hi;
}

/* At image->lo, with @room bytes. */
static int try_at(struct plan *plan, const struct plan_settings *settings, const struct run *run,
	struct plan_image *image, size_t room, const char *path, uint32_t *next_id,
	const char **why)
{
	const void *bytes;
	struct image im;
	size_t size = 0;
	int err = image_begin(&im, arch_isa, image->lo, room, settings->page, settings->root,
		settings->env, plan->patchable);

	*why = "no memory for the detour image";
	if (err)
		return err;
	err = build(plan, settings, run, &im, next_id);
	if (!err)
		err = image_finish(&im, &bytes, &size);
	image->hi = image->lo + size;
	if (!err && !shadow_announce_image(image->lo, image->hi, im.common.base + im.common.pad)) {
		*why = "too many detour images";
		err = -ENOSPC;
	} else if (!err) {
		err = write_and_load(plan, bytes, size, image, settings->page, path, why);
		if (err)
			shadow_remove_image(image->lo);
	}
	if (!err) {
		shadow_open_image(image->lo);
		add_image(plan, image);
		runtimes_announce(plan);
	}
	image_free(&im);
	return err;
}

static int add_traps(const struct plan *plan)
{
	int err = 0;

	for (size_t i = 0; !err && i < plan->count; i++) {
		const struct plan_function *f = &plan->functions[i];

		if (f->site.choice == SITE_TRAP)
			err = trap_add(f->symbol->start + f->site.offset + plan->module->bias,
				f->detour, plan->first_id);
	}
	return err;
}

/* -ERANGE: there is no gap. */
static int serve_run(struct plan *plan, const struct plan_settings *settings, const struct run *run,
	uint32_t *next_id, struct arena *arena, const char **why)
{
	struct gap_request place = settings->place;
	char *path = arena_alloc(arena, CONFIG_PATH_MAX + 128);
	struct plan_image *image = arena_alloc(arena, sizeof(*image));
	uint64_t refused[TRIES];
	uint32_t first_id = *next_id;
	size_t npatches = plan->npatches;
	struct maps maps;
	int err = -ENOMEM;

	*why = "no memory";
	if (!path || !image)
		return -ENOMEM;
	if (!set_place(plan, run, &place))
		return 0;
	record_image_name(path, CONFIG_PATH_MAX + 128);
	place.refused = refused;
	for (place.nrefused = 0; place.nrefused < TRIES; place.nrefused++) {
		*next_id = first_id;
		plan->npatches = npatches;
		if (!maps_read(&maps, "/proc/self/maps", arena)) {
			reserve_hide(&maps);
			image->lo = gap_find(&maps, &place);
		}
		if (!image->lo)
			return -ERANGE;
		err = try_at(plan, settings, run, image, place.size, path, next_id, why);
		if (err != -EADDRNOTAVAIL)
			break;
		refused[place.nrefused] = image->lo;
		image->lo = 0;
	}
	return err;
}

static void out_of_reach(struct plan *plan, const struct run *run)
{
	for (size_t i = run->from; i < run->to; i++)
		if (in_run(run, &plan->functions[i]))
			refuse(&plan->functions[i].site, REASON_OUT_OF_REACH);
}

/* Where no gap is near enough to all functions there may be one for either half of them. */
static int serve(struct plan *plan, const struct plan_settings *settings, const struct run *run,
	uint32_t *next_id, struct arena *arena, const char **why)
{
	const struct plan_function *f = plan->functions;
	int err = serve_run(plan, settings, run, next_id, arena, why);
	struct run low = *run, high = *run;
	uint64_t middle;

	if (err != -ERANGE)
		return err;
	middle = (f[run->from].symbol->start + f[run->to - 1].symbol->start) / 2;
	while (low.to > low.from + 1 && f[low.to - 1].symbol->start > middle)
		low.to--;
	high.from = low.to;
	if (high.from == high.to || middle - f[run->from].symbol->start < SPLIT_MIN) {
		out_of_reach(plan, run);
		return 0;
	}
	err = serve(plan, settings, &low, next_id, arena, why);
	return err ? err : serve(plan, settings, &high, next_id, arena, why);
}

/* Give functions out of reach a way to somewhere near an image, which is at @base. */
static int serve_by_islands(struct plan *plan, const struct plan_settings *settings, uint64_t base,
	const struct run *run, uint32_t *next_id, struct arena *arena, const char **why)
{
	uint64_t bias = plan->module->bias, near = arch_isa->reach, room = 0, lo, hi;

	for (size_t i = 0; i < plan->count; i++)
		if (plan->functions[i].site.reason == REASON_OUT_OF_REACH)
			room += 2 * DETOUR_USUAL;
	near -= room < near / 2 ? room : near / 2;
	lo = base - near > bias && base > near ? base - near - bias : 0;
	hi = base + near > bias ? base + near - bias : 0;
	for (size_t i = 0; i < plan->count; i++) {
		struct plan_function *f = &plan->functions[i];

		if (f->site.reason != REASON_OUT_OF_REACH)
			continue;
		f->turn = run->turn;
		plan_site(plan, f, settings, 0);
		if (f->site.choice != SITE_REFUSED
			&& !(arch_isa->island(&plan->code, f->index, lo, hi, &f->site)
				&& memory_agrees(plan, f->site.hop, ISA_PATCH_MAX / 2, NULL, 0)))
			refuse(&f->site, REASON_OUT_OF_REACH);
	}
	return serve(plan, settings, run, next_id, arena, why);
}

/* Functions out of reach that have room for a patch that reaches further get that. */
static int serve_far(struct plan *plan, const struct plan_settings *settings, const struct run *run,
	uint32_t *next_id, struct arena *arena, const char **why)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct plan_function *f = &plan->functions[i];

		if (f->site.reason != REASON_OUT_OF_REACH)
			continue;
		f->turn = run->turn;
		plan_site(plan, f, settings, 0);
		if (f->site.choice != SITE_REFUSED && !lengthen(&f->site))
			refuse(&f->site, REASON_OUT_OF_REACH);
	}
	return serve(plan, settings, run, next_id, arena, why);
}

static int serve_all(struct plan *plan, const struct plan_settings *settings, uint32_t *next_id,
	struct arena *arena, const char **why)
{
	struct run run = { .to = plan->count, .reach = arch_isa->reach };
	int err = serve(plan, settings, &run, next_id, arena, why);
	uint64_t sides[2] = { plan->images_lo, plan->images_hi };

	for (int i = 0; i < 2 && !err && arch_isa->island && plan->images_hi; i++) {
		run.turn++;
		err = serve_by_islands(plan, settings, sides[i], &run, next_id, arena, why);
	}
	if (!err && arch_isa->far_reach) {
		run.turn++;
		run.reach = arch_isa->far_reach;
		err = serve_far(plan, settings, &run, next_id, arena, why);
	}
	if (err || plan->images_hi)
		return err;
	*why = "no free memory near enough";
	return -ERANGE;
}

/* Those of @plan's functions, which are in images that have been loaded. */
static size_t count_detours(const struct plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->count; i++)
		n += plan->functions[i].site.choice != SITE_REFUSED;
	return n;
}

int plan_image(struct plan *plan, const struct plan_settings *settings, uint32_t *next_id,
	struct arena *arena, const char **why)
{
	uint32_t first_id = *next_id;
	int err;

	plan->patches = arena_alloc(arena, 2 * plan->patchable * sizeof(*plan->patches));
	*why = "no memory";
	if (!plan->patches)
		return -ENOMEM;
	*why = "no room for more functions";
	err = -ENOSPC;
	if (settings->watch_only || plan->patchable <= settings->max_ids - first_id)
		err = serve_all(plan, settings, next_id, arena, why);
	mem_sort(plan->patches, plan->npatches, sizeof(*plan->patches), compare_patches);
	if (!err)
		err = add_traps(plan);
	plan->first_id = first_id;
	plan->nids = *next_id - first_id;
	if (!err) {
		plan->ndetours = count_detours(plan);
		flush_count(plan->ndetours, plan->ndetours);
		return 0;
	}
	*next_id = first_id;
	for (size_t i = 0; i < plan->count; i++) {
		struct plan_function *f = &plan->functions[i];

		if (f->site.choice != SITE_REFUSED)
			refuse(&f->site, err == -ERANGE ? REASON_OUT_OF_REACH : REASON_NO_IMAGE);
		f->id = 0;
	}
	plan->npatches = 0;
	return err;
}

void plan_close(struct plan *plan)
{
	if (plan->elf.bytes)
		modules_close(&plan->elf);
}
