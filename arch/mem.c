/* SPDX-License-Identifier: MIT */
#include "mem.h"
#include "sys.h"
#include <sys/mman.h>

#define ARENA_CHUNK (1u << 20)

struct arena_chunk {
	struct arena_chunk *older;
	size_t size;
};

/*
 * The four functions below must not be turned into calls of themselves; this file is compiled
 * with -fno-tree-loop-distribute-patterns for that reason.
 */
#if defined(__x86_64__)
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	void *d = to;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(from), "+c"(n) : : "memory");
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	void *d = to;

	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(byte) : "memory");
	return to;
}
#else
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	uint8_t *d = to;
	const uint8_t *s = from;

	while (n--)
		*d++ = *s++;
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	uint8_t *d = to;

	while (n--)
		*d++ = (uint8_t)byte;
	return to;
}
#endif

void *memmove(void *to, const void *from, size_t n)
{
	uint8_t *d = to;
	const uint8_t *s = from;

	if (d <= s || d >= s + n)
		return memcpy(to, from, n);
	while (n--)
		d[n] = s[n];
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

size_t strlen(const char *s)
{
	const char *end = s;

	while (*end)
		end++;
	return (size_t)(end - s);
}

int str_cmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (uint8_t)*a - (uint8_t)*b;
}

bool str_eq(const char *a, const char *b)
{
	return str_cmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return false;
	return true;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && str_eq(s + n - m, suffix);
}

const char *str_find(const char *s, const char *needle)
{
	for (;; s++) {
		if (str_starts(s, needle))
			return s;
		if (!*s)
			return NULL;
	}
}

const char *str_base(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		base = *path == '/' ? path + 1 : base;
	return base;
}

/* One '[...]' of a pattern. Sets *@after behind it; NULL there when it is not closed. */
static bool glob_set(const char *set, char c, const char **after)
{
	bool negate = *set == '!' || *set == '^', found = false;
	const char *p = set + negate;

	*after = NULL;
	for (const char *first = p; *p && (*p != ']' || p == first); p++) {
		char low = *p, high;

		if (p[1] == '-' && p[2] && p[2] != ']')
			p += 2;
		high = *p;
		if ((uint8_t)low <= (uint8_t)c && (uint8_t)c <= (uint8_t)high)
			found = true;
	}
	if (*p == ']')
		*after = p + 1;
	return found != negate;
}

/* Linear in time: only the last star is ever retried. */
bool str_glob(const char *pattern, const char *s)
{
	const char *star = NULL, *retry = NULL, *after;

	for (;;) {
		bool hit = false;

		if (*pattern == '*') {
			star = ++pattern;
			retry = s;
			continue;
		}
		if (!*s && !*pattern)
			return true;
		after = pattern + 1;
		if (*s && *pattern == '?') {
			hit = true;
		} else if (*s && *pattern == '[') {
			hit = glob_set(pattern + 1, *s, &after);
			if (!after) {
				after = pattern + 1;
				hit = *s == '[';
			}
		} else if (*s && *pattern == '\\' && pattern[1]) {
			hit = pattern[1] == *s;
			after = pattern + 2;
		} else if (*s) {
			hit = *pattern == *s;
		}
		if (hit) {
			pattern = after;
			s++;
			continue;
		}
		if (!star || !*retry)
			return false;
		pattern = star;
		s = ++retry;
	}
}

struct printer {
	char *next, *last;
};

static void print_char(struct printer *p, char c)
{
	if (p->next < p->last)
		*p->next++ = c;
}

static void print_number(struct printer *p, unsigned long v, unsigned base, bool minus, int width)
{
	char digits[24];
	int n = 0;

	do
		digits[n++] = "0123456789abcdef"[v % base];
	while (v /= base);
	if (minus)
		print_char(p, '-');
	for (; width > n; width--)
		print_char(p, '0');
	while (n)
		print_char(p, digits[--n]);
}

