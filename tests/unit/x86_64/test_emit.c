/* SPDX-License-Identifier: MIT */
/*
 * Detours, by running them: small functions are called with random registers as they are, and once
 * more patched. All that a caller or callee can see must be the same, and the calls be counted.
 * The slow paths are the real ones of rethook/.
 */
#include "support_detour.h"
#include "support_nested.h"
#include <errno.h>

static uint64_t entries_in_use;

static void count_entry(struct shadow_entry *e, void *arg)
{
	(void)e;
	(void)arg;
	entries_in_use++;
}

static void all_rows(enum detour_mode mode)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		bool pops = rows[i].code[rows[i].size - 3] == '\xc2';
		unsigned exits = slow_exits;
		struct func_record *r;
		struct traced t;

		place(&t, &rows[i], i);
		emit(&t, rows[i].name);
		compare(&t, &rows[i], "traced");
		r = &records[0][i];
		cr_assert_eq(r->calls, ROUNDS, "%s: %lu calls", rows[i].name, r->calls);
		cr_assert_eq(r->returned, ROUNDS, "%s: %lu returned", rows[i].name, r->returned);
		cr_assert_eq(r->unwound + r->left, 0, "%s", rows[i].name);
		cr_assert(pops || slow_exits == exits, "%s: not by the straight line", rows[i].name);
		if (mode == MODE_COUNT)
			continue;
		cr_assert(!r->callees && r->max <= r->total && ~r->nmin <= r->max,
			"%s: times", rows[i].name);
	}
	cr_assert_eq(attached, 1);
	cr_assert_eq(slow_entries, 1, "only the thread's first call is slow: %u", slow_entries);
	mirror_each(&shadow_self()->node, count_entry, NULL);
	cr_assert_eq(entries_in_use, 0);
}

Test(emit, counting_changes_nothing)
{
	all_rows(MODE_COUNT);
}

Test(emit, timing_changes_nothing)
{
	all_rows(MODE_PROFILE);
}

Test(emit, inner_calls_take_no_more_of_the_total)
{
	begin(MODE_PROFILE);
	for (unsigned i = 0; i < NESTED_ROWS; i++) {
		struct traced t;

		place(&t, &rows[0], 0);
		emit(&t, rows[0].name);
		records[0][0] = nested_before[i];
		compare(&t, &rows[0], "traced");
		check_nested(&records[0][0], i, ROUNDS);
	}
}

/* ---- entry only ---- */

static void entry_only_rows(enum detour_mode mode, uint32_t watching)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct traced t;

		place(&t, &rows[i], i);
		t.site.entry_only = true;
		t.in.watch = watching;
		emit(&t, rows[i].name);
		cr_assert_eq(t.detour.ret, 0, "%s: there is no return point", rows[i].name);
		compare(&t, &rows[i], "entry only");
		cr_assert_eq(records[0][i].calls, ROUNDS, "%s", rows[i].name);
		cr_assert_eq(records[0][i].returned, 0, "%s", rows[i].name);
	}
	cr_assert_eq(slow_entries, watching ? ROWS * ROUNDS : 1);
	cr_assert_eq(watched, watching ? ROWS * ROUNDS : 0);
}

Test(emit, entry_only_counts_and_changes_nothing)
{
	entry_only_rows(MODE_COUNT, 0);
}

Test(emit, entry_only_with_times_counts_and_changes_nothing)
{
	entry_only_rows(MODE_PROFILE, 0);
}

Test(emit, what_is_watched_is_always_told)
{
	entry_only_rows(MODE_COUNT, 1);
}

/* ---- slow paths ---- */

/* The records go away at any time, as in a forked child: before each call ... */
static void wiped_before(enum detour_mode mode)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct cpu before, plain, traced;
		struct traced t;

		place(&t, &rows[i], i);
		emit(&t, rows[i].name);
		randomize(&before);
		plain = traced = before;
		run_cpu(&plain, t.start);
		patch(&t, rows[i].name);
		*(uint64_t *)(shadow_words.mirror + MIRROR_RECORDS) = 0;
		run_cpu(&traced, t.start);
		same(rows[i].name, "slow entry", &plain, &traced);
	}
	cr_assert_eq(slow_entries, ROWS);
}

Test(emit, the_slow_entry_changes_nothing)
{
	wiped_before(MODE_COUNT);
}

Test(emit, the_slow_entry_with_times_changes_nothing)
{
	wiped_before(MODE_PROFILE);
}

/* ... and while the function runs: it wipes them itself. movq $0,(%rdi); ret */
static const struct row wipes = { "it wipes the records",
	CODE("\x48\xc7\x07\x00\x00\x00\x00\xc3"), SITE_ONE, 0, 7, true };

