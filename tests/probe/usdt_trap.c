/* SPDX-License-Identifier: MIT */
/*
 * Static probes without room for a jump: a breakpoint takes the place of the nop, and is given up
 * before the program blocks or handles SIGTRAP.
 */
#define _GNU_SOURCE 1
#include "check.h"

#ifndef __x86_64__
int main(void)
{
	puts("SKIP: needs x86_64; elsewhere a nop has room for a branch");
	return 77;
}
#else
#include "note.h"
#include "registers_x86_64.h"
#include "sealed.h"
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* The instruction behind the nop is jumped to; the loop runs @n times, the probe once. */
long jumped(long n, const int *memory, double number);
__asm__(".text\n.type jumped, @function\njumped:\n\tmov %rdi, %rax\n990:\tnop\n1:\tdec %rdi\n"
	"\tjg 1b\n\tret\n.size jumped, . - jumped\n"
	NOTE("ftrtrap", "jumped", "8@%rax -4@(%rsi) 8f@%xmm0 4@$6 -2@%si"));

/* A table whose address is taken before the probe may lead anywhere behind the nop. */
long tabled(long n);
__asm__(".type tabled, @function\ntabled:\n\tlea 5f(%rip), %rcx\n990:\tnop\n6:\txor %edx, %edx\n"
	"\tadd $1, %edx\n\tsub $1, %edi\n\tjs 9f\n\tmovslq (%rcx,%rdi,4), %rax\n"
	"\tadd %rcx, %rax\n\tjmp *%rax\n9:\tmov %edx, %eax\n\tret\n.size tabled, . - tabled\n"
	NOTE("ftrtrap", "tabled", "-4@%edi")
	".pushsection .rodata\n.balign 4\n5:\t.long 6b - 5b, 9b - 5b\n.popsection\n");

/*
 * With all registers filled, flags set and the red zone in use; compares them behind the probe. 0: all
 * are the same.
 */
int keeps_all(void);
__asm__(".type keeps_all, @function\nkeeps_all:\n" FILL_REGISTERS
	"990:\tnop\n3:\tjnc 1f\n" COMPARE_REGISTERS
	"\tstc\n\tjmp 3b\n.size keeps_all, . - keeps_all\n"
	NOTE("ftrtrap", "kept", "8@%rbx"));

#define NOP	   0x90
#define BREAKPOINT 0xcc

/* Of jumped(), behind a mov. */
static unsigned byte_at_probe(void)
{
	return ((volatile unsigned char *)(uintptr_t)jumped)[3];
}

struct seen {
	long hits;
	int64_t values[5];
	double number;
	int calls; /* the handler calls jumped() as often */
};

static void note(struct ftr_usdt_hit *hit, void *data)
{
	struct seen *seen = data;

	__atomic_fetch_add(&seen->hits, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 5; i++)
		ftr_usdt_argument(hit, i, &seen->values[i]);
	ftr_usdt_double(hit, 2, &seen->number);
	errno = 99;
	for (int i = 0; i < seen->calls; i++)
		jumped(1, &seen->calls, 0);
}

static int call(long n)
{
	static const int memory = -77;

	return (int)jumped(n, &memory, n + 0.5);
}

static struct ftr_usdt *watch(const char *name, struct seen *seen)
{
	struct ftr_usdt *u = NULL;

	CHECK_INT(ftr_usdt_attach("ftrtrap", name, NULL, note, seen, &u), 1);
	return u;
}

static void arguments(void)
{
	struct seen seen = { 0 };
	unsigned char before[16];
	struct ftr_usdt *u;

	memcpy(before, (void *)(uintptr_t)jumped, sizeof(before));
	u = watch("jumped", &seen);
	CHECK_INT(byte_at_probe(), BREAKPOINT);
	errno = 7;
	CHECK_INT(call(5), 5);
	CHECK_INT(errno, 7);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(seen.values[0], 5);
	CHECK_INT(seen.values[1], -77);
	CHECK_INT(seen.values[3], 6);
	CHECK(seen.number == 5.5, "%g", seen.number);
	CHECK_INT(ftr_usdt_detach(u), 0);
	CHECK(!memcmp(before, (void *)(uintptr_t)jumped, sizeof(before)));
	CHECK_INT(call(3), 3);
	CHECK_INT(seen.hits, 1);
}

