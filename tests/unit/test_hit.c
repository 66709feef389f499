/* SPDX-License-Identifier: MIT */
/* What a static probe is sent to where its nop has room for a branch. */
#include "arch/arch.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define MIB (1ull << 20)

static const struct row {
	const struct isa *isa;
	uint64_t at; /* of the detour; the probe is at 0x100 */
	int size;    /* or -errno */
	uint32_t branch, back; /* what the probe becomes; the detour's branch, */
	int back_at;	       /* its offset, */
	int words_at;	       /* and that of the record */
} rows[] = {
	{ &isa_arm64, 0x1000, 48, 0x140003c0, 0x17fffc3d, 16, 24 }, /* b 0x1000; b 0x104 */
	{ &isa_arm64, 128 * MIB, 48, 0x15ffffc0, 0x1600003d, 16, 24 },
	{ &isa_arm64, 129 * MIB, -ERANGE, 0, 0, 0, 0 },
	{ &isa_powerpc, 0x1000, 96, 0x48000f00, 0x4bfff0b8, 76, 80 },
	{ &isa_powerpc, 32 * MIB, 96, 0x49ffff00, 0x4a0000b8, 76, 80 },
	{ &isa_powerpc, 33 * MIB, -ERANGE, 0, 0, 0, 0 },
};

static uint32_t word_at(const uint8_t *code, int offset)
{
	uint32_t word;

	memcpy(&word, code + offset, sizeof(word));
	return word;
}

Test(hit, detours_of_nops)
{
	const struct isa_func func = { .start = 0x100, .end = 0x200, .limit = 0x200, .inside = true };
	const struct isa_site site = { .choice = SITE_ONE, .len = 4 };
	const uint64_t record = 0x1122334455667788, stub = 0x7fff12345678, address = 0x100;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = rows + i;
		struct isa_emit in = { .func = &func, .site = &site, .at = r->at };
		struct isa_patch patches[2];
		uint8_t out[HIT_DETOUR_MAX];
		int size = r->isa->emit_hit(&in, stub, record, out);

		cr_expect_eq(size, r->size, "row %zu: %d", i, size);
		if (size < 0 || r->size < 0)
			continue;
		cr_expect_eq(word_at(out, r->back_at), r->back, "row %zu: %x", i, word_at(out, r->back_at));
		cr_expect(!memcmp(out + r->words_at, &record, 8), "row %zu", i);
		cr_expect(!memcmp(out + r->words_at + 8, &address, 8), "row %zu", i);
		cr_expect_eq(r->isa->patch(&in, patches), 1);
		cr_expect_eq(word_at(patches[0].bytes, 0), r->branch, "row %zu: %x", i,
			word_at(patches[0].bytes, 0));
	}
}

/* Only nops are replaced. */
Test(hit, other_sites)
{
	const struct isa_func func = { .start = 0x100, .end = 0x200, .limit = 0x200, .inside = true };
	const struct isa_site site = { .choice = SITE_SEVERAL, .len = 12 };
	struct isa_emit in = { .func = &func, .site = &site, .at = 0x1000 };
	uint8_t out[HIT_DETOUR_MAX];

	cr_expect_eq(isa_arm64.emit_hit(&in, 1, 1, out), -EINVAL);
	cr_expect_eq(isa_powerpc.emit_hit(&in, 1, 1, out), -EINVAL);
}

Test(hit, nops)
{
	static const struct {
		const struct isa *isa;
		uint8_t code[5];
		size_t room, len;
	} nops[] = {
		{ &isa_x86_64, { 0x90 }, 5, 1 },
		{ &isa_x86_64, { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 5, 5 },
		{ &isa_x86_64, { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 4, 0 },
		{ &isa_x86_64, { 0xc3 }, 5, 0 },
		{ &isa_arm64, { 0x1f, 0x20, 0x03, 0xd5 }, 4, 4 },
		{ &isa_arm64, { 0x1f, 0x20, 0x03, 0xd5 }, 3, 0 },
		{ &isa_arm64, { 0x5f, 0x24, 0x03, 0xd5 }, 4, 0 }, /* bti c */
		{ &isa_powerpc, { 0x00, 0x00, 0x00, 0x60 }, 4, 4 },
		{ &isa_powerpc, { 0x00, 0x00, 0x42, 0x60 }, 4, 0 }, /* ori 2,2,0 */
		{ &isa_powerpc, { 0x00, 0x00, 0x00, 0x60 }, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(nops) / sizeof(nops[0]); i++)
		cr_expect_eq(nops[i].isa->nop(nops[i].code, nops[i].room), nops[i].len, "row %zu", i);
}
