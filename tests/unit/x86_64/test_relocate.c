/* SPDX-License-Identifier: MIT */
/*
 * Windows and their relocated copies are run from the same random state, and everything they leave
 * behind is compared: registers, flags, vector and x87 registers, memory, and where control went.
 *
 * The machine: code is mapped without being writable, filled with int3 and written through a
 * second mapping. A run starts and ends in the signal handler: the first int3 enters it, which
 * puts the random state in place; whatever stops the window (an int3 at the place it went to, or a
 * fault) enters it again, which takes the state away. During the copy's run the window itself is
 * int3: control that goes there is lost, as it would be in a patched function.
 */
#define _GNU_SOURCE 1
#include "arch/x86_64/x86.h"
#include "arch/x86_64/decoder.h"
#include "support_module.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define SEED	  20240229u
#define ROUNDS	  4 /* random states per window */
#define CODE_SIZE 0x10000u
#define COPY_SIZE 0x1000u
#define DATA_SIZE 0x4000u /* then as much stack */
#define HOME	  0x1a0000000000ull /* twice and three times this is free as well, with ASan too */
#define WINDOW	  (HOME + 0x8000) /* where every window is */
#define DATA	  (HOME + CODE_SIZE)
#define STACK	  (DATA + DATA_SIZE)
#define FLAGS	  INSN_FLAGS

static const uint64_t copies[] = { HOME + 0x40000000, HOME - 0x60000000, HOME + 0x20000 };
#define COPIES (sizeof(copies) / sizeof(copies[0]))

/* What a run starts from and leaves behind. */
struct state {
	greg_t regs[16]; /* REG_R8 ... REG_RSP: the first 16 of gregset_t */
	uint64_t flags, rip;
	uint8_t vector[256], x87[128];
	uint32_t mxcsr;
	int signal;
	uint64_t fault;
};

static struct {
	uint8_t *code, *copy[COPIES]; /* writable views */
	uint8_t fresh[2 * DATA_SIZE]; /* memory before a run */
	uint8_t after[2 * DATA_SIZE]; /* memory after the original's run */
	struct state *state;	      /* of the run */
	volatile sig_atomic_t running;
	unsigned int runs, faults; /* of originals */
	gregset_t regs; /* of the test itself */
	struct _libc_fpstate fp;
} machine;

/* ---- randomness ---- */

__attribute__((constructor)) static void seed(void)
{
	random_state = SEED;
}

static uint64_t random_word(void)
{
	uint64_t r = random64();

	switch (random64() % 8) {
	case 0:
	case 1:
	case 2:
		return DATA + 0x800 + r % 0x3000 / 8 * 8;
	case 3:
		return HOME + 0x1000 + r % 0x6000;
	case 4:
		return STACK + 0x1000 + r % 0x2000 / 8 * 8;
	case 5:
		return r;
	case 6:
		return r % 4;
	default:
		return r % 256;
	}
}

/* ---- the machine ---- */

static void load_state(ucontext_t *context, const struct state *state)
{
	struct _libc_fpstate *fp = context->uc_mcontext.fpregs;
	const uint32_t *magic = (const uint32_t *)((const uint8_t *)fp + 464);
	uint64_t in_use;

	memcpy(context->uc_mcontext.gregs, state->regs, sizeof(state->regs));
	context->uc_mcontext.gregs[REG_EFL] = 0x202 | (greg_t)state->flags;
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)state->rip;
	memcpy(fp->_xmm, state->vector, sizeof(state->vector));
	if (*magic == 0x46505853) { /* extended state follows; say that x87 and SSE are in use */
		memcpy(&in_use, fp + 1, 8);
		in_use |= 3;
		memcpy(fp + 1, &in_use, 8);
	}
}

