/* SPDX-License-Identifier: MIT */
/* Static probes of this very program, attached to and detached from. */
#define _GNU_SOURCE 1
#define _SDT_HAS_SEMAPHORES 1
#include "tracer/session.h"
#include "include/ftr/ftr.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if !__has_include(<sys/sdt.h>)
Test(usdt, nothing, .disabled = true)
{
	/* needs sys/sdt.h */
}
#else
#include <sys/sdt.h>

__extension__ unsigned short ftrtest_counted_semaphore __attribute__((section(".probes")));
__extension__ unsigned short ftrtest_plain_semaphore __attribute__((section(".probes")));
__extension__ unsigned short ftrtest_loop_semaphore __attribute__((section(".probes")));
__extension__ unsigned short ftrtest_wide_semaphore __attribute__((section(".probes")));
__extension__ unsigned short ftrtest_kept_semaphore __attribute__((section(".probes")));

static int global = 77;

__attribute__((noinline)) static int plain(int a, long *b)
{
	STAP_PROBE4(ftrtest, plain, a, *b, 5, global);
	return a + (int)*b;
}

__attribute__((noinline)) static int loop(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		STAP_PROBE1(ftrtest, loop, i);
		sum += i;
	}
	return sum;
}

/* A nop of five bytes, and arguments of odd sizes. */
int wide(int x);
__asm__(".text\n.type wide, @function\nwide:\n\tmov %edi, %eax\n"
	"990:\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tadd $1, %eax\n\tret\n.size wide, . - wide\n"
	".pushsection .note.stapsdt,\"\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n"
	"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 990b\n\t.8byte _.stapsdt.base\n"
	"\t.8byte 0\n\t.asciz \"ftrtest\"\n\t.asciz \"wide\"\n"
	"\t.asciz \"-4@%edi 1@%dil -1@%dil 4@$-1 8f@%xmm0 3@%eax 8@8(%rax)\"\n"
	"994:\t.balign 4\n.popsection\n");

/* Floating-point arguments; the third is a float in memory. */
int floats(double d, float f, const float *memory);
__asm__(".text\n.type floats, @function\nfloats:\n\tmov $1, %eax\n"
	"990:\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tadd $1, %eax\n\tret\n.size floats, . - floats\n"
	".pushsection .note.stapsdt,\"\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n"
	"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 990b\n\t.8byte _.stapsdt.base\n"
	"\t.8byte 0\n\t.asciz \"ftrtest_floats\"\n\t.asciz \"floats\"\n"
	"\t.asciz \"8f@%xmm0 -4f@%xmm1 4f@(%rdi) 8f@%xmm17 4@%eax 2f@%xmm0 8f@8(%rax)\"\n"
	"994:\t.balign 4\n.popsection\n");

/* Probes without room: the instruction behind the nop is jumped to, directly and by a table whose
 * address is taken before the probe. */
#define NOTE_OF(name)                                                                              \
	".pushsection .note.stapsdt,\"\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n"     \
	"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 990b\n\t.8byte _.stapsdt.base\n"      \
	"\t.8byte 0\n\t.asciz \"ftrtest_refused\"\n\t.asciz \"" name "\"\n\t.asciz \"\"\n"              \
	"994:\t.balign 4\n.popsection\n"
__asm__(".text\n.type jumped, @function\njumped:\n\tmov $5, %eax\n990:\tnop\n1:\tdec %eax\n"
	"\tadd $0, %ecx\n\tjnz 1b\n\tret\n.size jumped, . - jumped\n" NOTE_OF("jumped")
	".type tabled, @function\ntabled:\n\tlea 5f(%rip), %rcx\n990:\tnop\n6:\txor %edx, %edx\n"
	"\tadd $1, %edx\n\tsub $1, %edi\n\tjs 9f\n\tmovslq (%rcx,%rdi,4), %rax\n"
	"\tadd %rcx, %rax\n\tjmp *%rax\n9:\tret\n.size tabled, . - tabled\n" NOTE_OF("tabled")
	".pushsection .rodata\n.balign 4\n5:\t.long 6b - 5b, 9b - 5b\n.popsection\n");

struct seen {
	unsigned hits;
	int64_t args[8];
	int errors[8];
	struct ftr_usdt_probe probe;
	struct ftr_usdt *detach;
};

static void note(struct ftr_usdt_hit *hit, void *data)
{
	struct seen *seen = data;

	seen->hits++;
	seen->probe = *ftr_usdt_probe(hit);
	for (unsigned i = 0; i < 8; i++)
		seen->errors[i] = ftr_usdt_argument(hit, i, &seen->args[i]);
	errno = 99;
	if (seen->detach)
		cr_assert_eq(ftr_usdt_detach(seen->detach), 0);
}

