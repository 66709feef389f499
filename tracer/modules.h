/* SPDX-License-Identifier: MIT */
/* The files whose code is mapped into this process. */
#ifndef TRACER_MODULES_H
#define TRACER_MODULES_H

#include "elffile.h"
#include "../trampolines/maps.h"

struct module {
	const char *path;
	uint64_t bias;	 /* run-time minus link-time address */
	uint64_t lo, hi; /* run-time addresses from its first to its last mapping */
	uint64_t ld;	 /* run-time address of its dynamic section */
	bool main;	 /* the program itself */
	bool ours;	 /* libftr.so, or an image of detours */
};

struct modules {
	struct module *list;
	size_t count;
	const struct r_debug *loader; /* <link.h> */
};

/* The loader's lists, one for each link namespace, are not being changed. */
bool modules_settled(const struct r_debug *loader);

/*
 * The objects that the loader has loaded, in its order, by its own lists: a process may have other
 * ELF files mapped. @phdr, @phnum: of the main program, AT_PHDR and AT_PHNUM. Those without code
 * in a file are left out. While no other thread loads or unloads. 0, -ENOMEM, or -ENOENT: the
 * program has no list.
 */
int modules_find(struct modules *modules, const struct maps *maps, uint64_t phdr, uint64_t phnum,
	struct arena *arena);

/* The module that @addr lies in, by the mappings alone. False when there is none. */
bool modules_at(struct module *module, const struct maps *maps, uint64_t addr);

/*
 * Open @module's file, check that it is the file that is mapped, and parse it. The mapping of its
 * bytes stays until modules_close(). 0 or -errno with *@why.
 */
int modules_open(const struct module *module, struct elffile *elf, const char **why);
void modules_close(struct elffile *elf);

#endif