static void save_state(const ucontext_t *context, struct state *state)
{
	const struct _libc_fpstate *fp = context->uc_mcontext.fpregs;

	memcpy(state->regs, context->uc_mcontext.gregs, sizeof(state->regs));
	state->flags = (uint64_t)context->uc_mcontext.gregs[REG_EFL] & (FLAGS | 0x400);
	state->rip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	memcpy(state->vector, fp->_xmm, sizeof(state->vector));
	memcpy(state->x87, fp->_st, sizeof(state->x87));
	state->mxcsr = fp->mxcsr;
}

static void on_signal(int signal, siginfo_t *info, void *ucontext)
{
	ucontext_t *context = ucontext;

	if (!machine.running) {
		if (signal != SIGTRAP)
			abort();
		memcpy(machine.regs, context->uc_mcontext.gregs, sizeof(machine.regs));
		memcpy(&machine.fp, context->uc_mcontext.fpregs, sizeof(machine.fp));
		load_state(context, machine.state);
		machine.running = 1;
		return;
	}
	machine.running = 0;
	save_state(context, machine.state);
	machine.state->signal = signal;
	machine.state->fault = signal == SIGSEGV ? (uint64_t)info->si_addr : 0;
	memcpy(context->uc_mcontext.gregs, machine.regs, sizeof(machine.regs));
	memcpy(context->uc_mcontext.fpregs, &machine.fp, sizeof(machine.fp));
}

/* Run from *@state, which becomes the state afterwards. */
static void run(struct state *state)
{
	memcpy((void *)DATA, machine.fresh, sizeof(machine.fresh));
	machine.state = state;
	__asm__ volatile("int3" ::: "memory");
}

static uint8_t *map_code(uint64_t addr, size_t size)
{
	int fd = memfd_create("code", 0);
	uint8_t *view;

	cr_assert(fd >= 0 && !ftruncate(fd, (off_t)size));
	view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(view != MAP_FAILED);
	cr_assert_eq(mmap((void *)addr, size, PROT_READ | PROT_EXEC,
			     MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0),
		(void *)addr, "address %#lx is taken", addr);
	close(fd);
	memset(view, 0xcc, size);
	return view;
}

