/* SPDX-License-Identifier: MIT */
/*
 * The digits are those of Steele and White, and Dragon4: the number is r / s, half the distances to
 * its neighbours are up / s and down / s; digits are taken off r until what is left is nearer than
 * that. The integers are long, and there is no other arithmetic.
 */
#include "decimal.h"

#define WORDS 36 /* 2^1074 * 10 and more */

struct number {
	uint32_t n; /* words in use */
	uint32_t words[WORDS]; /* least first */
};

static void set(struct number *a, uint64_t value)
{
	*a = (struct number){ .n = 2, .words = { (uint32_t)value, (uint32_t)(value >> 32) } };
}

static void multiply(struct number *a, uint32_t by)
{
	uint64_t carry = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		carry += (uint64_t)a->words[i] * by;
		a->words[i] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry)
		a->words[a->n++] = (uint32_t)carry;
}

static void shift(struct number *a, uint32_t bits)
{
	for (; bits >= 31; bits -= 31)
		multiply(a, 1u << 31);
	multiply(a, 1u << bits);
}

static void add(struct number *a, const struct number *b)
{
	uint32_t n = (a->n > b->n ? a->n : b->n) + 1;
	uint64_t carry = 0;

	for (uint32_t i = 0; i < n; i++) {
		carry += (uint64_t)a->words[i] + b->words[i];
		a->words[i] = (uint32_t)carry;
		carry >>= 32;
	}
	a->n = n;
	while (a->n && !a->words[a->n - 1])
		a->n--;
}

/* @a is not less than @b. */
static void subtract(struct number *a, const struct number *b)
{
	int64_t carry = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		carry += (int64_t)a->words[i] - b->words[i];
		a->words[i] = (uint32_t)carry;
		carry >>= 32;
	}
}

static int compare(const struct number *a, const struct number *b)
{
	for (uint32_t i = WORDS; i--;)
		if (a->words[i] != b->words[i])
			return a->words[i] < b->words[i] ? -1 : 1;
	return 0;
}

static int compare_sum(const struct number *a, const struct number *b, const struct number *c)
{
	struct number sum = *a;

	add(&sum, b);
	return compare(&sum, c);
}

struct fraction {
	struct number r, s, up, down;
	bool even; /* a tie is rounded to this number */
};

/* Scale by ten until 1/10 <= number < 1, its neighbours included; returns the exponent. */
static int scale(struct fraction *f)
{
	int exponent = 0;

	while (compare_sum(&f->r, &f->up, &f->s) >= !f->even) {
		multiply(&f->s, 10);
		exponent++;
	}
	for (;;) {
		struct fraction next = *f;

		multiply(&next.r, 10);
		multiply(&next.up, 10);
		multiply(&next.down, 10);
		if (compare_sum(&next.r, &next.up, &next.s) >= !f->even)
			return exponent;
		*f = next;
		exponent--;
	}
}

static int take_digits(struct fraction *f, char *digits)
{
	int n = 0;

	for (;;) {
		bool low, high;
		char digit = '0';

		multiply(&f->r, 10);
		multiply(&f->up, 10);
		multiply(&f->down, 10);
		for (; compare(&f->r, &f->s) >= 0; digit++)
			subtract(&f->r, &f->s);
		low = compare(&f->r, &f->down) < f->even;
		high = compare_sum(&f->r, &f->up, &f->s) > -f->even;
		if (low || high) {
			if (high && (!low || compare_sum(&f->r, &f->r, &f->s) >= 0))
				digit++;
			digits[n++] = digit;
			return n;
		}
		digits[n++] = digit;
	}
}

/* The number is mantissa * 2^power. Returns the exponent of 0.DIGITS. */
static int find_digits(uint64_t mantissa, int power, bool narrow, char *digits, int *ndigits)
{
	struct fraction f = { .even = !(mantissa & 1) };
	int exponent;

	/* Twice everything, so that half the distances are integers; four times where the number
	 * below is half as far away. */
	set(&f.r, mantissa);
	set(&f.s, 1);
	set(&f.up, 1);
	set(&f.down, 1);
	shift(&f.r, 1u + narrow + (power > 0 ? (uint32_t)power : 0));
	shift(&f.s, 1u + narrow + (power < 0 ? (uint32_t)-power : 0));
	shift(&f.up, narrow + (power > 0 ? (uint32_t)power : 0));
	shift(&f.down, power > 0 ? (uint32_t)power : 0);
	exponent = scale(&f);
	*ndigits = take_digits(&f, digits);
	return exponent;
}

