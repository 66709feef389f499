/* SPDX-License-Identifier: MIT */
/*
 * Detours, by running them: small functions are called with random registers as they are, and once
 * more patched. All that a caller or callee can see must be the same, and the calls be counted.
 * The slow paths are the real ones of rethook/.
 */
#define _GNU_SOURCE 1
#include "arch/x86_64/x86.h"
#include "rethook/mirror.h"
#include "rethook/shadow.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREA	 0x40000u
#define DATA	 0x800u	  /* of a function's text: a constant, and helpers behind it */
#define HELPER	 0x900u
#define COMMON	 0x10000u /* in the area */
#define DETOUR	 0x20000u
#define SECRET	 0x1122334455667788ull
#define FLAGS	 0x8d5u /* CF PF AF ZF SF OF */

#define IDS	 64
#define ROUNDS	 20
#define SEED	 20250304u
#define BIAS	 0x7000 /* run-time minus link-time addresses */

/* ---- a processor's state, and a call with it ---- */

struct cpu {
	uint64_t regs[16]; /* as they are numbered; not rsp */
	uint64_t flags;
	uint8_t xmm[16][16];
	uint64_t arguments[4]; /* on the stack */
	uint64_t below;	       /* rsp after the return minus rsp before the call */
};

void run_cpu(struct cpu *cpu, uint64_t function);
__asm__(R"(
	.text
	.globl run_cpu
	.type run_cpu, @function
run_cpu:
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	push %rdi
	mov %rdi, run_at(%rip)
	mov %rsi, run_target(%rip)
	.irp n, 3, 2, 1, 0
	pushq 392+8*\n(%rdi)
	.endr
	mov %rsp, run_rsp(%rip)
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups 136+16*\n(%rdi), %xmm\n
	.endr
	pushq 128(%rdi)
	popfq
	mov 0(%rdi), %rax
	mov 8(%rdi), %rcx
	mov 16(%rdi), %rdx
	mov 24(%rdi), %rbx
	mov 40(%rdi), %rbp
	mov 48(%rdi), %rsi
	mov 64(%rdi), %r8
	mov 72(%rdi), %r9
	mov 80(%rdi), %r10
	mov 88(%rdi), %r11
	mov 96(%rdi), %r12
	mov 104(%rdi), %r13
	mov 112(%rdi), %r14
	mov 120(%rdi), %r15
	mov 56(%rdi), %rdi
	call *run_target(%rip)
	mov %rdi, run_rdi(%rip)
	mov run_at(%rip), %rdi
	mov %rax, 0(%rdi)
	mov %rcx, 8(%rdi)
	mov %rdx, 16(%rdi)
	mov %rbx, 24(%rdi)
	mov %rbp, 40(%rdi)
	mov %rsi, 48(%rdi)
	mov %r8, 64(%rdi)
	mov %r9, 72(%rdi)
	mov %r10, 80(%rdi)
	mov %r11, 88(%rdi)
	mov %r12, 96(%rdi)
	mov %r13, 104(%rdi)
	mov %r14, 112(%rdi)
	mov %r15, 120(%rdi)
	mov %rsp, %rax
	mov run_rsp(%rip), %rsp
	pushfq
	popq 128(%rdi)
	cld
	sub %rsp, %rax
	mov %rax, 424(%rdi)
	mov run_rdi(%rip), %rax
	mov %rax, 56(%rdi)
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups %xmm\n, 136+16*\n(%rdi)
	.endr
	.irp n, 0, 1, 2, 3
	popq 392+8*\n(%rdi)
	.endr
	pop %rdi
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret
	.size run_cpu, . - run_cpu
	.local run_at, run_target, run_rsp, run_rdi
	.comm run_at, 8, 8
	.comm run_target, 8, 8
	.comm run_rsp, 8, 8
	.comm run_rdi, 8, 8
)");

_Static_assert(offsetof(struct cpu, arguments) == 392 && offsetof(struct cpu, below) == 424,
	"run_cpu() knows the layout");