static void machine_start(void)
{
	static const int signals[] = { SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	struct sigaction action = { .sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK };
	static uint8_t room[1 << 17];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };

	cr_assert(!sigaltstack(&stack, NULL));
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	machine.code = map_code(HOME, CODE_SIZE);
	for (size_t i = 0; i < COPIES; i++)
		machine.copy[i] = map_code(copies[i], COPY_SIZE);
	cr_assert_eq(mmap((void *)DATA, 2 * DATA_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		(void *)DATA);
	cr_assert_eq(decoder_open(), 0, "libZydis.so.4.0 is needed");
}

static void random_start(struct state *state)
{
	memset(state, 0, sizeof(*state));
	for (int i = 0; i < 16; i++)
		state->regs[i] = (greg_t)random_word();
	state->regs[REG_RSP] = (greg_t)(STACK + 0x1000 + random64() % 0x2000 / 8 * 8);
	if (random64() % 2)
		state->regs[REG_RBP] = state->regs[REG_RSP] + (greg_t)(random64() % 0x200 / 8 * 8);
	state->flags = random64() & FLAGS;
	for (size_t i = 0; i < sizeof(state->vector); i += 8) {
		uint64_t word = random64();

		memcpy(state->vector + i, &word, 8);
	}
	for (size_t i = 0; i < sizeof(machine.fresh); i += 8) {
		uint64_t word = random_word();

		memcpy(machine.fresh + i, &word, 8);
	}
}

/* ---- one window ---- */

struct window {
	uint8_t len;
	uint8_t bytes[X86_WINDOW_MAX];
};

/* Put the copy in place, with the jump back that a detour would have. */
static void place_copy(const uint8_t *bytes, const struct x86_moved *moved, unsigned int which,
	size_t len)
{
	static const uint8_t jump[6] = { 0xff, 0x25 }; /* jmp *0(%rip) */
	uint64_t back = WINDOW + len;
	uint8_t *copy = machine.copy[which];

	memset(copy, 0xcc, 512);
	memcpy(copy, bytes, moved->size);
	if (moved->ends)
		return;
	memcpy(copy + moved->size, jump, sizeof(jump));
	memcpy(copy + moved->size + sizeof(jump), &back, 8);
}

/* Turn an address in the copy at @at into that of the original. False: it is in the middle of what
 * one instruction became. */
static bool translate(uint64_t *rip, const struct x86_moved *moved, uint64_t at, size_t len)
{
	if (*rip - at >= moved->size)
		return true;
	for (size_t off = 0; off < len; off++) {
		if (moved->to[off] == *rip - at) {
			*rip = WINDOW + off;
			return true;
		}
	}
	return false;
}

/* The first difference, or NULL. */
static const char *compare(const struct state *a, const struct state *b)
{
	static char text[64];

	if (a->signal != b->signal)
		return "signal";
	if (a->fault != b->fault)
		return "address of the fault";
	if (a->rip != b->rip)
		return "where control went";
	for (int i = 0; i < 16; i++) {
		if (a->regs[i] != b->regs[i]) {
			snprintf(text, sizeof(text), "register %d", i);
			return text;
		}
	}
	if (a->flags != b->flags)
		return "flags";
	if (memcmp(a->vector, b->vector, sizeof(a->vector)) || a->mxcsr != b->mxcsr)
		return "vector registers";
	if (memcmp(a->x87, b->x87, sizeof(a->x87)))
		return "x87 registers";
	if (memcmp(machine.after, (const void *)DATA, sizeof(machine.after)))
		return "memory";
	return NULL;
}

/* Both runs from one random state. */
static const char *run_both(const struct window *w, const uint8_t *copy,
	const struct x86_moved *moved, unsigned int which)
{
	struct state original, other;

	random_start(&original);
	other = original;
	memcpy(machine.code + (WINDOW - HOME), w->bytes, w->len);
	original.rip = WINDOW;
	run(&original);
	machine.runs++;
	machine.faults += original.signal != SIGTRAP;
	memcpy(machine.after, (const void *)DATA, sizeof(machine.after));

	memset(machine.code + (WINDOW - HOME), 0xcc, w->len);
	place_copy(copy, moved, which, w->len);
	other.rip = copies[which];
	run(&other);
	/* A call that faults has already pushed in the copy: the state is not the call's. */
	if (!translate(&other.rip, moved, copies[which], w->len))
		return original.signal == other.signal && original.fault == other.fault
			? NULL
			: "signal in a call";
	return compare(&original, &other);
}

static const char *hex(const struct window *w)
{
	static char text[3 * X86_WINDOW_MAX + 1];

	for (size_t i = 0; i < w->len; i++)
		snprintf(text + 3 * i, 4, "%02x ", w->bytes[i]);
	return text;
}

/* Relocate and compare ROUNDS times; the number of rounds that differed. */
static unsigned int check_window(const struct window *w, const char *name)
{
	unsigned int bad = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int which = round % COPIES;
		int64_t bias = round % 2 ? 0x555555554000 : 0;
		struct x86_moved moved;
		uint8_t copy[256];
		const char *what;
		int err = x86_relocate(w->bytes, WINDOW - (uint64_t)bias, w->len, bias,
			copies[which], copy, sizeof(copy), &moved);

		what = err ? "error" : run_both(w, copy, &moved, which);
		if (what) {
			cr_expect_fail("%s (%s): %s differs, round %u, error %d", name, hex(w),
				what, round, err);
			bad++;
		}
	}
	return bad;
}

/* ---- windows made by hand ---- */

