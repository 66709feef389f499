/* SPDX-License-Identifier: MIT */
/*
 * Detours, by running them: small functions are called with random registers as they are, and once
 * more patched. All that a caller or callee can see must be the same, vectors of every length
 * included, and the calls be counted. The slow paths are the real ones of rethook/.
 */
#define _GNU_SOURCE 1
#include "arch/arm64/a64.h"
#include "rethook/hook.h"
#include "rethook/mirror.h"
#include "rethook/shadow.h"
#include "support_jump.h"
#include "support_nested.h"
#include "support_places.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#define AREA	 0x40000u
#define DATA	 0x800u	  /* of a function's text: constants, and a helper behind them */
#define HELPER	 0x900u
#define COMMON	 0x10000u /* in the area */
#define DETOUR	 0x20000u

#define IDS    64
#define ROUNDS 20
#define SEED   20250406u
#define BIAS   0x7000 /* run-time minus link-time addresses */

/* ---- a processor's state, and a call with it ---- */

struct cpu {
	uint64_t regs[30]; /* x17 is lost before the call, x30 is the return address */
	uint64_t nzcv, below; /* below: sp after the return minus sp before the call */
	uint64_t arguments[2]; /* on the stack */
	uint64_t fpcr, fpsr;
	uint8_t vector[32][16];
	uint8_t z[32][256], p[16][32], ffr[32]; /* of what there is of SVE */
};

