/* SPDX-License-Identifier: MIT */
/* Small functions, with the site that each must get. */
#include "arch/powerpc/powerpc.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define TEXT 0x10000000u
#define MAX  24

struct piece {
	uint8_t start, end; /* words; end 0: no more */
	uint8_t local;	    /* bytes to the local entry, as the symbol says */
	bool anonymous;
	uint8_t keeps;
};

static const struct row {
	const char *name;
	uint32_t code[MAX];
	struct piece funcs[3];
	uint8_t index; /* of the one asked for */
	uint8_t choice, reason;
	uint8_t offset, len;
	bool entry_only, own_rules;
} rows[] = {
	{ "a prologue", { 0x7c0802a6, 0xf8010010, 0xf821ffe1, 0x4e800020 }, { { 0, 4 } }, 0, SITE_ONE,
		REASON_NONE, 0, 4, false, false }, /* mflr r0; std r0,16(r1); stdu r1,-32(r1); blr */
	{ "a nop", { 0x60000000, 0x4e800020 }, { { 0, 2 } }, 0, SITE_NOPS, REASON_NONE, 0, 4 },
	/* addis r2,r12,2; addi r2,r2,64; li r3,1; blr */
	{ "behind the global entry", { 0x3c4c0002, 0x38420040, 0x38600001, 0x4e800020 },
		{ { 0, 4, 8 } }, 0, SITE_ONE, REASON_NONE, 8, 4 },
	{ "a global entry without a name", { 0x3c4c0002, 0x38420040, 0x38600001, 0x4e800020 },
		{ { 0, 4, 0, true } }, 0, SITE_ONE, REASON_NONE, 8, 4 },
	/* lis r2,4098; addi r2,r2,64 */
	{ "the same at a fixed address", { 0x3c401002, 0x38420040, 0x38600001, 0x4e800020 },
		{ { 0, 4, 0, true } }, 0, SITE_ONE, REASON_NONE, 8, 4 },
	/* ld r2,-8(r12); add r2,r2,r12 */
	{ "the same of a large program", { 0xe84cfff8, 0x7c426214, 0x38600001, 0x4e800020 },
		{ { 0, 4, 0, true } }, 0, SITE_ONE, REASON_NONE, 8, 4 },
	/* pld r3,16(0),1; blr */
	{ "a prefixed instruction", { 0x04100000, 0xe4600010, 0x4e800020 }, { { 0, 3 } }, 0, SITE_ONE,
		REASON_NONE, 0, 8 },
	{ "half a prefixed instruction", { 0x04100000 }, { { 0, 1 } }, 0, SITE_REFUSED,
		REASON_TOO_SHORT, 0, 0 },
	{ "nothing behind the local entry", { 0x3c4c0002, 0x38420040 }, { { 0, 2, 8 } }, 0, SITE_REFUSED,
		REASON_TOO_SHORT, 8, 0 },
	{ "no instruction", { 0, 0x4e800020 }, { { 0, 2 } }, 0, SITE_REFUSED, REASON_UNDECODABLE, 0,
		4, false, true },
	/* bcl 20,31,.+4; mflr r3; blr */
	{ "its own address in LR", { 0x429f0005, 0x7c6802a6, 0x4e800020 }, { { 0, 3 } }, 0,
		SITE_REFUSED, REASON_NOT_RELOCATABLE, 0, 4 },
	/* ldarx r9,0,r3; addi r9,r9,1; stdcx. r9,0,r3; bne .-12; blr */
	{ "a loop to the entry", { 0x7d2018a8, 0x39290001, 0x7d2019ad, 0x4082fff4, 0x4e800020 },
		{ { 0, 5 } }, 0, SITE_REFUSED, REASON_LOOP_TO_ENTRY, 0, 4 },
	/* addi r3,r3,-1; cmpdi r3,0; bne .-4; blr */
	{ "a loop to the second instruction", { 0x3863ffff, 0x2c230000, 0x4082fffc, 0x4e800020 },
		{ { 0, 4 } }, 0, SITE_ONE, REASON_NONE, 0, 4 },
	/* nop; bl .-4; blr: recursion is a call */
	{ "recursion", { 0x60000000, 0x4bfffffd, 0x4e800020 }, { { 0, 3 } }, 0, SITE_NOPS, REASON_NONE,
		0, 4 },
	{ "li r0,172; sc", { 0x380000ac, 0x44000002 }, { { 0, 2 } }, 0, SITE_REFUSED,
		REASON_SIGNAL_FRAME, 0, 4 },
	/* std r2,24(r1); addis r12,r2,1; ld r12,8(r12); mtctr r12; bctr */
	{ "a stub without a name", { 0xf8410018, 0x3d820001, 0xe98c0008, 0x7d8903a6, 0x4e800420 },
		{ { 0, 5, 0, true } }, 0, SITE_REFUSED, REASON_FRAGMENT, 0, 4 },
	/* addis r12,r2,1; ld r12,8(r12); mtctr r12; bctr */
	{ "a stub that saves nothing", { 0x3d820001, 0xe98c0008, 0x7d8903a6, 0x4e800420 },
		{ { 0, 4, 0, true } }, 0, SITE_REFUSED, REASON_FRAGMENT, 0, 4 },

	/* stdu r1,-96(r1); mr r3,r11; sldi r4,r0,1; mflr r0; bl .; mtctr r3; bctr */
	{ "lazy binding", { 0xf821ffa1, 0x7d635b78, 0x78040fa4, 0x7c0802a6, 0x48000101, 0x7c6903a6,
				0x4e800420 },
		{ { 0, 7, 0, true } }, 0, SITE_REFUSED, REASON_RESOLVER, 0, 4, false, true },

	/* mflr r3; blr */
	{ "asks for its return address", { 0x7c6802a6, 0x4e800020 }, { { 0, 2 } }, 0, SITE_ONE,
		REASON_READS_RETURN, 0, 4, true },
	/* mflr r0; std r0,16(r1); stdu r1,-32(r1); mr r3,r0; bl .; addi; ld r0,16(r1); mtlr; blr */
	{ "hands it on", { 0x7c0802a6, 0xf8010010, 0xf821ffe1, 0x7c030378, 0x48000101, 0x38210020,
				 0xe8010010, 0x7c0803a6, 0x4e800020 },
		{ { 0, 9 } }, 0, SITE_ONE, REASON_READS_RETURN, 0, 4, true },
	/* the same, and ld r3,48(r1) instead of mr */
	{ "reads it in its frame", { 0x7c0802a6, 0xf8010010, 0xf821ffe1, 0xe8610030, 0x48000101,
					   0x38210020, 0xe8010010, 0x7c0803a6, 0x4e800020 },
		{ { 0, 9 } }, 0, SITE_ONE, REASON_READS_RETURN, 0, 4, true },
	/* the same, and ld r9,0(r1); ld r3,16(r9) */
	{ "reads it by the back chain", { 0x7c0802a6, 0xf8010010, 0xf821ffe1, 0xe9210000, 0xe8690010,
						0x48000101, 0x38210020, 0xe8010010, 0x7c0803a6, 0x4e800020 },
		{ { 0, 10 } }, 0, SITE_ONE, REASON_READS_RETURN, 0, 4, true },
	/* mflr r0; hashst r0,-32(r1); std; stdu; nop; bl .; addi; ld; hashchk; mtlr; blr */
	{ "protects it", { 0x7c0802a6, 0x7f8105a5, 0xf8010010, 0xf821ffb1, 0x60000000, 0x48000101,
				 0x38210050, 0xe8010010, 0x7f8105e5, 0x7c0803a6, 0x4e800020 },
		{ { 0, 11 } }, 0, SITE_ONE, REASON_NONE, 0, 4 },
	/* cmpdi r3,0; bnelr; mflr r0; std r0,16(r1); stdu r1,-32(r1); bl .; addi; ld; mtlr; blr */
	{ "a prologue later", { 0x2c230000, 0x4c820020, 0x7c0802a6, 0xf8010010, 0xf821ffe1, 0x48000101,
				      0x38210020, 0xe8010010, 0x7c0803a6, 0x4e800020 },
		{ { 0, 10 } }, 0, SITE_ONE, REASON_NONE, 0, 4 },
	/* stdu r1,-48(r1); li r0,64; mflr r9; std r9,64(r1); scv 0; ld r9,64(r1); mtlr r9; b .+8; sc; addi; blr */
	{ "a system call", { 0xf821ffd1, 0x38000040, 0x7d2802a6, 0xf9210040, 0x44000001, 0xe9210040, 0x7d2803a6,
				   0x48000008, 0x44000002, 0x38210030, 0x4e800020 },
		{ { 0, 11 } }, 0, SITE_ONE, REASON_NONE, 0, 4 },
	/* b .+8 to one that keeps its caller's return address */
	{ "jumps to one that asks", { 0x48000008, 0, 0x4e800020 },
		{ { 0, 1 }, { 2, 3, 0, false, REASON_RETURNS_TWICE } }, 0, SITE_ONE,
		REASON_RETURNS_TWICE, 0, 4, true },
	/* b .+8; 0; mflr r3; blr */
	{ "jumps to one that reads it", { 0x48000008, 0, 0x7c6802a6, 0x4e800020 },
		{ { 0, 1 }, { 2, 4 } }, 0, SITE_ONE, REASON_READS_RETURN, 0, 4, true },
	/* b .+4; b .+4; blr */
	{ "jumps to one that jumps to one that asks", { 0x48000004, 0x48000004, 0x4e800020 },
		{ { 0, 1 }, { 1, 2 }, { 2, 3, 0, false, REASON_RETURNS_TWICE } }, 0, SITE_ONE,
		REASON_RETURNS_TWICE, 0, 4, true },
	/* cmpdi r3,0; beq .+12; blr; nop; blr */
	{ "jumps into one that asks", { 0x2c230000, 0x4182000c, 0x4e800020, 0x60000000, 0x4e800020 },
		{ { 0, 3 }, { 3, 5, 0, false, REASON_RETURNS_TWICE } }, 0, SITE_ONE,
		REASON_RETURNS_TWICE, 0, 4, true },
	/* addi r3,r3,1; blr */
	{ "runs into one that asks", { 0x38630001, 0x4e800020 },
		{ { 0, 1 }, { 1, 2, 0, false, REASON_RETURNS_TWICE } }, 0, SITE_ONE,
		REASON_RETURNS_TWICE, 0, 4, true },
	/* blr; what compilers put behind it; blr */
	{ "has a description behind it", { 0x4e800020, 0, 0x01000000, 0x80, 0x4e800020 },
		{ { 0, 4 }, { 4, 5, 0, false, REASON_RETURNS_TWICE } }, 0, SITE_ONE, REASON_NONE, 0, 4 },
	/* bl .+8; blr; blr */
	{ "calls one that asks", { 0x48000009, 0x4e800020, 0x4e800020 },
		{ { 0, 2 }, { 2, 3, 0, false, REASON_RETURNS_TWICE } }, 0, SITE_ONE, REASON_NONE, 0, 4 },

	/* mr r3,r0; blr */
	{ "an argument in r0", { 0x7c030378, 0x4e800020 }, { { 0, 2 } }, 0, SITE_ONE, REASON_NONE, 0, 4,
		false, true },
	/* beqlr; li r3,0; blr */
	{ "an argument in CR0", { 0x4d820020, 0x38600000, 0x4e800020 }, { { 0, 3 } }, 0, SITE_ONE,
		REASON_NONE, 0, 4, false, true },
	/* adde r3,r3,r4; blr */
	{ "an argument in CA", { 0x7c632114, 0x4e800020 }, { { 0, 2 } }, 0, SITE_ONE, REASON_NONE, 0, 4,
		false, true },
	/* mr r3,r11; blr: the static chain is kept anyway */
	{ "a nested function", { 0x7d635b78, 0x4e800020 }, { { 0, 2 } }, 0, SITE_ONE, REASON_NONE, 0, 4 },
	/* li r3,1; blr; bl .-8; mr r4,r11 */
	{ "a result in r11", { 0x38600001, 0x4e800020, 0x4bfffff9, 0x7d645b78, 0x4e800020 },
		{ { 0, 2 }, { 2, 5 } }, 0, SITE_ONE, REASON_NONE, 0, 4, false, true },
	/* addi r3,r3,1; bl .-4; mr r4,r11; b .+4; blr */
	{ "one with a result in r11 goes on in it", { 0x38630001, 0x4bfffffd, 0x7d645b78, 0x48000004,
							  0x4e800020 },
		{ { 0, 4 }, { 4, 5 } }, 1, SITE_ONE, REASON_NONE, 0, 4, false, true },
	/* li r3,1; blr; bl .-8; li r11,1; mr r4,r11 */
	{ "r11 written before it is read", { 0x38600001, 0x4e800020, 0x4bfffff9, 0x39600001, 0x7d645b78,
						   0x4e800020 },
		{ { 0, 2 }, { 2, 6 } }, 0, SITE_ONE, REASON_NONE, 0, 4 },
	/* li r3,1; blr; bl .-8; mfcr r4 */
	{ "CR0 looked at behind a call", { 0x38600001, 0x4e800020, 0x4bfffff9, 0x7c800026, 0x4e800020 },
		{ { 0, 2 }, { 2, 5 } }, 0, SITE_ONE, REASON_NONE, 0, 4, false, true },
	/* li r3,1; blr; bctrl; mr r4,r0 */
	{ "a result in r0 of who knows whom", { 0x38600001, 0x4e800020, 0x4e800421, 0x7c040378,
						      0x4e800020 },
		{ { 0, 2 }, { 2, 5 } }, 0, SITE_ONE, REASON_NONE, 0, 4, false, true },
};

