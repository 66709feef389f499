/* SPDX-License-Identifier: MIT */
/*
 * Detours word by word, and their unwind rows. What they do is compared by running them, in
 * arm64/test_emit.c.
 */
#define _GNU_SOURCE /* memmem */
#include "arch/arm64/a64.h"
#include <criterion/criterion.h>
#include <errno.h>

#define FUNC   0x1000u
#define BIAS   0x10000000u
#define COMMON 0x11000000u
#define AT     0x11001000u
#define ID     5

#define PACIASP 0xd503233f
#define RET     0xd65f03c0

/* stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16; ret */
static const uint32_t plain[] = { 0xa9bf7bfd, 0xa8c17bfd, RET };
/* The same, its return address signed. */
static const uint32_t signs[] = { PACIASP, 0xa9bf7bfd, 0xa8c17bfd, 0xd65f0bff /* retaa */ };

static const struct isa_site one = { .choice = SITE_ONE, .len = 4 };
static const struct isa_site leaf = { .choice = SITE_ONE, .len = 4, .leaf = true };

static uint64_t features = A64_FEATURE_ATOMICS;
static const struct detour_info **infos = (const struct detour_info **)0x123456789ab0;
static struct isa_env env;
static struct isa_common common;
static uint8_t shared[4096], out[4096];
static struct isa_range shared_ranges[4];

static int emit(enum detour_mode mode, const uint32_t *code, const struct isa_site *site, uint32_t id,
	uint64_t at, struct isa_detour *detour)
{
	const struct isa_text text = { (const uint8_t *)code, FUNC, sizeof(plain) };
	const struct isa_func func = { .start = FUNC, .end = FUNC + sizeof(plain),
		.limit = FUNC + sizeof(plain) };
	const struct isa_module module = { .isa = &isa_arm64, .texts = &text, .ntexts = 1,
		.funcs = &func, .nfuncs = 1 };
	struct isa_emit in = { .env = &env, .common = &common, .module = &module, .func = &func,
		.site = site, .bias = BIAS, .id = id, .at = at };

	env = (struct isa_env){ .mode = mode, .tls_mirror = 16, .tls_current = 24,
		.features = features, .mask = (8 << 20) - 8, .infos = infos,
		.slow_entry = 0x111122223333, .slow_exit = 0x555566667777,
		.slow_unwind = 0x99990000, .slow_release = 0xaaaa0000, .personality = 0xbbbb0000 };
	isa_arm64.emit_common(&env, COMMON, shared, &common, shared_ranges);
	cr_assert_leq(common.size, isa_arm64.common_max);
	return isa_arm64.emit(&in, out, detour);
}

static uint32_t word_at(uint32_t i)
{
	uint32_t word;

	memcpy(&word, out + 4 * i, 4);
	return word;
}

