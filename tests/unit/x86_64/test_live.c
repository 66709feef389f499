/* SPDX-License-Identifier: MIT */
/*
 * Code replaced while other threads execute it. The function straddles a cache line and begins with
 * three short instructions; replaced, it adds 1000 to what it returns.
 *
 * FTR_TOGGLES: how often the storms replace it and put it back.
 */
#define _GNU_SOURCE 1
#include "trampolines/live.h"
#include "trampolines/trap.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define WINDOW	 6
#define ADDED	 1000
#define CALLERS	 4
#define ALT_SIZE 65536

int victim(int x);
int other(int x);
extern uint8_t victim_line[], victim_detour[], other_detour[], spin[], spin_end[];
void spin_inside(void);
void calls_back(void (*callback)(void));
__asm__(".text\n.balign 64\nvictim_line:\n\t.skip 62, 0xcc\n"
	"victim:\n\tpush %rbx\n\tmov %edi, %ebx\n\tlea 1(%rbx), %eax\n"
	"\tpop %rbx\n\tret\n"
	"victim_detour:\n\tpush %rbx\n\tmov %edi, %ebx\n\tlea 1001(%rbx), %eax\n\tjmp victim + 6\n"
	"other:\n\tpush %rbx\n\tmov %edi, %ebx\n\tlea 1(%rbx), %eax\n\tpop %rbx\n\tret\n"
	"other_detour:\n\tpush %rbx\n\tmov %edi, %ebx\n\tlea 1001(%rbx), %eax\n\tjmp other + 6\n"
	/* a window that a call returns into */
	"calls_back:\n\tpush %rbx\n\tcall *%rdi\n\tnop\n\tnop\n\tpop %rbx\n\tret\n"
	/* a window that threads stay in */
	".balign 64\n"
	"spin:\n\tnop\nspin_inside:\n\tpause\n\tjmp spin_inside\nspin_end:\n\tret\n");

static struct patch_how how = { .page = 4096 };

/* A jump to @to. */
static struct isa_patch jump(const void *from, const void *to)
{
	struct isa_patch p = { .addr = (uint64_t)from, .len = 5, .bytes = { 0xe9 } };
	int32_t distance = (int32_t)((intptr_t)to - (intptr_t)from - 5);

	memcpy(p.bytes + 1, &distance, sizeof(distance));
	return p;
}

static unsigned long toggles(unsigned long fallback)
{
	const char *given = getenv("FTR_TOGGLES");

	return given ? strtoul(given, NULL, 10) : fallback;
}

/* ---- callers ---- */

static bool stop;
static unsigned long wrong;

static void call_victim(int x)
{
	int y = victim(x) - x;

	if (y != 1 && y != 1 + ADDED)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *caller(void *arg)
{
	(void)arg;
	for (int x = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); x++)
		call_victim(x);
	return NULL;
}

/* What earlier calls and signals leave on a stack may look like an address inside. */
__attribute__((noinline)) static void leave_rubbish(void)
{
	volatile uint64_t below[4096];

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
		below[i] = (uint64_t)victim + 3;
}

static void *rubbish_then_caller(void *arg)
{
	leave_rubbish();
	return caller(arg);
}

/* Replace @n times and put back; each time what this thread sees is exact. */
static void toggle(unsigned long n)
{
	const struct isa_patch patch = jump(victim, victim_detour);
	const uint8_t window = WINDOW;
	struct isa_patch old, between;

	for (unsigned long i = 0; i < n; i++) {
		int err = live_store(&patch, 1, &window, &old, &how);

		cr_assert_eq(err, 0, "replaced %lu times, then %s", i, strerror(-err));
		cr_assert_eq(victim(7), 8 + ADDED);
		err = live_store(&old, 1, &window, &between, &how);
		cr_assert_eq(err, 0, "put back %lu times, then %s", i, strerror(-err));
		cr_assert_eq(victim(7), 8);
		cr_assert(!memcmp(between.bytes, patch.bytes, patch.len));
	}
}

