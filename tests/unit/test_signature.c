/* SPDX-License-Identifier: MIT */
#include "tracer/signature.h"
#include <criterion/criterion.h>

/* A call whose arguments are where the test puts them. */
static uint8_t places[4][16];

void *ftr_argument(struct ftr_call *call, const char *types, unsigned n)
{
	(void)call;
	cr_assert_str_eq(types, "iiidf");
	return n < 4 ? places[n] : NULL;
}

void *ftr_result(struct ftr_call *call, char type)
{
	(void)call;
	return type == 'f' ? places[3] : NULL;
}

Test(signature, parses)
{
	static const struct {
		const char *text;
		bool good;
		unsigned n, fixed;
		char result;
		const char *types;
	} rows[] = {
		{ NULL, true },
		{ "()", true },
		{ "i()", true, 0, 0, 'i', "" },
		{ "(i)", true, 1, 1, 0, "i" },
		{ "w(zpbhi)", true, 5, 5, 'w', "iiiii" },
		{ "w(wp.w)", true, 3, 2, 'w', "ii.i" },
		{ "z(p.)", true, 1, 1, 'z', "i." },
		{ "d(fdxDvs24i)", true, 7, 7, 'd', "fdxDvs24i" },
		{ "s(p)", true, 1, 1, 's', "i" },
		{ "(iiiiiiiiiiii)", true, 12, 12, 0, "iiiiiiiiiiii" },
		{ "(iiiiiiiiiiiii)", false },
		{ "", false },
		{ "i", false },
		{ "(", false },
		{ "(i", false },
		{ "(i))", false },
		{ "(q)", false },
		{ "q()", false },
		{ "ii()", false },
		{ "(s)", false },
		{ "(s0)", false },
		{ "(s1234567)", false },
		{ "(i.i.i)", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *text = rows[i].text ? rows[i].text : "(null)";
		struct signature s;

		cr_expect_eq(signature_parse(&s, rows[i].text), rows[i].good, "%s", text);
		if (!rows[i].good || !rows[i].types)
			continue;
		cr_expect_eq(s.n, rows[i].n, "%s: %u", text, s.n);
		cr_expect_eq(s.fixed, rows[i].fixed, "%s: %u", text, s.fixed);
		cr_expect_eq(s.result, rows[i].result, "%s: %c", text, s.result);
		cr_expect_str_eq(s.types, rows[i].types);
	}
}

Test(signature, prints)
{
	static const struct {
		char letter;
		uint64_t value;
		const char *text, *printed;
	} rows[] = {
		{ 'i', 5, NULL, "5" },
		{ 'w', (uint64_t)-1, NULL, "-1" },
		{ 'p', 0xabc, NULL, "0xabc" },
		{ 'p', 0, NULL, "NULL" },
		{ 'z', 0, NULL, "NULL" },
		{ 'z', 0xabc, NULL, "0xabc" },
		{ 'z', 0xabc, "a \"b\"\n\\\x01", "\"a \\\"b\\\"\\n\\\\\\x01\"" },
		{ 'd', 0x3fb999999999999a, NULL, "0.1" },
		{ 'f', 0x3fe0000000000000, NULL, "0.5" },
		{ 'x', 5, NULL, "?" },
	};
	char out[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = signature_print(
			out, sizeof(out), rows[i].letter, rows[i].value, rows[i].text);

		cr_expect_str_eq(out, rows[i].printed);
		cr_expect_eq(n, __builtin_strlen(out));
	}
	cr_expect_eq(signature_print(out, 4, 'i', 123456, NULL), 3);
	cr_expect_str_eq(out, "123");
}

Test(signature, cuts_integers)
{
	cr_expect_eq(signature_cut('b', 0x1ff), (uint64_t)-1);
	cr_expect_eq(signature_cut('h', 0x12345), 0x2345);
	cr_expect_eq(signature_cut('w', 0xdeadbeef00000001), 1);
	cr_expect_eq(signature_cut('w', 0xffffffff), (uint64_t)-1);
	cr_expect_eq(signature_cut('i', 0xdeadbeef00000001), 0xdeadbeef00000001);
}

Test(signature, reads_values)
{
	struct signature s;
	uint64_t v;

	cr_assert(signature_parse(&s, "f(wzidf)"));
	*(uint64_t *)places[0] = 0x12345678fffffffe;
	*(uint64_t *)places[1] = 0x1234567890;
	*(uint32_t *)places[3] = 0x3f000000; /* 0.5f, or the lower half of a double */
	*(uint32_t *)(places[3] + 4) = 0x3fb99999;
	cr_expect(signature_value(&s, NULL, 0, &v) && v == (uint64_t)-2);
	cr_expect(signature_value(&s, NULL, 1, &v) && v == 0x1234567890);
	cr_expect(signature_value(&s, NULL, 3, &v) && v == 0x3fb999993f000000);
	cr_expect_not(signature_value(&s, NULL, 4, &v), "no place");
	cr_expect_not(signature_value(&s, NULL, 5, &v), "no such parameter");
	cr_expect(signature_value(&s, NULL, FTR_RESULT, &v) && v == 0x3fe0000000000000);
	cr_assert(signature_parse(&s, "(x)"));
	cr_expect_not(signature_value(&s, NULL, 0, &v), "not a value of 64 bits");
	cr_expect_not(signature_value(&s, NULL, FTR_RESULT, &v), "no result");
}
