/* SPDX-License-Identifier: MIT */
/* Memory of the tools: they end with one line and status 1 when there is none left. */
#ifndef REPORT_MEMORY_H
#define REPORT_MEMORY_H

#include <stddef.h>

void *memory_get(size_t n, size_t size); /* zeroed */
char *memory_copy(const char *s, size_t len); /* terminated */

/*
 * Make room for one more item in an array of @n items of @size bytes, growing by doubling. The
 * array must have been made by calls of this alone, one per item. Returns the array.
 */
void *memory_grow(void *items, size_t n, size_t size);

#endif
