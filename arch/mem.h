/* SPDX-License-Identifier: MIT */
/*
 * Memory and strings for code that runs inside the traced process.
 *
 * Such code never calls libc: the program may have replaced malloc, memcpy and friends, or they
 * may themselves be traced. Everything here is our own, hidden, and needs no initialisation.
 * Compilers insert calls of memcpy and its kin on their own; the declarations below give these
 * names to our functions by assembler name, so every file that runs in the traced process
 * includes this header first.
 */
#ifndef ARCH_MEM_H
#define ARCH_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n) __asm__("ftr_memcpy");
void *memmove(void *to, const void *from, size_t n) __asm__("ftr_memmove");
void *memset(void *to, int byte, size_t n) __asm__("ftr_memset");
int memcmp(const void *a, const void *b, size_t n) __asm__("ftr_memcmp");
size_t strlen(const char *s) __asm__("ftr_strlen");

int str_cmp(const char *a, const char *b);
bool str_eq(const char *a, const char *b);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
const char *str_find(const char *s, const char *needle); /* NULL when absent */
const char *str_base(const char *path); /* behind the last slash */

/* Shell-style match of the whole of @s: '*', '?', '[a-z]', '[!a-z]', backslash. */
bool str_glob(const char *pattern, const char *s);

/*
 * Print into @buf (@size bytes, always terminated). Knows %s %c %d %u %ld %lu %x %lx %p %% and a
 * zero-padded width (%08x). Returns the length written, never more than @size - 1.
 */
size_t str_print(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
size_t str_vprint(char *buf, size_t size, const char *format, va_list ap);

/*
 * An arena: memory that is given back all at once. Grows by anonymous mappings. Blocks are
 * zeroed and aligned to 16 bytes. Not for use by two threads at a time.
 */
struct arena {
	struct arena_chunk *chunks;
	uint8_t *next;
	uint8_t *end;
	size_t held; /* bytes mapped */
};

void *arena_alloc(struct arena *arena, size_t size); /* NULL when memory is out */
char *arena_str(struct arena *arena, const char *s, size_t len); /* a terminated copy */
void arena_seal(void); /* system calls may be forbidden from now on: no arena grows any more */
void arena_free(struct arena *arena); /* unmaps all; the arena may be used again */

/* Sort @n items of @size bytes (heapsort: no recursion, no allocation). */
void mem_sort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));

/* How many of @n sorted items of @size bytes, each beginning with a uint64_t, are below @key. */
size_t mem_below(const void *items, size_t n, size_t size, uint64_t key);

#endif
