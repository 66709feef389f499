/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "text.h"

/* Length of a character by its first byte; 0: none begins so, or the end of the string. */
static size_t text_length(unsigned char first)
{
	if (first < 0x80)
		return first != 0;
	if (first < 0xc0 || first >= 0xf8)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t text_decode(const char *s, uint32_t *character)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *byte = (const unsigned char *)s;
	size_t len = text_length(byte[0]);
	uint32_t value = len > 1 ? byte[0] & (0x7fu >> len) : byte[0];

	if (len == 0)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (byte[i] & 0x3f);
	}
	if (value < smallest[len] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	*character = value;
	return len;
}

size_t text_put(FILE *to, const char *s)
{
	uint32_t character;
	size_t len = text_decode(s, &character);

	if (len)
		fwrite(s, 1, len, to);
	else
		fputs("\xef\xbf\xbd", to);
	return len ? len : 1;
}

/* Control characters (C0, delete, C1) and those that change the direction of the line. */
static bool text_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t text_visible(FILE *to, const char *s)
{
	uint32_t character;
	size_t width = 0;

	while (*s) {
		size_t len = text_decode(s, &character);
		bool shown = len && !text_is_control(character);
		size_t step = len ? len : 1;

		width += shown ? 1 : 4 * step;
		if (to && shown)
			fwrite(s, 1, step, to);
		for (size_t i = 0; to && !shown && i < step; i++)
			fprintf(to, "\\x%02x", (unsigned char)s[i]);
		s += step;
	}
	return width;
}

char *text_ns(char buf[TEXT_NS_MAX], uint64_t ns)
{
	static const char units[][3] = { "us", "ms", "s" };
	double value = (double)ns;
	size_t unit = 0;
	int decimals = 0;

	if (ns < 1000) {
		snprintf(buf, TEXT_NS_MAX, "%" PRIu64 "ns", ns);
		return buf;
	}
	/* 999.5 would be shown with four digits. */
	for (value /= 1000; value >= 999.5 && unit < 2; unit++)
		value /= 1000;
	if (value < 99.95)
		decimals = value < 9.995 ? 2 : 1;
	snprintf(buf, TEXT_NS_MAX, "%.*f%s", decimals, value, units[unit]);
	return buf;
}

const char *text_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