static void make(struct isa_module *module, const struct row *row, struct arena *arena)
{
	static struct isa_text text;
	static struct isa_func funcs[3];

	text = (struct isa_text){ (const uint8_t *)row->code, TEXT, sizeof(row->code) };
	*module = (struct isa_module){ .isa = &isa_powerpc, .arena = arena, .texts = &text,
		.ntexts = 1, .funcs = funcs };
	for (size_t i = 0; i < 3 && row->funcs[i].end; i++) {
		const struct piece *piece = &row->funcs[i];

		funcs[i] = (struct isa_func){ .start = TEXT + 4u * piece->start,
			.end = TEXT + 4u * piece->end, .limit = TEXT + 4u * piece->end,
			.local = piece->local, .anonymous = piece->anonymous,
			.keeps = piece->keeps };
		module->nfuncs = i + 1;
	}
}

Test(powerpc_site, finds_the_first_instruction_at_the_local_entry)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *row = &rows[i];
		struct arena arena = { 0 };
		struct isa_module module;
		struct isa_site site;

		make(&module, row, &arena);
		cr_assert_eq(isa_powerpc.scan(&module), 0);
		isa_powerpc.site(&module, row->index, &site);
		cr_expect_eq(site.choice, row->choice, "%s: %s", row->name,
			isa_choice_name(site.choice));
		cr_expect_eq(site.reason, row->reason, "%s: %s", row->name,
			isa_reason_name(site.reason));
		cr_expect_eq(site.offset, row->offset, "%s: offset %u", row->name, site.offset);
		cr_expect_eq(site.len, row->len, "%s: length %u", row->name, site.len);
		cr_expect_eq(site.entry_only, row->entry_only, "%s: entry only", row->name);
		cr_expect_eq(site.scratch_in, row->own_rules, "%s: rules", row->name);
		arena_free(&arena);
	}
}

