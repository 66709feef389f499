/* SPDX-License-Identifier: MIT */
/*
 * Detours word by word, and their unwind rows. What they do is compared by running them, in
 * powerpc/test_emit.c.
 */
#include "arch/powerpc/powerpc.h"
#include <criterion/criterion.h>
#include <errno.h>

#define FUNC   0x1000u
#define BIAS   0x10000000u
#define COMMON 0x11000000u
#define AT     0x11001000u
#define ID     5

/* mflr r0; std r0,16(r1); blr */
static const uint32_t code[] = { 0x7c0802a6, 0xf8010010, 0x4e800020 };

static const struct isa_text text = { (const uint8_t *)code, FUNC, sizeof(code) };
static const struct isa_func func = { .start = FUNC, .end = FUNC + 12, .limit = FUNC + 12 };
static const struct isa_module module = {
	.isa = &isa_powerpc, .texts = &text, .ntexts = 1, .funcs = &func, .nfuncs = 1
};

static struct isa_env env;
static struct isa_common common;
static uint8_t shared[2048], out[1024];
static bool handled; /* the function has handlers */
static struct isa_range shared_ranges[4];

static int emit(enum detour_mode mode, const struct isa_site *site, uint32_t id, uint64_t at,
	struct isa_detour *detour)
{
	struct isa_emit in = { .env = &env, .common = &common, .module = &module, .func = &func,
		.site = site, .bias = BIAS, .id = id, .at = at, .point = handled ? 0x4000 : 0,
		.hook_return = handled && !site->entry_only };

	env = (struct isa_env){ .mode = mode,
		.tls_mirror = -0x7010,
		.tls_current = -0x7008,
		.tls_own = -0x7000,
		.mask = (8 << 20) - 8,
		.infos = (const struct detour_info **)0x123456789ab0,
		.slow_entry = 0x1111222233334444,
		.slow_exit = 0x5555666677778888,
		.slow_unwind = 0x99990000,
		.slow_release = 0xaaaa0000,
		.hook_entered = 0xcccc0000,
		.hook_returned = 0xdddd0000,
		.personality = 0xbbbb0000 };
	cr_assert_eq(isa_powerpc.emit_common(&env, COMMON, shared, &common, shared_ranges), 3);
	cr_assert_leq(common.size, isa_powerpc.common_max);
	return isa_powerpc.emit(&in, out, detour);
}

static uint32_t word_at(const uint8_t *bytes, uint32_t i)
{
	uint32_t word;

	memcpy(&word, bytes + 4 * i, 4);
	return word;
}

static const struct isa_site one = { .choice = SITE_ONE, .len = 4 };

