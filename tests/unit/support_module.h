/* SPDX-License-Identifier: MIT */
/* The code of an ELF file as the planner sees it, for tests that go over whole libraries. */
#ifndef SUPPORT_MODULE_H
#define SUPPORT_MODULE_H

#include "arch/arch.h"
#include "tracer/symbols.h"

struct support_module {
	struct arena arena;
	struct elffile elf;
	struct symbols symbols;
	struct isa_module code;
	void *bytes;
	size_t size;
};

/* False when the file is not there or is nothing for this CPU. */
bool support_module_open(struct support_module *module, const char *path, const struct isa *isa);
void support_module_close(struct support_module *module);

#endif
