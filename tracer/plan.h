/* SPDX-License-Identifier: MIT */
/*
 * From a module's file to its patches: which functions it has, which of them are wanted, where
 * each can be patched, and the image that holds their detours.
 */
#ifndef TRACER_PLAN_H
#define TRACER_PLAN_H

#include "filter.h"
#include "modules.h"
#include "symbols.h"
#include "unwinders.h"
#include "../trampolines/gaps.h"
#include "../trampolines/patch.h"

/* What the whole batch has in common. */
struct plan_settings {
	const struct isa_env *env;
	const struct filter *functions;
	bool watch_only; /* only what the tracer watches is wanted; it gets ID_NONE */
	bool demangle; /* the filter wants demangled names too */
	bool trap;     /* breakpoints are allowed */
	bool later;    /* modules that are loaded later may be wanted */
	uint32_t max_ids; /* recorded functions have ids below */
	uint64_t root; /* see isa->cie() */
	size_t page;
	struct patch_how patch;
	struct gap_request place; /* the process's part of it */
};

struct plan_function {
	const struct symbol *symbol;
	uint32_t index; /* in isa_module.funcs */
	uint32_t id;	/* 0: skipped, site.reason says why */
	bool has_id;	/* was given it before; else plan_image() does */
	uint32_t watch; /* enum watch: the tracer itself wants to see it; 0: it does not */
	uint64_t detour; /* run-time address; */
	uint64_t returns; /* that of its return point; 0: entry only */
	uint8_t turn;	 /* in which plan_image() serves it */
	struct hook_point *point; /* see struct isa_emit */
	bool hook_return;
	struct isa_site site;
};

struct plan_image {
	struct plan_image *next;
	void *handle; /* the loader's */
	uint64_t lo, hi;
};

struct plan {
	const struct module *module;
	struct elffile elf;
	struct symbols symbols;
	struct isa_module code;
	struct plan_function *functions; /* the wanted ones, by address */
	size_t count;
	size_t patchable; /* those that have a site */
	uint32_t first_id, nids; /* of its recorded functions, without gaps */
	struct isa_patch *patches; /* sorted once plan_image() has returned */
	size_t npatches;
	size_t ndetours;
	struct plan_image *images; /* what has been loaded; in the arena */
	char image_path[64]; /* base name of the first one */
	uint64_t images_lo, images_hi; /* they are between, at both ends; 0: none */
	bool is_libc, is_loader;
	struct unwinder unwinder;
	bool has_unwinder;
	bool hides_unwinder; /* it has one that cannot be called */
};

/* Read the module and choose sites. 0, with plan->count = 0 when nothing is wanted; or -errno with
 * *@why. Everything lives in @arena and until plan_close(). */
int plan_module(struct plan *plan, const struct module *module,
	const struct plan_settings *settings, struct arena *arena, const char **why);

/*
 * Read the module for probes, in two steps: its functions' names, then its code, without which no
 * site can be chosen. Nothing is chosen yet: plan->functions is the caller's to fill. 0 or -errno
 * with *@why. As above.
 */
int plan_names(struct plan *plan, const struct module *module,
	const struct plan_settings *settings, struct arena *arena, const char **why);
int plan_code(struct plan *plan, struct arena *arena, const char **why);

/* Names by which the user may know a symbol: raw, demangled, demangled without arguments; NULL
 * where there is none. @scratch has room for 2 * PLAN_NAME_MAX bytes. */
#define PLAN_NAME_MAX 4096
void plan_symbol_names(const struct plan *plan, const struct symbol *symbol, bool demangled,
	char *scratch, const char *names[3]);

/*
 * Choose the site of function @f of plan->functions. @detour: where a patch of ours leads that is
 * there already, 0: none is.
 */
void plan_site(struct plan *plan, struct plan_function *f, const struct plan_settings *settings,
	uint64_t detour);

/* The stores that lead @f to f->detour. Returns their number, at most 2, or -errno. */
int plan_patch(const struct plan *plan, const struct plan_settings *settings,
	const struct plan_function *f, struct isa_patch *patches);

/*
 * Give ids from *@next_id on, build the image, write it to a file, load it and make the patches.
 * There are several images where no place is near enough to all functions. Functions that cannot be
 * served get their reason. 0, or -errno with *@why: then the whole module is skipped.
 */
int plan_image(struct plan *plan, const struct plan_settings *settings, uint32_t *next_id,
	struct arena *arena, const char **why);

void plan_close(struct plan *plan);

#endif