static void with_callers(void (*work)(unsigned long), unsigned long n)
{
	const uint8_t *text = victim_line + 56; /* other code changes nearby */
	uint8_t before[16];
	pthread_t threads[CALLERS];

	memcpy(before, text, sizeof(before));
	for (int i = 0; i < CALLERS; i++)
		cr_assert(!pthread_create(threads + i, NULL, caller, NULL));
	work(n);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(wrong, 0, "%lu calls returned something else", wrong);
	cr_assert(!memcmp(before, text, sizeof(before)), "the text is not what it was");
}

Test(live, alone)
{
	toggle(10);
}

Test(live, callers_at_full_speed)
{
	with_callers(toggle, toggles(20));
}

/* ---- more than callers ---- */

static void on_alarm(int signal)
{
	(void)signal;
	call_victim(42);
}

Test(live, signal_handlers_call_it)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } };

	signal(SIGALRM, on_alarm);
	cr_assert(!setitimer(ITIMER_REAL, &often, NULL));
	with_callers(toggle, toggles(20));
	signal(SIGALRM, SIG_IGN);
}

static void *caller_of_a_moment(void *arg)
{
	(void)arg;
	for (int x = 0; x < 1000; x++)
		call_victim(x);
	return NULL;
}

static void *starter(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_t t;

		cr_assert(!pthread_create(&t, NULL, caller_of_a_moment, NULL));
		pthread_join(t, NULL);
	}
	return arg;
}

Test(live, threads_come_and_go)
{
	pthread_t thread;

	cr_assert(!pthread_create(&thread, NULL, starter, NULL));
	with_callers(toggle, toggles(20));
	pthread_join(thread, NULL);
}

/* Two at a time, each with its own function; and the functions of the other are called. */
static void *toggler(void *arg)
{
	const struct isa_patch patch = jump(other, other_detour);
	const uint8_t window = WINDOW;
	struct isa_patch old;

	for (unsigned long i = 0; i < *(unsigned long *)arg; i++) {
		int err = live_store(&patch, 1, &window, &old, &how);

		cr_assert_eq(err, 0, "replaced %lu times, then %s", i, strerror(-err));
		cr_assert_eq(other(1), 2 + ADDED);
		cr_assert_eq(live_store(&old, 1, &window, NULL, &how), 0);
		cr_assert_eq(other(1), 2);
	}
	return NULL;
}

Test(live, two_replace_at_once)
{
	unsigned long n = toggles(20);
	pthread_t thread;

	cr_assert(!pthread_create(&thread, NULL, toggler, &n));
	with_callers(toggle, n);
	pthread_join(thread, NULL);
}

/* A forked child has whatever stood in the text at that moment. 0, or what went wrong. */
static int as_a_child(void)
{
	const struct isa_patch patch = jump(victim, victim_detour);
	const uint8_t window = WINDOW;
	int y = victim(5);

	if (y != 6 && y != 6 + ADDED)
		return 1;
	if (live_store(&patch, 1, &window, NULL, &how))
		return 2;
	return victim(5) == 6 + ADDED ? 0 : 3;
}

static void *forker(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int status = -1;
		pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (!child)
			_exit(as_a_child());
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0, "a child ended with %x", (unsigned)status);
	}
	return arg;
}

Test(live, forks_meanwhile)
{
	pthread_t thread;

	cr_assert(!pthread_create(&thread, NULL, forker, NULL));
	with_callers(toggle, toggles(20));
	pthread_join(thread, NULL);
}

/* A thread that blocks everything calls it too. */
static void *deaf_caller(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	return caller(arg);
}

Test(live, callers_that_block_signals)
{
	pthread_t thread;

	cr_assert(!pthread_create(&thread, NULL, deaf_caller, NULL));
	with_callers(toggle, toggles(20));
	pthread_join(thread, NULL);
}

Test(live, callers_with_rubbish_below_their_stack)
{
	pthread_t thread;

	cr_assert(!pthread_create(&thread, NULL, rubbish_then_caller, NULL));
	with_callers(toggle, 5);
	pthread_join(thread, NULL);
}

/* ---- system calls that are interrupted ---- */

static int pipes[2];