static const uint32_t counting[] = {
	0xa9bd27ea, /* stp x10, x9, [sp, #-48]! */
	0xd53bd050, /* mrs x16, tpidr_el0 */
	0xf9400a10, /* ldr x16, [x16, #16] */
	0xb4000570, /* cbz x16, 0x110010b8 */
	0xf85f0211, /* ldur x17, [x16, #-16] */
	0xb4000531, /* cbz x17, 0x110010b8 */
	0x9100c3e9, /* add x9, sp, #0x30 */
	0xb37e5930, /* bfi x16, x9, #2, #23 */
	0xf940020a, /* ldr x10, [x16] */
	0xb500046a, /* cbnz x10, 0x110010b0 */
	0xd28000aa, /* mov x10, #0x5 */
	0xa9002a11, /* stp x17, x10, [x16] */
	0x91050231, /* add x17, x17, #0x140 */
	0xd280002a, /* mov x10, #0x1 */
	0xf82a023f, /* stadd x10, [x17] */
	0xa901261e, /* stp x30, x9, [x16, #16] */
	0xa8c327ea, /* ldp x10, x9, [sp], #48 */
	0x9400002d, /* bl 0x110010f8 */
	0xa9bd27ea, /* T: stp x10, x9, [sp, #-48]! */
	0x9100c3e9, /* add x9, sp, #0x30 */
	0xd53bd050, /* mrs x16, tpidr_el0 */
	0xf9400a10, /* ldr x16, [x16, #16] */
	0xf85f0211, /* ldur x17, [x16, #-16] */
	0xb4000231, /* cbz x17, 0x110010a0 */
	0xb37e5930, /* bfi x16, x9, #2, #23 */
	0xf9400e0a, /* ldr x10, [x16, #24] */
	0xcb09014a, /* sub x10, x10, x9 */
	0xb50001aa, /* cbnz x10, 0x110010a0 */
	0xa940fa0a, /* ldp x10, x30, [x16, #8] */
	0xd100154a, /* sub x10, x10, #0x5 */
	0xb500010a, /* cbnz x10, 0x11001098 */
	0x91052231, /* add x17, x17, #0x148 */
	0xf9000e1f, /* str xzr, [x16, #24] */
	0xd280002a, /* mov x10, #0x1 */
	0xf82a023f, /* stadd x10, [x17] */
	0xf900021f, /* str xzr, [x16] */
	0xa8c327ea, /* ldp x10, x9, [sp], #48 */
	0xd65f03c0, /* ret */
	0x1000020a, /* adr x10, 0x110010d8 */
	0x17fffc35, /* b 0x11000170 */
	0x100001d0, /* adr x16, 0x110010d8 */
	0x17fffc3e, /* b 0x1100019c */
	0xd503249f, /* bti j */
	0x17fffff9, /* b 0x11001090 */
	0x1000014a, /* adr x10, 0x110010d8 */
	0x17fffbda, /* b 0x1100001c */
	0x10000110, /* adr x16, 0x110010d8 */
	0x17fffc02, /* b 0x110000c4 */
	0xd503249f, /* bti j */
	0x17ffffdf, /* b 0x11001040 */
	0xd503249f, /* bti j */
	0xa8c327ea, /* ldp x10, x9, [sp], #48 */
	0x1400000a, /* b 0x110010f8 */
	0xd4200000, /* brk #0x0 */
	0x00000005, /* info.id */
	0xffffffe8, /* info.resume */
	0xfffffff0, /* info.bypass */
	0xffffffd0, /* info.leave */
	0x00000000, /* info.watch */
	0xffffff70, /* info.ret */
	0x00000000, /* info.point */
	0x00000000,
	0xa9bf7bfd, /* B: stp x29, x30, [sp, #-16]! */
	0x17bfffc2, /* b 0x10001004 */
};
#define COUNTING_T 18

