/* SPDX-License-Identifier: MIT */
/*
 * Variadic functions: the count of vector registers in al must arrive.
 *
 * expect: sum_doubles calls=4
 * expect: sum_integers calls=4
 * expect: sum_mixed calls=4
 * expect: by_pointer calls=4
 */
#include "target.h"

#include <stdarg.h>

static NOIPA double sum_doubles(int n, ...)
{
	double sum = 0;
	va_list ap;

	HIT();
	va_start(ap, n);
	while (n--)
		sum = sum * 2 + va_arg(ap, double);
	va_end(ap);
	return sum;
}

static NOIPA long sum_integers(int n, ...)
{
	long sum = 0;
	va_list ap;

	HIT();
	va_start(ap, n);
	while (n--)
		sum = sum * 2 + va_arg(ap, long);
	va_end(ap);
	return sum;
}

static NOIPA long double sum_mixed(const char *kinds, ...)
{
	long double sum = 0;
	va_list ap;

	HIT();
	va_start(ap, kinds);
	for (; *kinds; kinds++)
		switch (*kinds) {
		case 'd':
			sum = sum * 2 + va_arg(ap, double);
			break;
		case 'l':
			sum = sum * 2 + va_arg(ap, long);
			break;
		case 'L':
			sum = sum * 2 + va_arg(ap, long double);
			break;
		}
	va_end(ap);
	return sum;
}

static NOIPA int by_pointer(char *out, size_t room, const char *format, ...)
{
	va_list ap;
	int len;

	HIT();
	va_start(ap, format);
	len = vsnprintf(out, room, format, ap);
	va_end(ap);
	return len;
}

int main(void)
{
	int (*volatile call)(char *, size_t, const char *, ...) = by_pointer;
	char line[200];

	for (int i = 0; i < 4; i++) {
		printf("%g\n", sum_doubles(11, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., (double)i));
		printf("%ld\n", sum_integers(8, 1L, 2L, 3L, 4L, 5L, 6L, 7L, (long)i));
		printf("%Lg\n", sum_mixed("dlLdlLdlL", 1., 2L, 3.L, 4., 5L, 6.L, 7., 8L, i + 9.L));
		printf("%d ", call(line, sizeof(line), "%d %g %s %g", i, 1.5, "text", 2.5));
		puts(line);
	}
	hits("");
	return 0;
}
