/* SPDX-License-Identifier: MIT */
/* Places of arguments by the ELFv2 ABI, and which code is seen to leave vectors alone. On every host. */
#include "arch/powerpc/powerpc.h"
#include <criterion/criterion.h>

#define V PPC_VECTORS

static const struct {
	const char *types;
	unsigned n;
	uint8_t kind, index;
	uint32_t offset;
	bool single;
} arguments[] = {
	{ "i", 0, PLACE_GENERAL, 0 },
	{ "iiiiiiii", 7, PLACE_GENERAL, 7 },
	{ "iiiiiiiii", 8, PLACE_STACK, 0, 96 },
	{ "iiiiiiiiii", 9, PLACE_STACK, 0, 104 },
	/* in registers of their own, and yet with a place in the area */
	{ "d", 0, PLACE_VECTOR, 1 },
	{ "idi", 1, PLACE_VECTOR, 1 },
	{ "idi", 2, PLACE_GENERAL, 2 },
	{ "f", 0, PLACE_VECTOR, 1, 0, true },
	{ "df", 1, PLACE_VECTOR, 2, 0, true },
	{ "Dd", 0, PLACE_VECTOR, 1 },
	{ "Dd", 1, PLACE_VECTOR, 3 },
	{ "Di", 1, PLACE_GENERAL, 2 },
	{ "ddddddddddddd", 12, PLACE_VECTOR, 13 },
	{ "dddddddddddddd", 13, PLACE_STACK, 0, 136 },
	{ "ddddddddddddDd", 12, PLACE_STACK, 0, 128 },
	{ "ddddddddddddDd", 13, PLACE_STACK, 0, 144 },
	{ "v", 0, PLACE_VECTOR, V + 2 },
	{ "ivi", 2, PLACE_GENERAL, 4 },
	{ "vvvvvvvvvvvv", 11, PLACE_VECTOR, V + 13 },
	{ "vvvvvvvvvvvvv", 12, PLACE_STACK, 0, 32 + 24 * 8 },
	{ "dv", 1, PLACE_VECTOR, V + 2 },
	/* the area goes on in memory */
	{ "ix", 1, PLACE_GENERAL, 1 },
	{ "ixi", 2, PLACE_GENERAL, 3 },
	{ "iiiiiiix", 7, PLACE_SPLIT, 7 },
	{ "iiiiiiiix", 8, PLACE_STACK, 0, 96 },
	{ "s24i", 0, PLACE_GENERAL, 0 },
	{ "s24i", 1, PLACE_GENERAL, 3 },
	{ "s64i", 1, PLACE_STACK, 0, 96 },
	{ "is64", 1, PLACE_SPLIT, 1 },
	/* the result's address comes first */
	{ "&i", 0, PLACE_GENERAL, 1 },
	/* variadic: all in the area */
	{ "i.d", 1, PLACE_GENERAL, 1 },
	{ "d.d", 1, PLACE_GENERAL, 1 },
	{ "i.v", 1, PLACE_GENERAL, 2 },
	{ "", 0, PLACE_NONE },
	{ "i", 1, PLACE_NONE },
	{ "q", 0, PLACE_NONE },
	{ "s", 0, PLACE_NONE },
};

Test(powerpc_abi, arguments)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct isa_place p = isa_powerpc.argument(arguments[i].types, arguments[i].n);

		cr_expect(p.kind == arguments[i].kind && p.index == arguments[i].index
				&& p.offset == arguments[i].offset
				&& p.single == arguments[i].single,
			"\"%s\", %u: kind %u, index %u, offset %u", arguments[i].types,
			arguments[i].n, p.kind, p.index, p.offset);
	}
}

#define BLR 0x4e800020

static const struct {
	const char *name;
	uint32_t code[6];
	bool uses;
} codes[] = {
	{ "blr", { BLR } },
	{ "mflr; std; ld; addi; mtlr; blr", { 0x7c0802a6, 0xf8010010, 0xe8010010, 0x38630001, 0x7c0803a6,
		BLR } },
	{ "beq over; addi; blr; blr", { 0x4182000c, 0x38630001, BLR, BLR } },
	{ "ldarx; add; stdcx.; bne back; blr", { 0x7ca018a8, 0x7ca52a14, 0x7ca019ad, 0x4082fff4, BLR } },
	{ "lfd", { 0xc8230000, BLR }, true },
	{ "stfd", { 0xd8230000, BLR }, true },
	{ "fadd", { 0xfc21102a, BLR }, true },
	{ "lvx", { 0x7c4018ce, BLR }, true },
	{ "lxvd2x", { 0x7c001e98, BLR }, true },
	{ "mtvsrd", { 0x7c030166, BLR }, true },
	{ "vadduwm", { 0x10642880, BLR }, true },
	{ "xsadddp", { 0xf0642907, BLR }, true },
	{ "bl", { 0x48000005, BLR }, true },
	{ "bctr", { 0x4e800420 }, true },
	{ "b beyond", { 0x48001000, BLR }, true },
	{ "behind a blr that is jumped over", { 0x41820008, BLR, 0xfc21102a, BLR }, true },
};

Test(powerpc_abi, code_that_uses_vectors)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		const uint8_t *code = (const uint8_t *)codes[i].code;

		cr_expect_eq(isa_powerpc.uses_vectors(code, sizeof(codes[i].code)), codes[i].uses, "%s",
			codes[i].name);
	}
}