/* The loader fills a word at TEXT + 0x1000 with the address of one that returns twice. */
static const struct {
	const char *name;
	uint32_t code[12];
	bool keeps;
} jumps[] = {
	/* pld r12,0x1000(0),1; mtctr r12; bctr */
	{ "by a slot", { 0x04100000, 0xe5801000, 0x7d8903a6, 0x4e800420 }, true },
	{ "by another slot", { 0x04100000, 0xe5801008, 0x7d8903a6, 0x4e800420 }, false },
	/* b .+16; the same */
	{ "by a stub", { 0x48000010, 0, 0, 0, 0x04100000, 0xe5800ff0, 0x7d8903a6, 0x4e800420 }, true },
	/* b .+32; two stubs, the second one for another slot */
	{ "by one of several stubs", { 0x48000020, 0, 0, 0, 0x04100000, 0xe5800ff0, 0x7d8903a6, 0x4e800420,
					      0x04100000, 0xe5800ff0, 0x7d8903a6, 0x4e800420 }, false },
	/* bl .+16: a call is none of its caller's concern */
	{ "a call", { 0x48000011, 0x4e800020, 0, 0, 0x04100000, 0xe5800ff0, 0x7d8903a6, 0x4e800420 },
		false },
	/* pld r3,0x1000(0),1; mtctr r12; bctr */
	{ "only reads it", { 0x04100000, 0xe4601000, 0x7d8903a6, 0x4e800420 }, false },
};

