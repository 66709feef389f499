/* SPDX-License-Identifier: MIT */
/* Where functions are patched, and what of them that depends on is seen. */
#include "arch/arm64/a64.h"
#include "arch/arm64/insn.h"
#include <criterion/criterion.h>

#define TEXT	  0x401000u
#define SLOT	  0x403010u
#define WORDS_MAX 16

#define CODE(...)	   .code = { __VA_ARGS__ }, .n = sizeof((uint32_t[]){ __VA_ARGS__ }) / 4
#define REFUSED(why)	   .choice = SITE_REFUSED, .reason = (why)
#define GETS(what, at)	   .choice = (what), .offset = (at)
#define ENTRY_ONLY(what, why) .choice = (what), .reason = (why), .entry_only = true
#define ROWS(...)	   .rows = { __VA_ARGS__ }, \
	.nrows = sizeof((struct isa_row[]){ __VA_ARGS__ }) / sizeof(struct isa_row)

#define RET  0xd65f03c0
#define NOP  0xd503201f
#define PUSH 0xa9be7bfd /* stp x29, x30, [sp, #-32]! */
#define POP  0xa8c27bfd /* ldp x29, x30, [sp], #32 */
#define INC  0x91000400 /* add x0, x0, #1 */

struct row {
	const char *name;
	uint32_t code[WORDS_MAX];
	uint8_t n;
	uint8_t second; /* word at which a second function begins; 0: none */
	bool anonymous; /* the second one */
	uint8_t index;
	uint8_t keeps; /* of the other one */
	uint8_t choice, reason, offset;
	bool entry_only, scratch_in, scratch_out;
	struct isa_row rows[3];
	uint8_t nrows;
	uint8_t keeps_slot; /* of the word at SLOT */
};