static const struct {
	const char *name;
	struct window window;
} hard[] = {
	{ "nops", { 5, { 0x0f, 0x1f, 0x44, 0, 0 } } },
	{ "push, mov", { 5, { 0x41, 0x57, 0x48, 0x89, 0xe5 } } },
	{ "mov from (%rip)", { 7, { 0x48, 0x8b, 0x05, 0, 0x90, 0, 0 } } },
	{ "lea backwards", { 7, { 0x4c, 0x8d, 0x3d, 0, 0xf0, 0xff, 0xff } } },
	{ "cmpl $imm8 at (%rip)", { 7, { 0x83, 0x3d, 0, 0x90, 0, 0, 7 } } },
	{ "movq $imm32 to (%rip)", { 11, { 0x48, 0xc7, 0x05, 0, 0x90, 0, 0, 1, 2, 3, 4 } } },
	{ "movw $imm16 to (%rip)", { 9, { 0x66, 0xc7, 0x05, 0, 0x90, 0, 0, 1, 2 } } },
	{ "testb $imm8 at (%rip)", { 7, { 0xf6, 0x05, 0, 0x90, 0, 0, 1 } } },
	{ "vmovdqu from (%rip)", { 8, { 0xc5, 0xfa, 0x6f, 0x05, 0, 0x90, 0, 0 } } },
	{ "movups from (%rip)", { 7, { 0x0f, 0x10, 0x05, 0, 0x90, 0, 0 } } },
	{ "pcmpistri $imm8 of (%rip)",
		{ 10, { 0x66, 0x0f, 0x3a, 0x63, 0x0d, 0, 0x90, 0, 0, 0x0c } } },
	{ "two (%rip) operands", { 14, { 0x48, 0x8b, 0x05, 0, 0x90, 0, 0,
					       0x48, 0x8b, 0x1d, 8, 0x90, 0, 0 } } },
	{ "je rel8", { 5, { 0x85, 0xc0, 0x74, 0x10, 0x90 } } },
	{ "jne rel8 backwards", { 5, { 0x85, 0xc0, 0x75, 0xe0, 0x90 } } },
	{ "every condition",
		{ 20, { 0x70, 0x20, 0x71, 0x20, 0x72, 0x20, 0x73, 0x20, 0x76, 0x20,
			      0x78, 0x20, 0x7a, 0x20, 0x7c, 0x20, 0x7e, 0x20, 0x7f, 0x20 } } },
	{ "ja rel32", { 6, { 0x0f, 0x87, 0, 0x20, 0, 0 } } },
	{ "jg rel32 with hint", { 7, { 0x3e, 0x0f, 0x8f, 0, 0x20, 0, 0 } } },
	{ "bnd jae rel8", { 5, { 0xf2, 0x73, 0x20, 0x90, 0x90 } } },
	{ "je to the window's end", { 5, { 0x74, 3, 0xff, 0xc0, 0x90 } } },
	{ "je over one instruction", { 6, { 0x74, 2, 0xff, 0xc0, 0xff, 0xc3 } } },
	{ "jne rel32 inside", { 10, { 0x0f, 0x85, 2, 0, 0, 0, 0xff, 0xc0, 0xff, 0xc3 } } },
	{ "jmp rel8 inside", { 6, { 0xeb, 2, 0xff, 0xc0, 0xff, 0xc3 } } },
	{ "jmp rel8", { 2, { 0xeb, 0x30 } } },
	{ "jmp rel8, then unreachable", { 5, { 0xeb, 0xc0, 0x90, 0x90, 0x90 } } },
	{ "jmp rel32", { 5, { 0xe9, 0, 0xe0, 0xff, 0xff } } },
	{ "bnd jmp rel32", { 6, { 0xf2, 0xe9, 0, 0x20, 0, 0 } } },
	{ "je before ret", { 5, { 0x74, 0x10, 0x31, 0xc0, 0xc3 } } },
	{ "je to the end over ret", { 5, { 0x74, 3, 0x31, 0xc0, 0xc3 } } },
	{ "countdown inside", { 5, { 0xfe, 0xc9, 0x75, 0xfc, 0x90 } } },
	{ "loop", { 5, { 0xe2, 0x20, 0x31, 0xc0, 0x90 } } },
	{ "loope", { 5, { 0xe1, 0x20, 0x31, 0xc0, 0x90 } } },
	{ "loopne backwards", { 5, { 0xe0, 0x90, 0x31, 0xc0, 0x90 } } },
	{ "jrcxz", { 5, { 0xe3, 0x20, 0x31, 0xc0, 0x90 } } },
	{ "jecxz", { 5, { 0x67, 0xe3, 0x20, 0x31, 0xc0 } } },
	{ "loop on ecx", { 5, { 0x67, 0xe2, 0x20, 0x31, 0xc0 } } },
	{ "loop inside", { 5, { 0xff, 0xc0, 0x90, 0xe2, 0x00 } } },
	{ "call rel32", { 5, { 0xe8, 0, 0x20, 0, 0 } } },
	{ "push, call rel32", { 6, { 0x50, 0xe8, 0, 0x20, 0, 0 } } },
	{ "call the next instruction", { 5, { 0xe8, 0, 0, 0, 0 } } },
	{ "call *%rax", { 5, { 0x48, 0x89, 0xf8, 0xff, 0xd0 } } },
	{ "call *%r11", { 6, { 0x48, 0x89, 0xf8, 0x41, 0xff, 0xd3 } } },
	{ "call *%r12", { 6, { 0x48, 0x89, 0xf8, 0x41, 0xff, 0xd4 } } },
	{ "notrack call *%rdx", { 5, { 0x31, 0xc0, 0x3e, 0xff, 0xd2 } } },
	{ "call *8(%rdi)", { 5, { 0x31, 0xc0, 0xff, 0x57, 8 } } },
	{ "call *(%r12)", { 6, { 0x31, 0xc0, 0x41, 0xff, 0x14, 0x24 } } },
	{ "call *(%rax,%rbx,8)", { 5, { 0x31, 0xdb, 0xff, 0x14, 0xd8 } } },
	{ "call *x(%rip)", { 6, { 0xff, 0x15, 0, 0x90, 0, 0 } } },
	{ "jmp *%rax", { 5, { 0x48, 0x89, 0xf8, 0xff, 0xe0 } } },
	{ "notrack jmp *%rcx", { 6, { 0x48, 0x89, 0xf8, 0x3e, 0xff, 0xe1 } } },
	{ "jmp *x(%rip)", { 6, { 0xff, 0x25, 0, 0x90, 0, 0 } } },
	{ "jmp *(%rdi,%rax,8)", { 5, { 0x31, 0xc0, 0xff, 0x24, 0xc7 } } },
	{ "jmp *8(%rsp)", { 6, { 0x31, 0xc0, 0xff, 0x64, 0x24, 8 } } },
	{ "ret", { 1, { 0xc3 } } },
	{ "ret with pop", { 3, { 0xc2, 0x10, 0 } } },
	{ "rep ret", { 2, { 0xf3, 0xc3 } } },
	{ "bnd ret", { 2, { 0xf2, 0xc3 } } },
	{ "leave, ret", { 2, { 0xc9, 0xc3 } } },
	{ "ud2", { 2, { 0x0f, 0x0b } } },
	{ "hlt", { 1, { 0xf4 } } },
	{ "enter", { 5, { 0xc8, 0x20, 0, 0, 0x90 } } },
	{ "pushf, pop", { 5, { 0x9c, 0x58, 0x48, 0x89, 0xc1 } } },
	{ "adc", { 5, { 0x48, 0x11, 0xd8, 0x90, 0x90 } } },
	{ "push (%rsp)", { 5, { 0xff, 0x34, 0x24, 0x31, 0xc0 } } },
	{ "pop (%rsp)", { 5, { 0x8f, 0x04, 0x24, 0x31, 0xc0 } } },
	{ "rep movsb", { 5, { 0x31, 0xc9, 0xb1, 0x10, 0xf3 } } },
	{ "rep stosq", { 6, { 0x31, 0xc9, 0x90, 0xf3, 0x48, 0xab } } },
	{ "lock cmpxchg", { 5, { 0xf0, 0x48, 0x0f, 0xb1, 0x17 } } },
	{ "div by what is there", { 5, { 0x31, 0xd2, 0x48, 0xf7, 0xf1 } } },
	{ "fld, fstp", { 5, { 0xd9, 0xe8, 0xdd, 0x1f, 0x90 } } },
	{ "movabs", { 10, { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 } } },
	{ "fifteen bytes", { 15, { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0,
					0, 0, 0 } } },
};