static const uint32_t timing[] = {
	0xa9bd27ea, /* stp x10, x9, [sp, #-48]! */
	0xa90133eb, /* stp x11, x12, [sp, #16] */
	0xd53bd04b, /* mrs x11, tpidr_el0 */
	0xa9413170, /* ldp x16, x12, [x11, #16] */
	0xb40009d0, /* cbz x16, 0x11001148 */
	0xf85f0211, /* ldur x17, [x16, #-16] */
	0xb4000991, /* cbz x17, 0x11001148 */
	0x9100c3e9, /* add x9, sp, #0x30 */
	0xb37d5930, /* bfi x16, x9, #3, #23 */
	0xf940020a, /* ldr x10, [x16] */
	0xb50008ca, /* cbnz x10, 0x11001140 */
	0xf9400d8a, /* ldr x10, [x12, #24] */
	0xcb0a012a, /* sub x10, x9, x10 */
	0xb6f808aa, /* tbz x10, #63, 0x11001148 */
	0xd28000aa, /* mov x10, #0x5 */
	0xa9002a11, /* stp x17, x10, [x16] */
	0x91050231, /* add x17, x17, #0x140 */
	0xd280002a, /* mov x10, #0x1 */
	0xf82a023f, /* stadd x10, [x17] */
	0xd53be04a, /* mrs x10, cntvct_el0 */
	0xa902b20a, /* stp x10, x12, [x16, #40] */
	0xa901261e, /* stp x30, x9, [x16, #16] */
	0xf9000d70, /* str x16, [x11, #24] */
	0xa94133eb, /* ldp x11, x12, [sp, #16] */
	0xa8c327ea, /* ldp x10, x9, [sp], #48 */
	0x94000049, /* bl 0x11001188 */
	0xa9bd27ea, /* T: stp x10, x9, [sp, #-48]! */
	0x9100c3e9, /* add x9, sp, #0x30 */
	0xa90133eb, /* stp x11, x12, [sp, #16] */
	0xd53bd04b, /* mrs x11, tpidr_el0 */
	0xa9414171, /* ldp x17, x16, [x11, #16] */
	0xf85f0231, /* ldur x17, [x17, #-16] */
	0xb4000591, /* cbz x17, 0x11001130 */
	0xa941b20a, /* ldp x10, x12, [x16, #24] */
	0xcb09014a, /* sub x10, x10, x9 */
	0xb500052a, /* cbnz x10, 0x11001130 */
	0xa940fa0a, /* ldp x10, x30, [x16, #8] */
	0xd100154a, /* sub x10, x10, #0x5 */
	0xb500048a, /* cbnz x10, 0x11001128 */
	0x91052231, /* add x17, x17, #0x148 */
	0xa942a60a, /* ldp x10, x9, [x16, #40] */
	0xf9000d69, /* str x9, [x11, #24] */
	0xd53be04b, /* mrs x11, cntvct_el0 */
	0xcb0a016a, /* sub x10, x11, x10 */
	0xf940112b, /* ldr x11, [x9, #32] */
	0x8b0a016b, /* add x11, x11, x10 */
	0xf900112b, /* str x11, [x9, #32] */
	0xa942ae29, /* ldp x9, x11, [x17, #40] */
	0xcb0b014b, /* sub x11, x10, x11 */
	0xb6f801cb, /* tbz x11, #63, 0x110010fc */
	0x8b0a0129, /* add x9, x9, x10 */
	0xb7f801e9, /* tbnz x9, #63, 0x11001108 */
	0xa901fe1f, /* stp xzr, xzr, [x16, #24] */
	0xd280002b, /* mov x11, #0x1 */
	0xf82b023f, /* stadd x11, [x17] */
	0xa941ae29, /* ldp x9, x11, [x17, #24] */
	0x8b0a0129, /* add x9, x9, x10 */
	0x8b0c016b, /* add x11, x11, x12 */
	0xa901ae29, /* stp x9, x11, [x17, #24] */
	0xf900021f, /* str xzr, [x16] */
	0xa94133eb, /* ldp x11, x12, [sp, #16] */
	0xa8c327ea, /* ldp x10, x9, [sp], #48 */
	0xd65f03c0, /* ret */
	0xf9001a2a, /* str x10, [x17, #48] */
	0xb5fffe89, /* cbnz x9, 0x110010d0 */
	0x14000006, /* b 0x1100111c */
	0x91000529, /* add x9, x9, #0x1 */
	0xb4fffe29, /* cbz x9, 0x110010d0 */
	0xb6f8006a, /* tbz x10, #63, 0x1100111c */
	0xcb0a014a, /* sub x10, x10, x10 */
	0xcb0c018c, /* sub x12, x12, x12 */
	0xaa2a03e9, /* mvn x9, x10 */
	0xf9001629, /* str x9, [x17, #40] */
	0x17ffffeb, /* b 0x110010d0 */
	0x1000020a, /* adr x10, 0x11001168 */
	0x17fffc42, /* b 0x11000234 */
	0x100001d0, /* adr x16, 0x11001168 */
	0x17fffc4b, /* b 0x11000260 */
	0xd503249f, /* bti j */
	0x17ffffed, /* b 0x110010f0 */
	0x1000014a, /* adr x10, 0x11001168 */
	0x17fffbb6, /* b 0x1100001c */
	0x10000110, /* adr x16, 0x11001168 */
	0x17fffc0f, /* b 0x11000188 */
	0xd503249f, /* bti j */
	0x17ffffc2, /* b 0x1100105c */
	0xd503249f, /* bti j */
	0xa94133eb, /* ldp x11, x12, [sp, #16] */
	0xa8c327ea, /* ldp x10, x9, [sp], #48 */
	0x14000009, /* b 0x11001188 */
	0x00000005, /* info.id */
	0xffffffe8, /* info.resume */
	0xfffffff0, /* info.bypass */
	0xffffffd0, /* info.leave */
	0x00000000, /* info.watch */
	0xffffff00, /* info.ret */
	0x00000000, /* info.point */
	0x00000000,
	0xa9bf7bfd, /* B: stp x29, x30, [sp, #-16]! */
	0x17bfff9e, /* b 0x10001004 */
};
#define TIMING_T 26

static void expect_words(const uint32_t *words, size_t size, const struct isa_detour *detour)
{
	cr_expect_eq(detour->size, size);
	for (uint32_t i = 0; i < size / 4; i++)
		cr_expect_eq(word_at(i), words[i], "word %u is %08x", i, word_at(i));
}

