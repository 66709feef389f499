/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "support_detour.h"
#include "rethook/hook.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

uint8_t *run_state;

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
	mov run_state(%rip), %rcx
	jrcxz 1f
	mov $0xe7, %eax
	xor %edx, %edx
	xrstor64 (%rcx)
1:	pushq 128(%rdi)
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
	mov run_state(%rip), %rcx
	jrcxz 1f
	mov $0xe7, %eax
	xor %edx, %edx
	xsave64 (%rcx)
1:
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

void randomize(struct cpu *cpu)
{
	for (size_t i = 0; i < sizeof(*cpu) / 8; i++)
		((uint64_t *)cpu)[i] = random64();
	cpu->flags = (cpu->flags & FLAGS) | 0x202;
	cpu->regs[4] = cpu->below = 0;
	cpu->regs[7] &= 0x3; /* what some functions branch on */
}

/* ---- the functions ---- */

const struct row rows[ROWS] = {
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
/* lea 2(%rax,%rdi),%rax; ret */
const uint8_t helper[6] = { 0x48, 0x8d, 0x44, 0x38, 0x02, 0xc3 };

/* ---- the process that detours run in ---- */

uint8_t *area;
struct func_record records[4][IDS];
int attached, lost;
unsigned slow_entries, slow_exits, watched;
const struct detour_info *infos[IDS];
bool may_lose;
struct isa_env env;
struct isa_common common;
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
	lost++;
	cr_assert(may_lose, "a call is lost");
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

void begin(enum detour_mode mode)
{
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	cr_assert_neq(area, MAP_FAILED);
	shadow_hooks = (struct shadow_hooks){ .mode = mode, .infos = infos, .attach = attach, .renew = nothing,
		.lost_call = lost_call, .borrowed = borrowed, .watch = watch };
	mirror_setup(mode);
	env = (struct isa_env){ .mode = mode, .mask = shadow_root.mask,
		.tls_mirror = tls(&shadow_words.mirror),
		.tls_current = tls(&shadow_words.current), .infos = infos, .slow_entry = (uint64_t)slow_entry,
		.slow_exit = (uint64_t)slow_exit, .slow_unwind = (uint64_t)shadow_slow_unwind,
		.slow_release = (uint64_t)shadow_slow_release };
	hook_set_env(&env);
	x86_emit_common(&env, (uint64_t)area + COMMON, area + COMMON, &common, common_ranges);
	cr_assert_leq(common.size, isa_x86_64.common_max);
	shadow_add_image((uint64_t)area + DETOUR, (uint64_t)area + AREA,
		common.base + common.pad);
}

void place(struct traced *t, const struct row *r, uint32_t id)
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

void emit(struct traced *t, const char *name)
{
	int err = x86_emit(&t->in, area + DETOUR, &t->detour);

	cr_assert_eq(err, 0, "%s: emit says %d", name, err);
	cr_assert_leq(t->detour.size, isa_x86_64.detour_max, "%s", name);
}

void patch(struct traced *t, const char *name)
{
	int n = x86_patch(&t->in, t->patches);

	cr_assert_gt(n, 0, "%s: patch says %d", name, n);
	for (int i = 0; i < n; i++)
		memcpy((void *)t->patches[i].addr, t->patches[i].bytes, t->patches[i].len);
}

void same(const char *name, const char *how, const struct cpu *expected,
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

void compare(struct traced *t, const struct row *r, const char *how)
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