Test(relocate, hard_windows, .timeout = 120)
{
	machine_start();
	for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) {
		struct window w = hard[i].window;

		/* a prefix alone is no instruction: give it one */
		if (w.bytes[w.len - 1] == 0xf3)
			w.bytes[w.len++] = 0xa4;
		check_window(&w, hard[i].name);
	}
}

static const struct {
	const char *name;
	int expected;
	uint64_t addr;
	int64_t bias;
	uint64_t at;
	struct window window;
} answers[] = {
	{ "xbegin", -EINVAL, 0x1000, 0, 0x2000,
		{ 6, { 0xc7, 0xf8, 0, 1, 0, 0 } } },
	{ "jmp rel16", -EINVAL, 0x1000, 0, 0x2000,
		{ 6, { 0x66, 0xe9, 0, 1, 0, 0 } } },
	{ "je with operand size", -EINVAL, 0x1000, 0, 0x2000,
		{ 7, { 0x66, 0x0f, 0x84, 0, 1, 0, 0 } } },
	{ "ret with operand size", -EINVAL, 0x1000, 0, 0x2000,
		{ 2, { 0x66, 0xc3 } } },
	{ "syscall", -EINVAL, 0x1000, 0, 0x2000,
		{ 7, { 0xb8, 1, 0, 0, 0, 0x0f, 0x05 } } },
	{ "int3", -EINVAL, 0x1000, 0, 0x2000,
		{ 1, { 0xcc } } },
	{ "int 0x80", -EINVAL, 0x1000, 0, 0x2000,
		{ 2, { 0xcd, 0x80 } } },
	{ "far call", -EINVAL, 0x1000, 0, 0x2000,
		{ 2, { 0xff, 0x1f } } },
	{ "call *8(%rsp)", -EINVAL, 0x1000, 0, 0x2000,
		{ 4, { 0xff, 0x54, 0x24, 8 } } },
	{ "call *(%rsp,%rax)", -EINVAL, 0x1000, 0, 0x2000,
		{ 3, { 0xff, 0x14, 0x04 } } },
	{ "call *%rsp", -EINVAL, 0x1000, 0, 0x2000,
		{ 2, { 0xff, 0xd4 } } },
	{ "call, then more", -EINVAL, 0x1000, 0, 0x2000,
		{ 6, { 0xe8, 0, 1, 0, 0, 0x90 } } },
	{ "call into the window", -EINVAL, 0x1000, 0, 0x2000,
		{ 7, { 0x90, 0x90, 0xe8, 0xfa, 0xff, 0xff, 0xff } } },
	{ "jump into an instruction", -EINVAL, 0x1000, 0, 0x2000,
		{ 7, { 0xeb, 1, 0xb8, 1, 2, 3, 4 } } },
	{ "32-bit (%rip)", -EINVAL, 0x1000, 0, 0x2000,
		{ 7, { 0x67, 0x8b, 0x05, 0, 1, 0, 0 } } },
	{ "no instruction", -EINVAL, 0x1000, 0, 0x2000,
		{ 5, { 0x06, 0x90, 0x90, 0x90, 0x90 } } },
	{ "cut off", -EINVAL, 0x1000, 0, 0x2000,
		{ 4, { 0xe9, 0, 0, 0 } } },
	{ "empty", -EINVAL, 0x1000, 0, 0x2000,
		{ 0, { 0 } } },
	{ "jmp, just in reach", 0, 0x70001000, 0, 0x1000,
		{ 5, { 0xe9, 0xff, 0xff, 0xff, 0x0f } } },
	{ "jmp, one too far", -ERANGE, 0x70001000, 0, 0x1000,
		{ 5, { 0xe9, 0, 0, 0, 0x10 } } },
	{ "operand, just in reach", 0, 0x80001000, 0, 0x1000,
		{ 6, { 0x8b, 0x05, 0xff, 0xff, 0xff, 0xff } } },
	{ "operand, one too far", -ERANGE, 0x80001000, 0, 0x1000,
		{ 6, { 0x8b, 0x05, 0, 0, 0, 0 } } },
	{ "operand, just in reach backwards", 0, 0x1000, 0, 0x80001000,
		{ 6, { 0x8b, 0x05, 0, 0, 0, 0 } } },
	{ "operand, one too far backwards", -ERANGE, 0x1000, 0, 0x80001000,
		{ 6, { 0x8b, 0x05, 0xff, 0xff, 0xff, 0xff } } },
	{ "the bias counts", -ERANGE, 0x1000, 0x100000000, 0x2000,
		{ 6, { 0x8b, 0x05, 0, 0, 0, 0 } } },
};