Test(arm64_emit, counts_in_few_instructions)
{
	struct isa_detour detour;

	cr_assert_eq(emit(MODE_COUNT, plain, &one, ID, AT, &detour), 0);
	expect_words(counting, sizeof(counting), &detour);
	cr_expect_eq(detour.ret, COUNTING_T * 4);
	cr_expect_eq(detour.body, sizeof(counting) - 8);
}

Test(arm64_emit, times_in_few_instructions)
{
	struct isa_detour detour;

	cr_assert_eq(emit(MODE_PROFILE, plain, &leaf, ID, AT, &detour), 0);
	expect_words(timing, sizeof(timing), &detour);
	cr_expect_eq(detour.ret, TIMING_T * 4);
	cr_expect_eq(detour.body, sizeof(timing) - 8);
}

/* ---- tail calls ---- */

static const uint32_t tail[] = {
	0xa9bf3bed, /* stp x13, x14, [sp, #-16]! */
	0xa940360e, /* ldp x14, x13, [x16] */
	0xcb1101ce, /* sub x14, x14, x17 */
	0xb50004ae, /* cbnz x14, 0x110000bc */
	0xd354fdae, /* lsr x14, x13, #20 */
	0xb500046e, /* cbnz x14, 0x110000bc */
	0xf9400e0e, /* ldr x14, [x16, #24] */
	0xcb0901ce, /* sub x14, x14, x9 */
	0xb500040e, /* cbnz x14, 0x110000bc */
	0x58fffe4e, /* ldr x14, 0x11000008 */
	0xb9400149, /* ldr w9, [x10] */
	0xf86979c9, /* ldr x9, [x14, x9, lsl #3] */
	0xcb0a0129, /* sub x9, x9, x10 */
	0xb5000369, /* cbnz x9, 0x110000bc */
	0xf86d79ce, /* ldr x14, [x14, x13, lsl #3] */
	0xb400032e, /* cbz x14, 0x110000bc */
	0xb98015c9, /* ldrsw x9, [x14, #20] */
	0x8b0e0129, /* add x9, x9, x14 */
	0xcb1e0129, /* sub x9, x9, x30 */
	0xb50002a9, /* cbnz x9, 0x110000bc */
	0x8b0d1a31, /* add x17, x17, x13, lsl #6 */
	0x91002231, /* add x17, x17, #0x8 */
	0xf9001bfe, /* str x30, [sp, #48] */
	0xf9400a1e, /* ldr x30, [x16, #16] */
	0xf9000e1f, /* str xzr, [x16, #24] */
	0xd280002e, /* mov x14, #0x1 */
	0xf82e023f, /* stadd x14, [x17] */
	0xb9400149, /* ldr w9, [x10] */
	0xf9400211, /* ldr x17, [x16] */
	0x8b091a31, /* add x17, x17, x9, lsl #6 */
	0xf2c02009, /* movk x9, #0x100, lsl #32 */
	0xf9000609, /* str x9, [x16, #8] */
	0xd2800029, /* mov x9, #0x1 */
	0xf829023f, /* stadd x9, [x17] */
	0x910103e9, /* add x9, sp, #0x40 */
	0xf9000e09, /* str x9, [x16, #24] */
	0xf9401bfe, /* ldr x30, [sp, #48] */
	0xa8c13bed, /* ldp x13, x14, [sp], #16 */
	0xa8c327ea, /* ldp x10, x9, [sp], #48 */
	0xd65f03c0, /* ret */
	0xa8c13bed, /* ldp x13, x14, [sp], #16 */
	0x91000150, /* add x16, x10, #0x0 */
};

static const uint32_t passed[] = {
	0xb9400e11, /* ldr w17, [x16, #12] */
	0xd1040231, /* sub x17, x17, #0x100 */
	0xb5000111, /* cbnz x17, 0x11000198 */
	0xb9000e1f, /* str wzr, [x16, #12] */
	0xb9400a11, /* ldr w17, [x16, #8] */
	0x58fff430, /* ldr x16, 0x11000008 */
	0xf8717a10, /* ldr x16, [x16, x17, lsl #3] */
	0xb9800611, /* ldrsw x17, [x16, #4] */
	0x8b100231, /* add x17, x17, x16 */
	0xd61f0220, /* br x17 */
	0x91000150, /* add x16, x10, #0x0 */
};

