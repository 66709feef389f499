/* SPDX-License-Identifier: MIT */
/*
 * Instructions and their relocated copies are run from the same random state, and everything they
 * leave behind is compared: registers, vector registers, memory, and where control went.
 *
 * Code lies among trap instructions. A run starts and ends in the signal handler: the first trap
 * enters it, which puts the random state in place; the trap at which the instruction arrives enters
 * it again, which takes the state away. During the copy's run the original is a trap as well.
 */
#define _GNU_SOURCE 1
#include "arch/powerpc/powerpc.h"
#include "arch/powerpc/encode.h"
#include "arch/powerpc/insn.h"
#include "support_random.h"
#include <asm/ptrace.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SEED   20250407u
#define ROUNDS 60 /* random instructions of each kind */

#define HOME	  0x1a0000000000ull
#define CODE_SIZE 0x10000u
#define WINDOW	  (HOME + 0x8000)
#define DATA	  (HOME + CODE_SIZE) /* words to load, then the stack */
#define DATA_SIZE 0x8000u
#define STACK	  (DATA + 0x6000)

static const uint64_t copies[] = { HOME + 0x1000000, HOME - 0x1800000 };
#define COPIES (sizeof(copies) / sizeof(copies[0]))

struct state {
	uint64_t regs[32], pc, ctr, lr, xer, cr;
	uint64_t fp[33]; /* and FPSCR */
	__uint128_t vector[32];
	uint64_t vrsave;
	uint64_t vsx[32]; /* the other halves of those that fp has one half of */
};

static struct {
	struct state *state; /* of the run */
	volatile sig_atomic_t running;
	mcontext_t own; /* the test's */
	struct state own_vectors;
} machine;

static void move_vectors(mcontext_t *mc, struct state *s, bool put)
{
	/* struct sigcontext in the kernel's asm/sigcontext.h: vr0 to vr31, VSCR, VRSAVE, then these */
	uint8_t *v = (uint8_t *)mc->v_regs, *vsx = v + 34 * 16;

	memcpy(put ? (void *)mc->fp_regs : s->fp, put ? (void *)s->fp : mc->fp_regs, sizeof(s->fp));
	memcpy(put ? v : (uint8_t *)s->vector, put ? (uint8_t *)s->vector : v, sizeof(s->vector));
	memcpy(put ? v + 33 * 16 : (uint8_t *)&s->vrsave, put ? (uint8_t *)&s->vrsave : v + 33 * 16, 4);
	memcpy(put ? vsx : (uint8_t *)s->vsx, put ? (uint8_t *)s->vsx : vsx, sizeof(s->vsx));
}

static void put_state(mcontext_t *mc, struct state *s)
{
	memcpy(mc->gp_regs, s->regs, sizeof(s->regs));
	mc->gp_regs[PT_NIP] = s->pc;
	mc->gp_regs[PT_CTR] = s->ctr;
	mc->gp_regs[PT_LNK] = s->lr;
	mc->gp_regs[PT_XER] = s->xer;
	mc->gp_regs[PT_CCR] = s->cr;
	move_vectors(mc, s, true);
}

static void take_state(mcontext_t *mc, struct state *s)
{
	memcpy(s->regs, mc->gp_regs, sizeof(s->regs));
	s->pc = mc->gp_regs[PT_NIP];
	s->ctr = mc->gp_regs[PT_CTR];
	s->lr = mc->gp_regs[PT_LNK];
	s->xer = mc->gp_regs[PT_XER];
	s->cr = mc->gp_regs[PT_CCR];
	move_vectors(mc, s, false);
}

static void arrived(int sig, siginfo_t *info, void *context)
{
	mcontext_t *mc = &((ucontext_t *)context)->uc_mcontext;

	(void)sig;
	(void)info;
	if (!machine.running) {
		machine.running = 1;
		memcpy(machine.own.gp_regs, mc->gp_regs, sizeof(mc->gp_regs));
		move_vectors(mc, &machine.own_vectors, false);
		machine.state->regs[13] = mc->gp_regs[13]; /* the handler's thread pointer */
		put_state(mc, machine.state);
		return;
	}
	machine.running = 0;
	take_state(mc, machine.state);
	memcpy(mc->gp_regs, machine.own.gp_regs, sizeof(mc->gp_regs));
	move_vectors(mc, &machine.own_vectors, true);
	mc->gp_regs[PT_NIP] += 4;
}

static void run(struct state *state)
{
	machine.state = state;
	__asm__ volatile("trap" : : : "memory");
}

static void flush(uint64_t at, size_t size)
{
	for (uint64_t line = at & ~31ull; line < at + size; line += 32)
		__asm__ volatile("dcbst 0,%0; sync; icbi 0,%0" : : "r"(line) : "memory");
	__asm__ volatile("sync; isync" : : : "memory");
}

static void *map(uint64_t at, size_t size)
{
	void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	cr_assert_eq((uint64_t)p, at, "%p is taken", (void *)at);
	return p;
}