static const uint32_t counting[] = {
	0xf961fff0, /* std r11,-16(r1) */
	0xe96d9000, /* ld r11,-28672(r13) */
	0x2c2b0000, /* cmpdi r11,0 */
	0x418200e0, /* beq 0x110010ec */
	0xe80bfff0, /* ld r0,-16(r11) */
	0x502b11f4, /* rlwimi r11,r1,2,7,26 */
	0xe98b0000, /* ld r12,0(r11) */
	0x7c206040, /* cmpld r0,r12 */
	0x408100b0, /* ble 0x110010d0 */
	0xf80b0000, /* std r0,0(r11) */
	0x7d8802a6, /* mflr r12 */
	0xf98b0010, /* std r12,16(r11) */
	0x39800005, /* li r12,5 */
	0xf98b0008, /* std r12,8(r11) */
	0x31800140, /* addic r12,r0,320 */
	0x7c0060a8, /* ldarx r0,0,r12 */
	0x30000001, /* addic r0,r0,1 */
	0x7c0061ad, /* stdcx. r0,0,r12 */
	0x4082fff4, /* bne 0x1100103c */
	0xf82b0018, /* std r1,24(r11) */
	0xe961fff0, /* ld r11,-16(r1) */
	0x480000e5, /* bl 0x11001138 */
	0xe96d8ff0, /* T: ld r11,-28688(r13) */
	0xe98bfff0, /* ld r12,-16(r11) */
	0x2c2c0000, /* cmpdi r12,0 */
	0x41820048, /* beq 0x110010ac */
	0x502b11f4, /* rlwimi r11,r1,2,7,26 */
	0xe94b0008, /* ld r10,8(r11) */
	0x2c2a0005, /* cmpdi r10,5 */
	0x40820038, /* bne 0x110010ac */
	0xe80b0018, /* ld r0,24(r11) */
	0x7c010051, /* subf. r0,r1,r0 */
	0x4082002c, /* bne 0x110010ac */
	0xe94b0010, /* ld r10,16(r11) */
	0x7d4803a6, /* mtlr r10 */
	0xf80b0018, /* std r0,24(r11) */
	0x398c0148, /* addi r12,r12,328 */
	0x7d4060a8, /* ldarx r10,0,r12 */
	0x394a0001, /* addi r10,r10,1 */
	0x7d4061ad, /* stdcx. r10,0,r12 */
	0x4082fff4, /* bne 0x11001094 */
	0xf80b0000, /* std r0,0(r11) */
	0x4e800020, /* blr */
	0x3d800000, /* lis r12,0 */
	0x618c0000, /* ori r12,r12,0 */
	0x798c07c6, /* sldi r12,r12,32 */
	0x658c1100, /* oris r12,r12,4352 */
	0x618c1118, /* ori r12,r12,4376 */
	0x4bfff10c, /* b 0x110001cc */
	0xe981ff40, /* ld r12,-192(r1) */
	0x7d8803a6, /* mtlr r12 */
	0x4e800020, /* blr */
	0xf941ffe8, /* std r10,-24(r1) */
	0x3d400000, /* lis r10,0 */
	0x614a0000, /* ori r10,r10,0 */
	0x794a07c6, /* sldi r10,r10,32 */
	0x654a1100, /* oris r10,r10,4352 */
	0x614a1118, /* ori r10,r10,4376 */
	0x4bffef38, /* b 0x11000020 */
	0x3d800000, /* lis r12,0 */
	0x618c0000, /* ori r12,r12,0 */
	0x798c07c6, /* sldi r12,r12,32 */
	0x658c1100, /* oris r12,r12,4352 */
	0x618c1118, /* ori r12,r12,4376 */
	0x4bfff004, /* b 0x11000104 */
	0xe981ff40, /* ld r12,-192(r1) */
	0x7d8803a6, /* mtlr r12 */
	0xe961fff0, /* ld r11,-16(r1) */
	0x48000028, /* b 0x11001138 */
	0x7fe00008, /* trap */
	0x00000005, /* info.id */
	0xffffff38, /* info.resume */
	0xffffffec, /* info.bypass */
	0xffffffac, /* info.leave */
	0x00000000, /* info.watch */
	0xffffff40, /* info.ret */
	0x00000000, /* info.point */
	0x00000000,
	0x7c0802a6, /* B: mflr r0 */
	0x4afffec8, /* b 0x10001004 */
};

Test(powerpc_emit, counts_in_few_instructions)
{
	struct isa_detour detour;

	cr_assert_eq(emit(MODE_COUNT, &one, ID, AT, &detour), 0);
	cr_expect_eq(detour.size, sizeof(counting));
	cr_expect_eq(detour.ret, 22 * 4);
	cr_expect_eq(detour.body, 78 * 4);
	for (size_t i = 0; i < sizeof(counting) / 4; i++) {
		uint32_t word;

		memcpy(&word, out + 4 * i, 4);
		cr_expect_eq(word, counting[i], "word %zu is %08x", i, word);
	}
}

/* ---- tail calls ---- */

