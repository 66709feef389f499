/* SPDX-License-Identifier: MIT */
/* Where arguments and results are, and which handlers leave vector registers alone. */
#include "arch/arch.h"
#include "arch/x86_64/decoder.h"
#include <criterion/criterion.h>
#include <string.h>

static const struct {
	const char *types;
	unsigned n;
	uint8_t kind, index;
	uint32_t offset;
} arguments[] = {
	{ "i", 0, PLACE_GENERAL, 0 },
	{ "iiiiii", 5, PLACE_GENERAL, 5 },
	{ "iiiiiii", 6, PLACE_STACK, 0, 0 },
	{ "iiiiiiii", 7, PLACE_STACK, 0, 8 },
	{ "d", 0, PLACE_VECTOR, 0 },
	{ "idif", 3, PLACE_VECTOR, 1 },
	{ "idif", 2, PLACE_GENERAL, 1 },
	{ "dddddddd", 7, PLACE_VECTOR, 7 },
	{ "ddddddddd", 8, PLACE_STACK, 0, 0 },
	{ "ddddddddfi", 9, PLACE_GENERAL, 0 },
	{ "ddddddddfd", 9, PLACE_STACK, 0, 8 },
	{ "v", 0, PLACE_VECTOR, 0 },
	{ "iiiiiiiddddddddv", 15, PLACE_STACK, 0, 16 },
	{ "x", 0, PLACE_GENERAL, 0 },
	{ "ix", 1, PLACE_GENERAL, 1 },
	{ "xxx", 2, PLACE_GENERAL, 4 },
	/* all of it or nothing; the register that is left is used by the next one */
	{ "iiiiix", 5, PLACE_STACK, 0, 0 },
	{ "iiiiixi", 6, PLACE_GENERAL, 5 },
	{ "iiiiixii", 7, PLACE_STACK, 0, 16 },
	{ "iiiiiiix", 7, PLACE_STACK, 0, 16 },
	{ "D", 0, PLACE_STACK, 0, 0 },
	{ "iiiiiiiDi", 7, PLACE_STACK, 0, 16 },
	{ "iiiiiiiDi", 8, PLACE_STACK, 0, 32 },
	{ "s24i", 0, PLACE_STACK, 0, 0 },
	{ "s24i", 1, PLACE_GENERAL, 0 },
	{ "s20D", 1, PLACE_STACK, 0, 32 },
	{ "s20iiiiiii", 7, PLACE_STACK, 0, 24 },
	{ "&i", 0, PLACE_GENERAL, 1 },
	{ "&iiiiii", 5, PLACE_STACK, 0, 0 },
	{ "i.i", 1, PLACE_GENERAL, 1 },
	{ "i.dd", 2, PLACE_VECTOR, 1 },
	/* wrong */
	{ "", 0, PLACE_NONE },
	{ "i", 1, PLACE_NONE },
	{ "i.", 1, PLACE_NONE },
	{ "q", 0, PLACE_NONE },
	{ "iqi", 2, PLACE_NONE },
	{ "s", 0, PLACE_NONE },
	{ "s0", 0, PLACE_NONE },
	{ "s99999999999", 0, PLACE_STACK, 0, 0 },
};

Test(x86_abi, arguments)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct isa_place p = isa_x86_64.argument(arguments[i].types, arguments[i].n);

		cr_expect(p.kind == arguments[i].kind && p.index == arguments[i].index
				&& p.offset == arguments[i].offset,
			"\"%s\", %u: kind %u, index %u, offset %u", arguments[i].types,
			arguments[i].n, p.kind, p.index, p.offset);
	}
}

static const struct {
	char type;
	uint8_t kind;
} results[] = { { 'i', PLACE_GENERAL }, { 'x', PLACE_GENERAL }, { 'f', PLACE_VECTOR },
	{ 'd', PLACE_VECTOR }, { 'v', PLACE_VECTOR }, { 'D', PLACE_EXTENDED }, { 's', PLACE_MEMORY },
	{ '.', PLACE_NONE }, { 0, PLACE_NONE } };

Test(x86_abi, results)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		cr_expect_eq(isa_x86_64.result(results[i].type).kind, results[i].kind, "'%c'",
			results[i].type);
}

#define CODE(text) text, sizeof(text) - 1
static const struct {
	const char *name, *code;
	size_t size;
	bool uses;
} codes[] = {
	{ "ret", CODE("\xc3"), false },
	{ "endbr64; inc (rsi); ret", CODE("\xf3\x0f\x1e\xfa\x48\xff\x06\xc3"), false },
	{ "a branch over a return", CODE("\x48\x85\xff\x74\x01\xc3\x31\xc0\xc3"), false },
	{ "an addition behind a return", CODE("\x48\x85\xff\x74\x01\xc3\x66\x0f\xd4\xc0\xc3"), true },
	{ "a loop", CODE("\x48\xff\xcf\x75\xfb\xc3"), false },
	{ "endless", CODE("\xeb\xfe"), false },
	{ "rorx", CODE("\xc4\xe3\xfb\xf0\xc7\x04\xc3"), false },
	{ "movaps", CODE("\x0f\x28\xc1\xc3"), true },
	{ "vmovaps", CODE("\xc5\xf8\x28\xc1\xc3"), true },
	{ "kmovq", CODE("\xc4\xe1\xfb\x92\xc8\xc3"), true },
	{ "fld1", CODE("\xd9\xe8\xc3"), true },
	{ "movd mm0", CODE("\x0f\x6e\xc0\xc3"), true },
	{ "ldmxcsr", CODE("\x0f\xae\x16\xc3"), true },
	{ "fxrstor", CODE("\x0f\xae\x0e\xc3"), true },
	{ "a call", CODE("\xe8\x00\x00\x00\x00\xc3"), true },
	{ "a call by a register", CODE("\xff\xd0\xc3"), true },
	{ "a jump by a register", CODE("\xff\xe0"), true },
	{ "a jump back out of it", CODE("\xeb\xf0\xc3"), true },
	{ "a jump further than is seen", CODE("\xe9\x00\x01\x00\x00"), true },
	{ "no end", CODE("\x90\x90"), true },
	{ "no code", CODE("\x06"), true },
};

Test(x86_abi, vectors_are_seen)
{
	cr_assert_eq(decoder_open(), 0);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		cr_expect_eq(isa_x86_64.uses_vectors((const uint8_t *)codes[i].code, codes[i].size),
			codes[i].uses, "%s", codes[i].name);
}