/* @exponent is that of 0.DIGITS. */
static size_t lay_out(char *out, const char *digits, int n, int exponent)
{
	size_t len = 0;

	if (exponent < -4 || exponent > 17) {
		out[len++] = digits[0];
		if (n > 1)
			out[len++] = '.';
		for (int i = 1; i < n; i++)
			out[len++] = digits[i];
		exponent--;
		return len + str_print(out + len, 8, "e%c%02u", exponent < 0 ? '-' : '+',
			(unsigned)(exponent < 0 ? -exponent : exponent));
	}
	if (exponent <= 0)
		len = str_print(out, 8, "0.%s", &"0000"[4 + exponent]);
	for (int i = 0; i < n || i < exponent; i++) {
		if (i == exponent && i)
			out[len++] = '.';
		out[len++] = i < n ? digits[i] : '0';
	}
	return len;
}

#define EXPONENT_OF(bits) ((int)((bits) >> 52 & 0x7ff))
#define MANTISSA_OF(bits) ((bits) & ((1ull << 52) - 1))

size_t decimal_print(char out[DECIMAL_MAX], uint64_t bits)
{
	uint64_t mantissa = MANTISSA_OF(bits);
	int n, power = EXPONENT_OF(bits), exponent;
	char digits[20];
	size_t len = 0;

	if (power == 0x7ff && mantissa)
		return str_print(out, DECIMAL_MAX, "nan");
	if (bits >> 63)
		out[len++] = '-';
	if (power == 0x7ff || !(power | mantissa))
		return len + str_print(out + len, DECIMAL_MAX - len, power ? "inf" : "0");
	if (power)
		exponent = find_digits(mantissa | 1ull << 52, power - 1075, !mantissa && power > 1,
			digits, &n);
	else
		exponent = find_digits(mantissa, -1074, false, digits, &n);
	len += lay_out(out + len, digits, n, exponent);
	out[len] = 0;
	return len;
}

static bool is_nan(uint64_t bits)
{
	return EXPONENT_OF(bits) == 0x7ff && MANTISSA_OF(bits);
}

uint64_t decimal_widen(uint32_t bits)
{
	uint64_t sign = (uint64_t)(bits >> 31) << 63, mantissa = bits & 0x7fffff;
	uint64_t exponent = bits >> 23 & 0xff;

	if (exponent == 0xff)
		return sign | 0x7ffull << 52 | mantissa << 29;
	if (!exponent) {
		if (!mantissa)
			return sign;
		for (exponent = 1; !(mantissa >> 23); exponent--)
			mantissa <<= 1;
	}
	return sign | (exponent + 1023 - 127) << 52 | (mantissa & 0x7fffff) << 29;
}

uint32_t decimal_narrow(uint64_t bits)
{
	uint32_t sign = (uint32_t)(bits >> 63) << 31;
	int exponent = EXPONENT_OF(bits) - 1023 + 127, cut = 29 + (exponent < 1 ? 1 - exponent : 0);
	uint64_t mantissa = MANTISSA_OF(bits) | 1ull << 52, left, half, result;

	if (is_nan(bits))
		return sign | 0x7fc00000;
	if (exponent > 254)
		return sign | 0x7f800000;
	if (cut > 54)
		return sign;
	half = 1ull << (cut - 1);
	left = mantissa & (2 * half - 1);
	result = mantissa >> cut;
	if (exponent > 1)
		result += (uint64_t)(exponent - 1) << 23;
	/* Rounded up, the largest mantissa becomes the next exponent. */
	result += left > half || (left == half && result & 1);
	return sign | (uint32_t)result;
}

bool decimal_equal(uint64_t a, uint64_t b)
{
	return a == b || !((a | b) << 1) || (is_nan(a) && is_nan(b));
}

bool decimal_fraction(uint64_t bits, uint64_t *fraction)
{
	const uint64_t one = 1023ull << 52;
	int left;

	*fraction = 0;
	if (!(bits << 1))
		return true;
	if (bits > one) /* negative ones are, too */
		return false;
	left = EXPONENT_OF(bits) - 1075 + 64;
	if (bits == one)
		*fraction = ~0ull;
	else if (left > -53)
		*fraction = left >= 0 ? (MANTISSA_OF(bits) | 1ull << 52) << left
				      : (MANTISSA_OF(bits) | 1ull << 52) >> -left;
	return true;
}
