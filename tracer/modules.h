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
	bool main;	 /* the program itself */
	bool ours;	 /* libftr.so, or what it brought along */
	uint64_t inode;
	uint32_t major, minor;
};

struct modules {
	struct module *list; /* by address */
	size_t count;
};

/* @program: an address in the main program (AT_PHDR). 0 or -ENOMEM. Not all need be readable
 * files. */
int modules_find(struct modules *modules, const struct maps *maps, uint64_t program,
	struct arena *arena);

/*
 * Open @module's file, check that it is the file that is mapped, and parse it. The mapping of its
 * bytes stays until modules_close(). 0 or -errno with *@why.
 */
int modules_open(const struct module *module, struct elffile *elf, const char **why);
void modules_close(struct elffile *elf);

#endif
