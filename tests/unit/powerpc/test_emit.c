/* SPDX-License-Identifier: MIT */
/*
 * Detours, by running them: small functions are called with random registers as they are, and once
 * more patched. All that a caller or callee can see must be the same, and the calls be counted. The
 * slow paths are the real ones of rethook/.
 */
#define _GNU_SOURCE 1
#include "arch/powerpc/powerpc.h"
#include "rethook/hook.h"
#include "rethook/mirror.h"
#include "rethook/shadow.h"
#include "support_jump.h"
#include "support_nested.h"
#include "support_places.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <asm/ptrace.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define AREA	 0x40000u
#define HELPER	 0x900u	  /* in a function's text */
#define COMMON	 0x10000u /* in the area */
#define DETOUR	 0x20000u

#define IDS    64
#define ROUNDS 20
#define SEED   20250408u
#define BIAS   0x7000 /* run-time minus link-time addresses */

/* ---- a processor's state, and a call with it ---- */

struct cpu {
	uint64_t regs[32]; /* not r1 and r13 */
	uint64_t cr, xer, ctr, fpscr, vrsave;
	uint64_t target; /* in: what is called, with LR */
	uint64_t below;	 /* out: r1 after the return minus r1 before the call */
	uint64_t unused;
	uint8_t vector[64][16];
};

void run_cpu(struct cpu *cpu);
__asm__(R"(
	.machine push
	.machine power9
	.text
	.globl run_cpu
	.type run_cpu, @function
run_cpu:
	mflr 0
	std 0, 16(1)
	mfcr 0
	stw 0, 8(1)
	stdu 1, -1024(1)
	std 3, 40(1)
	.irp n, 2, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	std \n, 512+8*\n(1)
	.endr
	.irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	stfd \n, 768-112+8*\n(1)
	.endr
	li 4, 320
	.irp n, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63
	stxvx \n, 1, 4
	addi 4, 4, 16
	.endr

	ld 4, 280(3)
	mtvsrd 0, 4
	mtfsf 255, 0, 1, 0
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63
	lxv \n, 320+16*\n(3)
	.endr
	ld 4, 256(3)
	mtcr 4
	ld 4, 264(3)
	mtxer 4
	ld 4, 272(3)
	mtctr 4
	ld 4, 288(3)
	mtspr 256, 4
	ld 4, 296(3)
	mtlr 4
	.irp n, 0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 3
	ld \n, 8*\n(3)
	.endr
	std 1, 48(1)
	blrl

	std 3, 56(1)
	std 4, 64(1)
	ld 4, 48(1)
	subf 4, 4, 1
	ld 3, 40(1)
	std 4, 304(3)
	ld 4, 56(1)
	std 4, 24(3)
	ld 4, 64(1)
	.irp n, 0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	std \n, 8*\n(3)
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63
	stxv \n, 320+16*\n(3)
	.endr
	mfcr 4
	std 4, 256(3)
	mfxer 4
	std 4, 264(3)
	mfctr 4
	std 4, 272(3)
	mfspr 4, 256
	std 4, 288(3)
	mffs 0
	mfvsrd 4, 0
	std 4, 280(3)
	li 4, 0
	mtvsrd 0, 4
	mtfsf 255, 0, 1, 0

	li 4, 320
	.irp n, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63
	lxvx \n, 1, 4
	addi 4, 4, 16
	.endr
	.irp n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	lfd \n, 768-112+8*\n(1)
	.endr
	.irp n, 2, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	ld \n, 512+8*\n(1)
	.endr
	addi 1, 1, 1024
	lwz 0, 8(1)
	mtcr 0
	ld 0, 16(1)
	mtlr 0
	blr
	.size run_cpu, . - run_cpu
	.machine pop
)");

_Static_assert(offsetof(struct cpu, cr) == 256 && offsetof(struct cpu, fpscr) == 280
		&& offsetof(struct cpu, target) == 296 && offsetof(struct cpu, vector) == 320,
	"run_cpu() knows the layout");

