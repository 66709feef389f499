/* SPDX-License-Identifier: MIT */
/* The names of functions as people know them. */
#ifndef REPORT_NAMES_H
#define REPORT_NAMES_H

#include "datafile.h"

/*
 * The C++ or Rust name that @symbol stands for, allocated; NULL when it is no such symbol, or one
 * that only means to exhaust us.
 */
char *names_demangle(const char *symbol);

/*
 * Name of functions[index]: demangled, else the symbol, else "module+0xaddress". Made when first
 * asked for and kept in @symbols.
 */
const char *names_get(struct datafile_symbols *symbols, size_t index);
void names_free(struct datafile_symbols *symbols); /* before datafile_free_symbols() */

#endif
