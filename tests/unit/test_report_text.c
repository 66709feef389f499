/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "tools/report/text.h"

Test(report_text, decodes_shortest_forms_only)
{
	static const struct {
		const char *bytes;
		size_t len;
		uint32_t character;
	} rows[] = {
		{ "a", 1, 'a' },
		{ "\x7f", 1, 0x7f },
		{ "\xc2\x80", 2, 0x80 },
		{ "\xdf\xbf", 2, 0x7ff },
		{ "\xe0\xa0\x80", 3, 0x800 },
		{ "\xed\x9f\xbf", 3, 0xd7ff },
		{ "\xef\xbf\xbf", 3, 0xffff },
		{ "\xf0\x90\x80\x80", 4, 0x10000 },
		{ "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
		{ "", 0, 0 },
		{ "\x80", 0, 0 }, /* begins nothing */
		{ "\xc1\xbf", 0, 0 }, /* 0x7f in two bytes */
		{ "\xe0\x9f\xbf", 0, 0 }, /* 0x7ff in three */
		{ "\xf0\x8f\xbf\xbf", 0, 0 }, /* 0xffff in four */
		{ "\xed\xa0\x80", 0, 0 }, /* a surrogate */
		{ "\xf4\x90\x80\x80", 0, 0 }, /* 0x110000 */
		{ "\xf8\x88\x80\x80\x80", 0, 0 },
		{ "\xff", 0, 0 },
		{ "\xe2\x82", 0, 0 }, /* cut off */
		{ "\xe2\x82\x41", 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t character = 0;
		size_t len = text_decode(rows[i].bytes, &character);

		cr_expect(len == rows[i].len && character == rows[i].character,
			"row %zu: length %zu, character %x", i, len, character);
	}
}

/* What a function that writes to a stream wrote. */
struct captured {
	FILE *stream;
	char *text;
	size_t size;
};

static FILE *capture(struct captured *captured)
{
	captured->stream = open_memstream(&captured->text, &captured->size);
	return captured->stream;
}

Test(report_text, puts_valid_utf8)
{
	static const char *const rows[][2] = {
		{ "plain", "plain" },
		{ "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac" },
		{ "a\xff\x62", "a\xef\xbf\xbd\x62" },
		{ "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct captured out;
		FILE *to = capture(&out);

		for (const char *s = rows[i][0]; *s;)
			s += text_put(to, s);
		fclose(to);
		cr_expect_str_eq(out.text, rows[i][1], "row %zu", i);
		free(out.text);
	}
}

Test(report_text, shows_nothing_that_moves_the_cursor)
{
	static const struct {
		const char *bytes, *shown;
		size_t width;
	} rows[] = {
		{ "", "", 0 },
		{ "operator<<", "operator<<", 10 },
		{ "\xc3\xa4x", "\xc3\xa4x", 2 },
		{ "a\nb", "a\\x0ab", 6 },
		{ "\x1b[31m", "\\x1b[31m", 8 },
		{ "\x7f", "\\x7f", 4 },
		{ "\xc2\x9b", "\\xc2\\x9b", 8 }, /* C1: CSI */
		{ "\xe2\x80\xae", "\\xe2\\x80\\xae", 12 }, /* right-to-left override */
		{ "\xff", "\\xff", 4 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct captured out;
		size_t width = text_visible(capture(&out), rows[i].bytes);

		fclose(out.stream);
		cr_expect_str_eq(out.text, rows[i].shown, "row %zu", i);
		cr_expect(width == rows[i].width, "row %zu: width %zu", i, width);
		cr_expect(text_visible(NULL, rows[i].bytes) == width, "row %zu: not shown", i);
		free(out.text);
	}
}

Test(report_text, times_have_three_digits)
{
	static const struct {
		uint64_t ns;
		const char *shown;
	} rows[] = {
		{ 0, "0ns" },
		{ 999, "999ns" },
		{ 1000, "1.00us" },
		{ 9994, "9.99us" },
		{ 9996, "10.0us" },
		{ 99940, "99.9us" },
		{ 99960, "100us" },
		{ 999400, "999us" },
		{ 999600, "1.00ms" },
		{ 12345678, "12.3ms" },
		{ 999600000, "1.00s" },
		{ 123456789012, "123s" },
		{ UINT64_MAX, "18446744074s" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char buf[TEXT_NS_MAX];

		cr_expect_str_eq(text_ns(buf, rows[i].ns), rows[i].shown, "row %zu", i);
	}
}

Test(report_text, base_is_the_last_part_of_a_path)
{
	static const char *const rows[][2] = {
		{ "/usr/lib/libc.so.6", "libc.so.6" },
		{ "app", "app" },
		{ "[vdso]", "[vdso]" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(text_base(rows[i][0]), rows[i][1], "row %zu", i);
}