Test(relocate, refusals_and_reach)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct x86_moved moved;
		uint8_t out[256];
		int err = x86_relocate(answers[i].window.bytes, answers[i].addr,
			answers[i].window.len, answers[i].bias, answers[i].at, out, sizeof(out),
			&moved);

		cr_expect_eq(err, answers[i].expected, "%s: %d instead of %d", answers[i].name, err,
			answers[i].expected);
	}
}

Test(relocate, never_writes_beyond_room)
{
	static const struct window w = { 6, { 0x50, 0xe8, 0, 0x20, 0, 0 } };
	struct x86_moved moved;

	for (size_t room = 0; room < 32; room++) {
		uint8_t out[40];
		int err;

		memset(out, 0xa5, sizeof(out));
		err = x86_relocate(w.bytes, 0x500000, w.len, 0x7f0000000000, 0x7f0000600000, out,
			room, &moved);
		cr_expect_eq(err, room < 19 ? -EINVAL : 0, "room %zu: %d", room, err);
		for (size_t i = room; i < sizeof(out); i++)
			cr_expect_eq(out[i], 0xa5, "room %zu: byte %zu written", room, i);
	}
}

/* ---- every window of whole libraries ---- */

static struct {
	struct window *list;
	size_t count, room;
	uint32_t *slots; /* hash table: index + 1 */
	size_t nslots;
	unsigned int thread, unsteady, seen;
} pool;