static void begin(void)
{
	session_see(environ);
}

static struct ftr_usdt *attach(const char *name, int places, struct seen *seen)
{
	struct ftr_usdt *u;
	int got = ftr_usdt_attach("ftrtest", name, NULL, note, seen, &u);

	cr_assert_eq(got, places, "%s: %d", name, got);
	return u;
}

Test(usdt, arguments, .init = begin)
{
	struct seen seen = { 0 };
	long b = -3;
	struct ftr_usdt *u = attach("plain", 1, &seen);

	cr_assert_eq(ftrtest_plain_semaphore, 1);
	errno = 7;
	cr_assert_eq(plain(4, &b), 1);
	cr_assert_eq(errno, 7);
	cr_assert_eq(seen.hits, 1);
	cr_assert_eq(seen.args[0], 4);
	cr_assert_eq(seen.args[1], -3);
	cr_assert_eq(seen.args[2], 5);
	cr_assert_eq(seen.args[3], 77);
	cr_assert_eq(seen.errors[4], -ENOENT);
	cr_assert_str_eq(seen.probe.provider, "ftrtest");
	cr_assert_str_eq(seen.probe.name, "plain");
	cr_assert_eq(seen.probe.arguments, 4);
	cr_assert_eq(ftr_usdt_detach(u), 0);
	cr_assert_eq(ftrtest_plain_semaphore, 0);
	plain(4, &b);
	cr_assert_eq(seen.hits, 1);
	cr_assert_eq(ftr_usdt_detach(u), -EINVAL);
}

Test(usdt, a_nop_of_five_bytes, .init = begin)
{
	struct seen seen = { 0 };
	uint8_t before[16];
	struct ftr_usdt *u;

	memcpy(before, (void *)(uintptr_t)wide, sizeof(before));
	u = attach("wide", 1, &seen);
	cr_assert_eq(wide(0x1fe), 0x1ff);
	cr_assert_eq(seen.hits, 1);
	cr_assert_eq(seen.args[0], 0x1fe);
	cr_assert_eq(seen.args[1], 0xfe);
	cr_assert_eq(seen.args[2], -2);
	cr_assert_eq(seen.args[3], 0xffffffff);
	cr_assert_eq(seen.errors[4], -ENOTSUP);
	cr_assert_eq(seen.errors[5], -ENOTSUP);
	cr_assert_eq(seen.errors[6], -EFAULT); /* near address 0 */
	cr_assert_eq(ftr_usdt_detach(u), 0);
	cr_assert(!memcmp(before, (void *)(uintptr_t)wide, sizeof(before)));
}

static void note_floats(struct ftr_usdt_hit *hit, void *data)
{
	static const int errors[8] = { 0, 0, 0, -ENOTSUP, -ENOTSUP, -ENOTSUP, -EFAULT, -ENOENT };
	double *values = data;

	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(ftr_usdt_double(hit, i, &values[i]), errors[i], "argument %u", i);
}

Test(usdt, floating_point_arguments, .init = begin)
{
	static const float rows[] = { 0, -0.0f, 1.5f, -3e38f, 1e-40f, -1e-45f, 1.0f / 3, __builtin_inff() };
	double values[8];
	struct ftr_usdt *u;

	cr_assert_eq(ftr_usdt_attach("ftrtest_floats", NULL, NULL, note_floats, values, &u), 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const double wanted[3] = { i / 3.0, rows[i], -rows[i] };
		const float memory = -rows[i];

		cr_assert_eq(floats(i / 3.0, rows[i], &memory), 2);
		cr_assert(!memcmp(values, wanted, sizeof(wanted)), "row %zu: %g %g %g", i,
			values[0], values[1], values[2]);
	}
	cr_assert_eq(ftr_usdt_detach(u), 0);
}

Test(usdt, a_probe_that_is_jumped_to, .init = begin)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u = attach("loop", 1, &seen);

	cr_assert_eq(loop(10), 45);
	cr_assert_eq(seen.hits, 10);
	cr_assert_eq(seen.args[0], 9);
	cr_assert_eq(ftr_usdt_detach(u), 0);
}