static const uint32_t tail[] = {
	0xf901ffd8, /* std r8,-40(r1) */
	0xf921ffe0, /* std r9,-32(r1) */
	0x7c2c0000, /* cmpd r12,r0 */
	0x408200c8, /* bne 0x110000f4 */
	0xe92b0018, /* ld r9,24(r11) */
	0x7c290800, /* cmpd r9,r1 */
	0x408200bc, /* bne 0x110000f4 */
	0xe92b0008, /* ld r9,8(r11) */
	0x79206503, /* srdi. r0,r9,20 */
	0x408200b0, /* bne 0x110000f4 */
	0x3d000000, /* lis r8,0 */
	0x61081234, /* ori r8,r8,4660 */
	0x790807c6, /* sldi r8,r8,32 */
	0x65085678, /* oris r8,r8,22136 */
	0x61089ab0, /* ori r8,r8,39600 */
	0x79201f24, /* sldi r0,r9,3 */
	0x7d08002a, /* ldx r8,r8,r0 */
	0x2c280000, /* cmpdi r8,0 */
	0x4182008c, /* beq 0x110000f4 */
	0xe8080016, /* lwa r0,20(r8) */
	0x7d080214, /* add r8,r8,r0 */
	0x7c0802a6, /* mflr r0 */
	0x7c280000, /* cmpd r8,r0 */
	0x40820078, /* bne 0x110000f4 */
	0x79203664, /* sldi r0,r9,6 */
	0x7d8c0214, /* add r12,r12,r0 */
	0xe80b0010, /* ld r0,16(r11) */
	0x7c0803a6, /* mtlr r0 */
	0x38000000, /* li r0,0 */
	0xf80b0018, /* std r0,24(r11) */
	0x398c0008, /* addi r12,r12,8 */
	0x7d0060a8, /* ldarx r8,0,r12 */
	0x39080001, /* addi r8,r8,1 */
	0x7d0061ad, /* stdcx. r8,0,r12 */
	0x4082fff4, /* bne 0x1100009c */
	0x810a0000, /* lwz r8,0(r10) */
	0xf90b0008, /* std r8,8(r11) */
	0xe98b0000, /* ld r12,0(r11) */
	0x79003664, /* sldi r0,r8,6 */
	0x7d8c0214, /* add r12,r12,r0 */
	0x7d0060a8, /* ldarx r8,0,r12 */
	0x39080001, /* addi r8,r8,1 */
	0x7d0061ad, /* stdcx. r8,0,r12 */
	0x4082fff4, /* bne 0x110000c0 */
	0xf82b0018, /* std r1,24(r11) */
	0x7d4c5378, /* mr r12,r10 */
	0xe80c0006, /* lwa r0,4(r12) */
	0x7d8c0214, /* add r12,r12,r0 */
	0x7d8803a6, /* mtlr r12 */
	0xe901ffd8, /* ld r8,-40(r1) */
	0xe921ffe0, /* ld r9,-32(r1) */
	0xe941ffe8, /* ld r10,-24(r1) */
	0x4e800020, /* blr */
	0x7d4c5378, /* mr r12,r10 */
	0xe901ffd8, /* ld r8,-40(r1) */
	0xe921ffe0, /* ld r9,-32(r1) */
	0xe941ffe8, /* ld r10,-24(r1) */
};

Test(powerpc_emit, takes_a_tail_call_in_few_instructions)
{
	struct isa_detour detour;

	cr_assert_eq(emit(MODE_COUNT, &one, ID, AT, &detour), 0);
	cr_expect_neq(detour.info, 0);
	cr_expect_eq(common.slow_entry - common.tail, sizeof(tail));
	for (uint32_t i = 0; i < sizeof(tail) / 4; i++)
		cr_expect_eq(word_at(shared + common.tail, i), tail[i], "word %u is %08x", i,
			word_at(shared + common.tail, i));
}

Test(powerpc_emit, tail_calls_of_uncommon_functions_are_slow)
{
	static const struct isa_site sites[] = { { .choice = SITE_ONE, .len = 4, .scratch_in = true },
		{ .choice = SITE_ONE, .len = 4, .entry_only = true } };
	struct isa_detour detour;

	cr_assert_eq(emit(MODE_COUNT, &one, INFOS_MAX, AT, &detour), 0);
	cr_expect_eq(detour.info, 0, "there is no info of it");
	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		cr_assert_eq(emit(MODE_COUNT, &sites[i], ID, AT, &detour), 0);
		cr_expect_eq(detour.info, 0, "%zu", i);
	}
	handled = true;
	cr_assert_eq(emit(MODE_COUNT, &one, ID, AT, &detour), 0);
	cr_expect_eq(detour.info, 0, "with handlers");
}

/* ---- unwind rows ---- */

enum where { IN_SHADOW, IN_LR, KEPT };

struct rows {
	uint8_t where[512]; /* enum where, per word */
	uint16_t cfa[512]; /* this + */
	uint8_t base[512]; /* a register */
};