static void fill_traps(uint32_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++)
		code[i] = PPC_TRAP;
	flush((uint64_t)code, 4 * n);
}

static void begin(void)
{
	static char stack[65536];
	stack_t alternative = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_sigaction = arrived, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	random_state = SEED;
	sigaltstack(&alternative, NULL);
	sigaction(SIGTRAP, &action, NULL);
	fill_traps(map(HOME, CODE_SIZE + DATA_SIZE), CODE_SIZE / 4);
	for (size_t i = 0; i < COPIES; i++)
		fill_traps(map(copies[i], 0x1000), 0x400);
}

static void set_code(uint64_t at, const uint32_t *insns, size_t n)
{
	memcpy((void *)at, insns, 4 * n);
	flush(at, 4 * n);
}

/* ---- the instructions ---- */

enum kind { PLAIN, B, BL, BC, BCL, BCLR, BCCTR, BCCTRL, ADDPCIS, PREFIXED, RELATIVE, KINDS };

static const uint32_t plain[] = {
	0x60000000, /* nop */
	0x7c0802a6, /* mflr r0 */
	0xf8010010, /* std r0,16(r1) */
	0xf821ffe1, /* stdu r1,-32(r1) */
	0x7c8802a6, /* mflr r4 */
	0x7c632a14, /* add r3,r3,r5 */
	0x7c632915, /* adde. r3,r3,r5 */
	0x7c632a79, /* xor. r3,r3,r5 */
	0x2c830000, /* cmpwi cr1,r3,0 */
	0x7d800026, /* mfcr r12 */
	0x7d8ff120, /* mtcr r12 */
	0x7c6903a6, /* mtctr r3 */
	0x7c6102a6, /* mfxer r3 */
	0x7c6042a6, /* mfvrsave r3 */
	0x7c8043a6, /* mtvrsave r4 */
	0xfc60048e, /* mffs f3 */
	0x4c423202, /* crand 2,2,6 */
	0x7c8a189e, /* iseleq r4,r10,r3 */
	0x7f8105a5, /* hashst r0,-32(r1) */
	0xe8610020, /* ld r3,32(r1) */
	0xf4610035, /* stxv vs3,48(r1) */
	0xf0642cd7, /* xxlxor vs35,vs36,vs37 */
	0xf0642907, /* xsadddp vs35,vs36,vs37 */
	0x10642880, /* vadduwm v3,v4,v5 */
};

static const uint32_t prefixed[][2] = {
	{ 0x06000001, 0x38640008 }, /* paddi r3,r4,0x10008 */
	{ 0x06000000, 0x80610020 }, /* plwz r3,32(r1) */
	{ 0x04000000, 0xe4610020 }, /* pld r3,32(r1) */
	{ 0x04000000, 0xf4610020 }, /* pstd r3,32(r1) */
	{ 0x05000000, 0x80661234 }, /* xxspltiw vs3,0x1234 */
};

static uint32_t bits(unsigned low, unsigned width)
{
	return (uint32_t)(random64() & ((1u << width) - 1)) << low;
}

static uint32_t near(unsigned width) /* a word of the code, not the instruction itself */
{
	int64_t distance = (int64_t)(random64() % 0xe00) * 4 - 0x1c00;

	if (distance >= 0 && distance < 8)
		distance = 64;
	return (uint32_t)distance & ((1u << width) - 4);
}

static uint32_t condition(bool counts)
{
	static const uint8_t all[] = { 4, 6, 7, 12, 14, 15, 20, 0, 2, 8, 10, 16, 24, 25, 18, 26, 27 };

	return (uint32_t)all[random64() % (counts ? sizeof(all) : 7)] << 21 | bits(16, 5);
}

/* A register that is not the stack pointer or the thread pointer. */
static uint32_t any(void)
{
	uint32_t r;

	do
		r = random64() % 32;
	while (r == 1 || r == 13);
	return r << 21;
}

static unsigned nplain; /* each has its turn */

static size_t make(enum kind kind, uint32_t insn[2])
{
	static const uint32_t loads[][2] = { { 0x04100000, 0xe4000000 }, /* pld */
		{ 0x06100000, 0x80000000 }, /* plwz */
		{ 0x06100000, 0x38000000 }, /* pla */
		{ 0x04100000, 0xf4000000 } }; /* pstd */
	const uint32_t *words;
	uint64_t distance;

	switch (kind) {
	case B:
	case BL:
		insn[0] = 0x48000000 | near(26) | (kind == BL);
		return 1;
	case BC:
	case BCL:
		insn[0] = 0x40000000 | condition(true) | near(16) | (kind == BCL);
		return 1;
	case BCLR:
		insn[0] = 0x4c000020 | condition(true);
		return 1;
	case BCCTR:
	case BCCTRL:
		insn[0] = 0x4c000420 | condition(false) | (kind == BCCTRL);
		return 1;
	case ADDPCIS:
		insn[0] = 0x4c000004 | any() | bits(16, 5) | bits(6, 10) | bits(0, 1);
		return 1;
	case PREFIXED:
		words = prefixed[random64() % (sizeof(prefixed) / sizeof(prefixed[0]))];
		insn[0] = words[0];
		insn[1] = words[1];
		return 2;
	case RELATIVE:
		words = loads[random64() % 4];
		distance = DATA + random64() % 0x2000 - WINDOW;
		insn[0] = words[0] | (uint32_t)(distance >> 16);
		insn[1] = words[1] | any() | (uint32_t)(distance & 0xffff);
		return 2;
	default:
		insn[0] = plain[nplain++ % (sizeof(plain) / sizeof(plain[0]))];
		return 1;
	}
}

