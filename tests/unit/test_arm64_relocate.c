/* SPDX-License-Identifier: MIT */
/* Instructions and what they become at another place. Bytes are of binutils. */
#include "arch/arm64/a64.h"
#include <criterion/criterion.h>
#include <errno.h>

#define FROM	  0x410000ull
#define NEAR	  0x2410000ull
#define BEYOND	  0x9410000ull	   /* of a branch, not of adrp */
#define ELSEWHERE 0x7f0000000000ull /* of both */

struct row {
	const char *name;
	uint64_t at;
	bool free16;
	uint32_t window[A64_WINDOW_MAX]; /* 0 only as the first one */
	int want;
	bool ends;
	uint32_t copy[8]; /* ends with 0 */
};

static const struct row rows[] = {
	{ "nop", NEAR, true, { 0xd503201f }, /* nop */
		0, false, {
			0xd503201f, /* nop */
		} },
	{ "stp", NEAR, true, { 0xa9be7bfd }, /* stp x29, x30, [sp, #-32]! */
		0, false, {
			0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
		} },
	{ "ret", NEAR, true, { 0xd65f03c0 }, /* ret */
		0, true, {
			0xd65f03c0, /* ret */
		} },
	{ "retaa", NEAR, true, { 0xd65f0bff }, /* retaa */
		0, true, {
			0xd65f0bff, /* retaa */
		} },
	{ "paciasp", NEAR, true, { 0xd503233f }, /* paciasp */
		0, false, {
			0xd503233f, /* paciasp */
		} },
	{ "b", NEAR, true, { 0x14000040 }, /* b 0x410100 */
		0, true, {
			0x17800040, /* b 0x410100 */
		} },
	{ "bl", NEAR, true, { 0x94000040 }, /* bl 0x410100 */
		0, true, {
			0x90ff001e, /* adrp x30, 0x410000 */
			0x910013de, /* add x30, x30, #0x4 */
			0x1780003e, /* b 0x410100 */
		} },
	{ "b out of reach", BEYOND, true, { 0x17ffffc0 }, /* b 0x40ff00 */
		-ERANGE },
	{ "b.ne", NEAR, true, { 0x54000801 }, /* b.ne 0x410100 */
		0, false, {
			0x54000040, /* b.eq 0x2410008 */
			0x1780003f, /* b 0x410100 */
		} },
	{ "b.al", NEAR, true, { 0x5400080e }, /* b.al 0x410100 */
		0, false, {
			0x17800040, /* b 0x410100 */
		} },
	{ "cbz w", NEAR, true, { 0x34000803 }, /* cbz w3, 0x410100 */
		0, false, {
			0x35000043, /* cbnz w3, 0x2410008 */
			0x1780003f, /* b 0x410100 */
		} },
	{ "cbnz x", NEAR, true, { 0xb5000803 }, /* cbnz x3, 0x410100 */
		0, false, {
			0xb4000043, /* cbz x3, 0x2410008 */
			0x1780003f, /* b 0x410100 */
		} },
	{ "tbz", NEAR, true, { 0xb6180803 }, /* tbz x3, #35, 0x410100 */
		0, false, {
			0xb7180043, /* tbnz x3, #35, 0x2410008 */
			0x1780003f, /* b 0x410100 */
		} },
	{ "tbnz backwards", NEAR, true, { 0x371ff803 }, /* tbnz w3, #3, 0x40ff00 */
		0, false, {
			0x36180043, /* tbz w3, #3, 0x2410008 */
			0x177fffbf, /* b 0x40ff00 */
		} },
	{ "adr", NEAR, true, { 0x70000805 }, /* adr x5, 0x410103 */
		0, false, {
			0x90ff0005, /* adrp x5, 0x410000 */
			0x91040ca5, /* add x5, x5, #0x103 */
		} },
	{ "adrp", NEAR, true, { 0xf0000085 }, /* adrp x5, 0x423000 */
		0, false, {
			0xf0ff0085, /* adrp x5, 0x423000 */
		} },
	{ "adr xzr", NEAR, true, { 0x7000081f }, /* adr xzr, 0x410103 */
		0, false, {
			0xd503201f, /* nop */
		} },
	{ "adr from far", ELSEWHERE, true, { 0x70000805 }, /* adr x5, 0x410103 */
		0, false, {
			0xd2802065, /* mov x5, #0x103 */
			0xf2a00825, /* movk x5, #0x41, lsl #16 */
		} },
	{ "ldr w literal", NEAR, true, { 0x18000805 }, /* ldr w5, 0x410100 */
		0, false, {
			0x90ff0005, /* adrp x5, 0x410000 */
			0x910400a5, /* add x5, x5, #0x100 */
			0xb94000a5, /* ldr w5, [x5] */
		} },
	{ "ldr x literal", NEAR, true, { 0x58000845 }, /* ldr x5, 0x410108 */
		0, false, {
			0x90ff0005, /* adrp x5, 0x410000 */
			0x910420a5, /* add x5, x5, #0x108 */
			0xf94000a5, /* ldr x5, [x5] */
		} },
	{ "ldrsw literal", NEAR, true, { 0x98000805 }, /* ldrsw x5, 0x410100 */
		0, false, {
			0x90ff0005, /* adrp x5, 0x410000 */
			0x910400a5, /* add x5, x5, #0x100 */
			0xb98000a5, /* ldrsw x5, [x5] */
		} },
	{ "ldr s literal", NEAR, true, { 0x1c000805 }, /* ldr s5, 0x410100 */
		0, false, {
			0x90ff0010, /* adrp x16, 0x410000 */
			0x91040210, /* add x16, x16, #0x100 */
			0xbd400205, /* ldr s5, [x16] */
		} },
	{ "ldr d literal", NEAR, true, { 0x5c000845 }, /* ldr d5, 0x410108 */
		0, false, {
			0x90ff0010, /* adrp x16, 0x410000 */
			0x91042210, /* add x16, x16, #0x108 */
			0xfd400205, /* ldr d5, [x16] */
		} },
	{ "ldr q literal", NEAR, true, { 0x9c000885 }, /* ldr q5, 0x410110 */
		0, false, {
			0x90ff0010, /* adrp x16, 0x410000 */
			0x91044210, /* add x16, x16, #0x110 */
			0x3dc00205, /* ldr q5, [x16] */
		} },
	{ "ldr q literal, x16 in use", NEAR, false, { 0x9c000885 }, /* ldr q5, 0x410110 */
		-EINVAL },
	{ "ldr xzr literal", NEAR, true, { 0x5800085f }, /* ldr xzr, 0x410108 */
		0, false, {
			0x90ff0010, /* adrp x16, 0x410000 */
			0x91042210, /* add x16, x16, #0x108 */
			0xf940021f, /* ldr xzr, [x16] */
		} },
	{ "prfm literal", NEAR, true, { 0xd8000800 }, /* prfm pldl1keep, 0x410100 */
		0, false, {
			0xd503201f, /* nop */
		} },
	{ "br", NEAR, true, { 0xd61f0060 }, /* br x3 */
		0, true, {
			0xaa0303f0, /* mov x16, x3 */
			0xd61f0200, /* br x16 */
		} },
	{ "br x16", NEAR, false, { 0xd61f0200 }, /* br x16 */
		0, true, {
			0xd61f0200, /* br x16 */
		} },
	{ "br x17", NEAR, false, { 0xd61f0220 }, /* br x17 */
		0, true, {
			0xd61f0220, /* br x17 */
		} },
	{ "br, x16 in use", NEAR, false, { 0xd61f0060 }, /* br x3 */
		-EINVAL },
	{ "blr", NEAR, true, { 0xd63f0060 }, /* blr x3 */
		0, true, {
			0xaa0303f0, /* mov x16, x3 */
			0x90ff001e, /* adrp x30, 0x410000 */
			0x910013de, /* add x30, x30, #0x4 */
			0xd61f0200, /* br x16 */
		} },
	{ "blr x30", NEAR, true, { 0xd63f03c0 }, /* blr x30 */
		0, true, {
			0xaa1e03f0, /* mov x16, x30 */
			0x90ff001e, /* adrp x30, 0x410000 */
			0x910013de, /* add x30, x30, #0x4 */
			0xd61f0200, /* br x16 */
		} },
	{ "blr x16", NEAR, false, { 0xd63f0200 }, /* blr x16 */
		0, true, {
			0x90ff001e, /* adrp x30, 0x410000 */
			0x910013de, /* add x30, x30, #0x4 */
			0xd61f0200, /* br x16 */
		} },
	{ "braa", NEAR, true, { 0xd71f0864 }, /* braa x3, x4 */
		-EINVAL },
	{ "udf", NEAR, true, { 0x00000000 }, /* udf #0 */
		-EINVAL },
	{ "three, the last a call", NEAR, true, { 0xaa0103e0, 0x91000400, 0x9400003e }, /* mov x0, x1; add x0, x0, #0x1; bl 0x410100 */
		0, true, {
			0xaa0103e0, /* mov x0, x1 */
			0x91000400, /* add x0, x0, #0x1 */
			0x90ff001e, /* adrp x30, 0x410000 */
			0x910033de, /* add x30, x30, #0xc */
			0x1780003c, /* b 0x410100 */
		} },
	{ "a call before the end", NEAR, true, { 0x94000040, 0xd503201f }, /* bl 0x410100; nop */
		-EINVAL },
	{ "a branch inside", NEAR, true, { 0xb4000040, 0xd503201f, 0xd503201f }, /* cbz x0, 0x410008; nop; nop */
		-EINVAL },
	{ "to itself", NEAR, true, { 0x14000000 }, /* b 0x410000 */
		-EINVAL },
};