static const struct row rows[] = {
	{ .name = "ret", CODE(RET), GETS(SITE_ONE, 0) },
	{ .name = "stp", CODE(PUSH, POP, RET), GETS(SITE_ONE, 0) },
	{ .name = "nop", CODE(NOP, RET), GETS(SITE_NOPS, 0) },
	{ .name = "bti c", CODE(0xd503245f, PUSH, POP, RET), GETS(SITE_ONE, 4) },
	{ .name = "bti j", CODE(0xd503249f, RET), GETS(SITE_ONE, 4) },
	{ .name = "bti c and nops made for patching", CODE(0xd503245f, NOP, NOP, RET),
		GETS(SITE_NOPS, 4) },
	{ .name = "paciasp is a landing pad", CODE(0xd503233f, PUSH, POP, 0xd65f0bff),
		GETS(SITE_ONE, 4) },
	{ .name = "pacibsp too", CODE(0xd503237f, PUSH, POP, 0xd65f0fff), GETS(SITE_ONE, 4) },
	{ .name = "nothing behind the landing pad", CODE(0xd503245f), REFUSED(REASON_TOO_SHORT) },
	{ .name = "udf", CODE(0, RET), REFUSED(REASON_UNDECODABLE) },
	{ .name = "rt_sigreturn", CODE(0xd2801168, 0xd4000001), REFUSED(REASON_SIGNAL_FRAME) },

	{ .name = "a loop to the entry", CODE(INC, 0xb4ffffe0 /* cbz x0, .-4 */, RET),
		REFUSED(REASON_LOOP_TO_ENTRY) },
	{ .name = "a loop behind the landing pad",
		CODE(0xd503245f, INC, 0xb4ffffe0 /* cbz x0, .-4 */, RET),
		REFUSED(REASON_LOOP_TO_ENTRY) },
	{ .name = "a loop to the next instruction",
		CODE(INC, INC, 0xb4ffffe0 /* cbz x0, .-4 */, RET), GETS(SITE_ONE, 0) },
	{ .name = "a call of itself", CODE(PUSH, 0x97ffffff /* bl .-4 */, POP, RET),
		GETS(SITE_ONE, 0) },

	{ .name = "__builtin_return_address of a leaf", CODE(0xaa1e03e0 /* mov x0, x30 */, RET),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "keeps x30 in a register", CODE(0xaa1e03f3 /* mov x19, x30 */, RET),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "returns through another register", CODE(INC, 0xd65f01e0 /* ret x15 */),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "calculates with x30", CODE(0x8b0203c1 /* add x1, x30, x2 */, RET),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "strips the signature", CODE(0xd50320ff /* xpaclri */, RET),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "stores it somewhere", CODE(0xf900001e /* str x30, [x0] */, RET),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "a shadow call stack", CODE(0xf800865e /* str x30, [x18], #8 */, PUSH, POP, RET),
		GETS(SITE_ONE, 0) },
	{ .name = "behind a call x30 is another",
		CODE(PUSH, 0xd63f0020 /* blr x1 */, 0xaa1e03e0 /* mov x0, x30 */, POP, RET),
		GETS(SITE_ONE, 0) },
	{ .name = "loaded from the frame record",
		CODE(PUSH, 0x910003fd /* mov x29, sp */, 0xf94007a0 /* ldr x0, [x29, #8] */, POP, RET),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "replaced in the frame record",
		CODE(PUSH, 0x910003fd /* mov x29, sp */, 0xf90007a0 /* str x0, [x29, #8] */, POP, RET),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "loaded from where rows say that it is",
		CODE(PUSH, 0xf94007e0 /* ldr x0, [sp, #8] */, POP, RET),
		ROWS({ 0, 0, 0xff }, { 4, 8, 31 }, { 12, 0, 0xff }),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },
	{ .name = "something else is there",
		CODE(PUSH, 0xf94007e0 /* ldr x0, [sp, #8] */, POP, RET),
		ROWS({ 0, 0, 0xff }, { 4, 24, 31 }, { 12, 0, 0xff }), GETS(SITE_ONE, 0) },
	{ .name = "another exit, by rows",
		CODE(PUSH, 0xd63f0020 /* blr x1 */, POP, RET, 0xaa1e03e0 /* mov x0, x30 */, RET),
		ROWS({ 0, 0, 0xff }, { 4, 8, 31 }, { 12, 0, 0xff }),
		ENTRY_ONLY(SITE_ONE, REASON_READS_RETURN) },

	{ .name = "x16 comes in", CODE(0xaa1003e0 /* mov x0, x16 */, RET), GETS(SITE_ONE, 0),
		.scratch_in = true },
	{ .name = "x16 is written first",
		CODE(0xaa0003f0 /* mov x16, x0 */, 0xaa1003e0 /* mov x0, x16 */, RET),
		GETS(SITE_ONE, 0) },
	{ .name = "x17 is whatever a call through a register leaves",
		CODE(PUSH, 0xd63f0020 /* blr x1 */, 0xaa1103e0 /* mov x0, x17 */, POP, RET),
		GETS(SITE_ONE, 0), .scratch_out = true },
	{ .name = "x16 is a result",
		CODE(PUSH, 0x94000004 /* bl .+16 */, 0xaa1003e0 /* mov x0, x16 */, POP, RET, RET),
		.second = 5, .index = 1, GETS(SITE_ONE, 0), .scratch_out = true },
	{ .name = "x16 is an argument of the next call", CODE(PUSH, 0x94000004 /* bl .+16 */,
		0x94000003 /* bl .+12 */, POP, RET, 0xaa1003e0 /* mov x0, x16 */, RET),
		.second = 5, .index = 1, GETS(SITE_ONE, 0), .scratch_in = true, .scratch_out = true },
	{ .name = "x16 is written behind the call", CODE(PUSH, 0x94000005 /* bl .+20 */,
		0xaa0003f0 /* mov x16, x0 */, 0xaa1003e0 /* mov x0, x16 */, POP, RET, RET),
		.second = 6, .index = 1, GETS(SITE_ONE, 0) },
	{ .name = "one with a result in x16 goes on in it", CODE(INC, 0x97ffffff /* bl .-4 */,
		0xaa1003e0 /* mov x0, x16 */, 0x14000001 /* b .+4 */, RET),
		.second = 4, .index = 1, GETS(SITE_ONE, 0), .scratch_out = true },
	{ .name = "nothing is known of who calls it", CODE(RET, INC, RET), .second = 1, .index = 1,
		.anonymous = true, GETS(SITE_ONE, 0), .scratch_in = true },
	{ .name = "a fragment: others branch to it",
		CODE(0xb4000040 /* cbz x0, .+8 */, RET, INC, RET), .second = 2, .index = 1,
		.anonymous = true, REFUSED(REASON_FRAGMENT) },
	{ .name = "a named one is no fragment",
		CODE(0xb4000040 /* cbz x0, .+8 */, RET, INC, RET), .second = 2, .index = 1,
		GETS(SITE_ONE, 0) },
	{ .name = "nor one that is called, too",
		CODE(0xb4000060 /* cbz x0, .+12 */, 0x94000002 /* bl .+8 */, RET, INC, RET),
		.second = 3, .index = 1, .anonymous = true, GETS(SITE_ONE, 0), .scratch_in = true },
	{ .name = "jumps to what returns twice", CODE(INC, 0x14000001 /* b .+4 */, RET),
		.second = 2, .keeps = REASON_RETURNS_TWICE,
		ENTRY_ONLY(SITE_ONE, REASON_RETURNS_TWICE) },
	{ .name = "jumps to it on a condition",
		CODE(INC, 0xb4000040 /* cbz x0, .+8 */, RET, RET), .second = 3,
		.keeps = REASON_RETURNS_TWICE, ENTRY_ONLY(SITE_ONE, REASON_RETURNS_TWICE) },
	{ .name = "runs into it", CODE(INC, INC, RET), .second = 2,
		.keeps = REASON_RETURNS_TWICE, ENTRY_ONLY(SITE_ONE, REASON_RETURNS_TWICE) },
	{ .name = "calls it", CODE(PUSH, 0x94000003 /* bl .+12 */, POP, RET, RET), .second = 4,
		.keeps = REASON_RETURNS_TWICE, GETS(SITE_ONE, 0) },
	{ .name = "jumps to it over the linkage table",
		CODE(INC, 0x14000001 /* b .+4 */, 0xd0000010 /* adrp x16, SLOT */,
			0xf9400a11 /* ldr x17, [x16, #16] */, 0x91004210 /* add x16, x16, #16 */,
			0xd61f0220 /* br x17 */),
		.second = 6, .keeps_slot = REASON_RETURNS_TWICE,
		ENTRY_ONLY(SITE_ONE, REASON_RETURNS_TWICE) },
	{ .name = "jumps to it by its slot",
		CODE(INC, 0xd0000010 /* adrp x16, SLOT */, 0xf9400a11 /* ldr x17, [x16, #16] */,
			0xd61f0220 /* br x17 */),
		.keeps_slot = REASON_RETURNS_TWICE, ENTRY_ONLY(SITE_ONE, REASON_RETURNS_TWICE) },
};