static void randomize(struct state *s, enum kind kind)
{
	uint64_t words[sizeof(*s) / 8];

	for (size_t i = 0; i < sizeof(*s) / 8; i++)
		words[i] = random64();
	memcpy(s, words, sizeof(*s));
	s->pc = WINDOW;
	s->regs[1] = STACK;
	s->ctr = HOME + random64() % 0x1000 * 4;
	if (random64() % 4 == 0 && kind != BCCTR && kind != BCCTRL)
		s->ctr = 1; /* for bdnz */
	s->lr = HOME + random64() % 0x1000 * 4;
	s->xer &= 0xe0000000;
	s->cr &= 0xffffffff;
	s->vrsave &= 0xffffffff;
	s->fp[32] &= 3; /* the rounding mode */
}

static void fill_data(uint64_t seed)
{
	for (size_t i = 0; i < DATA_SIZE / 8; i++)
		((uint64_t *)DATA)[i] = seed += 0x9e3779b97f4a7c15ull;
}

static void check_same(const uint32_t *insn, const struct state *want, const struct state *got)
{
	for (int i = 0; i < 32; i++)
		cr_assert_eq(got->regs[i], want->regs[i], "%08x %08x: r%d is %lx, not %lx", insn[0],
			insn[1], i, got->regs[i], want->regs[i]);
	cr_assert_eq(got->pc, want->pc, "%08x: goes to %lx, not %lx", insn[0], got->pc, want->pc);
	cr_assert_eq(got->lr, want->lr, "%08x: LR is %lx, not %lx", insn[0], got->lr, want->lr);
	cr_assert_eq(got->ctr, want->ctr, "%08x: CTR is %lx, not %lx", insn[0], got->ctr, want->ctr);
	cr_assert_eq(got->xer, want->xer, "%08x: XER", insn[0]);
	cr_assert_eq(got->cr, want->cr, "%08x: CR", insn[0]);
	cr_assert_eq(got->vrsave, want->vrsave, "%08x: VRSAVE", insn[0]);
	cr_assert(!memcmp(got->fp, want->fp, sizeof(got->fp)), "%08x: FPRs", insn[0]);
	cr_assert(!memcmp(got->vector, want->vector, sizeof(got->vector)), "%08x: vectors", insn[0]);
	cr_assert(!memcmp(got->vsx, want->vsx, sizeof(got->vsx)), "%08x: vectors", insn[0]);
}

static void compare(enum kind kind)
{
	static uint8_t after[DATA_SIZE];
	uint32_t insn[2] = { 0 }, out[PPC_COPY_MAX / 4];
	size_t n = make(kind, insn);
	uint64_t at = copies[random64() % COPIES] + random64() % 64 * 4, seed = random64();
	struct state start, want, got;
	uint64_t *below = (uint64_t *)(STACK - 8);
	bool ends;
	int size;

	if (kind == BCL && (insn[0] & 0xfffc) == 4)
		return; /* learns its own address */
	size = ppc_relocate((uint8_t *)insn, 4 * n, WINDOW, at, (uint8_t *)out, &ends);
	cr_assert_gt(size, 0, "%08x %08x: %d", insn[0], insn[1], size);
	randomize(&start, kind);

	set_code(WINDOW, insn, n);
	fill_data(seed);
	want = start;
	run(&want);
	memcpy(after, (void *)DATA, DATA_SIZE);

	fill_traps((uint32_t *)WINDOW, 2);
	set_code(at, out, (size_t)size / 4);
	fill_data(seed);
	got = start;
	got.pc = at;
	run(&got);
	/* Where the copy's end is, control would go on behind the window. */
	if (!ends && got.pc == at + (uint64_t)size)
		got.pc = WINDOW + 4 * n;
	check_same(insn, &want, &got);
	if (kind == BL || kind == BCL || kind == BCCTRL)
		memcpy(below, after + (STACK - 8 - DATA), 8); /* the function's own */
	cr_assert(!memcmp(after, (void *)DATA, DATA_SIZE), "%08x: memory differs", insn[0]);
	fill_traps((uint32_t *)at, PPC_COPY_MAX / 4);
}

Test(relocate, copies_do_what_originals_do)
{
	begin();
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (int round = 0; round < ROUNDS; round++)
			compare(kind);
}
