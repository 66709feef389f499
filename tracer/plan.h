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

/* What the whole batch has in common. */
struct plan_settings {
	const struct isa_env *env;
	const struct filter *functions;
	bool watch_only; /* only what the tracer watches is wanted; it gets ID_NONE */
	bool demangle; /* the filter wants demangled names too */
	bool trap;     /* breakpoints are allowed */
	bool later;    /* modules that are loaded later may be wanted */
	uint64_t root; /* see isa->cie() */
	size_t page;
	struct gap_request place; /* the process's part of it */
};

struct plan_function {
	const struct symbol *symbol;
	uint32_t index; /* in isa_module.funcs */
	uint32_t id;	/* 0: skipped, site.reason says why */
	uint32_t watch; /* enum watch: the tracer itself wants to see it; 0: it does not */
	uint64_t detour; /* run-time address */
	struct isa_site site;
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
	struct isa_patch *patches; /* sorted */
	size_t npatches;
	void *image; /* loader's handle; NULL: none */
	char image_path[64]; /* its base name */
	bool is_libc, is_loader;
	struct unwinder unwinder;
	bool has_unwinder;
};

/* Read the module and choose sites. 0, with plan->count = 0 when nothing is wanted; or -errno with
 * *@why. Everything lives in @arena and until plan_close(). */
int plan_module(struct plan *plan, const struct module *module,
	const struct plan_settings *settings, struct arena *arena, const char **why);

/*
 * Give ids from *@next_id on, build the image, write it to @path (base name for the record), load
 * it and make the patches. Functions that cannot be served get their reason. 0, or -errno with
 * *@why: then the whole module is skipped.
 */
int plan_image(struct plan *plan, const struct plan_settings *settings, const char *path,
	uint32_t *next_id, struct arena *arena, const char **why);

void plan_close(struct plan *plan);

#endif