static void randomize(struct cpu *cpu)
{
	uint64_t words[sizeof(*cpu) / 8];

	for (size_t i = 0; i < sizeof(words) / 8; i++)
		words[i] = random64();
	memcpy(cpu, words, sizeof(words));
	cpu->regs[1] = cpu->regs[13] = 0;
	cpu->regs[3] &= 1; /* what some functions branch on */
	cpu->cr &= 0xffffffff;
	cpu->xer &= 0xe0000000; /* SO OV CA */
	cpu->fpscr &= 3;	/* the rounding mode */
	cpu->vrsave &= 0xffffffff;
	cpu->below = 0;
}

/* ---- the functions ---- */

struct row {
	const char *name;
	uint32_t code[8];
	uint8_t choice, len;
	bool own_rules;
	bool calls; /* or reads the static chain */
};

#define BLR 0x4e800020

static const struct row rows[] = {
	{ "blr", { BLR }, SITE_ONE, 4 },
	{ "nop", { 0x60000000, 0x38630001, BLR }, SITE_NOPS, 4 },
	{ "mflr r0", { 0x7c0802a6, 0xf8010010, 0xe8010010, 0x7c0803a6, BLR }, SITE_ONE, 4 },
	{ "stdu r1,-32(r1)", { 0xf821ffe1, 0x38210020, BLR }, SITE_ONE, 4 },
	/* hashst r0,-32(r1): checks what LR was */
	{ "hashst", { 0x7c0802a6, 0x7f8105a5, 0x7f8105e5, 0x7c0803a6, BLR }, SITE_ONE, 4 },
	/* std r4,-288(r1); li r4,0; ld r5,-288(r1) */
	{ "the red zone", { 0xf881fee0, 0x38800000, 0xe8a1fee0, BLR }, SITE_ONE, 4 },
	{ "b helper", { 0x48000900 }, SITE_ONE, 4, .calls = true },
	{ "beq cr1: fields that nobody may change", { 0x41860008, 0x38630001, BLR }, SITE_ONE, 4 },
	{ "bdnz", { 0x42000008, 0x38630001, BLR }, SITE_ONE, 4 },
	{ "bnelr cr7", { 0x4c9e0020, 0x38630001, BLR }, SITE_ONE, 4 },
	{ "pla r3", { 0x06100000, 0x38600100, BLR }, SITE_ONE, 8 },
	{ "pld r3", { 0x04100000, 0xe4600900, BLR }, SITE_ONE, 8 },
	{ "addpcis r3", { 0x4c600004, BLR }, SITE_ONE, 4 },
	{ "mr r3,r11: the static chain", { 0x7d635b78, BLR }, SITE_ONE, 4, .calls = true },
	{ "mfctr r3", { 0x7c6902a6, BLR }, SITE_ONE, 4 },
	{ "mr r3,r2", { 0x7c431378, BLR }, SITE_ONE, 4 },
	{ "xsadddp", { 0xf0642907, BLR }, SITE_ONE, 4 },
	{ "vadduwm", { 0x10642880, BLR }, SITE_ONE, 4 },
	{ "own rules", { BLR }, SITE_ONE, 4, true },
	{ "r0 comes in", { 0x7c030378, BLR }, SITE_ONE, 4, true },
	{ "r12 comes in", { 0x7d836378, BLR }, SITE_ONE, 4, true },
	{ "r11 goes out", { 0x7c6b1b78, BLR }, SITE_ONE, 4, true },
	{ "CR0 comes in", { 0x41820008, 0x38630001, BLR }, SITE_ONE, 4, true },
	{ "CA comes in and goes out", { 0x7c632914, BLR }, SITE_ONE, 4, true },
	{ "CR0 goes out", { 0x7c632a79, BLR }, SITE_ONE, 4, true },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const uint32_t helper[] = { 0x38630001, BLR }; /* addi r3,r3,1 */

static uint8_t *area;
static struct func_record records[4][IDS];
static int attached;
static unsigned slow_entries, slow_exits;
static const struct detour_info *infos[IDS];
static struct isa_env env;
static struct isa_common common;
static struct isa_range common_ranges[4];

static bool attach(struct shadow_thread *t)
{
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

/* What C may change and keeps for nobody. */
static void lose_registers(void)
{
	__asm__ volatile(R"(
		.irp n, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
		li \n, 0
		.endr
		mtctr 0
		addic. 0, 0, 0
		mtcrf 0xc7, 0
	)" : : : "memory", "ctr", "xer", "cr0", "cr1", "cr5", "cr6", "cr7", "r0", "r3", "r4",
		"r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12");
}

static void slow_entry(struct slow_frame *f)
{
	slow_entries++;
	shadow_slow_entry(f);
	lose_registers();
}

static void slow_exit(struct slow_frame *f)
{
	slow_exits++;
	shadow_slow_exit(f);
	lose_registers();
}

static int64_t tls(const void *variable)
{
	return (int64_t)((uintptr_t)variable - arch_thread_pointer());
}

static void flush(const void *from, size_t size)
{
	for (uint64_t at = (uint64_t)from & ~31ull; at < (uint64_t)from + size; at += 32)
		__asm__ volatile("dcbst 0,%0; sync; icbi 0,%0" : : "r"(at) : "memory");
	__asm__ volatile("sync; isync" : : : "memory");
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
		.tls_mirror = tls(&shadow_words.mirror), .tls_own = tls(&shadow_words.own),
		.tls_current = tls(&shadow_words.current), .infos = infos, .slow_entry = (uint64_t)slow_entry,
		.slow_exit = (uint64_t)slow_exit, .slow_unwind = (uint64_t)shadow_slow_unwind,
		.slow_release = (uint64_t)shadow_slow_release };
	ppc_emit_common(&env, (uint64_t)area + COMMON, area + COMMON, &common, common_ranges);
	flush(area + COMMON, common.size);
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
	memcpy(area + HELPER, helper, sizeof(helper));
	flush(area, COMMON);
	t->start = (uint64_t)area;
	t->text = (struct isa_text){ area, link, COMMON };
	t->func = (struct isa_func){ .start = link, .end = link + sizeof(r->code),
		.limit = link + HELPER };
	t->site = (struct isa_site){ .choice = r->choice, .scratch_in = r->own_rules,
		.len = r->len };
	t->module = (struct isa_module){ .isa = &isa_powerpc, .texts = &t->text, .ntexts = 1,
		.funcs = &t->func, .nfuncs = 1 };
	t->in = (struct isa_emit){ .env = &env, .common = &common, .module = &t->module,
		.func = &t->func, .site = &t->site, .bias = BIAS, .id = id,
		.at = (uint64_t)area + DETOUR };
}