/* Follow the instructions that the port uses; whatever else there is fails the test. */
static void read_rows(const struct isa_range *range, struct rows *rows)
{
	uint8_t where = IN_SHADOW, base = 1;
	uint16_t cfa = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i <= range->cfi_len;) {
		bool last = i == range->cfi_len;
		uint8_t op = last ? 0 : range->cfi[i++];
		uint32_t to = at;

		if (last)
			to = range->size / 4;
		else if (op >> 6 == 1)
			to += op & 0x3f;
		else if (op == 2) /* advance_loc1 */
			to += range->cfi[i++];
		for (; at < to; at++) {
			cr_assert_lt(at, 512);
			rows->where[at] = where;
			rows->cfa[at] = cfa;
			rows->base[at] = base;
		}
		if (last)
			return;
		if (op >> 6 == 1 || op == 2 || op == 0x0a) /* remember_state */
			continue;
		if (op == (0x80 | 31)) { /* offset r31, 25 * -8 */
			cr_assert_eq(range->cfi[i++], 25);
			continue;
		}
		switch (op) {
		case 0x05: /* offset_extended r65, 24 * -8 */
			cr_assert_eq(range->cfi[i], 65);
			cr_assert_eq(range->cfi[i + 1], 24);
			i += 2;
			where = KEPT;
			break;
		case 0x08: /* same_value r65, or r31 */
			if (range->cfi[i++] == 65)
				where = IN_LR;
			else
				cr_assert_eq(range->cfi[i - 1], 31);
			break;
		case 0x0c: /* def_cfa */
			base = range->cfi[i];
			cr_assert_eq(range->cfi[i + 1], 0);
			i += 2;
			break;
		case 0x0b: /* restore_state */
			where = IN_SHADOW;
			cfa = 0;
			break;
		case 0x0e: /* def_cfa_offset */
			cfa = range->cfi[i] & 0x7f;
			if (range->cfi[i++] & 0x80)
				cfa |= (uint16_t)(range->cfi[i++] << 7);
			break;
		default:
			cr_assert_fail("unexpected instruction %02x", op);
		}
	}
}

#define MFLR(word)  (((word)&0xfc1fffff) == 0x7c0802a6)
#define MTLR(word)  (((word)&0xfc1fffff) == 0x7c0803a6)
#define BCTRL	    0x4e800421u
#define LD_KEPT	 0xe981ff40u /* ld r12,-192(r1) */
#define STDU	 0xf821ff01u /* stdu r1,-256(r1) */
#define ADDI	 0x38210100u /* addi r1,r1,256 */

Test(powerpc_emit, has_true_rows_at_every_instruction)
{
	for (int kind = 0; kind < 16; kind++) {
		struct isa_site site = one;
		struct isa_detour detour;
		struct rows rows;

		site.scratch_in = kind & 1;
		site.entry_only = kind & 2;
		handled = kind & 8;
		cr_assert_eq(emit(kind & 4 ? MODE_PROFILE : MODE_COUNT, &site, ID, AT, &detour), 0);
		cr_assert_eq(detour.ranges[0].start, 0);
		cr_assert_eq(detour.ranges[0].cie, CIE_DETOUR);
		read_rows(&detour.ranges[0], &rows);
		for (uint32_t i = 0; i < detour.ranges[0].size / 4; i++) {
			uint32_t word = word_at(out, i);

			cr_expect_eq(rows.cfa[i], 0, "%d: word %u", kind, i);
			/* LR may be used only where it is said to hold the return address. */
			if (MFLR(word) || word == 0x4e800020)
				cr_expect_eq(rows.where[i], IN_LR, "%d: word %u", kind, i);
			if (word == LD_KEPT)
				cr_expect_eq(rows.where[i], KEPT, "%d: word %u", kind, i);
			if (MTLR(word) && i + 1 < detour.ranges[0].size / 4)
				cr_expect_eq(rows.where[i + 1], IN_LR, "%d: word %u", kind, i);
		}
		if (site.entry_only) {
			cr_expect_eq(detour.ret, 0);
			continue;
		}
		cr_expect_eq(rows.where[0], IN_LR);
		/* at the call, which is where unwinders look, and at the return point */
		cr_expect_eq(rows.where[detour.ret / 4 - 1], IN_SHADOW, "%d", kind);
		cr_expect_eq(rows.where[detour.ret / 4], IN_SHADOW, "%d", kind);
	}
}