void run_cpu(struct cpu *cpu, uint64_t function, uint64_t sve);
__asm__(R"(
	.arch armv8.5-a+sve
	.text
	.globl run_cpu
	.type run_cpu, %function
run_cpu:
	stp x29, x30, [sp, #-160]!
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	stp x23, x24, [sp, #48]
	stp x25, x26, [sp, #64]
	stp x27, x28, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	sub sp, sp, #304			// 16 of arguments, then what is left behind
	str x0, [sp, #272]
	str x2, [sp, #280]
	mov x9, sp
	str x9, [sp, #288]
	ldp x9, x10, [x0, #256]
	stp x9, x10, [sp]
	ldr x9, [x0, #240]
	msr nzcv, x9
	ldr x9, [x0, #272]
	msr fpcr, x9
	ldr x9, [x0, #280]
	msr fpsr, x9
	mov x17, x1
	add x9, x0, #288
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	ldr q\n, [x9], #16
	.endr
	cbz x2, 1f
	add x10, x9, #8192
	ptrue p0.b
	add x11, x10, #512
	ldr p0, [x11]
	wrffr p0.b
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	ldr z\n, [x9]
	add x9, x9, #256
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	ldr p\n, [x10]
	add x10, x10, #32
	.endr
1:
	.irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 0
	ldr x\n, [x0, #8*\n]
	.endr
	blr x17
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
	str x\n, [sp, #16+8*\n]
	.endr
	ldr x0, [sp, #272]
	mrs x9, nzcv
	str x9, [x0, #240]
	mrs x9, fpcr
	str x9, [x0, #272]
	mrs x9, fpsr
	str x9, [x0, #280]
	msr fpcr, xzr
	ldr x10, [sp, #288]
	mov x9, sp
	sub x9, x9, x10
	str x9, [x0, #248]
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
	ldr x9, [sp, #16+8*\n]
	str x9, [x0, #8*\n]
	.endr
	ldp x9, x10, [sp]
	stp x9, x10, [x0, #256]
	add x9, x0, #288
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	str q\n, [x9], #16
	.endr
	ldr x2, [sp, #280]
	cbz x2, 1f
	add x10, x9, #8192
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	str z\n, [x9]
	add x9, x9, #256
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	str p\n, [x10]
	add x10, x10, #32
	.endr
	rdffr p0.b
	str p0, [x10]
1:
	add sp, sp, #304
	ldp x19, x20, [sp, #16]
	ldp x21, x22, [sp, #32]
	ldp x23, x24, [sp, #48]
	ldp x25, x26, [sp, #64]
	ldp x27, x28, [sp, #80]
	ldp d8, d9, [sp, #96]
	ldp d10, d11, [sp, #112]
	ldp d12, d13, [sp, #128]
	ldp d14, d15, [sp, #144]
	ldp x29, x30, [sp], #160
	ret
	.size run_cpu, . - run_cpu
)");

_Static_assert(offsetof(struct cpu, nzcv) == 240 && offsetof(struct cpu, arguments) == 256
		&& offsetof(struct cpu, fpcr) == 272 && offsetof(struct cpu, vector) == 288
		&& offsetof(struct cpu, z) == 800 && offsetof(struct cpu, p) == 800 + 8192
		&& offsetof(struct cpu, ffr) == 800 + 8192 + 512,
	"run_cpu() knows the layout");

static bool has_sve(void)
{
	return getauxval(AT_HWCAP) & A64_FEATURE_SVE;
}

static void randomize(struct cpu *cpu)
{
	static uint64_t words[sizeof(*cpu) / 8];

	for (size_t i = 0; i < sizeof(words) / 8; i++)
		words[i] = random64();
	memcpy(cpu, words, sizeof(words));
	cpu->regs[0] &= 1; /* what some functions branch on */
	cpu->nzcv &= 0xf0000000;
	cpu->fpcr = cpu->fpcr & 0x00c00000; /* the rounding mode */
	cpu->fpsr = cpu->fpsr & 0x0800009f;
	/* ffr holds what loads leave: ones, then zeros */
	for (size_t i = 0; i < sizeof(cpu->ffr); i++)
		cpu->ffr[i] = i < 4 ? 0xff : 0;
}

/* ---- the functions ---- */

struct row {
	const char *name;
	uint32_t code[6];
	uint8_t choice, offset;
	bool scratch_in, sve;
};

#define RET 0xd65f03c0
#define BRK 0xd4200000

static const struct row rows[] = {
	{ "ret", { RET }, SITE_ONE },
	{ "nop", { 0xd503201f, 0x91000400, RET }, SITE_NOPS },
	{ "stp", { 0xa9bf7bfd, 0x910003fd, 0xa8c17bfd, RET }, SITE_ONE },
	{ "bti c; stp", { 0xd503245f, 0xa9bf7bfd, 0xa8c17bfd, RET }, SITE_ONE, 4 },
	{ "paciasp; stp", { 0xd503233f, 0xa9bf7bfd, 0xa8c17bfd, 0xd50323bf, RET }, SITE_ONE, 4 },
	{ "pacibsp; stp", { 0xd503237f, 0xa9bf7bfd, 0xa8c17bfd, 0xd50323ff, RET }, SITE_ONE, 4 },
	{ "paciasp; nop; retaa", { 0xd503233f, 0xd503201f, 0xd65f0bff }, SITE_NOPS, 4 },
	{ "ldr x0, literal", { 0x58004000, RET }, SITE_ONE },
	{ "ldr q0, literal", { 0x9c004000, RET }, SITE_ONE },
	{ "adr", { 0x10004000, RET }, SITE_ONE },
	{ "adrp", { 0xb0000000, RET }, SITE_ONE },
	{ "b helper", { 0x14000240 }, SITE_ONE },
	{ "cbz x0", { 0xb4000040, 0x91000400, RET }, SITE_ONE },
	{ "tbnz x0, #0", { 0x37000040, 0x91000400, RET }, SITE_ONE },
	{ "b.eq: flags come in", { 0x54000040, 0x91000400, RET }, SITE_ONE },
	{ "adcs: flags come in and are returned", { 0xba010000, RET }, SITE_ONE },
	{ "ldr x0, [sp]", { 0xf94003e0, RET }, SITE_ONE },
	{ "mov x0, x16: it comes in", { 0xaa1003e0, 0x91000610, RET }, SITE_ONE, 0, true },
	{ "fadd", { 0x4e21d400, RET }, SITE_ONE },
	{ "add z0, z0, z31", { 0x04bf0000, RET }, SITE_ONE, .sve = true },
	{ "and p0, p1/z, p2, p3", { 0x25034440, RET }, SITE_ONE, .sve = true },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const uint32_t helper[] = { 0x91000400, RET }; /* add x0, x0, #1 */

static uint8_t *area;
static struct func_record records[4][IDS];
static int attached;
static unsigned slow_entries, slow_exits;
static const struct detour_info *infos[IDS];
static struct isa_env env;
static struct isa_common common;
static struct isa_range common_ranges[4];

static void lose_vectors(void);

static bool attach(struct shadow_thread *t)
{
	lose_vectors();
	__atomic_store_n(&t->records[0], (uint64_t)records[attached++ % 4], __ATOMIC_RELEASE);
	return false;
}

static void nothing(struct shadow_thread *t)
{
	(void)t;
}

static void lost_call(void)
{
	cr_assert_fail("a call is lost");
}

static bool borrowed(void)
{
	return false;
}

/* What a system call may do to the vectors. */
static void lose_vectors(void)
{
	if (has_sve())
		__asm__ volatile(R"(
			.arch_extension sve
			.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
			mov v\n\().16b, v\n\().16b
			pfalse p\n\().b
			.endr
			.irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
			mov v\n\().16b, v\n\().16b
			.endr
			wrffr p0.b
		)" : : : "memory");
}

static void slow_entry(struct slow_frame *f)
{
	slow_entries++;
	lose_vectors();
	shadow_slow_entry(f);
}

static void slow_exit(struct slow_frame *f)
{
	slow_exits++;
	lose_vectors();
	shadow_slow_exit(f);
}

static int64_t tls(const void *variable)
{
	return (int64_t)((uintptr_t)variable - arch_thread_pointer());
}

static void flush(uint64_t from, uint64_t size)
{
	__builtin___clear_cache((char *)from, (char *)(from + size));
}

static void begin(enum detour_mode mode)
{
	random_state = SEED;
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	cr_assert_neq(area, MAP_FAILED);
	shadow_hooks = (struct shadow_hooks){ .mode = mode, .infos = infos, .attach = attach, .renew = nothing,
		.lost_call = lost_call, .borrowed = borrowed };
	mirror_setup(mode);
	env = (struct isa_env){ .mode = mode, .mask = shadow_root.mask,
		.features = getauxval(AT_HWCAP), .tls_mirror = tls(&shadow_words.mirror),
		.tls_current = tls(&shadow_words.current), .infos = infos, .slow_entry = (uint64_t)slow_entry,
		.slow_exit = (uint64_t)slow_exit, .slow_unwind = (uint64_t)shadow_slow_unwind,
		.slow_release = (uint64_t)shadow_slow_release };
	a64_emit_common(&env, (uint64_t)area + COMMON, area + COMMON, &common, common_ranges);
	cr_assert_leq(common.size, isa_arm64.common_max);
	shadow_add_image((uint64_t)area + DETOUR, (uint64_t)area + AREA,
		common.base + common.pad);
}

/* Put row @r's function into the area and describe it. */
static void place(struct traced *t, const struct row *r, uint32_t id)
{
	uint64_t link = (uint64_t)area - BIAS;

	memset(t, 0, sizeof(*t));
	memset(area, 0, COMMON);
	memcpy(area, r->code, sizeof(r->code));
	for (size_t i = 0; i < 32; i++)
		area[DATA + i] = (uint8_t)(i * 11);
	memcpy(area + HELPER, helper, sizeof(helper));
	t->start = (uint64_t)area;
	flush(t->start, COMMON);
	t->text = (struct isa_text){ area, link, COMMON };
	t->func = (struct isa_func){ .start = link, .end = link + sizeof(r->code),
		.limit = link + DATA };
	t->site = (struct isa_site){ .choice = r->choice, .scratch_in = r->scratch_in,
		.offset = r->offset, .len = 4 };
	t->module = (struct isa_module){ .isa = &isa_arm64, .texts = &t->text, .ntexts = 1,
		.funcs = &t->func, .nfuncs = 1 };
	t->in = (struct isa_emit){ .env = &env, .common = &common, .module = &t->module,
		.func = &t->func, .site = &t->site, .bias = BIAS, .id = id,
		.at = (uint64_t)area + DETOUR };
}

static void emit(struct traced *t, const char *name)
{
	int err = a64_emit(&t->in, area + (t->in.at - (uint64_t)area), &t->detour);

	cr_assert_eq(err, 0, "%s: emit says %d", name, err);
	cr_assert_leq(t->detour.size, isa_arm64.detour_max, "%s", name);
	flush(t->in.at, t->detour.size);
}

static void patch(struct traced *t, const char *name)
{
	struct isa_patch patches[2];
	int n = a64_patch(&t->in, patches);

	cr_assert_eq(n, 1, "%s: patch says %d", name, n);
	memcpy((void *)patches[0].addr, patches[0].bytes, patches[0].len);
	flush(patches[0].addr, patches[0].len);
}

static void same(const struct row *r, const char *how, const struct cpu *expected,
	const struct cpu *found)
{
	for (int i = 0; i < 30; i++)
		cr_assert(expected->regs[i] == found->regs[i]
				|| (!r->scratch_in && (i == 16 || i == 17)),
			"%s, %s: x%d is %#lx, not %#lx", r->name, how, i, found->regs[i],
			expected->regs[i]);
	cr_assert_eq(expected->nzcv, found->nzcv, "%s, %s: flags", r->name, how);
	cr_assert_eq(expected->fpcr, found->fpcr, "%s, %s: fpcr", r->name, how);
	cr_assert_eq(expected->fpsr, found->fpsr, "%s, %s: fpsr", r->name, how);
	cr_assert_eq(expected->below, found->below, "%s, %s: sp", r->name, how);
	cr_assert(!memcmp(expected->arguments, found->arguments, 16), "%s, %s: the stack", r->name,
		how);
	cr_assert(!memcmp(expected->vector, found->vector, sizeof(found->vector)),
		"%s, %s: vectors", r->name, how);
	cr_assert(!memcmp(expected->z, found->z, sizeof(found->z)), "%s, %s: z", r->name, how);
	cr_assert(!memcmp(expected->p, found->p, sizeof(found->p)), "%s, %s: p", r->name, how);
	cr_assert(!memcmp(expected->ffr, found->ffr, sizeof(found->ffr)), "%s, %s: ffr", r->name,
		how);
}

static void run(struct cpu *cpu, const struct traced *t)
{
	run_cpu(cpu, t->start, has_sve());
}

/* Run @r as it is and traced, from the same states. @wiped: without records, so slowly. */
static void compare(struct traced *t, const struct row *r, const char *how, bool wiped)
{
	static struct cpu before, plain, traced;
	uint32_t code[6];

	for (int round = 0; round < ROUNDS; round++) {
		randomize(&before);
		plain = traced = before;
		run(&plain, t);
		memcpy(code, area, sizeof(code));
		patch(t, r->name);
		if (wiped)
			*(uint64_t *)(shadow_words.mirror + MIRROR_RECORDS) = 0;
		run(&traced, t);
		memcpy(area, code, sizeof(code));
		flush(t->start, sizeof(code));
		same(r, how, &plain, &traced);
	}
}

static void count_entry(struct shadow_entry *e, void *arg)
{
	(void)e;
	++*(unsigned *)arg;
}

/* @leaf: as the planner would have it of functions that call nothing. */
static void all_rows(enum detour_mode mode, bool leaf)
{
	unsigned in_use = 0;

	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct func_record *r = &records[0][i];
		struct traced t;

		if (rows[i].sve && !has_sve())
			continue;
		place(&t, &rows[i], i);
		t.site.leaf = leaf;
		emit(&t, rows[i].name);
		compare(&t, &rows[i], "traced", false);
		cr_assert_eq(r->calls, ROUNDS, "%s: %lu calls", rows[i].name, r->calls);
		cr_assert_eq(r->returned, ROUNDS, "%s: %lu returned", rows[i].name, r->returned);
		cr_assert_eq(r->unwound, 0, "%s", rows[i].name);
		cr_assert_eq(r->left, 0, "%s", rows[i].name);
		if (mode == MODE_PROFILE)
			cr_assert(!r->callees && r->max <= r->total && ~r->nmin <= r->max,
				"%s: times", rows[i].name);
	}
	cr_assert_eq(attached, 1);
	cr_assert_eq(slow_entries, 1, "only the thread's first call is slow: %u", slow_entries);
	cr_assert_eq(slow_exits, 0, "no return is");
	mirror_each(&shadow_self()->node, count_entry, &in_use);
	cr_assert_eq(in_use, 0);
}

Test(emit, counting_changes_nothing)
{
	all_rows(MODE_COUNT, false);
}

Test(emit, timing_changes_nothing)
{
	all_rows(MODE_PROFILE, false);
}

Test(emit, timing_leaves_changes_nothing)
{
	all_rows(MODE_PROFILE, true);
}

Test(emit, inner_calls_take_no_more_of_the_total)
{
	begin(MODE_PROFILE);
	for (unsigned i = 0; i < NESTED_ROWS; i++) {
		struct traced t;

		place(&t, &rows[0], 0);
		emit(&t, rows[0].name);
		records[0][0] = nested_before[i];
		compare(&t, &rows[0], "traced", false);
		check_nested(&records[0][0], i, ROUNDS);
	}
}

/* Another stack's frames have the places: the calls are in the overflow, which is given back. */
static void places_taken(enum detour_mode mode)
{
	const struct shadow_node *node;
	struct traced t;

	begin(mode);
	place(&t, &rows[0], 1);
	emit(&t, rows[0].name);
	compare(&t, &rows[0], "first", false);
	take_places((uint64_t)__builtin_frame_address(0), true);
	compare(&t, &rows[0], "its place is taken", false);
	node = &shadow_self()->node;
	cr_expect_eq(slow_entries, ROUNDS + 1);
	cr_expect_eq(slow_exits, ROUNDS);
	cr_expect_neq(node->overflow, 0);
	cr_expect_eq(node->overflow_end, node->overflow);
	cr_expect_eq(records[0][1].returned, 2 * ROUNDS);
	take_places((uint64_t)__builtin_frame_address(0), false);
}

Test(emit, a_call_whose_place_is_taken)
{
	places_taken(MODE_COUNT);
}

Test(emit, a_call_whose_place_is_taken_with_times)
{
	places_taken(MODE_PROFILE);
}

static void slow_rows(enum detour_mode mode)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct traced t;

		if (rows[i].sve && !has_sve())
			continue;
		place(&t, &rows[i], i);
		emit(&t, rows[i].name);
		compare(&t, &rows[i], "slow entry", true);
	}
	cr_assert_geq(slow_entries, ROUNDS * (ROWS - 2));
}

Test(emit, the_slow_entry_changes_nothing)
{
	slow_rows(MODE_COUNT);
}

Test(emit, the_slow_entry_with_times_changes_nothing)
{
	slow_rows(MODE_PROFILE);
}

/* The function takes the records away itself: str xzr, [x0]; ret. */
static void slow_returns(enum detour_mode mode)
{
	static const struct row wipes = { "it wipes the records", { 0xf900001f, RET }, SITE_ONE };
	static struct cpu before, plain, traced;
	static uint64_t word;
	struct traced t;
	uint32_t code;

	begin(mode);
	place(&t, &wipes, 1);
	emit(&t, wipes.name);
	for (int round = 0; round < ROUNDS; round++) {
		randomize(&before);
		before.regs[0] = (uint64_t)&word;
		plain = traced = before;
		run(&plain, &t);
		memcpy(&code, area, 4);
		patch(&t, wipes.name);
		/* The first call is slow and makes shadow_words.mirror this thread's. */
		if (round)
			plain.regs[0] = traced.regs[0] = shadow_words.mirror + MIRROR_RECORDS;
		run(&traced, &t);
		memcpy(area, &code, 4);
		flush(t.start, 4);
		same(&wipes, "slow exit", &plain, &traced);
	}
	cr_assert_eq(slow_exits, ROUNDS - 1);
}

Test(emit, the_slow_exit_changes_nothing)
{
	slow_returns(MODE_COUNT);
}

Test(emit, the_slow_exit_with_times_changes_nothing)
{
	slow_returns(MODE_PROFILE);
}

static void entry_only_rows(enum detour_mode mode)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct traced t;

		if (rows[i].sve && !has_sve())
			continue;
		place(&t, &rows[i], i);
		t.site.entry_only = true;
		emit(&t, rows[i].name);
		cr_assert_eq(t.detour.ret, 0, "%s: there is no return point", rows[i].name);
		compare(&t, &rows[i], "entry only", false);
		cr_assert_eq(records[0][i].calls, ROUNDS, "%s", rows[i].name);
		cr_assert_eq(records[0][i].returned, 0, "%s", rows[i].name);
	}
	cr_assert_eq(slow_entries, 1);
}

Test(emit, entry_only_counts_and_changes_nothing)
{
	entry_only_rows(MODE_COUNT);
}

Test(emit, entry_only_with_times_counts_and_changes_nothing)
{
	entry_only_rows(MODE_PROFILE);
}

/* ---- tail calls ---- */

static const struct row jumps[] = {
	{ "b", { 0x14000240 }, SITE_ONE },
	{ "nop; b", { 0xd503201f, 0x1400023f }, SITE_NOPS },
	{ "paciasp; autiasp; b", { 0xd503233f, 0xd50323bf, 0x1400023e }, SITE_ONE, 4 },
	{ "b, x16 is kept", { 0x14000240 }, SITE_ONE, 0, true },
};
enum { JUMPS = sizeof(jumps) / sizeof(jumps[0]), COMMON_JUMPS = JUMPS - 1 };

/* Two detours: @first jumps to the helper, whose detour finds a return point, which is @known to be the first's. */
static void place_jump(struct traced *first, struct traced *second, const struct row *r, bool known)
{
	place(first, r, 1);
	emit(first, r->name);
	jump_to(second, first, HELPER, sizeof(helper));
	emit(second, "the helper");
	memset(infos, 0, sizeof(infos));
	if (known) {
		jump_know(infos, first);
		jump_know(infos, second);
	}
}

static void patch_jump(struct traced *first, struct traced *second)
{
	patch(first, "the first");
	patch(second, "the helper");
}

static void tail_called(enum detour_mode mode, bool known, bool atomics)
{
	static struct cpu before[ROUNDS], plain[ROUNDS], traced;
	struct traced first, second;

	begin(mode);
	if (!atomics)
		env.features &= ~A64_FEATURE_ATOMICS;
	a64_emit_common(&env, (uint64_t)area + COMMON, area + COMMON, &common, common_ranges);
	for (int i = 0; i < JUMPS; i++) {
		unsigned were = slow_entries;
		unsigned expected = (i == 0 && !shadow_self()) + (known && i < COMMON_JUMPS ? 0 : ROUNDS);

		place(&first, &jumps[i], 1);
		for (int round = 0; round < ROUNDS; round++) {
			randomize(&before[round]);
			plain[round] = before[round];
			run(&plain[round], &first);
		}
		place_jump(&first, &second, &jumps[i], known);
		patch_jump(&first, &second);
		for (int round = 0; round < ROUNDS; round++) {
			traced = before[round];
			run(&traced, &first);
			same(&jumps[i], "traced", &plain[round], &traced);
		}
		cr_assert_eq(slow_entries - were, expected, "%s: %u are slow", jumps[i].name, slow_entries - were);
		check_jump_counts(records[0], jumps[i].name, ROUNDS, 0);
	}
	cr_assert_eq(slow_exits, 0);
}

Test(emit, a_tail_call_ends_the_caller)
{
	tail_called(MODE_COUNT, true, true);
	tail_called(MODE_COUNT, true, false);
}

Test(emit, a_tail_call_ends_the_caller_with_times)
{
	tail_called(MODE_PROFILE, true, true);
	tail_called(MODE_PROFILE, true, false);
}

Test(emit, a_tail_call_takes_the_slow_path_else)
{
	tail_called(MODE_COUNT, false, true);
}

Test(emit, a_tail_call_takes_the_slow_path_else_with_times)
{
	tail_called(MODE_PROFILE, false, true);
}

/* ---- handlers ---- */

static struct hook_point point;
static unsigned entries, returns;

/* All that a function may change. */
#define SPOIL_GENERAL                                                                              \
	__asm__ volatile(".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17\n\t" \
			 "mov x\\n, #-1\n\t.endr\n\tcmp x0, #5" ::: "x0", "x1", "x2", "x3", "x4",  \
		"x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",      \
		"x17", "cc", "memory")

static void general(struct ftr_call *call, void *data)
{
	(void)call;
	++*(unsigned *)data;
	SPOIL_GENERAL;
}

static void vectors(struct ftr_call *call, void *data)
{
	(void)call;
	++*(unsigned *)data;
	lose_vectors();
	__asm__ volatile("movi v0.16b, #1; movi v7.16b, #2; movi v16.16b, #3; movi v31.16b, #4\n\t"
			 "fmov d1, #1.0; fmov d2, #3.0; fdiv d1, d1, d2; msr fpcr, xzr" :::
		"v0", "v1", "v2", "v7", "v16", "v31", "memory");
	SPOIL_GENERAL;
}

/* Asks for a vector, which is as it was. */
static void asks(struct ftr_call *call, void *data)
{
	const struct isa_place v3 = { .kind = PLACE_VECTOR, .index = 3 };

	++*(unsigned *)data;
	cr_assert(arch_call_argument(call, v3));
	SPOIL_GENERAL;
}

static const struct {
	const char *name;
	ftr_handler *entry, *ret;
	bool vectors;
} handlers[] = {
	{ "no handler" },
	{ "entry", general },
	{ "return", NULL, general },
	{ "entry and return", general, general },
	{ "entry and return that ask", asks, asks },
	{ "entry, vectors", vectors, NULL, true },
	{ "return, vectors", NULL, vectors, true },
	{ "entry and return, vectors", vectors, vectors, true },
	{ "entry and return that ask, vectors", asks, asks, true },
};
#define HANDLERS (sizeof(handlers) / sizeof(handlers[0]))

static void attach_handlers(ftr_handler *entry, ftr_handler *ret, bool uses_vectors)
{
	static uint64_t serials;
	struct hook_list *list = calloc(1, sizeof(*list) + sizeof(list->hooks[0]));

	list->count = 1;
	list->vectors = list->hooks[0].vectors = uses_vectors;
	list->hooks[0].serial = ++serials;
	list->hooks[0].entry = entry;
	list->hooks[0].ret = ret;
	list->hooks[0].data = entry ? &entries : &returns;
	hook_publish(&point, list); /* the former one is lost */
}

static void begin_hooks(enum detour_mode mode)
{
	begin(mode);
	env.hook_entered = (uint64_t)hook_entered;
	env.hook_returned = (uint64_t)hook_returned;
	a64_emit_common(&env, (uint64_t)area + COMMON, area + COMMON, &common, common_ranges);
	flush((uint64_t)area + COMMON, common.size);
}

static void hooked_rows(enum detour_mode mode, bool returning, bool entry_only, bool recorded)
{
	begin_hooks(mode);
	for (uint32_t i = 0; i < ROWS; i++)
		for (size_t h = 0; h < HANDLERS; h++) {
			struct func_record was = records[0][i];
			struct traced t;

			if (rows[i].sve && !has_sve())
				continue;
			place(&t, &rows[i], recorded ? i : ID_NONE);
			t.site.entry_only = entry_only;
			t.in.point = (uint64_t)&point;
			t.in.hook_return = returning;
			emit(&t, rows[i].name);
			attach_handlers(handlers[h].entry, handlers[h].ret, handlers[h].vectors);
			entries = returns = 0;
			compare(&t, &rows[i], handlers[h].name, !recorded);
			cr_assert_eq(entries + returns, (unsigned)(ROUNDS * (handlers[h].entry != NULL)
					+ ROUNDS * (handlers[h].ret && returning)),
				"%s, %s: %u handlers were called", rows[i].name, handlers[h].name,
				entries + returns);
			if (!recorded)
				continue;
			cr_assert_eq(records[0][i].calls - was.calls, ROUNDS);
			cr_assert_eq(records[0][i].returned - was.returned, entry_only ? 0 : ROUNDS);
		}
	if (returning)
		cr_assert_eq(slow_exits, 0, "no return is slow: %u", slow_exits);
}

Test(emit, handlers_change_nothing)
{
	hooked_rows(MODE_COUNT, true, false, true);
}

Test(emit, handlers_change_nothing_with_times)
{
	hooked_rows(MODE_PROFILE, true, false, true);
}

Test(emit, entry_handlers_change_nothing)
{
	hooked_rows(MODE_COUNT, false, false, true);
}

Test(emit, entry_handlers_without_an_entry_change_nothing)
{
	hooked_rows(MODE_COUNT, false, true, true);
	hooked_rows(MODE_PROFILE, false, true, false);
}

/* What the image and the slow paths rely on. */
Test(emit, the_parts_of_a_detour)
{
	begin(MODE_PROFILE);
	for (uint32_t i = 0; i < ROWS; i++) {
		uint32_t covered = 0;
		struct traced t;

		place(&t, &rows[i], i);
		emit(&t, rows[i].name);
		cr_assert(arch_is_return_point(area + DETOUR + t.detour.ret), "%s", rows[i].name);
		cr_assert(!arch_is_return_point(area + DETOUR), "%s", rows[i].name);
		for (uint32_t r = 0; r < t.detour.nranges; r++) {
			cr_assert_geq(t.detour.ranges[r].start, covered, "%s", rows[i].name);
			covered = t.detour.ranges[r].start + t.detour.ranges[r].size;
			cr_assert_leq(covered, t.detour.size, "%s", rows[i].name);
		}
	}
}

/* ---- unwind rows ---- */

enum rule { IN_LINK, AT_CFA, IN_SHADOW, CONSTANT };

/* What rows say at one instruction. */
struct unwind {
	unsigned base;
	uint64_t offset;
	enum rule rule;
	int64_t at; /* AT_CFA: from the CFA; CONSTANT: the address */
	bool is_signed;
};

static unsigned uleb(const uint8_t **p)
{
	unsigned value = 0, shift = 0;

	do
		value |= (**p & 0x7fu) << shift, shift += 7;
	while (*(*p)++ & 0x80);
	return value;
}

/* One instruction of rows; returns by how many instructions of code it advances. */
static unsigned step_rows(const uint8_t **p, struct unwind *u, struct unwind *saved)
{
	unsigned op = *(*p)++, reg;

	if (op >> 6 == 1)
		return op & 0x3f;
	if (op >> 6 == 2) {
		reg = uleb(p);
		if ((op & 0x3f) == 30)
			u->rule = AT_CFA, u->at = -8 * (int64_t)reg;
		return 0;
	}
	switch (op) {
	case 0x02: /* advance_loc1 */
		return *(*p)++;
	case 0x03: /* advance_loc2 */
		*p += 2;
		return (*p)[-2] | (unsigned)(*p)[-1] << 8;
	case 0x08: /* same_value */
		if (uleb(p) == 30)
			u->rule = IN_LINK;
		break;
	case 0x0a:
		*saved = *u;
		break;
	case 0x0b:
		*u = *saved;
		break;
	case 0x0c: /* def_cfa */
		u->base = uleb(p);
		u->offset = uleb(p);
		break;
	case 0x0e: /* def_cfa_offset */
		u->offset = uleb(p);
		break;
	case 0x10: /* expression: of the shadow stack */
		reg = uleb(p);
		*p += uleb(p);
		u->rule = IN_SHADOW;
		cr_assert_eq(reg, 30);
		break;
	case 0x2d: /* negate_ra_state */
		u->is_signed = !u->is_signed;
		break;
	default:
		cr_assert_fail("rows have %#x", op);
	}
	return 0;
}

static struct unwind rows_at(const struct isa_range *range, uint32_t at)
{
	struct unwind u = { .rule = IN_LINK }, saved = u;
	uint8_t cie[ISA_CFI_MAX];
	const uint8_t *p = cie, *end = cie + a64_cie(range->cie, 0, cie, sizeof(cie));
	uint32_t here = 0;

	while (p < end)
		step_rows(&p, &u, &saved);
	for (p = range->cfi, end = p + range->cfi_len; p < end;) {
		here += 4 * step_rows(&p, &u, &saved);
		if (here > at)
			break; /* an advance changes nothing */
	}
	return u;
}

/* A run with a breakpoint at one instruction, where the rows are asked. */
static struct {
	uint64_t at;
	uint32_t insn; /* that belongs there */
	const struct isa_range *range;
	uint64_t range_start; /* run-time address that the range's start counts from */
	uint64_t sp, ret[3]; /* what the rows must say: in the detour, and in the bodies */
	bool hit, wrong;
} asked;

static bool is_expected(uint64_t ret)
{
	return ret && (ret == asked.ret[0] || ret == asked.ret[1] || ret == asked.ret[2]);
}

static void set_insn(uint64_t at, uint32_t insn)
{
	memcpy((void *)at, &insn, 4);
	flush(at, 4);
}

static uint64_t plain_address(uint64_t addr)
{
	return addr & 0xffffffffffff;
}

static void ask(int sig, siginfo_t *info, void *context)
{
	const mcontext_t *mc = &((const ucontext_t *)context)->uc_mcontext;
	struct unwind u = rows_at(asked.range,
		(uint32_t)(asked.at - asked.range_start - asked.range->start));
	uint64_t cfa = (u.base == 31 ? mc->sp : mc->regs[u.base]) + u.offset, ret = mc->regs[30];
	struct shadow_entry *e;

	(void)sig;
	(void)info;
	if (u.rule == AT_CFA)
		ret = *(const uint64_t *)(cfa + (uint64_t)u.at);
	if (u.rule == IN_SHADOW) {
		e = mirror_find(&shadow_self()->node, cfa);
		ret = e ? e->ret : 0;
	}
	asked.hit = true;
	asked.wrong = mc->pc != asked.at || cfa != asked.sp
		|| (!is_expected(ret) && !(u.is_signed && is_expected(plain_address(ret))));
	set_insn(asked.at, asked.insn);
}

/* sp and x30 at the entry of the traced function. */
static void see_entry(int sig, siginfo_t *info, void *context)
{
	mcontext_t *mc = &((ucontext_t *)context)->uc_mcontext;

	(void)sig;
	(void)info;
	asked.sp = mc->sp;
	asked.ret[0] = mc->regs[30];
	mc->pc = mc->regs[30];
}

static void on_trap(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
}

/* Ask at every instruction of a range that is executed. Returns at how many that was. */
static unsigned ask_range(const struct traced *t, const struct row *r, uint64_t start,
	const struct isa_range *range, bool wiped)
{
	static struct cpu cpu;
	static uint64_t word;
	uint32_t first;
	unsigned hits = 0;

	memcpy(&first, (void *)t->start, 4);
	set_insn(t->start, BRK);
	on_trap(see_entry);
	run(&cpu, t);
	set_insn(t->start, first);
	on_trap(ask);

	for (uint64_t at = start + range->start; at < start + range->start + range->size; at += 4) {
		asked.at = at;
		asked.insn = *(uint32_t *)at;
		asked.range = range;
		asked.range_start = start;
		asked.hit = asked.wrong = false;
		randomize(&cpu);
		cpu.regs[0] = shadow_self() ? shadow_words.mirror + MIRROR_RECORDS : (uint64_t)&word;
		if (wiped && shadow_self())
			*(uint64_t *)(shadow_words.mirror + MIRROR_RECORDS) = 0;
		set_insn(at, BRK);
		run(&cpu, t);
		set_insn(at, asked.insn);
		cr_assert(!asked.wrong, "%s: the row at +%#lx, %08x, is wrong", r->name, at - start,
			asked.insn);
		hits += asked.hit;
	}
	return hits;
}

/* Unwind instructions of a function that pushes a frame at its second or third instruction. */
static const uint8_t entry_row[] = { 0x0c, 31, 0 }, sign_row[] = { 0x2d },
		     frame_row[] = { 0x0e, 16, 0x80 | 29, 2, 0x80 | 30, 1 };

static void all_asked(enum detour_mode mode)
{
	static const struct row cases[] = {
		{ "str xzr, [x0]: it wipes the records", { 0xf900001f, RET }, SITE_ONE },
		{ "stp", { 0xa9bf7bfd, 0x910003fd, 0xa8c17bfd, RET }, SITE_ONE },
		{ "paciasp; stp", { 0xd503233f, 0xa9bf7bfd, 0xa8c17bfd, 0xd50323bf, RET },
			SITE_ONE, 4 },
	};
	begin(mode);
	for (uint32_t i = 0; i < 3; i++) {
		const struct isa_cfi cfi[] = { { 0, sizeof(entry_row), entry_row },
			{ 4, sizeof(sign_row), sign_row },
			{ cases[i].offset + 4u, sizeof(frame_row), frame_row } };
		const struct isa_cfi plain[] = { cfi[0], cfi[2] };
		unsigned hits = 0;
		struct traced t;

		place(&t, &cases[i], i);
		t.in.cfi = cases[i].offset ? cfi : plain;
		t.in.ncfi = i == 0 ? 1 : cases[i].offset ? 3 : 2;
		emit(&t, cases[i].name);
		asked.ret[1] = t.in.at + t.detour.ret;
		patch(&t, cases[i].name);
		for (uint32_t n = 0; n < t.detour.nranges; n++)
			hits += ask_range(&t, &cases[i], t.in.at, &t.detour.ranges[n], i != 0);
		for (uint32_t n = 0; n < t.detour.nranges; n++)
			hits += ask_range(&t, &cases[i], t.in.at, &t.detour.ranges[n], false);
		hits += ask_range(&t, &cases[i], common.base, &common_ranges[1], i != 0);
		cr_assert_gt(hits, 60, "%s: only %u instructions were seen", cases[i].name, hits);
	}
}

Test(emit, rows_are_true_at_every_instruction)
{
	all_asked(MODE_COUNT);
}

Test(emit, rows_are_true_at_every_instruction_with_times)
{
	all_asked(MODE_PROFILE);
}

static void tail_calls_asked(enum detour_mode mode)
{
	begin(mode);
	for (int i = 0; i < COMMON_JUMPS; i++) {
		struct traced first, second;
		unsigned hits = 0, stubs;

		place_jump(&first, &second, &jumps[i], true);
		asked.ret[1] = first.in.at + first.detour.ret;
		asked.ret[2] = second.in.at + second.detour.ret;
		patch_jump(&first, &second);
		for (const struct traced *t = &first; t; t = t == &first ? &second : NULL)
			hits += ask_range(&first, &jumps[i], t->in.at, &t->detour.ranges[0], false);
		stubs = ask_range(&first, &jumps[i], common.base, &common_ranges[1], false);
		cr_assert(hits > 60 && stubs > 45, "%s: only %u and %u instructions were seen", jumps[i].name, hits,
			stubs);
	}
}

Test(emit, rows_are_true_at_every_instruction_of_a_tail_call)
{
	tail_calls_asked(MODE_COUNT);
}

Test(emit, rows_are_true_at_every_instruction_of_a_tail_call_with_times)
{
	tail_calls_asked(MODE_PROFILE);
}

/* ---- signals ---- */

static struct {
	const struct traced *call;
	uint64_t at;
	uint32_t insn; /* that belongs there */
	bool leaves;
	unsigned hits;
	sigjmp_buf back;
} disturbed;

/* Make such a call, and leave by a longjmp or go on. */
static void disturb(int sig)
{
	static struct cpu cpu;

	(void)sig;
	set_insn(disturbed.at, disturbed.insn);
	disturbed.hits++;
	randomize(&cpu);
	run(&cpu, disturbed.call);
	if (disturbed.leaves)
		siglongjmp(disturbed.back, 1);
}

static void run_disturbed(void)
{
	static struct cpu cpu;

	disturbed.insn = *(uint32_t *)disturbed.at;
	set_insn(disturbed.at, BRK);
	randomize(&cpu);
	if (!sigsetjmp(disturbed.back, 1))
		run(&cpu, disturbed.call);
	set_insn(disturbed.at, disturbed.insn);
	run(&cpu, disturbed.call); /* takes the place of what was left */
}

/* A signal at each instruction of a range, in turn. Returns at how many that was. */
static unsigned disturb_range(uint64_t start, const struct isa_range *range)
{
	unsigned hits = disturbed.hits;

	for (uint32_t at = range->start; at < range->start + range->size; at += 4) {
		disturbed.at = start + at;
		run_disturbed();
	}
	return disturbed.hits - hits;
}

static void tail_calls_disturbed(enum detour_mode mode, bool leaves)
{
	static struct cpu cpu;
	struct traced first, second;
	unsigned hits;

	begin(mode);
	place_jump(&first, &second, &jumps[0], true);
	patch_jump(&first, &second);
	randomize(&cpu);
	run(&cpu, &first);
	disturbed.call = &first;
	disturbed.leaves = leaves;
	signal(SIGTRAP, disturb);
	hits = disturb_range(first.in.at, &first.detour.ranges[0]);
	hits += disturb_range(second.in.at, &second.detour.ranges[0]);
	hits += disturb_range(common.base, &common_ranges[1]);
	cr_assert_gt(hits, 110, "only %u", hits);
	for (int id = 1; id <= 2; id++) {
		const struct func_record *r = &records[0][id];

		cr_assert_eq(r->calls, r->returned + r->unwound, "%d: %lu calls, %lu returned, %lu unwound", id, r->calls,
			r->returned, r->unwound);
		cr_assert(leaves ? r->unwound > 10 : !r->unwound, "%d: %lu unwound", id, r->unwound);
		cr_assert_eq(r->left, mode == MODE_COUNT ? r->left : r->unwound);
	}
}

Test(emit, a_signal_at_each_instruction_of_a_tail_call)
{
	tail_calls_disturbed(MODE_COUNT, false);
}

Test(emit, a_signal_at_each_instruction_of_a_tail_call_with_times)
{
	tail_calls_disturbed(MODE_PROFILE, false);
}

Test(emit, a_longjmp_from_each_instruction_of_a_tail_call)
{
	tail_calls_disturbed(MODE_COUNT, true);
}

Test(emit, a_longjmp_from_each_instruction_of_a_tail_call_with_times)
{
	tail_calls_disturbed(MODE_PROFILE, true);
}

static void skips(struct ftr_call *call, void *data)
{
	(void)data;
	cr_assert_eq(ftr_skip(call), 0);
}

/* Also where handlers are called from. */
static void hooks_asked(enum detour_mode mode, ftr_handler *entry, bool entry_only)
{
	static const struct row pushes = { "stp", { 0xa9bf7bfd, 0x910003fd, 0xa8c17bfd, RET },
		SITE_ONE };
	struct traced t;
	unsigned hits;

	begin_hooks(mode);
	place(&t, &pushes, 1);
	t.site.entry_only = entry_only;
	t.in.point = (uint64_t)&point;
	t.in.hook_return = !entry_only;
	emit(&t, pushes.name);
	asked.ret[1] = t.in.at + t.detour.ret;
	patch(&t, pushes.name);
	attach_handlers(entry, entry_only ? NULL : general, false);
	hits = ask_range(&t, &pushes, t.in.at, &t.detour.ranges[0], false);
	hits += ask_range(&t, &pushes, common.base, &common_ranges[2], false);
	cr_assert_gt(hits, 45, "only %u instructions were seen", hits);
}

Test(emit, rows_are_true_around_handlers)
{
	hooks_asked(MODE_COUNT, general, false);
	hooks_asked(MODE_PROFILE, general, false);
	hooks_asked(MODE_COUNT, skips, false);
	hooks_asked(MODE_PROFILE, skips, false);
	hooks_asked(MODE_COUNT, general, true);
	hooks_asked(MODE_COUNT, skips, true);
}