static void emit(struct traced *t, const char *name)
{
	int err = ppc_emit(&t->in, (uint8_t *)t->in.at, &t->detour);

	cr_assert_eq(err, 0, "%s: emit says %d", name, err);
	flush((void *)t->in.at, t->detour.size);
}

static void patch(struct traced *t, const char *name)
{
	struct isa_patch patches[2];
	int n = ppc_patch(&t->in, patches);

	cr_assert_eq(n, 1, "%s: patch says %d", name, n);
	memcpy((void *)patches[0].addr, patches[0].bytes, patches[0].len);
	flush((void *)patches[0].addr, patches[0].len);
}

#define FREE_OUT 0x1f01u /* r0, r8 to r12 */
#define CR0	 0xf0000000u
#define CA	 0x20040000u /* and CA32 */

static void same(const struct row *r, const char *how, const struct cpu *expected,
	const struct cpu *found)
{
	uint64_t cr0 = r->own_rules ? 0 : CR0, ca = r->own_rules ? 0 : CA;

	for (int i = 0; i < 32; i++)
		cr_assert(expected->regs[i] == found->regs[i]
				|| (!r->own_rules && FREE_OUT >> i & 1),
			"%s, %s: r%d is %#lx, not %#lx", r->name, how, i, found->regs[i],
			expected->regs[i]);
	cr_assert_eq(expected->cr | cr0, found->cr | cr0, "%s, %s: CR", r->name, how);
	cr_assert_eq(expected->xer | ca, found->xer | ca, "%s, %s: XER", r->name, how);
	cr_assert_eq(expected->ctr, found->ctr, "%s, %s: CTR", r->name, how);
	cr_assert_eq(expected->fpscr, found->fpscr, "%s, %s: FPSCR", r->name, how);
	cr_assert_eq(expected->vrsave, found->vrsave, "%s, %s: VRSAVE", r->name, how);
	cr_assert_eq(expected->below, found->below, "%s, %s: r1", r->name, how);
	cr_assert(!memcmp(expected->vector, found->vector, sizeof(found->vector)),
		"%s, %s: vectors", r->name, how);
}

static uint64_t arguments[8]; /* of the call: r3 to r10 */