Test(usdt, several_attachments, .init = begin)
{
	struct seen seen[3] = { 0 };
	long b = 1;
	struct ftr_usdt *all = attach("*", 4, &seen[0]), *one = attach("plain", 1, &seen[1]), *two;

	cr_assert_eq(ftrtest_plain_semaphore, 2);
	two = attach("p*n", 1, &seen[2]);
	plain(1, &b);
	cr_assert_eq(ftr_usdt_detach(one), 0);
	plain(1, &b);
	cr_assert_eq(ftr_usdt_detach(all), 0);
	plain(1, &b);
	cr_assert_eq(loop(3), 3);
	cr_assert_eq(ftr_usdt_detach(two), 0);
	plain(1, &b);
	cr_assert_eq(seen[0].hits, 2);
	cr_assert_eq(seen[1].hits, 1);
	cr_assert_eq(seen[2].hits, 3);
	cr_assert_eq(ftrtest_plain_semaphore, 0);
}

Test(usdt, a_handler_detaches_itself, .init = begin)
{
	struct seen seen = { 0 };

	seen.detach = attach("loop", 1, &seen);
	cr_assert_eq(loop(10), 45);
	cr_assert_eq(seen.hits, 1);
	/* and what could not be freed then is used again, or freed, later */
	for (int i = 0; i < 5; i++) {
		struct ftr_usdt *u;

		seen = (struct seen){ 0 };
		u = attach("loop", 1, &seen);
		cr_assert_eq(loop(10), 45);
		cr_assert_eq(seen.hits, 10);
		cr_assert_eq(ftr_usdt_detach(u), 0);
	}
}

static void nest(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	++*(unsigned *)data;
	loop(5);
}

Test(usdt, a_handler_does_not_see_itself, .init = begin)
{
	struct seen seen = { 0 };
	struct ftr_usdt *nested, *u = attach("loop", 1, &seen);
	unsigned hits = 0;

	cr_assert_eq(ftr_usdt_attach("ftrtest", "loop", NULL, nest, &hits, &nested), 1);
	cr_assert_eq(loop(2), 1);
	cr_assert_eq(hits, 2);
	cr_assert_eq(seen.hits, 2 + 2 * 5);
	cr_assert_eq(ftr_usdt_detach(nested), 0);
	cr_assert_eq(ftr_usdt_detach(u), 0);
}

Test(usdt, probes_without_room_are_refused, .init = begin)
{
	struct seen seen;
	struct ftr_usdt *u;

	cr_assert_eq(ftr_usdt_attach("ftrtest_refused", "jumped", NULL, note, &seen, &u), -ENOTSUP);
	cr_assert_eq(ftr_usdt_attach("ftrtest_refused", "tabled", NULL, note, &seen, &u), -ENOTSUP);
}

Test(usdt, errors, .init = begin)
{
	struct seen seen;
	struct ftr_usdt *u;

	cr_assert_eq(ftr_usdt_attach("ftrtest", "none", NULL, note, &seen, &u), -ENOENT);
	cr_assert_str_eq(ftr_error(), "no loaded module has such a static probe");
	cr_assert_eq(ftr_usdt_attach("ftrtest", NULL, "no*module", note, &seen, &u), -ENOENT);
	cr_assert_eq(ftr_usdt_attach(NULL, NULL, NULL, NULL, &seen, &u), -EINVAL);
	cr_assert_eq(ftr_usdt_detach(NULL), -EINVAL);
}

/* ---- registers ---- */

/*
 * Calls kept_inner with all registers filled, and compares them afterwards: the probe is in the
 * middle of it, the red zone in use. Returns 0 when all are the same.
 */
