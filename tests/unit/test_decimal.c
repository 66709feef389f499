/* SPDX-License-Identifier: MIT */
#include "tracer/decimal.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t bits_of(double value)
{
	uint64_t bits;

	__builtin_memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double number_of(uint64_t bits)
{
	double value;

	__builtin_memcpy(&value, &bits, sizeof(value));
	return value;
}

Test(decimal, prints)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{ 0.0, "0" },
		{ -0.0, "-0" },
		{ 1, "1" },
		{ -3, "-3" },
		{ 10, "10" },
		{ 123456, "123456" },
		{ 0.1, "0.1" },
		{ 0.5, "0.5" },
		{ -2.25, "-2.25" },
		{ 0.001, "0.001" },
		{ 0.00001234, "0.00001234" },
		{ 0.000001234, "1.234e-06" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 12345678901234567.0, "12345678901234568" },
		{ 1e17, "1e+17" },
		{ 1e22, "1e+22" },
		{ 1e23, "1e+23" },
		{ 9007199254740993.0, "9007199254740992" },
		{ 5e-324, "5e-324" },
		{ 2.2250738585072014e-308, "2.2250738585072014e-308" },
		{ DBL_MAX, "1.7976931348623157e+308" },
		{ -DBL_MAX, "-1.7976931348623157e+308" },
		{ INFINITY, "inf" },
		{ -INFINITY, "-inf" },
		{ NAN, "nan" },
	};
	char text[DECIMAL_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t len = decimal_print(text, bits_of(rows[i].value));

		cr_expect_str_eq(text, rows[i].text);
		cr_expect_eq(len, strlen(text), "%s: length %zu", text, len);
	}
}

/* The shortest that reads back as the same number, whatever the number. */
Test(decimal, reads_back_and_is_shortest)
{
	char text[DECIMAL_MAX], shorter[64];

	random_state = 1;
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = random64();
		double value = number_of(i % 4 ? bits : bits & ~0ull << 52);
		int digits = 0, seen = 0;

		if (!isfinite(value))
			continue;
		decimal_print(text, bits_of(value));
		cr_assert_eq(bits_of(strtod(text, NULL)), bits_of(value), "%s for %a", text, value);
		for (const char *s = text; *s && *s != 'e'; s++)
			if (*s >= '0' && *s <= '9' && ++seen && *s != '0')
				digits = seen; /* without zeros at the end */
		if (digits < 2 || text[0] == '0' || text[1] == '0')
			continue;
		snprintf(shorter, sizeof(shorter), "%.*e", digits - 2, value);
		cr_expect_neq(strtod(shorter, NULL), value, "%s where %s does", text, shorter);
	}
}

Test(decimal, widens_floats)
{
	static const float rows[] = { 0.0f, -0.0f, 1.5f, -0.1f, FLT_MAX, FLT_MIN, 1e-45f, 3e-40f,
		INFINITY, -INFINITY };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t bits;

		__builtin_memcpy(&bits, &rows[i], sizeof(bits));
		cr_expect_eq(decimal_widen(bits), bits_of((double)rows[i]), "%a", (double)rows[i]);
	}
	cr_expect(isnan(number_of(decimal_widen(0x7fc00000))));
}

Test(decimal, equality_is_that_of_numbers)
{
	cr_expect(decimal_equal(bits_of(0.0), bits_of(-0.0)));
	cr_expect(decimal_equal(bits_of(NAN), bits_of(-NAN)));
	cr_expect(decimal_equal(bits_of(0.1), bits_of(0.1)));
	cr_expect_not(decimal_equal(bits_of(0.1), bits_of(-0.1)));
	cr_expect_not(decimal_equal(bits_of(NAN), bits_of(INFINITY)));
}

Test(decimal, fractions)
{
	static const struct {
		double value;
		bool good;
		uint64_t fraction;
	} rows[] = {
		{ 0, true, 0 },
		{ 0.5, true, 1ull << 63 },
		{ 0.75, true, 3ull << 62 },
		{ 1, true, ~0ull },
		{ 0x1p-64, true, 1 },
		{ 0x1.8p-64, true, 1 },
		{ 0x1p-65, true, 0 },
		{ 5e-324, true, 0 },
		{ 1.0000000000000002, false, 0 },
		{ -0.5, false, 0 },
		{ INFINITY, false, 0 },
		{ NAN, false, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t fraction;

		cr_expect_eq(decimal_fraction(bits_of(rows[i].value), &fraction), rows[i].good,
			"%a", rows[i].value);
		cr_expect_eq(fraction, rows[i].fraction, "%a: %lx", rows[i].value, fraction);
	}
}

Test(decimal, narrows_to_the_nearest_float)
{
	static const double rows[] = { 0.0, -0.0, 1.5, -0.1, FLT_MAX, FLT_MIN, 0x1p-149, 0x1p-150,
		0x1.8p-150, 0x1p-151, 3e-40, 1e-320, 1e39, -1e39, 0x1.fffffefp127, 0x1.ffffffp127,
		16777217.0, 16777219.0, 0x1.fffffep-127, 0x1.ffffffp-127, INFINITY, -INFINITY };

	random_state = 2;
	for (int i = 0; i < 20000; i++) {
		bool named = (size_t)i < sizeof(rows) / sizeof(*rows);
		uint64_t bits = random64();
		uint32_t wanted;
		double value;
		float f;

		/* exponents around those of floats */
		bits = (bits & ~(0x7ffull << 52)) | (0x360 + (bits >> 52) % 0x130) << 52;
		value = named ? rows[i] : number_of(bits);
		f = (float)value;
		__builtin_memcpy(&wanted, &f, sizeof(wanted));
		cr_assert_eq(decimal_narrow(bits_of(value)), wanted, "%a", value);
	}
	cr_expect_eq(decimal_narrow(bits_of(NAN)) & 0x7fffffff, 0x7fc00000);
}