__attribute__((constructor)) static void seed(void)
{
	random_state = SEED;
}

static void randomize(struct cpu *cpu)
{
	for (size_t i = 0; i < sizeof(*cpu) / 8; i++)
		((uint64_t *)cpu)[i] = random64();
	cpu->flags = (cpu->flags & FLAGS) | 0x202;
	cpu->regs[4] = cpu->below = 0;
	cpu->regs[7] &= 0x3; /* what some functions branch on */
}

/* ---- the functions ---- */

struct row {
	const char *name;
	const char *code;
	uint8_t size;
	uint8_t choice, offset, len;
	bool flags_in;
};
#define CODE(text) .code = text, .size = sizeof(text) - 1

static const struct row rows[] = {
	{ "lea 1(%rdi),%rax; ret", CODE("\x48\x8d\x47\x01\xc3"), SITE_SEVERAL, 0, 5, true },
	{ "a 5-byte nop", CODE("\x0f\x1f\x44\x00\x00\x48\x8d\x47\x01\xc3"), SITE_NOPS, 0, 5,
		true },
	{ "endbr64, five nops", CODE("\xf3\x0f\x1e\xfa\x90\x90\x90\x90\x90\x48\x89\xf8\xc3"),
		SITE_NOPS, 4, 5, true },
	{ "endbr64, mov $1,%eax", CODE("\xf3\x0f\x1e\xfa\xb8\x01\x00\x00\x00\xc3"), SITE_ONE, 4,
		5, true },
	{ "a frame", CODE("\x55\x48\x89\xe5\x53\x48\x8d\x1c\x37\x48\x89\xd8\x5b\x5d\xc3"),
		SITE_SEVERAL, 0, 5, true },
	{ "flags are an argument", CODE("\x0f\x92\xc0\x0f\x90\xc1\xc3"), SITE_SEVERAL, 0, 6, true },
	{ "flags come through", CODE("\x48\x8d\x44\x37\x05\xc3"), SITE_ONE, 0, 5, true },
	{ "flags are the result", CODE("\x48\x39\xf7\x48\x8d\x07\xc3"), SITE_SEVERAL, 0, 6 },
	{ "vectors", CODE("\x0f\x58\xc1\x66\x0f\xef\xd2\xc3"), SITE_SEVERAL, 0, 7, true },
	{ "the red zone", CODE("\x48\x89\x7c\x24\xf8\x48\x89\x74\x24\x80\x48\x8b\x44\x24\xf8"
			       "\x48\x03\x44\x24\x80\xc3"), SITE_ONE, 0, 5 },
	{ "arguments on the stack", CODE("\x48\x8b\x44\x24\x08\x48\x03\x44\x24\x20\xc3"), SITE_ONE,
		0, 5 },
	{ "arguments are changed", CODE("\x48\x89\x7c\x24\x08\x48\x89\x44\x24\x18\xc3"), SITE_ONE,
		0, 5, true },
	{ "a %rip-relative operand", CODE("\x48\x8b\x05\xf9\x07\x00\x00\xc3"), SITE_ONE, 0, 7,
		true },
	{ "call in the window", CODE("\x48\x83\xec\x08\xe8\xf7\x08\x00\x00\x48\x83\xc4\x08\xc3"),
		SITE_SEVERAL, 0, 9 },
	{ "call first", CODE("\xe8\xfb\x08\x00\x00\x48\xff\xc0\xc3"), SITE_ONE, 0, 5, true },
	{ "jmp first", CODE("\xe9\xfb\x08\x00\x00"), SITE_ONE, 0, 5, true },
	{ "a branch in the window", CODE("\x48\x85\xff\x74\x05\x48\x8d\x47\x64\xc3\x31\xc0\xc3"),
		SITE_SEVERAL, 0, 5 },
	{ "xor, ret and padding", CODE("\x31\xc0\xc3\xcc\xcc\xcc\xcc\xcc"), SITE_PADDING, 0, 3 },
	{ "every register is changed", CODE("\x48\x01\xf8\x48\x01\xc1\x48\x01\xca\x48\x01\xd6\x49"
			"\x01\xf0\x4d\x01\xc1\x4d\x01\xca\x4d\x01\xd3\xc3"), SITE_SEVERAL, 0, 6 },
	{ "it pops its arguments", CODE("\x48\x8d\x47\x07\xc2\x10\x00"), SITE_SEVERAL, 0, 7, true },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* lea 2(%rax,%rdi),%rax; ret */
static const uint8_t helper[] = { 0x48, 0x8d, 0x44, 0x38, 0x02, 0xc3 };

/* ---- the process that detours run in ---- */

static uint8_t *area;
static struct func_record records[4][IDS];
static int attached;
static unsigned slow_entries, slow_exits, watched;
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

static void watch(const struct slow_frame *f)
{
	(void)f;
	watched++;
}

static void slow_entry(struct slow_frame *f)
{
	slow_entries++;
	shadow_slow_entry(f);
}

static void slow_exit(struct slow_frame *f)
{
	slow_exits++;
	shadow_slow_exit(f);
}

static int64_t tls(const void *variable)
{
	return (int64_t)((uintptr_t)variable - arch_thread_pointer());
}

static void begin(enum detour_mode mode)
{
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	cr_assert_neq(area, MAP_FAILED);
	shadow_hooks = (struct shadow_hooks){ .mode = mode, .attach = attach, .renew = nothing,
		.lost_call = lost_call, .borrowed = borrowed, .watch = watch };
	mirror_setup(mode);
	env = (struct isa_env){ .mode = mode, .mask = shadow_root.mask,
		.tls_mirror = tls(&shadow_words.mirror), .tls_records = tls(&shadow_words.records),
		.tls_current = tls(&shadow_words.current), .slow_entry = (uint64_t)slow_entry,
		.slow_exit = (uint64_t)slow_exit, .slow_unwind = (uint64_t)shadow_slow_unwind,
		.slow_release = (uint64_t)shadow_slow_release };
	x86_emit_common(&env, (uint64_t)area + COMMON, area + COMMON, &common, common_ranges);
	cr_assert_leq(common.size, isa_x86_64.common_max);
	shadow_add_image((uint64_t)area + DETOUR, (uint64_t)area + AREA,
		common.base + common.pad);
}

struct traced {
	struct isa_text text;
	struct isa_func func;
	struct isa_site site;
	struct isa_module module;
	struct isa_emit in;
	struct isa_detour detour;
	struct isa_patch patches[2];
	uint64_t start; /* where it runs */
};

/* Put row @r's function into the area and describe it. */
static void place(struct traced *t, const struct row *r, uint32_t id)
{
	uint64_t secret = SECRET, link = (uint64_t)area - BIAS;

	memset(t, 0, sizeof(*t));
	memset(area, 0xcc, COMMON);
	memcpy(area, r->code, r->size);
	memcpy(area + DATA, &secret, 8);
	memcpy(area + HELPER, helper, sizeof(helper));
	t->start = (uint64_t)area;
	t->text = (struct isa_text){ area, link, COMMON };
	t->func = (struct isa_func){ .start = link, .end = link + r->size, .limit = link + DATA };
	t->site = (struct isa_site){ .choice = r->choice, .flags_in = r->flags_in,
		.offset = r->offset, .len = r->len };
	t->module = (struct isa_module){ .isa = &isa_x86_64, .texts = &t->text, .ntexts = 1,
		.funcs = &t->func, .nfuncs = 1 };
	t->in = (struct isa_emit){ .env = &env, .common = &common, .module = &t->module,
		.func = &t->func, .site = &t->site, .bias = BIAS, .id = id,
		.at = (uint64_t)area + DETOUR };
}

static void emit(struct traced *t, const char *name)
{
	int err = x86_emit(&t->in, area + DETOUR, &t->detour);

	cr_assert_eq(err, 0, "%s: emit says %d", name, err);
	cr_assert_leq(t->detour.size, isa_x86_64.detour_max, "%s", name);
}

static void patch(struct traced *t, const char *name)
{
	int n = x86_patch(&t->in, t->patches);

	cr_assert_gt(n, 0, "%s: patch says %d", name, n);
	for (int i = 0; i < n; i++)
		memcpy((void *)t->patches[i].addr, t->patches[i].bytes, t->patches[i].len);
}

static void same(const char *name, const char *how, const struct cpu *expected,
	const struct cpu *found)
{
	static const char *const names[] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi",
		"rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };

	for (int i = 0; i < 16; i++)
		cr_assert_eq(expected->regs[i], found->regs[i], "%s, %s: %s is %#lx, not %#lx",
			name, how, names[i], found->regs[i], expected->regs[i]);
	cr_assert_eq(expected->flags & FLAGS, found->flags & FLAGS,
		"%s, %s: flags are %#lx, not %#lx", name, how, found->flags & FLAGS,
		expected->flags & FLAGS);
	cr_assert_arr_eq(expected->xmm, found->xmm, sizeof(expected->xmm), "%s, %s: vectors", name,
		how);
	cr_assert_eq(expected->below, found->below, "%s, %s: the stack pointer", name, how);
	/* What the callee has popped is nobody's. */
	for (size_t i = expected->below / 8; i < 4; i++)
		cr_assert_eq(expected->arguments[i], found->arguments[i],
			"%s, %s: argument %zu on the stack", name, how, i);
}

/* Run @r as it is and traced, from the same states. */
static void compare(struct traced *t, const struct row *r, const char *how)
{
	struct cpu before, plain, traced;
	uint8_t saved[COMMON / 16];

	for (int round = 0; round < ROUNDS; round++) {
		randomize(&before);
		plain = traced = before;
		run_cpu(&plain, t->start);
		memcpy(saved, area, sizeof(saved));
		patch(t, r->name);
		run_cpu(&traced, t->start);
		memcpy(area, saved, sizeof(saved));
		same(r->name, how, &plain, &traced);
	}
}

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
		cr_assert_eq(r->unwound + r->depth, 0, "%s", rows[i].name);
		cr_assert(pops || slow_exits == exits, "%s: not by the straight line", rows[i].name);
		if (mode == MODE_COUNT)
			continue;
		cr_assert(r->total == r->self && r->max <= r->total && ~r->nmin <= r->max,
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
		*shadow_words.records = 0;
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
		/* The first call is slow and makes shadow_words.records this thread's. */
		traced.regs[7] = (uint64_t)shadow_words.records;
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

/* Two detours: the first function jumps to the second, whose detour finds a return point. */
static void tail_called(enum detour_mode mode)
{
	static const struct row jumps = { "jmp", CODE("\xe9\xfb\x08\x00\x00"), SITE_ONE, 0, 5,
		true };
	struct traced first, second;
	struct isa_patch patches[2];
	struct cpu before, plain, traced;

	begin(mode);
	place(&first, &jumps, 1);
	emit(&first, jumps.name);
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
	randomize(&before);
	plain = before;
	run_cpu(&plain, first.start);
	cr_assert_eq(x86_emit(&second.in, area + DETOUR + 0x1000, &second.detour), 0);
	cr_assert_eq(x86_patch(&second.in, patches), 1);
	memcpy((void *)patches[0].addr, patches[0].bytes, patches[0].len);
	patch(&first, jumps.name);
	for (int round = 0; round < ROUNDS; round++) {
		traced = before;
		run_cpu(&traced, first.start);
		same("a tail call", "traced", &plain, &traced);
	}
	for (int id = 1; id <= 2; id++) {
		cr_assert_eq(records[0][id].calls, ROUNDS, "%d", id);
		cr_assert_eq(records[0][id].returned, ROUNDS, "%d", id);
		cr_assert_eq(records[0][id].depth, 0, "%d", id);
	}
}

Test(emit, a_tail_call_ends_the_caller)
{
	tail_called(MODE_COUNT);
}

Test(emit, a_tail_call_ends_the_caller_with_times)
{
	tail_called(MODE_PROFILE);
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