static uint32_t length(const uint32_t *insns, uint32_t max)
{
	uint32_t n = 1;

	while (n < max && insns[n])
		n++;
	return n;
}

Test(arm64_relocate, copies_are_the_right_instructions)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		uint32_t out[A64_WINDOW_MAX * A64_PIECE_MAX] = { 0 };
		struct a64_moved moved;
		int err = a64_relocate((const uint8_t *)row->window,
			length(row->window, A64_WINDOW_MAX), FROM, row->at, row->free16,
			(uint8_t *)out, &moved);

		cr_expect_eq(err, row->want, "%s: %d", row->name, err);
		if (err || row->want)
			continue;
		cr_expect_eq(moved.ends, row->ends, "%s: %s", row->name,
			moved.ends ? "ends" : "goes on");
		cr_expect_eq(moved.size, 4 * length(row->copy, 8), "%s: %u bytes", row->name,
			moved.size);
		for (uint32_t k = 0; k < moved.size / 4; k++)
			cr_expect_eq(out[k], row->copy[k], "%s: instruction %u is %08x", row->name,
				k, out[k]);
	}
}

Test(arm64_relocate, windows_have_one_to_three_instructions)
{
	uint32_t nops[4] = { 0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f };
	uint32_t out[4 * A64_PIECE_MAX];
	struct a64_moved moved;

	for (uint32_t n = 0; n <= 4; n++)
		cr_expect_eq(a64_relocate((uint8_t *)nops, n, FROM, NEAR, true, (uint8_t *)out, &moved),
			n >= 1 && n <= A64_WINDOW_MAX ? 0 : -EINVAL);
}