static void wiped_inside(enum detour_mode mode)
{
	static uint64_t word;
	struct traced t;

	begin(mode);
	place(&t, &wipes, 1);
	emit(&t, wipes.name);
	for (int round = 0; round < ROUNDS; round++) {
		struct cpu before, plain, traced;
		uint8_t saved[64];

		randomize(&before);
		before.regs[7] = (uint64_t)&word;
		plain = traced = before;
		run_cpu(&plain, t.start);
		memcpy(saved, area, sizeof(saved));
		patch(&t, wipes.name);
		/* The first call is slow and makes shadow_words.mirror this thread's. */
		traced.regs[7] = shadow_words.mirror + MIRROR_RECORDS;
		plain.regs[7] = traced.regs[7];
		if (round)
			run_cpu(&traced, t.start);
		else
			run_cpu(&(struct cpu){ .regs[7] = (uint64_t)&word, .flags = 0x202 },
				t.start);
		memcpy(area, saved, sizeof(saved));
		if (round)
			same(wipes.name, "slow exit", &plain, &traced);
	}
	cr_assert_geq(slow_exits, ROUNDS - 1);
}

Test(emit, the_slow_exit_changes_nothing)
{
	wiped_inside(MODE_COUNT);
}

Test(emit, the_slow_exit_with_times_changes_nothing)
{
	wiped_inside(MODE_PROFILE);
}

/*
 * Two detours: the first function jumps to the second, whose detour finds a return point, which is
 * @known to be the first's, or not.
 */
static void tail_called(enum detour_mode mode, bool known)
{
	static const struct row jumps = { "jmp", CODE("\xe9\xfb\x08\x00\x00"), SITE_ONE, 0, 5,
		true };
	struct traced first, second;
	struct isa_patch patches[2];
	struct cpu before[ROUNDS], plain[ROUNDS], traced;

	begin(mode);
	place(&first, &jumps, 1);
	emit(&first, jumps.name);
	if (known)
		infos[first.in.id] = (const struct detour_info *)(first.in.at + first.detour.info);
	second = first;
	second.func.start = first.func.start + HELPER;
	second.func.end = second.func.start + sizeof(helper);
	second.site.len = 5;
	second.module.funcs = &second.func;
	second.module.texts = &second.text;
	second.in.func = &second.func;
	second.in.site = &second.site;
	second.in.module = &second.module;
	second.in.at = first.in.at + 0x1000;
	second.in.id = 2;
	for (int round = 0; round < ROUNDS; round++) {
		randomize(&before[round]);
		plain[round] = before[round];
		run_cpu(&plain[round], first.start);
	}
	cr_assert_eq(x86_emit(&second.in, area + DETOUR + 0x1000, &second.detour), 0);
	if (known)
		infos[second.in.id] = (const struct detour_info *)(second.in.at + second.detour.info);
	cr_assert_eq(x86_patch(&second.in, patches), 1);
	memcpy((void *)patches[0].addr, patches[0].bytes, patches[0].len);
	patch(&first, jumps.name);
	for (int round = 0; round < ROUNDS; round++) {
		traced = before[round];
		run_cpu(&traced, first.start);
		same("a tail call", "traced", &plain[round], &traced);
	}
	cr_assert_eq(slow_exits, 0);
	cr_assert_eq(slow_entries, known ? 1 : ROUNDS + 1, "the first call is slow");
	for (int id = 1; id <= 2; id++) {
		cr_assert_eq(records[0][id].calls, ROUNDS, "%d", id);
		cr_assert_eq(records[0][id].returned, ROUNDS, "%d", id);
		cr_assert_eq(records[0][id].left, 0, "%d", id);
	}
}

Test(emit, a_tail_call_ends_the_caller)
{
	tail_called(MODE_COUNT, true);
}

Test(emit, a_tail_call_ends_the_caller_with_times)
{
	tail_called(MODE_PROFILE, true);
}

Test(emit, a_tail_call_takes_the_slow_path_else)
{
	tail_called(MODE_COUNT, false);
}

Test(emit, a_tail_call_takes_the_slow_path_else_with_times)
{
	tail_called(MODE_PROFILE, false);
}

/* ---- what is written, and what is refused ---- */

#define FAR (1ull << 40)

static const struct {
	const char *name;
	uint8_t choice;
	int64_t hop; /* from the function */
	uint64_t away; /* of the detour */
	int result;
	uint8_t where[2]; /* from the function */
	uint8_t first[2], len[2];
} patches_made[] = {
	{ "nops", SITE_NOPS, 0, 0x1000, 1, { 0 }, { 0xe9 }, { 5 } },
	{ "one instruction", SITE_ONE, 0, 0x1000, 1, { 0 }, { 0xe9 }, { 5 } },
	{ "several", SITE_SEVERAL, 0, 0x1000, 1, { 0 }, { 0xe9 }, { 5 } },
	{ "padding", SITE_PADDING, 0, 0x1000, 1, { 0 }, { 0xe9 }, { 5 } },
	{ "a hop", SITE_HOP, 0x40, 0x1000, 2, { 0x40, 0 }, { 0xe9, 0xeb }, { 5, 2 } },
	{ "the longest hop", SITE_HOP, 0x81, 0x1000, 2, { 0x81, 0 }, { 0xe9, 0xeb }, { 5, 2 } },
	{ "a hop that is too long", SITE_HOP, 0x82, 0x1000, -ERANGE },
	{ "a hop back that is too long", SITE_HOP, -0x7f, 0x1000, -ERANGE },
	{ "a trap", SITE_TRAP, 0, FAR, 1, { 0 }, { 0xcc }, { 1 } },
	{ "just in reach", SITE_ONE, 0, 0x80000004, 1, { 0 }, { 0xe9 }, { 5 } },
	{ "just out of reach", SITE_ONE, 0, 0x80000005, -ERANGE },
	{ "out of reach", SITE_NOPS, 0, FAR, -ERANGE },
	{ "below", SITE_ONE, 0, -0x7ffffffbull, 1, { 0 }, { 0xe9 }, { 5 } },
	{ "below, just out of reach", SITE_ONE, 0, -0x7ffffffcull, -ERANGE },
};