static void all_kinds(void)
{
	struct seen seen[3] = { 0 };
	struct ftr_usdt *all, *one, *two;

	CHECK_INT(ftr_usdt_attach("ftrtrap", NULL, NULL, note, &seen[0], &all), 3);
	one = watch("tabled", &seen[1]);
	two = watch("tabled", &seen[2]);
	CHECK_INT(tabled(2), 1);
	CHECK_INT(seen[1].values[0], 2);
	CHECK_INT(ftr_usdt_detach(one), 0);
	CHECK_INT(tabled(0), 1);
	CHECK_INT(ftr_usdt_detach(all), 0);
	CHECK_INT(tabled(0), 1);
	CHECK_INT(ftr_usdt_detach(two), 0);
	CHECK_INT(tabled(0), 1);
	CHECK_INT(seen[0].hits, 2);
	CHECK_INT(seen[1].hits, 1);
	CHECK_INT(seen[2].hits, 3);
}

/* A handler runs into the same breakpoint. */
static void nested(void)
{
	struct seen outer = { .calls = 3 }, inner = { 0 };
	struct ftr_usdt *u = watch("jumped", &outer), *v = watch("jumped", &inner);

	CHECK_INT(call(2), 2);
	CHECK_INT(outer.hits, 1);
	CHECK_INT(inner.hits, 4);
	CHECK_INT(ftr_usdt_detach(u), 0);
	CHECK_INT(ftr_usdt_detach(v), 0);
}

static void spoil(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	++*(long *)data;
	__asm__ volatile("xorps %%xmm0, %%xmm0\n\txorps %%xmm7, %%xmm7\n\txorps %%xmm15, %%xmm15\n\t"
			 "clc\n\tmovl $1, %%r8d\n\tmovl $2, %%r9d\n\tmovl $3, %%r10d\n\tmovl $4, %%r11d"
			 : : : "xmm0", "xmm7", "xmm15", "r8", "r9", "r10", "r11", "cc");
}

static void registers(void)
{
	struct ftr_usdt *u;
	long hits = 0;

	CHECK_INT(keeps_all(), 0);
	CHECK_INT(ftr_usdt_attach("ftrtrap", "kept", NULL, spoil, &hits, &u), 1);
	CHECK_INT(keeps_all(), 0);
	CHECK_INT(hits, 1);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

/* ---- signal stacks ---- */

#define FRAME_ROOM 2048 /* for C in the handlers */

static void call_in_handler(int signal)
{
	(void)signal;
	call(1);
}

/* Its signal stack has room for two frames, and for that of the hit: see hit.S. */
static void *on_small_stack(void *arg)
{
	size_t frame = getauxval(51 /* AT_MINSIGSTKSZ */);
	const struct sigaction action = { .sa_handler = call_in_handler, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_size = 2 * (frame ? frame : 4096) + 4096 + FRAME_ROOM };

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_INT(sigaltstack(&stack, NULL), 0);
	CHECK_INT(sigaction(SIGUSR1, &action, NULL), 0);
	for (int i = 0; i < 100; i++) {
		call(1);
		raise(SIGUSR1);
	}
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	munmap(stack.ss_sp, stack.ss_size);
	return arg;
}

static void small_signal_stacks(void)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u = watch("jumped", &seen);
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, on_small_stack, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_INT(seen.hits, 200);
	CHECK_INT(ftr_usdt_detach(u), 0);
	signal(SIGUSR1, SIG_DFL);
}

/* ---- children ---- */

/* @run in a child, which must end well. */
static void in_child(void (*run)(const void *), const void *argument, const char *what)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		run(argument);
		exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(status == 0, "%s: status %x", what, (unsigned)status);
}

static struct seen forked;
static struct ftr_usdt *forked_usdt;

static void child_has_them(const void *unused)
{
	(void)unused;
	call(1);
	CHECK_INT(forked.hits, 2);
	CHECK_INT(ftr_usdt_detach(forked_usdt), 0);
	CHECK_INT(byte_at_probe(), NOP);
	call(1);
	CHECK_INT(forked.hits, 2);
}

static void children(void)
{
	forked_usdt = watch("jumped", &forked);
	call(1);
	in_child(child_has_them, NULL, "fork");
	CHECK_INT(byte_at_probe(), BREAKPOINT);
	call(1);
	CHECK_INT(forked.hits, 2);
	CHECK_INT(ftr_usdt_detach(forked_usdt), 0);
}

/* ---- SIGTRAP blocked and handled ---- */

static int traps;

static void on_trap(int signal)
{
	(void)signal;
	traps++;
}

static sigset_t all_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	return all;
}