/* Run @r as it is and traced, from the same states. @wiped: without records, so slowly. */
static void compare(struct traced *t, const struct row *r, const char *how, bool wiped)
{
	struct cpu before, plain, traced;
	uint32_t code[8];

	for (int round = 0; round < ROUNDS; round++) {
		randomize(&before);
		before.target = (uint64_t)area;
		plain = traced = before;
		memcpy(arguments, before.regs + 3, sizeof(arguments));
		run_cpu(&plain);
		memcpy(code, area, sizeof(code));
		patch(t, r->name);
		if (wiped)
			*(uint64_t *)(shadow_words.mirror + MIRROR_RECORDS) = 0;
		run_cpu(&traced);
		memcpy(area, code, sizeof(code));
		flush(area, sizeof(code));
		same(r, how, &plain, &traced);
	}
}

/* @leaf: those that the planner would take for one. */
static void all_rows(enum detour_mode mode, bool leaf)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct func_record *r = &records[0][i];
		struct traced t;

		place(&t, &rows[i], i);
		t.site.leaf = leaf && !rows[i].calls;
		emit(&t, rows[i].name);
		cr_assert(arch_is_return_point(area + DETOUR + t.detour.ret), "%s", rows[i].name);
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
	cr_assert_eq(slow_exits, 0, "no return is: %u", slow_exits);
}

Test(emit, counting_changes_nothing)
{
	all_rows(MODE_COUNT, false);
}

Test(emit, timing_changes_nothing)
{
	all_rows(MODE_PROFILE, false);
}

Test(emit, counting_leaves_changes_nothing)
{
	all_rows(MODE_COUNT, true);
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

		place(&t, &rows[i], i);
		emit(&t, rows[i].name);
		compare(&t, &rows[i], "slow entry", true);
	}
	cr_assert_geq(slow_entries, ROUNDS * ROWS);
}

Test(emit, the_slow_entry_changes_nothing)
{
	slow_rows(MODE_COUNT);
}

Test(emit, the_slow_entry_with_times_changes_nothing)
{
	slow_rows(MODE_PROFILE);
}

/* The function takes the records away itself: std r4,0(r3); blr. */
static void slow_returns(enum detour_mode mode, bool own_rules)
{
	const struct row wipes = { "it wipes the records", { 0xf8830000, BLR }, SITE_ONE, 4,
		own_rules };
	struct cpu before, plain, traced;
	uint64_t word;
	struct traced t;

	begin(mode);
	place(&t, &wipes, 1);
	emit(&t, wipes.name);
	for (int round = 0; round < ROUNDS; round++) {
		randomize(&before);
		before.target = (uint64_t)area;
		before.regs[3] = (uint64_t)&word;
		before.regs[4] = 0;
		plain = traced = before;
		run_cpu(&plain);
		patch(&t, wipes.name);
		/* The first call is slow and makes shadow_words.mirror this thread's. */
		if (round)
			plain.regs[3] = traced.regs[3] = shadow_words.mirror + MIRROR_RECORDS;
		run_cpu(&traced);
		memcpy(area, wipes.code, 4);
		flush(area, 4);
		same(&wipes, "slow exit", &plain, &traced);
	}
	cr_assert_eq(slow_exits, ROUNDS - 1);
}

Test(emit, the_slow_exit_changes_nothing)
{
	slow_returns(MODE_COUNT, false);
	slow_exits = 0;
	slow_returns(MODE_COUNT, true);
}

Test(emit, the_slow_exit_with_times_changes_nothing)
{
	slow_returns(MODE_PROFILE, false);
	slow_exits = 0;
	slow_returns(MODE_PROFILE, true);
}

static void entry_only_rows(enum detour_mode mode)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct traced t;

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

/* ---- tail calls ---- */

/* The result tells of all that may be an argument: xor r3,r3,r8; r9; r10; r11; blr */
static const uint32_t mixes[] = { 0x7c634278, 0x7c634a78, 0x7c635278, 0x7c635a78, BLR };
#define MIXES (HELPER + 0x40)