static void expect_stub(const uint32_t *words, size_t size, uint32_t from, uint32_t to)
{
	cr_expect_eq(to - from, size);
	for (uint32_t i = 0; i < size / 4; i++) {
		uint32_t word;

		memcpy(&word, shared + from + 4 * i, 4);
		cr_expect_eq(word, words[i], "word %u is %08x", i, word);
	}
}

Test(arm64_emit, takes_a_tail_call_in_few_instructions)
{
	struct isa_detour detour;

	cr_assert_eq(emit(MODE_COUNT, plain, &one, ID, AT, &detour), 0);
	expect_stub(tail, sizeof(tail), common.tail, common.slow_entry);
	expect_stub(passed, sizeof(passed), common.passed, common.slow_exit);
	cr_assert(!memcmp(shared + 8, &infos, sizeof(infos)), "the word that they load");
}

/* On the slow path; processors without the control stack, and systems that leave it off, skip it. */
Test(arm64_emit, a_slow_tail_call_takes_the_return_point_from_the_control_stack)
{
	static const uint32_t drop[] = {
		0xb40000a9, /* cbz x9, behind */
		0xd2800030, /* mov x16, #1 */
		0xd503251f, /* chkfeat x16 */
		0xb5000050, /* cbnz x16, behind */
		0xd52b7730, /* gcspopm x16 */
	};
	struct isa_detour detour;
	const uint8_t *found;
	uint32_t key;

	cr_assert_eq(emit(MODE_COUNT, plain, &one, ID, AT, &detour), 0);
	found = memmem(shared + common.slow_entry, common.passed - common.slow_entry, drop, sizeof(drop));
	cr_assert(found);
	memcpy(&key, found - 4, 4);
	cr_expect_eq(key & 0xffc003ff, 0xf94003a9, "%08x is no ldr x9, [x29, #...]", key);
	cr_expect_null(memmem(found + 4, (size_t)(shared + common.size - found - 4), drop, sizeof(drop)));
}

Test(arm64_emit, tail_calls_of_uncommon_functions_are_slow)
{
	static const struct isa_site sites[] = { { .choice = SITE_ONE, .len = 4, .scratch_in = true },
		{ .choice = SITE_ONE, .len = 4, .entry_only = true } };
	struct isa_detour detour;

	cr_assert_eq(emit(MODE_COUNT, plain, &one, ID, AT, &detour), 0);
	cr_expect_neq(detour.info, 0);
	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		cr_assert_eq(emit(MODE_COUNT, plain, &sites[i], ID, AT, &detour), 0);
		cr_expect_eq(detour.info, 0, "%zu", i);
	}
}

/* A signal handler counts in between, or the store is not made. */
Test(arm64_emit, counts_in_one_piece_without_atomic_additions)
{
	static const uint32_t piece[] = {
		0xc85f7e2a, /* ldxr x10, [x17] */
		0x9100054a, /* add x10, x10, #0x1 */
		0xc8097e2a, /* stxr w9, x10, [x17] */
		0x35ffffa9, /* cbnz w9, the first */
	};
	struct isa_detour detour;
	unsigned found = 0;

	features = 0;
	cr_assert_eq(emit(MODE_COUNT, plain, &one, ID, AT, &detour), 0);
	for (uint32_t i = 0; i < detour.size; i += 4)
		found += !memcmp(out + i, piece, sizeof(piece));
	cr_expect_eq(found, 2, "at the entry and at the return");
}

/* ---- unwind rows ---- */

#define WORDS_MAX 256
struct rows {
	bool in_link[WORDS_MAX]; /* the return address is in x30, else in the shadow stack */
	bool is_signed[WORDS_MAX];
	uint16_t cfa[WORDS_MAX]; /* sp + this */
};