static uint64_t hash(const struct window *w)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < w->len; i++)
		h = (h ^ w->bytes[i]) * 0x100000001b3ull;
	return h ^ h >> 29;
}

static void pool_add(const struct window *w)
{
	size_t slot = hash(w) % pool.nslots;

	while (pool.slots[slot]) {
		const struct window *other = &pool.list[pool.slots[slot] - 1];

		if (other->len == w->len && !memcmp(other->bytes, w->bytes, w->len))
			return;
		slot = (slot + 1) % pool.nslots;
	}
	if (pool.count == pool.room)
		return;
	pool.list[pool.count++] = *w;
	pool.slots[slot] = (uint32_t)pool.count;
}

static bool has_thread_memory(const uint8_t *code, const struct insn *insn)
{
	return code[0] == 0x64 || code[0] == 0x65 ||
		(code[0] == 0x66 && (code[1] == 0x64 || code[1] == 0x65) && insn->len > 2);
}

/* A plain load from fs: is the same twice; anything else there is the test's own. */
static bool loads_only(const struct insn *insn)
{
	return insn->map == 0 && (insn->opcode == 0x8b || insn->opcode == 0x33 ||
		insn->opcode == 0x2b || insn->opcode == 0x3b);
}

/* Time, CPU, random numbers, state that the machine does not save, and fnstenv and fnsave, which
 * tell where the last x87 instruction was. */
