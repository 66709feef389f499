/* SPDX-License-Identifier: MIT */
/*
 * Demangling is libiberty's. It bounds its recursion, but the text that a symbol stands for can be
 * exponentially longer than the symbol. Its callback interface allocates nothing, so we can leave
 * it by a long jump as soon as the text is longer than any real name.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libiberty/demangle.h>
#include "memory.h"
#include "names.h"
#include "text.h"

#define NAMES_MAX 65536

struct names_text {
	jmp_buf too_long;
	size_t len;
	char bytes[NAMES_MAX];
};

static void names_append(const char *s, size_t len, void *opaque)
{
	struct names_text *text = opaque;

	if (len >= sizeof(text->bytes) - text->len)
		longjmp(text->too_long, 1);
	memcpy(text->bytes + text->len, s, len);
	text->len += len;
}

char *names_demangle(const char *symbol)
{
	static struct names_text text;
	int options = DMGL_PARAMS | DMGL_ANSI;

	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
		return NULL;
	if (setjmp(text.too_long))
		return NULL;
	text.len = 0;
	if (rust_demangle_callback(symbol, options, names_append, &text))
		return memory_copy(text.bytes, text.len);
	text.len = 0;
	if (cplus_demangle_v3_callback(symbol, options, names_append, &text))
		return memory_copy(text.bytes, text.len);
	return NULL;
}

/* "app+0x1234" */
static char *names_by_address(const struct datafile_symbols *symbols, size_t index)
{
	const char *base = text_base(datafile_module_path(symbols, index));
	size_t size = strlen(base) + sizeof("+0x0123456789abcdef");
	char *name = memory_get(size, 1);

	snprintf(name, size, "%s+0x%" PRIx64, base, symbols->functions[index].address);
	return name;
}

const char *names_get(struct datafile_symbols *symbols, size_t index)
{
	const char **shown = &symbols->shown[index];
	const char *symbol = datafile_symbol(symbols, index);

	if (!*shown)
		*shown = *symbol ? names_demangle(symbol) : names_by_address(symbols, index);
	if (!*shown)
		*shown = symbol;
	return *shown;
}

void names_free(struct datafile_symbols *symbols)
{
	for (size_t i = 0; i < datafile_functions(symbols); i++)
		if (symbols->shown[i] != datafile_symbol(symbols, i))
			free((char *)symbols->shown[i]);
}
