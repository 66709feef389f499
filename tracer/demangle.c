/* SPDX-License-Identifier: MIT */
/* libiberty's demanglers, by the interfaces that work without an allocator. */
#include "demangle.h"

#define DMGL_PARAMS (1 << 0)
#define DMGL_ANSI   (1 << 1)

/* libiberty's demangle.h includes headers that clash with mem.h; these two are its interface. */
int cplus_demangle_v3_callback(const char *mangled, int options,
	void (*callback)(const char *, size_t, void *), void *opaque);
int rust_demangle_callback(const char *mangled, int options,
	void (*callback)(const char *, size_t, void *), void *opaque);

struct sink {
	char *next, *last;
};

static void append(const char *s, size_t n, void *opaque)
{
	struct sink *sink = opaque;

	while (n-- && sink->next < sink->last)
		*sink->next++ = *s++;
}

static bool run(const char *symbol, int options, char *out, size_t size)
{
	struct sink sink = { out, out + size - 1 };
	bool known = false;

	if (symbol[0] == '_' && (symbol[1] == 'R' || symbol[1] == 'Z')) {
		known = rust_demangle_callback(symbol, 0, append, &sink);
		if (!known) {
			sink.next = out;
			known = cplus_demangle_v3_callback(
				symbol, options, append, &sink);
		}
	}
	*sink.next = 0;
	return known;
}

bool demangle(const char *symbol, char *out, size_t size)
{
	return run(symbol, DMGL_PARAMS | DMGL_ANSI, out, size);
}

bool demangle_name(const char *symbol, char *out, size_t size)
{
	return run(symbol, 0, out, size);
}