Test(powerpc_site, follows_jumps_by_slots)
{
	static const struct isa_slot slot = { TEXT + 0x1000, REASON_RETURNS_TWICE };

	for (size_t i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
		struct row row = { .name = jumps[i].name, .funcs = { { 0, 4 }, { 4, 12, 0, true } } };
		struct arena arena = { 0 };
		struct isa_module module;
		struct isa_site site;

		memcpy(row.code, jumps[i].code, sizeof(jumps[i].code));
		make(&module, &row, &arena);
		module.slots = &slot;
		module.nslots = 1;
		cr_assert_eq(isa_powerpc.scan(&module), 0);
		isa_powerpc.site(&module, 0, &site);
		cr_expect_eq(site.reason, jumps[i].keeps ? REASON_RETURNS_TWICE : REASON_NONE,
			"%s: %s", row.name, isa_reason_name(site.reason));
		arena_free(&arena);
	}
}

/* A function that calls nothing is cheaper. */
static const struct {
	const char *name;
	uint32_t code[6];
	bool leaf;
} leaves[] = {
	{ "a return", { 0x4e800020 }, true },
	{ "a description behind it", { 0x38600001, 0x4e800020, 0, 0x00000900, 0x48000101 }, true },
	/* cmpdi r3,0; beq .+8; addi r3,r3,1; blr */
	{ "a branch inside", { 0x2c230000, 0x41820008, 0x38630001, 0x4e800020 }, true },
	{ "a call", { 0x7c0802a6, 0x48000101, 0x4e800020 }, false },
	{ "a call by pointer", { 0x7c0802a6, 0x4e800421, 0x4e800020 }, false },
	{ "a tail call", { 0x48000100 }, false },
	{ "a tail call by pointer, or a jump table", { 0x7c6903a6, 0x4e800420 }, false },
	{ "a branch out of it", { 0x41820100, 0x4e800020 }, false },
	{ "a system call", { 0x44000002, 0x4e800020 }, false },
	{ "a static chain", { 0x38600001, 0x7d635b78, 0x4e800020 }, false },
	/* li r11,1; mr r3,r11 */
	{ "r11 as any other", { 0x39600001, 0x7d635b78, 0x4e800020 }, true },
	/* beq .+8; li r11,1; mr r3,r11 */
	{ "r11 written on one way", { 0x41820008, 0x39600001, 0x7d635b78, 0x4e800020 }, false },
	{ "what is not known", { 0x7c0007ff, 0x4e800020 }, false },
};