static void check_jump(const char *name, const struct isa_patch *p, uint64_t at)
{
	int32_t rel;

	if (p->bytes[0] != 0xe9)
		return;
	memcpy(&rel, p->bytes + 1, 4);
	cr_expect_eq(p->addr + 5 + (uint64_t)(int64_t)rel, at, "%s: jumps elsewhere", name);
}

Test(emit, patches)
{
	begin(MODE_COUNT);
	for (size_t i = 0; i < sizeof(patches_made) / sizeof(patches_made[0]); i++) {
		const char *name = patches_made[i].name;
		struct traced t;
		int n;

		place(&t, &rows[0], 0);
		t.site.choice = patches_made[i].choice;
		t.site.hop = t.func.start + (uint64_t)patches_made[i].hop;
		t.in.at = t.start + patches_made[i].away;
		n = x86_patch(&t.in, t.patches);
		cr_expect_eq(n, patches_made[i].result, "%s: %d", name, n);
		for (int p = 0; p < n; p++) {
			cr_expect_eq(t.patches[p].addr - t.start, patches_made[i].where[p], "%s", name);
			cr_expect_eq(t.patches[p].bytes[0], patches_made[i].first[p], "%s", name);
			cr_expect_eq(t.patches[p].len, patches_made[i].len[p], "%s", name);
			check_jump(name, &t.patches[p], t.in.at);
		}
		if (n == 2)
			cr_expect_eq(t.patches[1].addr + 2 + t.patches[1].bytes[1],
				t.patches[0].addr, "%s: hops elsewhere", name);
	}
}

static const struct {
	const char *name;
	uint8_t row;
	uint64_t away;	      /* of the detour from its place */
	uint64_t common_away; /* of the common part from the area */
	int64_t text;	      /* of the text from the function */
	int result;
} emits[] = {
	{ "as it should be", 0, 0, COMMON, 0, 0 },
	{ "the function is out of reach", 4, FAR, COMMON + FAR, 0, -ERANGE },
	{ "the function behind its nops is out of reach", 1, FAR, COMMON + FAR, 0, -ERANGE },
	{ "the common part is out of reach", 0, 0, FAR, 0, -ERANGE },
	{ "an operand is out of reach", 12, FAR, COMMON + FAR, 0, -ERANGE },
	{ "the window is not in the text", 0, 0, COMMON, 0x100, -EINVAL },
	{ "the window is behind the text", 0, 0, COMMON, -COMMON, -EINVAL },
};

Test(emit, refusals)
{
	begin(MODE_PROFILE);
	for (size_t i = 0; i < sizeof(emits) / sizeof(emits[0]); i++) {
		struct isa_common elsewhere = common;
		struct traced t;
		int err;

		place(&t, &rows[emits[i].row], 0);
		elsewhere.base = (uint64_t)area + emits[i].common_away;
		t.in.common = &elsewhere;
		t.in.at += emits[i].away;
		t.text.addr += (uint64_t)emits[i].text;
		err = x86_emit(&t.in, area + DETOUR, &t.detour);
		cr_expect_eq(err, emits[i].result, "%s: %d", emits[i].name, err);
	}
}

/* What the image and the slow paths rely on. */
Test(emit, the_parts_of_a_detour)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		struct traced t;
		const uint8_t *code;
		uint32_t covered = 0;

		if (!area)
			begin(MODE_PROFILE);
		place(&t, &rows[i], i);
		emit(&t, rows[i].name);
		code = area + DETOUR;
		cr_assert(arch_is_return_point(code + t.detour.ret), "%s", rows[i].name);
		cr_assert_eq(code[t.detour.ret - 5], 0xe8, "%s: no call before T", rows[i].name);
		cr_assert_eq(t.detour.body == 0, rows[i].choice == SITE_NOPS, "%s", rows[i].name);
		for (uint32_t r = 0; r < t.detour.nranges; r++) {
			cr_assert_geq(t.detour.ranges[r].start, covered, "%s", rows[i].name);
			covered = t.detour.ranges[r].start + t.detour.ranges[r].size;
			cr_assert_leq(covered, t.detour.size, "%s", rows[i].name);
		}
	}
}
