/* SPDX-License-Identifier: MIT */
/*
 * What libiberty's demanglers ask of libc, in our own words: the build renames these references in
 * its objects (cmake/iberty.cmake), so that demangling calls nothing of the traced process.
 */
#include "../arch/mem.h"

int iberty_strncmp(const char *a, const char *b, size_t n);
int iberty_sprintf_chk(char *out, int flag, size_t room, const char *format, ...);
int iberty_snprintf_chk(char *out, size_t size, int flag, size_t room, const char *format, ...);
void *iberty_malloc(size_t size);
void *iberty_realloc(void *memory, size_t size);
void iberty_free(void *memory);

int iberty_strncmp(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++) {
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	}
	return 0;
}

/* gcc's __builtin___sprintf_chk: @room is the size of @out as far as known, else the maximum. */
int iberty_sprintf_chk(char *out, int flag, size_t room, const char *format, ...)
{
	va_list ap;
	size_t len;

	(void)flag;
	va_start(ap, format);
	len = str_vprint(out, room, format, ap);
	va_end(ap);
	return (int)len;
}

int iberty_snprintf_chk(char *out, size_t size, int flag, size_t room, const char *format, ...)
{
	va_list ap;
	size_t len;

	(void)flag;
	va_start(ap, format);
	len = str_vprint(out, size < room ? size : room, format, ap);
	va_end(ap);
	return (int)len;
}

/* The allocator: referenced by interfaces that are not used here. */
void *iberty_malloc(size_t size)
{
	(void)size;
	return NULL;
}

void *iberty_realloc(void *memory, size_t size)
{
	(void)memory;
	(void)size;
	return NULL;
}

void iberty_free(void *memory)
{
	(void)memory;
}