static const struct row jumps[] = {
	{ "b", { 0x48000940 }, SITE_ONE, 4 },
	{ "nop; b", { 0x60000000, 0x4800093c }, SITE_NOPS, 4 },
	{ "b, r0 and r12 are kept", { 0x48000940 }, SITE_ONE, 4, .own_rules = true },
};
enum { JUMPS = sizeof(jumps) / sizeof(jumps[0]), COMMON_JUMPS = JUMPS - 1 };

static void place_first(struct traced *first, const struct row *r)
{
	place(first, r, 1);
	memcpy(area + MIXES, mixes, sizeof(mixes));
	flush(area + MIXES, sizeof(mixes));
}

/* Two detours: @first jumps to another function, whose detour finds a return point, which is @known to be the first's. */
static void place_jump(struct traced *first, struct traced *second, const struct row *r, bool known)
{
	place_first(first, r);
	emit(first, r->name);
	jump_to(second, first, MIXES, sizeof(mixes));
	emit(second, "the other");
	memset(infos, 0, sizeof(infos));
	if (known) {
		jump_know(infos, first);
		jump_know(infos, second);
	}
}

static void patch_jump(struct traced *first, struct traced *second)
{
	patch(first, "the first");
	patch(second, "the other");
}

static void tail_called(enum detour_mode mode, bool known)
{
	static struct cpu before[ROUNDS], plain[ROUNDS], traced;
	struct traced first, second;

	begin(mode);
	for (int i = 0; i < JUMPS; i++) {
		unsigned were = slow_entries, expected = (i == 0) + (known && i < COMMON_JUMPS ? 0 : ROUNDS);

		place_first(&first, &jumps[i]);
		for (int round = 0; round < ROUNDS; round++) {
			randomize(&before[round]);
			before[round].target = (uint64_t)area;
			plain[round] = before[round];
			run_cpu(&plain[round]);
		}
		place_jump(&first, &second, &jumps[i], known);
		patch_jump(&first, &second);
		for (int round = 0; round < ROUNDS; round++) {
			traced = before[round];
			run_cpu(&traced);
			same(&jumps[i], "traced", &plain[round], &traced);
		}
		cr_assert_eq(slow_entries - were, expected, "%s: %u are slow", jumps[i].name, slow_entries - were);
		check_jump_counts(records[0], jumps[i].name, ROUNDS, 0);
	}
	cr_assert_eq(slow_exits, 0);
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

/* What rows say at one instruction; the CFA is r1 + cfa. */
enum rule { IN_LR, KEPT, IN_SHADOW };
struct unwind {
	enum rule rule;
	unsigned cfa;
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
	unsigned op = *(*p)++;

	if (op >> 6 == 1)
		return op & 0x3f;
	switch (op) {
	case 0x02: /* advance_loc1 */
		return *(*p)++;
	case 0x03: /* advance_loc2 */
		*p += 2;
		return (*p)[-2] | (unsigned)(*p)[-1] << 8;
	case 0x05: /* offset_extended */
		cr_assert_eq(uleb(p), 65);
		cr_assert_eq(-8 * (int)uleb(p), PPC_KEPT_RETURN);
		u->rule = KEPT;
		break;
	case 0x08: /* same_value */
		cr_assert_eq(uleb(p), 65);
		u->rule = IN_LR;
		break;
	case 0x0a:
		*saved = *u;
		break;
	case 0x0b:
		*u = *saved;
		break;
	case 0x0c: /* def_cfa */
		cr_assert_eq(uleb(p), 1);
		u->cfa = uleb(p);
		break;
	case 0x0e: /* def_cfa_offset */
		u->cfa = uleb(p);
		break;
	case 0x10: /* expression: of the shadow stack */
		cr_assert_eq(uleb(p), 65);
		*p += uleb(p);
		u->rule = IN_SHADOW;
		break;
	default:
		cr_assert_fail("rows have %#x", op);
	}
	return 0;
}

static struct unwind rows_at(const struct isa_range *range, uint32_t at)
{
	struct unwind u = { .rule = IN_LR }, saved = u;
	uint8_t cie[ISA_CFI_MAX];
	const uint8_t *p = cie, *end = cie + ppc_cie(range->cie, 0, cie, sizeof(cie));
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

#define TRAP 0x7fe00008u

static void set_word(uint64_t at, uint32_t word)
{
	*(uint32_t *)at = word;
	flush((void *)at, 4);
}

/* A run with a breakpoint at one instruction, where rows are asked; or where a signal's handler makes such a call, and
 * may leave by a longjmp. */
static struct {
	uint64_t at;
	uint32_t word; /* that belongs there */
	const struct isa_range *range;
	uint64_t range_start; /* run-time address that the range's start counts from */
	uint64_t sp, ret[3]; /* what rows must say: the return address, or a return point */
	bool leaves;
	unsigned hits, wrong;
	sigjmp_buf back;
} stopped;

static void run(void)
{
	static struct cpu cpu;

	randomize(&cpu);
	cpu.target = (uint64_t)area;
	run_cpu(&cpu);
}

static void ask(int sig, siginfo_t *info, void *context)
{
	const mcontext_t *mc = &((const ucontext_t *)context)->uc_mcontext;
	struct unwind u = rows_at(stopped.range, (uint32_t)(stopped.at - stopped.range_start - stopped.range->start));
	uint64_t cfa = mc->gp_regs[PT_R1] + u.cfa, ret = mc->gp_regs[PT_LNK];
	struct shadow_entry *e = mirror_find(&shadow_self()->node, cfa);

	(void)sig;
	(void)info;
	if (u.rule == KEPT)
		ret = *(const uint64_t *)(cfa + (uint64_t)PPC_KEPT_RETURN);
	if (u.rule == IN_SHADOW)
		ret = e ? e->ret : 0;
	stopped.hits++;
	stopped.wrong += mc->gp_regs[PT_NIP] != stopped.at || cfa != stopped.sp
		|| (ret != stopped.ret[0] && ret != stopped.ret[1] && ret != stopped.ret[2]);
	set_word(stopped.at, stopped.word);
}

/* r1 and LR at the entry of the first function. */
static void see_entry(int sig, siginfo_t *info, void *context)
{
	mcontext_t *mc = &((ucontext_t *)context)->uc_mcontext;

	(void)sig;
	(void)info;
	stopped.sp = mc->gp_regs[PT_R1];
	stopped.ret[0] = mc->gp_regs[PT_LNK];
	mc->gp_regs[PT_NIP] = mc->gp_regs[PT_LNK];
}

static void disturb(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	set_word(stopped.at, stopped.word);
	stopped.hits++;
	run();
	if (stopped.leaves)
		siglongjmp(stopped.back, 1);
}

static void on_trap(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
}

static void run_stopped(void)
{
	stopped.word = *(uint32_t *)stopped.at;
	set_word(stopped.at, TRAP);
	if (!sigsetjmp(stopped.back, 1))
		run();
	set_word(stopped.at, stopped.word);
}

/* Stop at each instruction of a range, in turn. Returns at how many that was. */
static unsigned stop_in(uint64_t start, const struct isa_range *range, void (*handler)(int, siginfo_t *, void *))
{
	unsigned hits = stopped.hits;

	on_trap(see_entry);
	stopped.at = (uint64_t)area;
	run_stopped();
	on_trap(handler);
	stopped.range = range;
	stopped.range_start = start;
	for (uint32_t at = range->start; at < range->start + range->size; at += 4) {
		unsigned wrong = stopped.wrong;

		stopped.at = start + at;
		run_stopped();
		cr_assert_eq(stopped.wrong, wrong, "the row at +%#x, %08x, is wrong", at, stopped.word);
		run(); /* takes the place of what was left */
	}
	return stopped.hits - hits;
}

static void tail_calls_stopped(enum detour_mode mode, void (*handler)(int, siginfo_t *, void *), bool leaves)
{
	struct traced first, second;
	unsigned detours, stubs;

	begin(mode);
	place_jump(&first, &second, &jumps[0], true);
	patch_jump(&first, &second);
	run();
	stopped.ret[1] = first.in.at + first.detour.ret;
	stopped.ret[2] = second.in.at + second.detour.ret;
	stopped.leaves = leaves;
	detours = stop_in(first.in.at, &first.detour.ranges[0], handler);
	detours += stop_in(second.in.at, &second.detour.ranges[0], handler);
	stubs = stop_in(common.base, &common_ranges[1], handler);
	cr_assert(detours > 50 && stubs > 40, "only %u and %u instructions were seen", detours, stubs);
	for (int id = 1; id <= 2; id++) {
		const struct func_record *r = &records[0][id];

		cr_assert_eq(r->calls, r->returned + r->unwound, "%d: %lu calls, %lu returned, %lu unwound", id, r->calls,
			r->returned, r->unwound);
		cr_assert(leaves ? r->unwound > 10 : !r->unwound, "%d: %lu unwound", id, r->unwound);
	}
}

Test(emit, rows_are_true_at_every_instruction_of_a_tail_call)
{
	tail_calls_stopped(MODE_COUNT, ask, false);
}

Test(emit, rows_are_true_at_every_instruction_of_a_tail_call_with_times)
{
	tail_calls_stopped(MODE_PROFILE, ask, false);
}

Test(emit, a_signal_at_each_instruction_of_a_tail_call)
{
	tail_calls_stopped(MODE_COUNT, disturb, false);
}

Test(emit, a_signal_at_each_instruction_of_a_tail_call_with_times)
{
	tail_calls_stopped(MODE_PROFILE, disturb, false);
}

Test(emit, a_longjmp_from_each_instruction_of_a_tail_call)
{
	tail_calls_stopped(MODE_COUNT, disturb, true);
}

Test(emit, a_longjmp_from_each_instruction_of_a_tail_call_with_times)
{
	tail_calls_stopped(MODE_PROFILE, disturb, true);
}

/* ---- handlers ---- */

static struct hook_point point;
static unsigned entries, returns;

static void general(struct ftr_call *call, void *data)
{
	(void)call;
	++*(unsigned *)data;
	lose_registers();
}

static void vectors(struct ftr_call *call, void *data)
{
	(void)call;
	++*(unsigned *)data;
	__asm__ volatile(".irp n, 0, 1, 2, 13, 32, 34, 45, 51\n\t.machine power8\n\t"
			 "xxlxor \\n, \\n, \\n\n\t.endr\n\t"
			 "mtfsfi 7, 2" ::: "memory", "fr0", "fr1", "fr2", "fr13", "v0", "v2", "v13", "v19");
	lose_registers();
}

/* Asks for a double, a float and a vector, which are as they were. */
static void asks(struct ftr_call *call, void *data)
{
	const struct isa_place f1 = { .kind = PLACE_VECTOR, .index = 1 };
	const struct isa_place v13 = { .kind = PLACE_VECTOR, .index = PPC_VECTORS + 13 };

	++*(unsigned *)data;
	for (uint8_t n = 0; n < 8 && !call->state.returning; n++) {
		const struct isa_place r = { .kind = PLACE_GENERAL, .index = n };

		cr_assert_eq(*(uint64_t *)arch_call_argument(call, r), arguments[n], "r%u", n + 3u);
	}
	cr_assert(arch_call_argument(call, f1));
	cr_assert(arch_call_argument(call, v13));
	lose_registers();
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

static void attach_handlers(size_t h)
{
	static uint64_t serials;
	struct hook_list *list = calloc(1, sizeof(*list) + sizeof(list->hooks[0]));

	list->count = 1;
	list->vectors = list->hooks[0].vectors = handlers[h].vectors;
	list->hooks[0].serial = ++serials;
	list->hooks[0].entry = handlers[h].entry;
	list->hooks[0].ret = handlers[h].ret;
	list->hooks[0].data = handlers[h].entry ? &entries : &returns;
	hook_publish(&point, list); /* the former one is lost */
}

static void hooked_rows(enum detour_mode mode, bool returning, bool entry_only, bool recorded)
{
	begin(mode);
	env.hook_entered = (uint64_t)hook_entered;
	env.hook_returned = (uint64_t)hook_returned;
	ppc_emit_common(&env, (uint64_t)area + COMMON, area + COMMON, &common, common_ranges);
	flush(area + COMMON, common.size);
	for (uint32_t i = 0; i < ROWS; i++)
		for (size_t h = 0; h < HANDLERS; h++) {
			struct func_record was = records[0][i];
			struct traced t;

			place(&t, &rows[i], recorded ? i : ID_NONE);
			t.site.entry_only = entry_only;
			t.in.point = (uint64_t)&point;
			t.in.hook_return = returning;
			emit(&t, rows[i].name);
			cr_assert_leq(t.detour.size, isa_powerpc.detour_max, "%s", rows[i].name);
			attach_handlers(h);
			entries = returns = 0;
			compare(&t, &rows[i], handlers[h].name, false);
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