size_t str_vprint(char *buf, size_t size, const char *format, va_list ap)
{
	struct printer p = { buf, buf + size - 1 };

	if (!size)
		return 0;
	for (; *format; format++) {
		bool wide = false;
		int width = 0;
		long v;

		if (*format != '%') {
			print_char(&p, *format);
			continue;
		}
		for (format++; *format >= '0' && *format <= '9'; format++)
			width = width * 10 + (*format - '0');
		for (; *format == 'l' || *format == 'z'; format++)
			wide = true;
		switch (*format) {
		case 's':
			for (const char *s = va_arg(ap, const char *); s && *s; s++)
				print_char(&p, *s);
			break;
		case 'c':
			print_char(&p, (char)va_arg(ap, int));
			break;
		case 'd':
			v = wide ? va_arg(ap, long) : va_arg(ap, int);
			print_number(&p, v < 0 ? -(unsigned long)v : (unsigned long)v, 10, v < 0,
				width);
			break;
		case 'u':
		case 'x':
			print_number(&p,
				wide ? va_arg(ap, unsigned long) : va_arg(ap, unsigned int),
				*format == 'x' ? 16 : 10, false, width);
			break;
		case 'p':
			print_char(&p, '0');
			print_char(&p, 'x');
			print_number(&p, (unsigned long)va_arg(ap, void *), 16, false, width);
			break;
		default:
			print_char(&p, *format);
		}
		if (!*format)
			break;
	}
	*p.next = 0;
	return (size_t)(p.next - buf);
}

size_t str_print(char *buf, size_t size, const char *format, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, format);
	n = str_vprint(buf, size, format, ap);
	va_end(ap);
	return n;
}

static bool sealed;

void arena_seal(void)
{
	__atomic_store_n(&sealed, true, __ATOMIC_RELAXED);
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *block;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = size ? (size + 15) & ~(size_t)15 : 16;
	if ((size_t)(arena->end - arena->next) < size) {
		size_t want = size + 32 > ARENA_CHUNK ? size + 32 : ARENA_CHUNK;
		struct arena_chunk *chunk;

		if (__atomic_load_n(&sealed, __ATOMIC_RELAXED))
			return NULL;
		want = (want + 0xffff) & ~(size_t)0xffff;
		chunk = sys_mmap(NULL, want, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_failed(chunk))
			return NULL;
		chunk->older = arena->chunks;
		chunk->size = want;
		arena->chunks = chunk;
		arena->held += want;
		arena->next = (uint8_t *)chunk + 32;
		arena->end = (uint8_t *)chunk + want;
	}
	block = arena->next;
	arena->next += size;
	return block;
}

char *arena_str(struct arena *arena, const char *s, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);

	if (copy)
		memcpy(copy, s, len);
	return copy;
}

void arena_free(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct arena_chunk *older = chunk->older;

		sys_munmap(chunk, chunk->size);
		chunk = older;
	}
	*arena = (struct arena){ 0 };
}

static void swap_items(uint8_t *a, uint8_t *b, size_t size)
{
	while (size--) {
		uint8_t t = *a;

		*a++ = *b;
		*b++ = t;
	}
}

static void sift(uint8_t *items, size_t root, size_t n, size_t size,
	int (*compare)(const void *, const void *))
{
	for (size_t child; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n
			&& compare(items + child * size, items + (child + 1) * size) < 0)
			child++;
		if (compare(items + root * size, items + child * size) >= 0)
			return;
		swap_items(items + root * size, items + child * size, size);
	}
}

void mem_sort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	uint8_t *items = base;
	bool sorted = true;

	for (size_t i = 1; i < n && sorted; i++)
		sorted = compare(items + (i - 1) * size, items + i * size) <= 0;
	if (sorted)
		return;
	for (size_t i = n / 2; i--;)
		sift(items, i, n, size, compare);
	for (size_t i = n; i-- > 1;) {
		swap_items(items, items + i * size, size);
		sift(items, 0, i, size, compare);
	}
}

size_t mem_below(const void *items, size_t n, size_t size, uint64_t key)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (*(const uint64_t *)((const uint8_t *)items + middle * size) < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