static void stub_rows(enum detour_mode mode)
{
	struct isa_detour detour;
	struct rows rows;
	uint16_t cfa = 0;

	cr_assert_eq(emit(mode, &one, ID, AT, &detour), 0);
	cr_expect_eq(shared_ranges[0].start, common.personality);
	cr_expect_eq(shared_ranges[0].cie, CIE_PLAIN);
	cr_expect_eq(shared_ranges[0].cfi_len, 0);
	cr_expect_eq(shared_ranges[1].cie, CIE_SHADOW);
	read_rows(&shared_ranges[1], &rows);
	for (uint32_t i = 0; i < shared_ranges[1].size / 4; i++) {
		uint32_t at = shared_ranges[1].start + 4 * i, word = word_at(shared + at, 0);

		cr_expect_eq(rows.cfa[i], cfa, "word %u", i);
		if (at == common.tail || at == common.slow_entry || MFLR(word))
			cr_expect_eq(rows.where[i], IN_LR, "word %u", i);
		if (at == common.slow_exit || at == common.pad)
			cr_expect_eq(rows.where[i], IN_SHADOW);
		if (at < common.slow_entry && word == 0x4e800020) /* it goes on with E made */
			cr_expect_eq(rows.where[i], IN_SHADOW);
		cfa = word == STDU ? 256 : word == ADDI ? 0 : cfa;
		if (word == BCTRL) { /* libgcc looks for this at the return address */
			cr_expect_eq(word_at(shared + at, 1), 0xe8410018, "word %u", i);
			cr_expect_neq(rows.where[i], IN_LR, "word %u", i);
		}
	}
}

Test(powerpc_emit, has_true_rows_in_the_stubs)
{
	stub_rows(MODE_COUNT);
	stub_rows(MODE_PROFILE);
}

#define TO_R31	 0x7c3f0b78u /* mr r31,r1 */
#define FROM_R31 0x7fe1fb78u /* mr r1,r31 */

Test(powerpc_emit, has_true_rows_in_the_stubs_that_call_handlers)
{
	struct isa_detour detour;
	struct rows rows;
	uint8_t base = 1;

	cr_assert_eq(emit(MODE_COUNT, &one, ID, AT, &detour), 0);
	cr_expect_eq(shared_ranges[2].cie, CIE_SHADOW);
	read_rows(&shared_ranges[2], &rows);
	for (uint32_t i = 0; i < shared_ranges[2].size / 4; i++) {
		uint32_t at = shared_ranges[2].start + 4 * i, word = word_at(shared + at, 0);

		cr_expect_eq(rows.cfa[i], 0, "word %u", i);
		cr_expect_eq(rows.base[i], base, "word %u", i);
		if (MFLR(word))
			cr_expect_eq(rows.where[i], IN_LR, "word %u", i);
		if (at == common.hook_exit)
			cr_expect_eq(rows.where[i], IN_SHADOW);
		base = word == TO_R31 ? 31 : word == FROM_R31 ? 1 : base;
		if (word == BCTRL) {
			cr_expect_eq(word_at(shared + at, 1), 0xe8410018, "word %u", i);
			cr_expect_eq(rows.where[i], at < common.hook_exit ? KEPT : IN_SHADOW);
		}
	}
}

Test(powerpc_emit, moves_the_rows_of_the_function)
{
	static const uint8_t initial[] = { 0x0c, 1, 0 }, behind[] = { 0x0e, 32 };
	const struct isa_cfi cfi[] = { { 0, 3, initial }, { 4, 2, behind } };
	struct isa_detour detour;
	struct isa_emit in = { .env = &env, .common = &common, .module = &module, .func = &func,
		.site = &one, .bias = BIAS, .id = ID, .at = AT, .cfi = cfi, .ncfi = 2 };

	cr_assert_eq(emit(MODE_COUNT, &one, ID, AT, &detour), 0);
	cr_assert_eq(isa_powerpc.emit(&in, out, &detour), 0);
	cr_assert_eq(detour.nranges, 2);
	cr_expect_eq(detour.ranges[1].start, detour.body);
	cr_expect_eq(detour.ranges[1].size, 8);
	cr_expect_eq(detour.ranges[1].cie, CIE_PLAIN);
	cr_expect_eq(detour.ranges[1].cfi_len, 6);
	cr_expect_arr_eq(detour.ranges[1].cfi, ((uint8_t[]){ 0x0c, 1, 0, 0x41, 0x0e, 32 }), 6);
}

/* ---- limits ---- */

Test(powerpc_emit, takes_any_function_id)
{
	static const uint32_t ids[] = { 0, 1, 511, 512, 0x7fff, 0x8000, 0x12345, 0x1ffffff };

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		for (int mode = MODE_COUNT; mode <= MODE_PROFILE; mode++) {
			struct isa_detour detour;

			cr_assert_eq(emit((enum detour_mode)mode, &one, ids[i], AT, &detour), 0);
			cr_expect_leq(detour.size, isa_powerpc.detour_max);
		}
}

