/* SPDX-License-Identifier: MIT */
/*
 * Instructions and their relocated copies are run from the same random state, and everything they
 * leave behind is compared: registers, flags, vector registers, memory, and where control went.
 *
 * Code lies among brk instructions. A run starts and ends in the signal handler: the first brk
 * enters it, which puts the random state in place; the brk at which the instruction arrives enters
 * it again, which takes the state away. During the copy's run the original is brk as well.
 */
#define _GNU_SOURCE 1
#include "arch/arm64/a64.h"
#include "arch/arm64/insn.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SEED   20250405u
#define ROUNDS 60 /* random instructions of each kind */
#define BRK    0xd4200000u

#define HOME	  0x1a0000000000ull
#define CODE_SIZE 0x10000u
#define WINDOW	  (HOME + 0x8000)
#define DATA	  (HOME + CODE_SIZE) /* literals, then the stack */
#define DATA_SIZE 0x8000u
#define STACK	  (DATA + 0x6000)

static const uint64_t copies[] = { HOME + 0x4000000, HOME - 0x6000000 };
#define COPIES (sizeof(copies) / sizeof(copies[0]))

struct state {
	uint64_t regs[31], sp, pc, pstate;
	__uint128_t vector[32];
	uint32_t fpsr, fpcr;
};

static struct {
	struct state *state; /* of the run */
	volatile sig_atomic_t running;
	ucontext_t own; /* the test's */
	struct fpsimd_context own_vectors;
} machine;

static struct fpsimd_context *vectors_of(ucontext_t *uc)
{
	return (struct fpsimd_context *)uc->uc_mcontext.__reserved; /* comes first */
}

static void put_state(ucontext_t *uc, const struct state *s)
{
	struct fpsimd_context *v = vectors_of(uc);

	memcpy(uc->uc_mcontext.regs, s->regs, sizeof(s->regs));
	uc->uc_mcontext.sp = s->sp;
	uc->uc_mcontext.pc = s->pc;
	uc->uc_mcontext.pstate = s->pstate;
	memcpy(v->vregs, s->vector, sizeof(s->vector));
	v->fpsr = s->fpsr;
	v->fpcr = s->fpcr;
}

static void take_state(ucontext_t *uc, struct state *s)
{
	const struct fpsimd_context *v = vectors_of(uc);

	memcpy(s->regs, uc->uc_mcontext.regs, sizeof(s->regs));
	s->sp = uc->uc_mcontext.sp;
	s->pc = uc->uc_mcontext.pc;
	s->pstate = uc->uc_mcontext.pstate & 0xf0000000;
	memcpy(s->vector, v->vregs, sizeof(s->vector));
	s->fpsr = v->fpsr;
	s->fpcr = v->fpcr;
}

static void arrived(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	if (!machine.running) {
		machine.running = 1;
		machine.own = *uc;
		machine.own_vectors = *vectors_of(uc);
		put_state(uc, machine.state);
		return;
	}
	machine.running = 0;
	take_state(uc, machine.state);
	uc->uc_mcontext = machine.own.uc_mcontext;
	*vectors_of(uc) = machine.own_vectors;
	uc->uc_mcontext.pc += 4;
}

static void run(struct state *state)
{
	machine.state = state;
	__asm__ volatile("brk #0" : : : "memory");
}

static void *map(uint64_t at, size_t size)
{
	void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	cr_assert_eq((uint64_t)p, at, "%p is taken", (void *)at);
	return p;
}

static void begin(void)
{
	static char stack[65536];
	stack_t alternative = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_sigaction = arrived, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	uint32_t *code = map(HOME, CODE_SIZE + DATA_SIZE);

	random_state = SEED;
	sigaltstack(&alternative, NULL);
	sigaction(SIGTRAP, &action, NULL);
	for (size_t i = 0; i < CODE_SIZE / 4; i++)
		code[i] = BRK;
	for (size_t i = 0; i < COPIES; i++) {
		code = map(copies[i], 0x1000);
		for (size_t k = 0; k < 0x400; k++)
			code[k] = BRK;
	}
}

static void set_code(uint64_t at, const uint32_t *insns, size_t n)
{
	memcpy((void *)at, insns, 4 * n);
	__builtin___clear_cache((char *)at, (char *)(at + 4 * n));
}

/* ---- the instructions ---- */

static uint32_t near(unsigned low, unsigned width) /* a word of the code, not itself */
{
	int64_t distance = (int64_t)(random64() % 0xe00) * 4 - 0x1c00;

	if (distance >= 0 && distance < 4)
		distance = 64;
	return ((uint32_t)(distance / 4) & ((1u << width) - 1)) << low;
}

static uint32_t literal(void) /* the offset of a word of the data, 16-aligned */
{
	uint64_t target = DATA + random64() % 0x500 * 16;

	return (uint32_t)((target - WINDOW) / 4) << 5;
}

static uint32_t any(void) /* Rd: not x16, nor sp */
{
	uint32_t rd;

	do
		rd = random64() % 31;
	while (rd == 16);
	return rd;
}

static uint32_t bits(unsigned low, unsigned width)
{
	return (uint32_t)(random64() & ((1u << width) - 1)) << low;
}

static const uint32_t plain[] = {
	0xd503201f, /* nop */
	0xd503233f, /* paciasp */
	0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
	0xd10143ff, /* sub sp, sp, #80 */
	0xaa0103e0, /* mov x0, x1 */
	0xeb02003f, /* cmp x1, x2 */
	0x9b017c40, /* mul x0, x2, x1 */
	0x4e22d420, /* fadd v0.4s, v1.4s, v2.4s */
	0x9e660020, /* fmov x0, d1 */
	0xd53b4200, /* mrs x0, nzcv */
	0xf94003e1, /* ldr x1, [sp] */
	0x6dbf27e8, /* stp d8, d9, [sp, #-16]! */
};