static bool is_unsteady(const struct insn *insn)
{
	if (insn->map == 0 && (insn->opcode & 0xfb) == 0xd9)
		return insn->modrm < 0xc0 && (insn->modrm & 0x38) == 0x30;
	if (insn->map == 0)
		return insn->opcode == 0x8e || (insn->opcode & 0xf6) == 0xe4;
	return insn->opcode == 0x31 || insn->opcode == 0xc7 || insn->opcode == 0x01 ||
		insn->opcode == 0xa2 || insn->opcode == 0xae || insn->opcode == 0x33 ||
		(insn->opcode & 0xf7) == 0xa1;
}

/*
 * Give displacements of four bytes a value that stays inside the machine: data goes to its data,
 * branches to its code. The windows that differ in nothing else become one. False: leave it out.
 */
static bool adapt(struct window *w)
{
	struct insn insn;

	for (size_t at = 0; at < w->len; at += insn.len) {
		uint64_t next, target;
		uint8_t field;
		int32_t rel;

		if (!decoder_read(w->bytes + at, w->len - at, &insn))
			return false;
		if (has_thread_memory(w->bytes + at, &insn) && !loads_only(&insn)) {
			pool.thread++;
			return false;
		}
		if (is_unsteady(&insn)) {
			pool.unsteady++;
			return false;
		}
		next = WINDOW + at + insn.len;
		if (insn.rip_at) {
			field = insn.rip_at;
			target = DATA + 0x1000 + at * 0x100;
		} else if (insn.rel_size == 4) {
			field = insn.rel_at;
			target = HOME + 0x3000 + at * 0x100;
		} else {
			continue;
		}
		rel = (int32_t)(target - next);
		memcpy(w->bytes + at + field, &rel, 4);
	}
	return true;
}

static void pool_module(const struct isa_module *code)
{
	for (size_t i = 0; i < code->nfuncs; i++) {
		const uint8_t *bytes = NULL;
		struct isa_site site;
		struct window w;
		uint64_t at;

		code->isa->site(code, i, &site);
		if (site.choice == SITE_REFUSED || site.choice == SITE_NOPS)
			continue;
		at = code->funcs[i].start + site.offset;
		for (size_t t = 0; t < code->ntexts; t++) {
			if (at - code->texts[t].addr < code->texts[t].size)
				bytes = code->texts[t].bytes + (at - code->texts[t].addr);
		}
		cr_assert(bytes && site.len <= X86_WINDOW_MAX);
		w.len = site.len;
		memcpy(w.bytes, bytes, w.len);
		pool.seen++;
		if (adapt(&w))
			pool_add(&w);
	}
}

Test(relocate, windows_of_libraries, .timeout = 280)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/bin/python3.11",
	};
	unsigned int absent = 0, bad = 0;

	machine_start();
	pool.room = 100000;
	pool.nslots = 1 << 18;
	pool.list = calloc(pool.room, sizeof(*pool.list));
	pool.slots = calloc(pool.nslots, sizeof(*pool.slots));
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct support_module module;

		if (!support_module_open(&module, paths[i], &isa_x86_64)) {
			absent++;
			continue;
		}
		cr_assert_eq(module.code.isa->scan(&module.code), 0);
		pool_module(&module.code);
		support_module_close(&module);
	}
	for (size_t i = 0; i < pool.count && bad < 20; i++)
		bad += check_window(&pool.list[i], "library window");
	free(pool.list);
	free(pool.slots);
	cr_log_info("seed %u: %zu distinct windows of %u compared, %u rounds each; left out: %u "
		    "store to thread memory, %u unsteady; %u of %u rounds ended in a fault; "
		    "%u files absent",
		SEED, pool.count, pool.seen, ROUNDS, pool.thread, pool.unsteady, machine.faults,
		machine.runs, absent);
	cr_expect(absent == sizeof(paths) / sizeof(paths[0]) || pool.count > 1000);
}