/* The linkage table of a row is the words from 2 on, and of no function. */
static void describe(const struct row *row, struct isa_func funcs[2], size_t *nfuncs)
{
	uint64_t end = TEXT + 4u * row->n, second = row->second ? TEXT + 4u * row->second : end;
	bool table = row->keeps_slot && row->second;

	funcs[0] = (struct isa_func){ .start = TEXT, .end = table ? TEXT + 8 : second,
		.rows = row->nrows ? row->rows : NULL, .nrows = row->nrows };
	funcs[0].limit = funcs[0].end;
	funcs[1] = (struct isa_func){ .start = second, .end = end, .limit = end,
		.anonymous = row->anonymous, .keeps = row->keeps };
	*nfuncs = second < end ? 2 : 1;
}

Test(arm64_site, functions_get_the_right_place)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		const struct isa_text text = { (const uint8_t *)row->code, TEXT, 4u * row->n };
		const struct isa_slot slot = { SLOT, row->keeps_slot };
		struct isa_func funcs[2];
		struct arena arena = { 0 };
		struct isa_module module = { .isa = &isa_arm64, .arena = &arena, .texts = &text,
			.ntexts = 1, .funcs = funcs, .slots = &slot,
			.nslots = row->keeps_slot ? 1 : 0 };
		struct isa_site site;

		describe(row, funcs, &module.nfuncs);
		cr_assert_eq(isa_arm64.scan(&module), 0);
		isa_arm64.site(&module, row->index, &site);
		cr_expect_eq(site.choice, row->choice, "%s: %s", row->name,
			isa_choice_name(site.choice));
		cr_expect_eq(site.reason, row->reason, "%s: %s", row->name,
			isa_reason_name(site.reason));
		if (row->choice != SITE_REFUSED) {
			cr_expect_eq(site.offset, row->offset, "%s: %u", row->name, site.offset);
			cr_expect_eq(site.len, 4, "%s: %u", row->name, site.len);
			cr_expect_eq(site.scratch_in, row->scratch_in, "%s: x16", row->name);
			cr_expect_eq(site.scratch_out, row->scratch_out, "%s: behind", row->name);
		}
		cr_expect_eq(site.entry_only, row->entry_only, "%s: entry only", row->name);
		arena_free(&arena);
	}
}