/* Sleeps with all signals blocked, in a call that no signal may end. */
static void *deaf_reader(void *arg)
{
	struct pollfd fd = { .fd = pipes[0], .events = POLLIN };
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	cr_assert_eq(poll(&fd, 1, -1), 1, "poll: %s", strerror(errno));
	return arg;
}

Test(live, calls_of_deaf_threads_are_not_ended)
{
	pthread_t thread;

	cr_assert(!pipe(pipes));
	cr_assert(!pthread_create(&thread, NULL, deaf_reader, NULL));
	with_callers(toggle, 10);
	cr_assert_eq(write(pipes[1], "x", 1), 1);
	pthread_join(thread, NULL);
}

/* ---- threads inside ---- */

static void *in_spin(void *arg)
{
	((void (*)(void))(uintptr_t)spin)();
	return arg;
}

static bool is_in_spin(uint64_t pc)
{
	return pc >= (uint64_t)spin && pc < (uint64_t)spin_end;
}

static bool reached;

/* Keeps a thread in a handler that has interrupted the loop, until something can be read. */
static void on_stay(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char byte;

	(void)signal;
	(void)info;
	if (!is_in_spin((uint64_t)uc->uc_mcontext.gregs[REG_RIP]))
		return; /* not there yet: sent again */
	__atomic_store_n(&reached, true, __ATOMIC_SEQ_CST);
	cr_assert_eq(read(pipes[0], &byte, 1), 1);
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)spin_end;
}

static void *in_spin_with_stack(void *arg)
{
	stack_t alt = { .ss_sp = malloc(ALT_SIZE), .ss_size = ALT_SIZE };

	cr_assert(!sigaltstack(&alt, NULL));
	return in_spin(arg);
}

/* @flags: SA_ONSTACK or 0 */
static void with_a_thread_inside(int flags, bool stays)
{
	struct sigaction action = { .sa_sigaction = on_stay, .sa_flags = SA_SIGINFO | flags };
	const struct isa_patch patch = jump(spin, victim_detour);
	const uint8_t window = (uint8_t)(spin_end - spin);
	struct isa_patch old;
	pthread_t thread;
	uint8_t before[8];

	memcpy(before, spin, sizeof(before));
	cr_assert(!pipe(pipes));
	cr_assert(!sigaction(SIGUSR1, &action, NULL));
	cr_assert(!pthread_create(&thread, NULL, in_spin_with_stack, NULL));
	while (stays && !__atomic_load_n(&reached, __ATOMIC_SEQ_CST)) {
		cr_assert(!pthread_kill(thread, SIGUSR1));
		sched_yield();
	}
	if (!stays) /* until it is there for good, which the first answer shows */
		while (live_store(&patch, 1, &window, &old, &how) != -EBUSY)
			cr_assert_eq(live_store(&old, 1, &window, NULL, &how), 0);
	cr_assert_eq(live_store(&patch, 1, &window, NULL, &how), -EBUSY);
	cr_assert(!memcmp(before, spin, sizeof(before)));
	cr_assert(live_busy(&(struct code_range){ (uint64_t)spin, (uint64_t)spin_end }, 1));
	cr_assert_eq(write(pipes[1], "x", 1), 1);
	if (!stays)
		cr_assert(!pthread_kill(thread, SIGUSR1));
	pthread_join(thread, NULL);
	cr_assert(!live_busy(&(struct code_range){ (uint64_t)spin, (uint64_t)spin_end }, 1));
	cr_assert_eq(live_store(&patch, 1, &window, &old, &how), 0);
	cr_assert_eq(live_store(&old, 1, &window, NULL, &how), 0);
	cr_assert(!memcmp(before, spin, sizeof(before)));
}

Test(live, refuses_while_a_thread_is_inside)
{
	with_a_thread_inside(0, false);
}

Test(live, refuses_while_a_signal_frame_leads_inside)
{
	with_a_thread_inside(0, true);
}

Test(live, refuses_while_a_signal_frame_on_another_stack_leads_inside)
{
	with_a_thread_inside(SA_ONSTACK, true);
}

/* ---- what is the program's ---- */

static int traps_seen;

static void on_own_trap(int signal, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	traps_seen += signal == SIGTRAP;
}