Test(powerpc_emit, goes_only_where_branches_reach)
{
	static const struct {
		int64_t at; /* from the function */
		bool reached;
	} rows[] = {
		{ 0x1ff0000, true }, { 0x2000000, false }, { -0x1ff0000, true }, { -0x2010000, false }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t site = FUNC + BIAS, at = site + (uint64_t)rows[i].at;
		struct isa_emit in = { .module = &module, .func = &func, .site = &one, .bias = BIAS,
			.at = at };
		struct isa_patch patches[2];
		uint32_t word;

		/* the way back */
		struct isa_detour detour;
		struct isa_emit whole = { .env = &env, .common = &common, .module = &module,
			.func = &func, .site = &one, .bias = BIAS, .id = ID, .at = at };

		emit(MODE_COUNT, &one, ID, AT, &detour);
		common.base = at;
		cr_expect_eq(isa_powerpc.emit(&whole, out, &detour), rows[i].reached ? 0 : -ERANGE,
			"from %lx", rows[i].at);
		/* and there */
		cr_assert_eq(isa_powerpc.patch(&in, patches), rows[i].reached ? 1 : -ERANGE);
		if (!rows[i].reached)
			continue;
		memcpy(&word, patches[0].bytes, 4);
		cr_expect_eq(patches[0].addr, site);
		cr_expect_eq(patches[0].len, 4);
		cr_expect_eq(word, 0x48000000 | ((uint32_t)rows[i].at & 0x3fffffc));
	}
}

/* Two words: to the detour, and back. */
Test(powerpc_emit, hops_by_way_of_an_island)
{
	const struct isa_site site = { .choice = SITE_ISLAND, .len = 4, .hop = FUNC + 0x1000000 };
	struct isa_emit in = { .env = &env, .common = &common, .module = &module, .func = &func,
		.site = &site, .bias = BIAS, .id = ID, .at = FUNC + BIAS + 0x2800000 };
	struct isa_patch patches[2];
	struct isa_detour detour;

	emit(MODE_COUNT, &one, ID, AT, &detour);
	common.base = in.at;
	cr_assert_eq(isa_powerpc.emit(&in, out, &detour), 0);
	cr_expect_eq(word_at(out + detour.body, 1),
		0x48000000 | ((uint32_t)(FUNC + BIAS + 0x1000004 - (in.at + detour.body + 4))
				     & 0x3fffffc));
	cr_assert_eq(isa_powerpc.patch(&in, patches), 2);
	cr_expect_eq(patches[0].addr, FUNC + BIAS + 0x1000000);
	cr_expect_eq(patches[0].len, 8);
	cr_expect_eq(word_at(patches[0].bytes, 0), 0x49800000); /* b .+0x1800000 */
	cr_expect_eq(word_at(patches[0].bytes, 1), 0x4b000000); /* b .-0x1000000 */
	cr_expect_eq(patches[1].addr, FUNC + BIAS);
	cr_expect_eq(patches[1].len, 4);
	cr_expect_eq(word_at(patches[1].bytes, 0), 0x49000000); /* b .+0x1000000 */
	in.at += 0x1000000;
	cr_expect_eq(isa_powerpc.patch(&in, patches), -ERANGE);
}

Test(powerpc_cie, looks_for_the_return_address_of_the_stack_pointer)
{
	uint8_t bytes[512];
	size_t size = isa_powerpc.cie(CIE_SHADOW, 0x1234, bytes, sizeof(bytes));

	cr_assert_gt(size, 7);
	cr_expect_arr_eq(bytes, ((uint8_t[]){ 0x0c, 1, 0, 0x10, 65 }), 5); /* CFA = r1 + 0; LR at */
	cr_expect_eq((bytes[5] & 0x7fu) + (bytes[6] << 7), size - 7);
	cr_expect_arr_eq(bytes + 7, ((uint8_t[]){ 0x08, 0, 0x1c }), 3); /* slot = CFA - 0 */
	cr_expect_eq(isa_powerpc.cie(CIE_DETOUR, 0x1234, bytes, sizeof(bytes)), size);
	cr_expect_eq(isa_powerpc.cie(CIE_SHADOW, 0x1234, bytes, size - 1), 0);
	cr_expect_eq(isa_powerpc.cie(CIE_PLAIN, 0x1234, bytes, 3), 3);
	cr_expect_eq(isa_powerpc.cie(CIE_PLAIN, 0x1234, bytes, 2), 0);
}