static const enum insn_kind kinds[] = { INSN_OTHER, INSN_B, INSN_BL, INSN_B_COND, INSN_CBZ, INSN_TBZ,
	INSN_BR, INSN_BLR, INSN_RET, INSN_ADR, INSN_ADRP, INSN_LDR, INSN_LDR_SIMD, INSN_PRFM };

static unsigned nplain; /* each has its turn */

static uint32_t make(enum insn_kind kind)
{
	switch (kind) {
	case INSN_B:
		return A64_B | near(0, 26);
	case INSN_BL:
		return A64_BL | near(0, 26);
	case INSN_B_COND:
		return 0x54000000u | near(5, 19) | bits(0, 4);
	case INSN_CBZ:
		return 0x34000000u | bits(31, 1) | bits(24, 1) | near(5, 19) | any();
	case INSN_TBZ:
		return 0x36000000u | bits(31, 1) | bits(24, 1) | bits(19, 5) | near(5, 14)
			| any();
	case INSN_BR:
		return 0xd61f0000u | any() << 5;
	case INSN_BLR:
		return 0xd63f0000u | any() << 5;
	case INSN_RET:
		return 0xd65f0000u | any() << 5;
	case INSN_ADR:
		return 0x10000000u | bits(29, 2) | bits(5, 19) | any();
	case INSN_ADRP:
		return 0x90000000u | bits(29, 2) | bits(5, 19) | any();
	case INSN_LDR:
		return 0x18000000u | (uint32_t)(random64() % 3) << 30 | literal() | any();
	case INSN_LDR_SIMD:
		return 0x1c000000u | (uint32_t)(random64() % 3) << 30 | literal() | bits(0, 5);
	case INSN_PRFM:
		return 0xd8000000u | literal() | bits(0, 5);
	default:
		return plain[nplain++ % (sizeof(plain) / sizeof(plain[0]))];
	}
}

static void randomize(struct state *s, enum insn_kind kind, uint32_t insn)
{
	uint64_t words[sizeof(*s) / 8];

	for (size_t i = 0; i < sizeof(*s) / 8; i++)
		words[i] = random64();
	memcpy(s, words, sizeof(*s));
	for (int i = 0; i < 31; i++)
		if (random64() % 4 == 0)
			s->regs[i] = random64() % 2; /* for cbz, tbz */
	s->pc = WINDOW;
	s->sp = STACK;
	s->pstate &= 0xf0000000;
	s->fpsr &= 0x0800009f;
	s->fpcr &= 0x00c00000; /* the rounding mode */
	if (kind == INSN_BR || kind == INSN_BLR || kind == INSN_RET)
		s->regs[insn_rn(insn)] = HOME + random64() % 0x1000 * 4;
}

static void fill_data(uint64_t seed)
{
	for (size_t i = 0; i < DATA_SIZE / 8; i++)
		((uint64_t *)DATA)[i] = seed += 0x9e3779b97f4a7c15ull;
}

/* Where the copy's end is, control would go on behind the window. */
static void check_same(uint32_t insn, const struct state *want, struct state *got,
	const struct a64_moved *moved, uint64_t at)
{
	if (got->pc == at + moved->size && !moved->ends)
		got->pc = WINDOW + 4;
	got->regs[16] = want->regs[16]; /* free */
	for (int i = 0; i < 31; i++)
		cr_assert_eq(got->regs[i], want->regs[i], "%08x: x%d is %lx, not %lx", insn, i,
			got->regs[i], want->regs[i]);
	cr_assert_eq(got->pc, want->pc, "%08x: goes to %lx, not %lx", insn, got->pc, want->pc);
	cr_assert_eq(got->sp, want->sp, "%08x: sp", insn);
	cr_assert_eq(got->pstate, want->pstate, "%08x: flags", insn);
	cr_assert(!memcmp(got->vector, want->vector, sizeof(got->vector)), "%08x: vectors", insn);
	cr_assert(got->fpsr == want->fpsr && got->fpcr == want->fpcr, "%08x: fpsr, fpcr", insn);
}

static void compare(enum insn_kind kind)
{
	static uint8_t after[DATA_SIZE];
	uint32_t insn = make(kind), out[A64_PIECE_MAX + 1] = { 0 };
	const uint32_t brk[A64_PIECE_MAX] = { BRK, BRK, BRK, BRK, BRK, BRK };
	uint64_t at = copies[random64() % COPIES], seed = random64();
	struct state start, want, got;
	struct a64_moved moved;

	randomize(&start, kind, insn);
	cr_assert_eq(insn_kind(insn), kind, "%08x", insn);
	cr_assert_eq(a64_relocate((uint8_t *)&insn, 1, WINDOW, at, true, (uint8_t *)out, &moved), 0,
		"%08x", insn);

	set_code(WINDOW, &insn, 1);
	fill_data(seed);
	want = start;
	run(&want);
	memcpy(after, (void *)DATA, DATA_SIZE);

	set_code(WINDOW, brk, 1);
	set_code(at, brk, A64_PIECE_MAX);
	set_code(at, out, moved.size / 4);
	fill_data(seed);
	got = start;
	got.pc = at;
	run(&got);
	check_same(insn, &want, &got, &moved, at);
	cr_assert(!memcmp(after, (void *)DATA, DATA_SIZE), "%08x: memory differs", insn);
}

Test(relocate, copies_do_what_originals_do)
{
	begin();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int round = 0; round < ROUNDS; round++)
			compare(kinds[i]);
}