/* SIGUSR1 arrives in a call that blocks all others meanwhile. */
static sigset_t all_but_usr1(void)
{
	sigset_t usr1, others = all_signals();

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	signal(SIGUSR1, call_in_handler);
	CHECK_INT(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
	raise(SIGUSR1);
	sigdelset(&others, SIGUSR1);
	return others;
}

static void by_sigaction(void)
{
	CHECK_INT(sigaction(SIGTRAP, &(struct sigaction){ .sa_handler = on_trap }, NULL), 0);
}

static void by_signal(void)
{
	signal(SIGTRAP, on_trap);
}

static void by_handler_mask(void)
{
	const struct sigaction action = { .sa_handler = call_in_handler, .sa_mask = all_signals() };

	CHECK_INT(sigaction(SIGUSR1, &action, NULL), 0);
	raise(SIGUSR1);
}

static void by_pthread_sigmask(void)
{
	sigset_t all = all_signals();

	CHECK_INT(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
}

static void by_sigprocmask(void)
{
	sigset_t all = all_signals();

	CHECK_INT(sigprocmask(SIG_BLOCK, &all, NULL), 0);
}

static void by_siglongjmp(void)
{
	static sigjmp_buf back;
	sigset_t all = all_signals(), before;
	static volatile int jumps;

	sigprocmask(SIG_SETMASK, NULL, &before);
	back[0].__mask_was_saved = 1;
	if (!sigsetjmp(back, 1)) {
		back[0].__saved_mask = *(__sigset_t *)&all;
		siglongjmp(back, 1);
	}
	jumps++;
}

static void by_setcontext(void)
{
	static volatile int done;
	ucontext_t here;

	CHECK_INT(getcontext(&here), 0);
	if (done)
		return;
	done = 1;
	here.uc_sigmask = all_signals();
	setcontext(&here);
}

static void by_sigsuspend(void)
{
	sigset_t others = all_but_usr1();

	sigsuspend(&others);
}

static void by_ppoll(void)
{
	sigset_t others = all_but_usr1();

	ppoll(NULL, 0, NULL, &others);
}

static void by_pselect(void)
{
	sigset_t others = all_but_usr1();

	pselect(0, NULL, NULL, NULL, NULL, &others);
}

static void by_epoll_pwait(void)
{
	sigset_t others = all_but_usr1();
	struct epoll_event event;

	epoll_pwait(epoll_create1(0), &event, 1, -1, &others);
}

static void *calling_thread(void *unused)
{
	call(1);
	return unused;
}

static void by_attribute(void)
{
	sigset_t all = all_signals();
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setsigmask_np(&attr, &all));
	CHECK(!pthread_create(&thread, &attr, calling_thread, NULL) && !pthread_join(thread, NULL));
}

static void by_syscall(void)
{
	unsigned long all = ~0ul;

	CHECK_INT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8), 0);
}

static const struct way {
	const char *name;
	void (*take)(void);
	bool stays; /* the program can have no breakpoints afterwards */
} ways[] = {
	{ "sigaction", by_sigaction, true },
	{ "signal", by_signal, true },
	{ "the mask of a handler", by_handler_mask, true },
	{ "pthread_sigmask", by_pthread_sigmask, true },
	{ "sigprocmask", by_sigprocmask, true },
	{ "siglongjmp", by_siglongjmp, true },
	{ "setcontext", by_setcontext, true },
	{ "sigsuspend", by_sigsuspend, false },
	{ "ppoll", by_ppoll, false },
	{ "pselect", by_pselect, false },
	{ "epoll_pwait", by_epoll_pwait, false },
	{ "an attribute of a thread", by_attribute, false },
	{ "syscall", by_syscall, true },
};

static void given_up(const void *argument)
{
	const struct way *way = argument;
	struct seen seen = { 0 }, later = { 0 };
	struct ftr_usdt *u = watch("jumped", &seen), *v = NULL;

	call(1);
	way->take();
	CHECK_INT(byte_at_probe(), NOP);
	call(1);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(traps, 0);
	if (way->stays) {
		CHECK_INT(ftr_usdt_attach("ftrtrap", "jumped", NULL, note, &later, &v), -ENOTSUP);
		CHECK_INT(byte_at_probe(), NOP);
	} else {
		v = watch("jumped", &later);
		call(1);
		CHECK_INT(later.hits, 1);
		CHECK_INT(ftr_usdt_detach(v), 0);
	}
	CHECK_INT(ftr_usdt_detach(u), -ENODATA);
	call(1);
	CHECK_INT(seen.hits, 1);
}