Test(live, the_programs_breakpoints_stay_its_own)
{
	struct sigaction action = { .sa_sigaction = on_own_trap, .sa_flags = SA_SIGINFO }, now;

	cr_assert(!sigaction(SIGTRAP, &action, NULL));
	with_callers(toggle, 5);
	__asm__ volatile("int3");
	raise(SIGTRAP);
	cr_assert_eq(traps_seen, 2);

	/* installed again: ours is behind, and found missing by the next store */
	cr_assert(!sigaction(SIGTRAP, &action, NULL));
	stop = false;
	with_callers(toggle, 5);
	__asm__ volatile("int3");
	cr_assert_eq(traps_seen, 3);

	live_release();
	cr_assert(!sigaction(SIGTRAP, NULL, &now));
	cr_assert(now.sa_sigaction == on_own_trap);
}

Test(live, an_own_breakpoint_still_kills)
{
	int status = -1;
	pid_t child;

	with_callers(toggle, 5);
	child = fork();
	if (!child)
		__asm__ volatile("int3");
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
}

/* ---- what is missing ---- */

static void refuse(int number, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	cr_assert(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	cr_assert(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* Every thread is held, as those are of CPUs that do not let such instructions be replaced. */
Test(live, memory_that_cannot_be_written_as_a_file)
{
	refuse(SYS_pwrite64, EPERM);
	with_callers(toggle, 10);
}

Test(live, without_membarrier)
{
	refuse(SYS_membarrier, ENOSYS);
	with_callers(toggle, 10);
}

static void is_refused(unsigned long expected)
{
	const struct isa_patch patch = jump(victim, victim_detour);

	cr_assert_eq(live_store(&patch, 1, NULL, NULL, &how), -(int)expected);
}

Test(live, without_proc)
{
	refuse(SYS_openat, EACCES);
	with_callers(is_refused, EPERM);
}

Test(live, refuses_disorder)
{
	struct isa_patch patches[] = { jump(victim + 2, victim), jump(victim, victim) };

	cr_assert_eq(live_store(patches, 2, NULL, NULL, &how), -EINVAL);
}

/* Only a return address leads the calling thread back, and only behind a call. */
Test(live, words_on_the_callers_stack)
{
	const struct isa_patch patch = jump(victim, victim_detour);
	const uint8_t window = WINDOW;
	volatile uint64_t words[WINDOW];
	struct isa_patch old;

	for (int i = 0; i < WINDOW; i++)
		words[i] = (uint64_t)victim + (uint64_t)i;
	cr_assert_eq(live_store(&patch, 1, &window, &old, &how), 0);
	cr_assert_eq(victim(7), 8 + ADDED);
	cr_assert_eq(live_store(&old, 1, &window, NULL, &how), 0);
	cr_assert_eq(words[1], (uint64_t)victim + 1);
}

static void replace_the_caller(void)
{
	const struct isa_patch patch = jump(calls_back, victim_detour);
	const uint8_t window = 5;

	cr_assert_eq(live_store(&patch, 1, &window, NULL, &how), -EBUSY);
}

Test(live, called_from_the_window)
{
	calls_back(replace_the_caller);
}

Test(live, calls_that_end)
{
	static const struct {
		uint8_t code[8];
		unsigned ends; /* bit n: at n */
	} rows[] = {
		{ { 0xe8, 0, 0, 0, 0, 0x90 }, 1 << 5 },	      /* call rel32 */
		{ { 0x53, 0xff, 0xd7, 0x90 }, 1 << 3 },	      /* push rbx; call *rdi */
		{ { 0xff, 0x57, 0x08, 0x90 }, 1 << 2 | 1 << 3 }, /* call *8(rdi); as if *rdi */
		{ { 0x53, 0x89, 0xfb, 0x8d, 0x43, 0x01 }, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned n = 1; n <= 5; n++)
			cr_expect(arch_call_ends(rows[i].code, n) || !(rows[i].ends >> n & 1),
				"row %zu: a call ends at %u", i, n);
	for (unsigned n = 1; n <= 5; n++)
		cr_expect(!arch_call_ends(rows[3].code, n), "no call ends at %u", n);
}