Test(arm64_relocate, a_branch_reaches_128_MiB)
{
	static const struct {
		uint64_t target;
		bool reached;
		uint32_t insn;
	} cases[] = {
		{ 0x10000000 + 0x7fffffc, true, 0x15ffffff },  /* b .+0x7fffffc */
		{ 0x10000000 + 0x8000000, false, 0 },
		{ 0x10000000 - 0x8000000, true, 0x16000000 },  /* b .-0x8000000 */
		{ 0x10000000 - 0x8000004, false, 0 },
		{ 0x10000002, false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t insn;

		cr_expect_eq(a64_branch(A64_B, 0x10000000, cases[i].target, &insn), cases[i].reached,
			"%zu", i);
		if (cases[i].reached)
			cr_expect_eq(insn, cases[i].insn, "%zu: %08x", i, insn);
	}
}

Test(arm64_relocate, numbers_take_as_many_instructions_as_they_have_parts)
{
	static const struct {
		uint64_t value;
		unsigned n;
		uint32_t insns[4];
	} cases[] = {
		{ 0, 1, { 0xd2800007 } },			     /* mov x7, #0x0 */
		{ 0xffff, 1, { 0xd29fffe7 } },			     /* mov x7, #0xffff */
		{ 0x10000, 1, { 0xd2a00027 } },			     /* mov x7, #0x10000 */
		{ 0x55000220a4, 3, { 0xd2841487, 0xf2a00047, 0xf2c00aa7 } }, /* mov; movk; movk */
		{ 0xf000000000000001ull, 2, { 0xd2800027, 0xf2fe0007 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t insns[4];
		unsigned n = a64_load_number(7, cases[i].value, insns);

		cr_expect_eq(n, cases[i].n, "%zu: %u", i, n);
		for (unsigned k = 0; k < n && n == cases[i].n; k++)
			cr_expect_eq(insns[k], cases[i].insns[k], "%zu: %08x", i, insns[k]);
	}
}
