/* SPDX-License-Identifier: MIT */
/* Places of arguments by AAPCS64, and which code is seen to leave vectors alone. On every host. */
#include "arch/arch.h"
#include <criterion/criterion.h>

static const struct {
	const char *types;
	unsigned n;
	uint8_t kind, index;
	uint32_t offset;
	bool indirect;
} arguments[] = {
	{ "i", 0, PLACE_GENERAL, 0 },
	{ "iiiiiiii", 7, PLACE_GENERAL, 7 },
	{ "iiiiiiiii", 8, PLACE_STACK, 0, 0 },
	{ "iiiiiiiiii", 9, PLACE_STACK, 0, 8 },
	{ "dfvD", 3, PLACE_VECTOR, 3 },
	{ "ifi", 2, PLACE_GENERAL, 1 },
	{ "dddddddddd", 8, PLACE_STACK, 0, 0 },
	{ "ddddddddfv", 9, PLACE_STACK, 0, 16 },
	/* pairs begin at even registers, and what does not fit leaves none to others */
	{ "x", 0, PLACE_GENERAL, 0 },
	{ "ix", 1, PLACE_GENERAL, 2 },
	{ "ixi", 2, PLACE_GENERAL, 4 },
	{ "iiiiiiix", 7, PLACE_STACK, 0, 0 },
	{ "iiiiiiixi", 8, PLACE_STACK, 0, 16 },
	{ "iiiiiiiiix", 9, PLACE_STACK, 0, 16 },
	/* large structures by address, small ones by value */
	{ "s24i", 0, PLACE_GENERAL, 0, 0, true },
	{ "s24i", 1, PLACE_GENERAL, 1 },
	{ "iiiiiiiis24i", 8, PLACE_STACK, 0, 0, true },
	{ "iiiiiiiis24i", 9, PLACE_STACK, 0, 8 },
	{ "is16i", 1, PLACE_GENERAL, 1 },
	{ "is16i", 2, PLACE_GENERAL, 3 },
	{ "s12i", 1, PLACE_GENERAL, 2 },
	{ "iiiiiiis16i", 7, PLACE_STACK, 0, 0 },
	{ "iiiiiiis16i", 8, PLACE_STACK, 0, 16 },
	/* the result's address is elsewhere */
	{ "&i", 0, PLACE_GENERAL, 0 },
	{ "i.dd", 2, PLACE_VECTOR, 1 },
	{ "", 0, PLACE_NONE },
	{ "i", 1, PLACE_NONE },
	{ "q", 0, PLACE_NONE },
	{ "s", 0, PLACE_NONE },
	{ "s0", 0, PLACE_NONE },
};

Test(arm64_abi, arguments)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct isa_place p = isa_arm64.argument(arguments[i].types, arguments[i].n);

		cr_expect(p.kind == arguments[i].kind && p.index == arguments[i].index
				&& p.offset == arguments[i].offset
				&& p.indirect == arguments[i].indirect,
			"\"%s\", %u: kind %u, index %u, offset %u", arguments[i].types,
			arguments[i].n, p.kind, p.index, p.offset);
	}
}

static const struct {
	char type;
	uint8_t kind;
} results[] = { { 'i', PLACE_GENERAL }, { 'x', PLACE_GENERAL }, { 'f', PLACE_VECTOR },
	{ 'd', PLACE_VECTOR }, { 'v', PLACE_VECTOR }, { 'D', PLACE_VECTOR }, { 's', PLACE_MEMORY },
	{ '.', PLACE_NONE }, { 0, PLACE_NONE } };

Test(arm64_abi, results)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		cr_expect_eq(isa_arm64.result(results[i].type).kind, results[i].kind, "'%c'",
			results[i].type);
}

#define RET 0xd65f03c0

static const struct {
	const char *name;
	uint32_t code[6];
	bool uses;
} codes[] = {
	{ "ret", { RET } },
	{ "bti c; paciasp; stp; ldr; add; autiasp; ret",
		{ 0xd503245f, 0xd503233f, 0xa9bf7bfd, 0xf9400000, 0x91000400, RET } },
	{ "cbz over; add; ret; ret", { 0xb4000060, 0x91000400, RET, RET } },
	{ "ldadd; dmb; ret", { 0xf8210002, 0xd5033bbf, RET } },
	{ "fadd", { 0x1e612800, RET }, true },
	{ "movi", { 0x4f000400, RET }, true },
	{ "ldr q0", { 0x3dc00000, RET }, true },
	{ "stp d8, d9", { 0x6dbf27e8, RET }, true },
	{ "ldr d0, literal", { 0x5c000040, RET }, true },
	{ "add z0", { 0x04a00000, RET }, true },
	{ "msr fpcr", { 0xd51b4400, RET }, true },
	{ "smstart sm; smstop sm", { 0xd503437f, 0xd503427f, RET }, true },
	{ "msr dit", { 0xd503415f, RET } },
	{ "svc", { 0xd4000001, RET }, true },
	{ "bl", { 0x94000001, RET }, true },
	{ "blr", { 0xd63f0000, RET }, true },
	{ "br", { 0xd61f0000, RET }, true },
	{ "b out of it", { 0x17ffffff, RET }, true },
	{ "b beyond", { 0x14001000, RET }, true },
	{ "no end", { 0x91000400, 0x91000400, 0x91000400, 0x91000400, 0x91000400, 0x91000400 }, true },
	{ "behind a ret that is jumped over", { 0xb4000040, RET, 0x1e612800, RET }, true },
};

Test(arm64_abi, code_that_uses_vectors)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		const uint8_t *code = (const uint8_t *)codes[i].code;

		cr_expect_eq(isa_arm64.uses_vectors(code, sizeof(codes[i].code)), codes[i].uses, "%s",
			codes[i].name);
	}
}
