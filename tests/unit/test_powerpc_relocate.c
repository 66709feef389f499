/* SPDX-License-Identifier: MIT */
/* Copies of powerpc instructions, word by word. Their execution is compared in powerpc/. */
#include "arch/powerpc/powerpc.h"
#include <criterion/criterion.h>
#include <errno.h>

#define FROM 0x10000000ull
#define AT   0x11000000ull

/* std r12,-8(r1); r12 = 0x10000004; mtlr r12; ld r12,-8(r1) */
#define LINK                                                                                       \
	0xf981fff8, 0x3d800000, 0x618c0000, 0x798c07c6, 0x658c1000, 0x618c0004, 0x7d8803a6,        \
		0xe981fff8

static const struct row {
	uint32_t code[2]; /* 0: one word */
	uint64_t at;
	int size; /* or -errno */
	bool ends;
	uint32_t copy[12];
} rows[] = {
	{ { 0x7c0802a6 }, AT, 4, false, { 0x7c0802a6 } }, /* mflr r0 */
	{ { 0xf821ffe1 }, AT, 4, false, { 0xf821ffe1 } }, /* stdu r1,-32(r1) */
	{ { 0x4e800020 }, AT, 4, true, { 0x4e800020 } },  /* blr */
	{ { 0x4d820020 }, AT, 4, false, { 0x4d820020 } }, /* beqlr */
	{ { 0x4e800420 }, AT, 4, true, { 0x4e800420 } },  /* bctr */
	{ { 0x48000100 }, AT, 4, true, { 0x4b000100 } },  /* b 0x10000100 */
	{ { 0x48001002 }, AT, 4, true, { 0x48001002 } },  /* ba 0x1000 */
	/* the furthest b either way, and one word further */
	{ { 0x48001000 }, FROM + 0x1000 + 0x2000000, 4, true, { 0x4a000000 } },
	{ { 0x48001000 }, FROM + 0x1004 + 0x2000000, -ERANGE, false, { 0 } },
	{ { 0x48001000 }, FROM + 0x1004 - 0x2000000, 4, true, { 0x49fffffc } },
	{ { 0x48001000 }, FROM + 0x1000 - 0x2000000, -ERANGE, false, { 0 } },
	/* beq .+16: beq .+8; b 0x10000004; b 0x10000010 */
	{ { 0x41820010 }, AT, 12, true, { 0x41820008, 0x4b000000, 0x4b000008 } },
	/* bdnz .-8 */
	{ { 0x4200fff8 }, AT, 12, true, { 0x42000008, 0x4b000000, 0x4afffff0 } },
	{ { 0x41820010 }, FROM - 0x2000000, -ERANGE, false, { 0 } },
	{ { 0x48000101 }, AT, 36, true, { LINK, 0x4b0000e0 } }, /* bl 0x10000100 */
	/* beql .+16 */
	{ { 0x41820011 }, AT, 44, true, { LINK, 0x41820008, 0x4affffe0, 0x4affffe8 } },
	{ { 0x4e800421 }, AT, 36, true, { LINK, 0x4e800420 } }, /* bctrl */
	{ { 0x4c820421 }, AT, 36, false, { LINK, 0x4c820420 } }, /* bnectrl */
	{ { 0x4e800461 }, AT, 36, true, { LINK, 0x4e800460 } }, /* bctarl */
	/* lnia r3, addpcis r3,0x103f: r3 = 0x10000004, 0x203f0004 */
	{ { 0x4c600004 }, AT, 20, false,
		{ 0x3c600000, 0x60630000, 0x786307c6, 0x64631000, 0x60630004 } },
	{ { 0x4c7f1005 }, AT, 20, false,
		{ 0x3c600000, 0x60630000, 0x786307c6, 0x6463203f, 0x60630004 } },
	/* pld r3,0x10010(0),1; behind a nop where it would cross 64 bytes */
	{ { 0x04100001, 0xe4600010 }, AT, 8, false, { 0x0413ff01, 0xe4600010 } },
	{ { 0x04100001, 0xe4600010 }, AT + 0x3c, 12, false, { 0x60000000, 0x0413ff00, 0xe460ffd0 } },
	/* pla r3,8; and to where 34 bits do not reach */
	{ { 0x06100000, 0x38600008 }, AT, 8, false, { 0x0613ff00, 0x38600008 } },
	{ { 0x06100000, 0x38600008 }, FROM + (1ull << 33) + 8, 8, false, { 0x06120000, 0x38600000 } },
	{ { 0x06100000, 0x38600008 }, FROM + (1ull << 33) + 12, -ERANGE, false, { 0 } },
	/* paddi r3,r4,8 is not relative, pmxvf32ger neither */
	{ { 0x06000000, 0x38640008 }, AT, 8, false, { 0x06000000, 0x38640008 } },
	{ { 0x079000ff, 0xec0428d8 }, AT + 0x7c, 12, false, { 0x60000000, 0x079000ff, 0xec0428d8 } },
	/* hashst r0,-32(r1) needs only what the copy has, too */
	{ { 0x7f8105a5 }, AT, 4, false, { 0x7f8105a5 } },
	{ { 0x429f0005 }, AT, -EINVAL, false, { 0 } }, /* bcl 20,31,.+4 */
	{ { 0x4e800021 }, AT, -EINVAL, false, { 0 } }, /* blrl */
	{ { 0x44000001 }, AT, -EINVAL, false, { 0 } }, /* scv 0 */
	{ { 0x04100001 }, AT, -EINVAL, false, { 0 } }, /* half an instruction */
};

Test(powerpc_relocate, does_the_same_elsewhere)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *row = &rows[i];
		uint32_t out[PPC_COPY_MAX / 4] = { 0 };
		bool ends = false;
		int size = ppc_relocate((const uint8_t *)row->code, row->code[1] ? 8 : 4, FROM,
			row->at, (uint8_t *)out, &ends);

		cr_expect_eq(size, row->size, "%08x at %lx: %d", row->code[0], row->at, size);
		cr_expect_eq(ends, row->ends, "%08x", row->code[0]);
		for (int k = 0; k < row->size / 4; k++)
			cr_expect_eq(out[k], row->copy[k], "%08x at %lx: word %d is %08x",
				row->code[0], row->at, k, out[k]);
	}
}