/* ---- windows of three instructions ---- */

static const struct {
	const char *name;
	uint32_t code[6];
	uint8_t n, far_len;
} windows[] = {
	{ "a frame", { PUSH, 0x910003fd /* mov x29, sp */, INC, POP, RET }, 5, 12 },
	{ "behind a landing pad", { 0xd503233f, PUSH, INC, INC, POP, RET }, 6, 12 },
	{ "too short", { INC, RET }, 2, 0 },
	{ "ends as the third", { INC, INC, RET }, 3, 12 },
	{ "ends before", { INC, RET, INC }, 3, 0 },
	{ "a call before the third", { PUSH, 0xd63f0020 /* blr x1 */, INC, POP, RET }, 5, 0 },
	{ "something goes behind the third",
		{ INC, INC, INC, INC, 0xb4ffffe0 /* cbz x0, .-4 */, RET }, 6, 12 },
	{ "something goes to the second", { INC, INC, INC, 0xb4ffffc0 /* cbz x0, .-8 */, RET }, 5, 0 },
	{ "a branch through a register", { INC, INC, INC, 0xd61f0000 /* br x0 */ }, 4, 0 },
	{ "x16 is used", { INC, 0xaa0003f0 /* mov x16, x0 */, INC, RET }, 4, 0 },
};

/* The site of a function that is all of its module. */
static struct isa_site site_of(const uint32_t *code, unsigned n)
{
	const struct isa_text text = { (const uint8_t *)code, TEXT, 4u * n };
	const struct isa_func func = { .start = TEXT, .end = TEXT + text.size,
		.limit = TEXT + text.size };
	struct arena arena = { 0 };
	struct isa_module module = { .isa = &isa_arm64, .arena = &arena, .texts = &text,
		.ntexts = 1, .funcs = &func, .nfuncs = 1 };
	struct isa_site site;

	cr_assert_eq(isa_arm64.scan(&module), 0);
	isa_arm64.site(&module, 0, &site);
	arena_free(&arena);
	return site;
}

Test(arm64_site, long_windows)
{
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		struct isa_site site = site_of(windows[i].code, windows[i].n);

		cr_expect_eq(site.far_len, windows[i].far_len, "%s: %u", windows[i].name,
			site.far_len);
	}
}