/* A mask without SIGTRAP, and addresses that are wrong, change nothing. */
static void harmless(void)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u = watch("jumped", &seen);
	sigset_t usr1, before;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	CHECK_INT(pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
	CHECK_INT(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	CHECK_INT(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8), -1);
	CHECK_INT(sigsuspend((sigset_t *)8), -1);
	CHECK_INT(byte_at_probe(), BREAKPOINT);
	call(1);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

/* ---- a deaf thread ---- */

static atomic_int phase;

static void await(int n)
{
	while (atomic_load(&phase) != n)
		sched_yield();
}

static void *deaf_thread(void *arg)
{
	sigset_t all = all_signals(), none;

	pthread_sigmask(SIG_SETMASK, &all, NULL);
	atomic_store(&phase, 1);
	await(2);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	atomic_store(&phase, 3);
	await(4);
	call(1);
	return arg;
}

static void deaf_threads(void)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u;
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, deaf_thread, NULL), 0);
	await(1);
	CHECK_INT(ftr_usdt_attach("ftrtrap", "jumped", NULL, note, &seen, &u), -ENOTSUP);
	CHECK_INT(byte_at_probe(), NOP);
	atomic_store(&phase, 2);
	await(3);
	u = watch("jumped", &seen);
	atomic_store(&phase, 4);
	pthread_join(thread, NULL);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

/* ---- threads at full speed ---- */

static atomic_bool stop;
static atomic_long calls;

static void *runner(void *arg)
{
	while (!atomic_load(&stop)) {
		CHECK_INT(call(2), 2);
		atomic_fetch_add(&calls, 1);
	}
	return arg;
}

static void *masker(void *arg)
{
	sigset_t all = all_signals(), before;

	while (!atomic_load(&stop)) {
		pthread_sigmask(SIG_SETMASK, &all, &before);
		CHECK_INT(call(2), 2);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		CHECK_INT(call(2), 2);
		sched_yield();
	}
	return arg;
}

/* Every call is a hit while the probe is attached, and none before and afterwards. */
static void at_full_speed(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, runner, NULL), 0);
	for (int i = 0; i < 50; i++) {
		struct seen seen = { 0 };
		struct ftr_usdt *u = watch("jumped", &seen);
		long before;

		for (int k = 0; k < 7; k++)
			call(1);
		CHECK(__atomic_load_n(&seen.hits, __ATOMIC_RELAXED) >= 7);
		CHECK_INT(ftr_usdt_detach(u), 0);
		before = seen.hits;
		call(1);
		CHECK_INT(seen.hits, before);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* Threads that block SIGTRAP time and again, and call; whatever the answers are, nobody dies. */
static void masked_at_full_speed(const void *unused)
{
	pthread_t threads[4];

	(void)unused;
	atomic_store(&stop, false);
	for (int i = 0; i < 4; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, i ? masker : runner, NULL), 0);
	for (int i = 0; i < 20; i++) {
		struct seen seen = { 0 };
		struct ftr_usdt *u;
		int got = ftr_usdt_attach("ftrtrap", "jumped", NULL, note, &seen, &u);

		CHECK(got == 1 || got == -ENOTSUP, "%d: %s", got, ftr_error());
		call(1);
		if (got == 1)
			got = ftr_usdt_detach(u);
		CHECK(got == 0 || got == -ENODATA || got == -ENOTSUP, "%d: %s", got, ftr_error());
		CHECK_INT(byte_at_probe(), NOP);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* ---- no system calls ---- */

/* The filter does not even let a signal handler return. */
static void forbid_system_calls(void)
{
	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &no_calls), 0);
}

static void without_system_calls(const void *unused)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u = watch("jumped", &seen), *v;

	(void)unused;
	call(1);
	forbid_system_calls();
	CHECK_INT(byte_at_probe(), NOP);
	call(1);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(ftr_usdt_attach("ftrtrap", "jumped", NULL, note, &seen, &v), -EPERM);
	CHECK_INT(ftr_usdt_detach(u), -EPERM);
	_exit(0);
}

int main(void)
{
	arguments();
	all_kinds();
	nested();
	registers();
	small_signal_stacks();
	children();
	harmless();
	deaf_threads();
	at_full_speed();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		in_child(given_up, &ways[i], ways[i].name);
	in_child(masked_at_full_speed, NULL, "masks at full speed");
	in_child(without_system_calls, NULL, "seccomp");
	puts("ok");
	return 0;
}
#endif