/* Follow the instructions that detours use; whatever else there is fails the test. */
static void read_rows(const struct isa_range *range, struct rows *rows)
{
	bool in_link = false, is_signed = false;
	uint32_t at = range->start / 4, to;
	uint16_t cfa = 0;

	for (uint32_t i = 0; i <= range->cfi_len;) {
		bool last = i == range->cfi_len;
		uint8_t op = last ? 0 : range->cfi[i++];

		to = last ? (range->start + range->size) / 4
			: op >> 6 == 1 ? at + (op & 0x3f)
			: op == 2      ? at + range->cfi[i++] /* advance_loc1 */
				       : at;
		for (; at < to; at++) {
			cr_assert_lt(at, WORDS_MAX);
			rows->in_link[at] = in_link;
			rows->is_signed[at] = is_signed;
			rows->cfa[at] = cfa;
		}
		if (last)
			return;
		switch (op) {
		case 0x08: /* same_value x30 */
			cr_assert_eq(range->cfi[i++], 30);
			in_link = true;
			break;
		case 0x0b: /* restore_state */
			in_link = is_signed = false;
			cfa = 0;
			break;
		case 0x0e: /* def_cfa_offset */
			cr_assert_lt(range->cfi[i], 0x80);
			cfa = range->cfi[i++];
			break;
		case 0x2d: /* AARCH64_negate_ra_state */
			is_signed = !is_signed;
			break;
		default: /* advances, remember_state */
			cr_assert(op >> 6 == 1 || op == 2 || op == 0x0a, "%02x", op);
		}
	}
}

/* What the instruction at word @i makes of sp. Frames are pushed and popped by pairs. */
static int moves_sp(uint32_t i)
{
	uint32_t insn = word_at(i);
	bool push = (insn & 0xffc003e0) == 0xa98003e0, pop = (insn & 0xffc003e0) == 0xa8c003e0;

	return push || pop ? ((int)(insn << 10) >> 25) * 8 : 0;
}

static bool branches_back(uint32_t insn)
{
	return insn == RET || (insn & 0xfc000000) == 0x14000000;
}

Test(arm64_emit, has_true_rows_at_every_instruction)
{
	for (int kind = 0; kind < 16; kind++) {
		struct isa_site site = one;
		struct isa_detour detour;
		struct rows rows;
		bool signing = kind & 8;

		site.scratch_in = kind & 1;
		site.entry_only = kind & 2;
		site.offset = signing ? 4 : 0;
		cr_assert_eq(emit(kind & 4 ? MODE_PROFILE : MODE_COUNT, signing ? signs : plain, &site,
				     ID, AT, &detour), 0);
		cr_assert_eq(detour.ranges[0].start, 0);
		cr_assert_eq(detour.ranges[0].cie, CIE_DETOUR);
		read_rows(&detour.ranges[0], &rows);
		cr_expect(rows.in_link[0] && rows.cfa[0] == 0, "%d", kind);
		cr_expect_eq(rows.is_signed[0], signing, "%d", kind);
		for (uint32_t i = 0; i + 1 < detour.ranges[0].size / 4; i++) {
			if (!branches_back(word_at(i)))
				cr_expect_eq(rows.cfa[i + 1], rows.cfa[i] - moves_sp(i), "%d: word %u",
					kind, i + 1);
			if (word_at(i) == RET)
				cr_expect(rows.in_link[i] && rows.cfa[i] == 0, "%d: word %u", kind, i);
		}
		if (site.entry_only)
			continue;
		/* At the call, which is where unwinders look, and at the return point. */
		cr_expect(!rows.in_link[detour.ret / 4 - 1] && !rows.in_link[detour.ret / 4], "%d",
			kind);
		cr_expect_eq(rows.cfa[detour.ret / 4] + rows.cfa[detour.ret / 4 - 1], 0, "%d", kind);
	}
}

/* ---- limits ---- */

Test(arm64_emit, takes_any_function_id)
{
	static const uint32_t ids[] = { 0, 1, 6, 7, 63, 64, 511, 512, 0xfff, 0x1000, 0x3ffff };

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		for (int mode = MODE_COUNT; mode <= MODE_PROFILE; mode++) {
			struct isa_detour detour;

			cr_assert_eq(emit((enum detour_mode)mode, plain, &one, ids[i], AT, &detour), 0);
			cr_expect_leq(detour.size, isa_arm64.detour_max);
		}
}

Test(arm64_emit, goes_only_where_branches_reach)
{
	static const struct {
		int64_t at; /* from the function */
		bool reached;
	} rows[] = { { 0x7fff000, true }, { 0x8000000, false }, { -0x7ff0000, true },
		{ -0x8010000, false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct isa_func func = { .start = FUNC };
		const struct isa_emit in = { .func = &func, .site = &one, .bias = BIAS,
			.at = FUNC + BIAS + (uint64_t)rows[i].at };
		struct isa_patch patches[2];

		cr_expect_eq(isa_arm64.patch(&in, patches), rows[i].reached ? 1 : -ERANGE, "%zu", i);
	}
}