int keeps_all(void);
__asm__(".text\n.type keeps_all, @function\nkeeps_all:\n"
	"\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
	"\tmov $0x0101, %eax\n\tmov %rax, %rbx\n\tmov %rax, %rcx\n\tmov %rax, %rdx\n"
	"\tmov %rax, %rsi\n\tmov %rax, %rdi\n\tmov %rax, %rbp\n\tmov %rax, %r8\n\tmov %rax, %r9\n"
	"\tmov %rax, %r10\n\tmov %rax, %r11\n\tmov %rax, %r12\n\tmov %rax, %r13\n\tmov %rax, %r14\n"
	"\tmov %rax, %r15\n"
	"\tmovq %rax, %xmm0\n\tmovq %rax, %xmm7\n\tmovq %rax, %xmm15\n\tfld1\n"
	"\tmov %rax, -8(%rsp)\n\tmov %rax, -128(%rsp)\n"
	"\tstc\n"
	"990:\tnop\n\tlea 0(%rax), %rax\n\tlea 0(%rbx), %rbx\n"
	"\tjnc 1f\n\tcmp %rax, -8(%rsp)\n\tjne 1f\n\tcmp %rax, -128(%rsp)\n\tjne 1f\n"
	"\tcmp $0x0101, %rax\n\tjne 1f\n\tcmp %rax, %rbx\n\tjne 1f\n\tcmp %rax, %rcx\n\tjne 1f\n"
	"\tcmp %rax, %rdx\n\tjne 1f\n\tcmp %rax, %rsi\n\tjne 1f\n\tcmp %rax, %rdi\n\tjne 1f\n"
	"\tcmp %rax, %rbp\n\tjne 1f\n\tcmp %rax, %r8\n\tjne 1f\n\tcmp %rax, %r9\n\tjne 1f\n"
	"\tcmp %rax, %r10\n\tjne 1f\n\tcmp %rax, %r11\n\tjne 1f\n\tcmp %rax, %r12\n\tjne 1f\n"
	"\tcmp %rax, %r13\n\tjne 1f\n\tcmp %rax, %r14\n\tjne 1f\n\tcmp %rax, %r15\n\tjne 1f\n"
	"\tmovq %xmm0, %rcx\n\tcmp %rax, %rcx\n\tjne 1f\n\tmovq %xmm7, %rcx\n\tcmp %rax, %rcx\n"
	"\tjne 1f\n\tmovq %xmm15, %rcx\n\tcmp %rax, %rcx\n\tjne 1f\n"
	"\tsub $16, %rsp\n\tfistpl (%rsp)\n\tmov (%rsp), %ecx\n\tadd $16, %rsp\n\tcmp $1, %ecx\n"
	"\tjne 1f\n\txor %eax, %eax\n\tjmp 2f\n1:\tmov $1, %eax\n2:\tpop %r15\n\tpop %r14\n"
	"\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n.size keeps_all, . - keeps_all\n"
	".pushsection .note.stapsdt,\"\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n"
	"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 990b\n\t.8byte _.stapsdt.base\n"
	"\t.8byte 0\n\t.asciz \"ftrtest\"\n\t.asciz \"kept\"\n\t.asciz \"8@%rbx\"\n"
	"994:\t.balign 4\n.popsection\n");

static void spoil(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	++*(unsigned *)data;
	__asm__ volatile("xorps %%xmm0, %%xmm0\n\txorps %%xmm7, %%xmm7\n\txorps %%xmm15, %%xmm15\n\t"
			 "fninit\n\tclc\n\tmovl $1, %%r8d\n\tmovl $2, %%r9d\n\tmovl $3, %%r10d\n\t"
			 "movl $4, %%r11d"
			 : : : "xmm0", "xmm7", "xmm15", "r8", "r9", "r10", "r11", "cc");
}

Test(usdt, registers, .init = begin)
{
	struct ftr_usdt *u;
	unsigned hits = 0;

	cr_assert_eq(keeps_all(), 0);
	cr_assert_eq(ftr_usdt_attach("ftrtest", "kept", NULL, spoil, &hits, &u), 1);
	cr_assert_eq(keeps_all(), 0);
	cr_assert_eq(hits, 1);
	cr_assert_eq(ftr_usdt_detach(u), 0);
}

/* ---- threads and children ---- */

static bool stop;

static void *runner(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (loop(10) != 45)
			__atomic_store_n((bool *)arg, true, __ATOMIC_RELAXED);
	return NULL;
}

static void count(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	__atomic_fetch_add((unsigned *)data, 1, __ATOMIC_RELAXED);
}

Test(usdt, attached_while_threads_run, .init = begin)
{
	pthread_t threads[3];
	bool wrong = false;

	for (int i = 0; i < 3; i++)
		cr_assert(!pthread_create(&threads[i], NULL, runner, &wrong));
	for (int i = 0; i < 5; i++) {
		unsigned hits = 0, before;
		struct ftr_usdt *u;

		cr_assert_eq(ftr_usdt_attach("ftrtest", "loop", NULL, count, &hits, &u), 1);
		loop(7);
		cr_assert(__atomic_load_n(&hits, __ATOMIC_RELAXED) >= 7);
		cr_assert_eq(ftr_usdt_detach(u), 0);
		before = __atomic_load_n(&hits, __ATOMIC_RELAXED);
		loop(7);
		cr_assert_eq(__atomic_load_n(&hits, __ATOMIC_RELAXED), before);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	cr_assert(!wrong);
}

Test(usdt, a_forked_child_has_them, .init = begin)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u = attach("loop", 1, &seen);
	int status = -1;
	pid_t child = fork();

	if (!child) {
		bool right = loop(10) == 45 && seen.hits == 10 && !ftr_usdt_detach(u);

		right = right && loop(10) == 45 && seen.hits == 10;
		_exit(!right);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	loop(1);
	cr_assert_eq(seen.hits, 1);
	cr_assert_eq(ftr_usdt_detach(u), 0);
}
#endif