Test(powerpc_site, knows_functions_that_call_nothing)
{
	for (size_t i = 0; i < sizeof(leaves) / sizeof(*leaves); i++) {
		struct row row = { .name = leaves[i].name, .funcs = { { 0, 6 } } };
		struct arena arena = { 0 };
		struct isa_module module;
		struct isa_site site;

		memcpy(row.code, leaves[i].code, sizeof(leaves[i].code));
		make(&module, &row, &arena);
		cr_assert_eq(isa_powerpc.scan(&module), 0);
		isa_powerpc.site(&module, 0, &site);
		cr_expect_eq(site.leaf, leaves[i].leaf, "%s", row.name);
		arena_free(&arena);
	}
}

/* ---- islands ---- */

/* A function in the first words and padding up to the eighth. */
static const struct {
	const char *name;
	uint32_t code[8];
	uint8_t end, islands;
} pads[] = {
	{ "behind a return", { 0x38600001, 0x4e800020, 0x60000000, 0x60000000, 0x60000000, 0x60000000,
				     0x60000000, 0x60420000 },
		2, 3 },
	{ "behind its description", { 0x4e800020, 0, 0x00000900, 0x60000000, 0x60000000, 0x60000000,
					    0x60000000, 0x60000000 },
		3, 2 },
	{ "behind a jump", { 0x48000400, 0x60000000, 0x60000000, 0x60000000, 0x60000000, 0x60000000,
				 0x60000000, 0x60000000 },
		1, 3 },
	{ "one word only", { 0x4e800020, 0x4e800020, 0x4e800020, 0x4e800020, 0x4e800020, 0x4e800020,
				 0x4e800020, 0x60000000 },
		7, 0 },
	{ "run into", { 0x38600001, 0x48000101, 0x60000000, 0x60000000, 0x60000000, 0x60000000,
			    0x60000000, 0x60000000 },
		2, 0 },
	{ "run into after a condition", { 0x4d820020, 0x60000000, 0x60000000, 0x60000000, 0x60000000,
						0x60000000, 0x60000000, 0x60000000 },
		1, 0 },
	/* beq .+16; blr */
	{ "branched into", { 0x41820010, 0x4e800020, 0x60000000, 0x60000000, 0x60000000, 0x60000000,
				 0x60000000, 0x60000000 },
		2, 0 },
	{ "data behind it", { 0x38600001, 0x4e800020, 0x60000000, 0x60000000, 0x60000000, 0x60000000,
				  0x60000000, 0x12345678 },
		2, 0 },
};

