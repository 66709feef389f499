/* SPDX-License-Identifier: MIT */
/* Names for addresses of code, from the modules' files. Outside of handlers. */
#ifndef TRACER_DESCRIBE_H
#define TRACER_DESCRIBE_H

#include "modules.h"
#include "symbols.h"

/* Keeps the module of the last address open. */
struct describer {
	struct arena arena, module_arena;
	struct maps maps;
	struct module module;
	struct elffile elf; /* .bytes NULL: none is open */
	struct symbols symbols;
};

/* Where system calls may be forbidden addresses have no names. */
void describe_begin(struct describer *describer);
void describe_end(struct describer *describer);

/* ftr_describe(): "function+0x12 in file" of a return address. False: in no function. */
bool describe(struct describer *describer, uint64_t address, char *text, size_t size);

/* Open the module that @address lies in. 0 or -errno. */
int describe_open(struct describer *describer, uint64_t address);

#endif