Test(arm64_site, patches)
{
	static const struct {
		const char *name;
		uint8_t choice;
		uint64_t at;
		int want;
		uint32_t insns[3];
	} cases[] = {
		{ "b", SITE_ONE, 0x8401000, 1, { 0x16000000 } },	  /* b .-0x8000000 */
		{ "b to the other end", SITE_ONE, 0x18400ffc, 1, { 0x15ffffff } },
		{ "out of its reach", SITE_ONE, 0x18401000, -34, { 0 } },
		{ "adrp, add, br", SITE_SEVERAL, 0x50402010, 1,
			{ 0xb0200010 /* adrp x16, .+0x40001000 */,
				0x91004210 /* add x16, x16, #0x10 */, 0xd61f0200 /* br x16 */ } },
		{ "out of their reach", SITE_SEVERAL, 0x210401000, -34, { 0 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct isa_func func = { .start = 0x401000 };
		const struct isa_site site = { .choice = cases[i].choice };
		const struct isa_emit in = { .func = &func, .site = &site, .bias = 0x10000000,
			.at = cases[i].at };
		struct isa_patch patches[2];
		int n = isa_arm64.patch(&in, patches);

		cr_expect_eq(n, cases[i].want, "%s: %d", cases[i].name, n);
		if (n != 1)
			continue;
		cr_expect_eq(patches[0].addr, 0x10401000, "%s", cases[i].name);
		cr_expect_eq(patches[0].len, site.choice == SITE_ONE ? 4 : 12, "%s", cases[i].name);
		cr_expect(!memcmp(patches[0].bytes, cases[i].insns, patches[0].len), "%s: %08x",
			cases[i].name, *(uint32_t *)patches[0].bytes);
	}
}

static const struct {
	const char *name;
	uint32_t code[4];
	uint8_t n;
	bool leaf;
} leaves[] = {
	{ "ret", { RET }, 1, true },
	{ "a loop", { INC, INC, 0xb5ffffe0 /* cbnz x0, .-4 */, RET }, 4, true },
	{ "bl", { PUSH, 0x94000040 /* bl .+0x100 */, POP, RET }, 4, false },
	{ "blr", { PUSH, 0xd63f0020 /* blr x1 */, POP, RET }, 4, false },
	{ "br", { 0xd61f0020 /* br x1 */ }, 1, false },
	{ "a tail call", { INC, 0x14000040 /* b .+0x100 */ }, 2, false },
	{ "a conditional one", { 0xb4000800 /* cbz x0, .+0x100 */, RET }, 2, false },
	{ "svc", { 0xd4000001, RET }, 2, false },
};

Test(arm64_site, functions_that_call_nothing)
{
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		struct isa_site site = site_of(leaves[i].code, leaves[i].n);

		cr_expect_eq(site.leaf, leaves[i].leaf, "%s", leaves[i].name);
	}
}

/* ---- registers of single instructions ---- */

#define R(n) (1u << (n))

static const struct {
	const char *name;
	uint32_t insn, reads, writes;
} uses[] = {
	{ "add x0, x1, #1", 0x91000420, R(1), R(0) },
	{ "add x0, sp, #16", 0x910043e0, 0, R(0) },
	{ "adrp x16, .", 0x90000010, 0, R(16) },
	{ "movk x3, #1", 0xf2800023, R(3), R(3) },
	{ "mov x3, #1", 0xd2800023, 0, R(3) },
	{ "bfi x3, x4, #0, #8", 0xb3401c83, R(3) | R(4), R(3) },
	{ "mov x0, x30", 0xaa1e03e0, R(30), R(0) },
	{ "madd x0, x1, x2, x3", 0x9b020c20, R(1) | R(2) | R(3), R(0) },
	{ "ccmp x1, #2, #14, ne", 0xfa42182e, R(1), 0 },
	{ "ccmp x1, x2, #14, ne", 0xfa42102e, R(1) | R(2), 0 },
	{ "rev x0, x1", 0xdac00c20, R(1), R(0) },
	{ "cbz x3, .", 0xb4000003, R(3), 0 },
	{ "b.ne .", 0x54000001, 0, 0 },
	{ "bl .", 0x94000000, 0, R(30) },
	{ "blr x3", 0xd63f0060, R(0) | R(3), R(30) },
	{ "mrs x3, nzcv", 0xd53b4203, 0, R(3) },
	{ "msr nzcv, x3", 0xd51b4203, R(3), 0 },
	{ "paciasp", 0xd503233f, R(30), R(30) },
	{ "pacia1716", 0xd503211f, R(16) | R(17), R(17) },
	{ "bti c", 0xd503245f, 0, 0 },
	{ "ldr x3, [x4, #8]", 0xf9400483, R(4), R(3) },
	{ "str x3, [x4], #8", 0xf8008483, R(3) | R(4), R(4) },
	{ "ldr x3, [x4, x5]", 0xf8656883, R(4) | R(5), R(3) },
	{ "str x3, [x4, x5]", 0xf8256883, R(3) | R(4) | R(5), 0 },
	{ "prfm pldl1keep, [x4, x5]", 0xf8a56880, R(4) | R(5), 0 },
	{ "ldr d30, [x4]", 0xfd40009e, R(4), 0 },
	{ "ldp x3, x4, [x5], #16", 0xa8c110a3, R(5), R(3) | R(4) | R(5) },
	{ "stp d8, d9, [sp, #16]", 0x6d0127e8, 0, 0 },
	{ "ldr x3, .", 0x58000003, 0, R(3) },
	{ "fmov x3, d30", 0x9e6603c3, 0, R(3) },
	{ "fmov d30, x3", 0x9e67007e, R(3), 0 },
	{ "scvtf d30, x3", 0x9e62007e, R(3), 0 },
	{ "fcvtzs x3, d30", 0x9e7803c3, 0, R(3) },
	{ "fadd v30.4s, v30.4s, v30.4s", 0x4e3ed7de, 0, 0 },
	{ "dup v30.4s, w3", 0x4e040c7e, R(3), 0 },
	{ "umov w3, v30.s[0]", 0x0e043fc3, 0, R(3) },
};

Test(arm64_site, registers_of_instructions)
{
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		struct insn_uses got = insn_uses(uses[i].insn);

		cr_expect_eq(got.reads, uses[i].reads, "%s reads %x", uses[i].name, got.reads);
		cr_expect_eq(got.writes, uses[i].writes, "%s writes %x", uses[i].name, got.writes);
	}
}