Test(powerpc_island, is_verified_padding)
{
	for (size_t i = 0; i < sizeof(pads) / sizeof(*pads); i++) {
		const struct isa_text text = { (const uint8_t *)pads[i].code, TEXT, 32 };
		const struct isa_func func = { .start = TEXT, .end = TEXT + 4u * pads[i].end,
			.limit = TEXT + 32 };
		struct arena arena = { 0 };
		struct isa_module module = { .isa = &isa_powerpc, .arena = &arena, .texts = &text,
			.ntexts = 1, .funcs = &func, .nfuncs = 1 };
		struct isa_site site = { .choice = SITE_ONE, .len = 4 };
		uint64_t last = 0;
		unsigned n = 0;

		cr_assert_eq(isa_powerpc.scan(&module), 0);
		for (; isa_powerpc.island(&module, 0, 0, ~0ull, &site); n++) {
			cr_expect_eq(site.choice, SITE_ISLAND);
			cr_expect_geq(site.hop, TEXT + 4u * pads[i].end);
			cr_expect_leq(site.hop, TEXT + 24);
			cr_expect(!last || site.hop >= last + 8, "%s: taken twice", pads[i].name);
			last = site.hop;
		}
		cr_expect_eq(n, pads[i].islands, "%s: %u", pads[i].name, n);
		arena_free(&arena);
	}
}

Test(powerpc_island, is_in_reach_and_where_it_is_wanted)
{
	enum { WORDS = 16 << 20, STEP = WORDS / 16 };
	uint32_t *code = calloc(WORDS, 4);
	struct isa_func funcs[16];
	const struct isa_text text = { (const uint8_t *)code, TEXT, 4ull * WORDS };
	struct arena arena = { 0 };
	struct isa_module module = { .isa = &isa_powerpc, .arena = &arena, .texts = &text,
		.ntexts = 1, .funcs = funcs, .nfuncs = 16 };
	struct isa_site site = { .choice = SITE_ONE, .len = 4 };

	/* 64 MiB, and in every 4 MiB a function with one island */
	for (size_t i = 0; i < 16; i++) {
		uint32_t *at = code + i * STEP;

		at[0] = 0x4e800020;
		at[1] = at[2] = 0x60000000;
		funcs[i] = (struct isa_func){ .start = TEXT + 4 * i * STEP,
			.end = TEXT + 4 * i * STEP + 4, .limit = TEXT + 4 * i * STEP + 12 };
	}
	cr_assert_eq(isa_powerpc.scan(&module), 0);
	/* below TEXT + 12 MiB, 32 MiB from the function: none */
	cr_expect_not(isa_powerpc.island(&module, 12, 0, TEXT + (12u << 20), &site));
	cr_expect(isa_powerpc.island(&module, 10, 0, TEXT + (13u << 20), &site));
	cr_expect_eq(site.hop, TEXT + (12u << 20) + 4);
	/* it is taken, and the one before is out of reach */
	cr_expect_not(isa_powerpc.island(&module, 10, 0, TEXT + (13u << 20), &site));
	cr_expect(isa_powerpc.island(&module, 10, TEXT + (48u << 20), ~0ull, &site));
	cr_expect_eq(site.hop, TEXT + (48u << 20) + 4);
	/* the other way */
	cr_expect(isa_powerpc.island(&module, 0, TEXT + (25u << 20), ~0ull, &site));
	cr_expect_eq(site.hop, TEXT + (28u << 20) + 4);
	cr_expect_not(isa_powerpc.island(&module, 0, TEXT + (32u << 20), ~0ull, &site));
	arena_free(&arena);
	free(code);
}
