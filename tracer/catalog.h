/* SPDX-License-Identifier: MIT */
/*
 * The modules that are loaded now and their functions, for probes. Read on demand and kept: names
 * when a name is looked for, code when a function is to be patched. One caller at a time.
 */
#ifndef TRACER_CATALOG_H
#define TRACER_CATALOG_H

#include "plan.h"

/* Never freed: a probe may refer to a module that is gone. */
struct catalog_module {
	struct catalog_module *next;
	struct module module;
	struct plan plan; /* without functions */
	struct arena arena;
	bool has_names, has_code;
	bool gone; /* unloaded; its text may be anybody's now */
	const char *problem; /* why it cannot be read; NULL: it can */
	int error;	     /* the same, negative */
};

/* Follow the loader. 0, catalog_lacks(), or -EIO: the mappings cannot be read. */
int catalog_refresh(void);

struct catalog_module *catalog_first(void);

/* Make its functions known. 0, or -errno with module->problem when they cannot be; it is tried again
 * when there was no memory or descriptor for that. */
int catalog_names(struct catalog_module *module);
int catalog_code(struct catalog_module *module);

/* Does @err say that there may be enough of something later? */
bool catalog_lacks(int err);

/* The module that has code at @addr, NULL: none. */
struct catalog_module *catalog_at(uint64_t addr);

/* The symbol that begins at run-time address @addr of a module whose names are known, NULL: none. */
const struct symbol *catalog_symbol(const struct catalog_module *module, uint64_t addr);

/*
 * Keep @module loaded until catalog_unpin(). Returns what to hand to it; NULL: it is being
 * unloaded, or cannot be unloaded anyway (the program itself).
 */
void *catalog_pin(const struct catalog_module *module);
void catalog_unpin(void *pin);

/* What a symbol of @module stands for that is found out at run time (STT_GNU_IFUNC); 0: unknown. */
uint64_t catalog_resolve(const struct catalog_module *module, const struct symbol *symbol);

#endif
