/* SPDX-License-Identifier: MIT */
/* Static probes of this very program, attached to and detached from. */
#define _GNU_SOURCE 1
#define _SDT_HAS_SEMAPHORES 1
#include "check.h"
#include "sealed.h"

#if !__has_include(<sys/sdt.h>)
int main(void)
{
	puts("SKIP: needs sys/sdt.h (systemtap-sdt-dev)");
	return 77;
}
#else
#include "usdt_asm.h"
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__extension__ unsigned short ftrtest_plain_semaphore __attribute__((section(".probes")));
__extension__ unsigned short ftrtest_loop_semaphore __attribute__((section(".probes")));
__extension__ unsigned short ftrtest_first_first_semaphore __attribute__((section(".probes")));

static int global = 77;

__attribute__((noinline)) static int plain(int a, long *b)
{
	volatile int room[4] = { a, a, a, a }; /* for the patch of a traced function's entry */

	(void)room;
	STAP_PROBE4(ftrtest, plain, a, *b, 5, global);
	return a + (int)*b;
}

__attribute__((noinline)) static int loop(int n)
{
	volatile int room[4] = { n, n, n, n };
	int sum = 0;

	(void)room;
	for (int i = 0; i < n; i++) {
		STAP_PROBE1(ftrtest, loop, i);
		sum += i;
	}
	return sum;
}

/* The nop is the function's first instruction. */
__attribute__((noinline)) static int first(int x)
{
	STAP_PROBE1(ftrtest_first, first, x);
	return x + 1;
}

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
		CHECK_INT(ftr_usdt_detach(seen->detach), 0);
}

static struct ftr_usdt *watch(const char *name, int places, struct seen *seen)
{
	struct ftr_usdt *u = NULL;
	int got = ftr_usdt_attach("ftrtest", name, NULL, note, seen, &u);

	CHECK(got == places, "%s: %d (%s)", name, got, ftr_error());
	return u;
}

static void arguments(void)
{
	struct seen seen = { 0 };
	long b = -3;
	struct ftr_usdt *u = watch("plain", 1, &seen);

	CHECK_INT(ftrtest_plain_semaphore, 1);
	errno = 7;
	CHECK_INT(plain(4, &b), 1);
	CHECK_INT(errno, 7);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(seen.args[0], 4);
	CHECK_INT(seen.args[1], -3);
	CHECK_INT(seen.args[2], 5);
	CHECK_INT(seen.args[3], 77);
	CHECK_INT(seen.errors[4], -ENOENT);
	CHECK(!strcmp(seen.probe.provider, "ftrtest"));
	CHECK(!strcmp(seen.probe.name, "plain"));
	CHECK_INT(seen.probe.arguments, 4);
	CHECK_INT(ftr_usdt_detach(u), 0);
	CHECK_INT(ftrtest_plain_semaphore, 0);
	plain(4, &b);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(ftr_usdt_detach(u), -EINVAL);
}

static void a_wide_nop(void)
{
	struct seen seen = { 0 };
	uint8_t before[16];
	struct ftr_usdt *u;

	memcpy(before, (void *)(uintptr_t)wide, sizeof(before));
	u = watch("wide", 1, &seen);
	CHECK_INT(wide(0x1fe), 0x1ff);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(seen.args[0], 0x1fe);
	CHECK_INT(seen.args[1], 0xfe);
	CHECK_INT(seen.args[2], -2);
	CHECK_INT(seen.args[3], 0xffffffff);
	CHECK_INT(seen.errors[4], -ENOTSUP);
	CHECK_INT(seen.errors[5], -ENOTSUP);
	CHECK_INT(seen.errors[6], -EFAULT); /* near address 0 */
	CHECK_INT(ftr_usdt_detach(u), 0);
	CHECK(!memcmp(before, (void *)(uintptr_t)wide, sizeof(before)));
}

static void note_floats(struct ftr_usdt_hit *hit, void *data)
{
	static const int errors[8] = { 0, 0, 0, -ENOTSUP, -ENOTSUP, -ENOTSUP, -EFAULT, -ENOENT };
	double *values = data;

	for (unsigned i = 0; i < 8; i++)
		CHECK_INT(ftr_usdt_double(hit, i, &values[i]), errors[i]);
}

static void floating_point_arguments(void)
{
	static const float rows[] = { 0, -0.0f, 1.5f, -3e38f, 1e-40f, -1e-45f, 1.0f / 3, __builtin_inff() };
	double values[8];
	struct ftr_usdt *u;

	CHECK_INT(ftr_usdt_attach("ftrtest_floats", NULL, NULL, note_floats, values, &u), 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const double wanted[3] = { i / 3.0, rows[i], -rows[i] };
		const float memory = -rows[i];

		CHECK_INT(floats(i / 3.0, rows[i], &memory), 2);
		CHECK(!memcmp(values, wanted, sizeof(wanted)), "row %zu: %g %g %g", i,
			values[0], values[1], values[2]);
	}
	CHECK_INT(ftr_usdt_detach(u), 0);
}

static void a_probe_that_is_jumped_to(void)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u = watch("loop", 1, &seen);

	CHECK_INT(loop(10), 45);
	CHECK_INT(seen.hits, 10);
	CHECK_INT(seen.args[0], 9);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

static void a_probe_at_a_functions_start(void)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u;

	if (getenv("LD_PRELOAD")) /* traced: the function's entry is patched */
		return;
	CHECK_INT(ftr_usdt_attach("ftrtest_first", NULL, NULL, note, &seen, &u), 1);
	CHECK_INT(first(3), 4);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(seen.args[0], 3);
	CHECK_INT(ftr_usdt_detach(u), 0);
	CHECK_INT(first(3), 4);
	CHECK_INT(seen.hits, 1);
}

static void several_attachments(void)
{
	struct seen seen[3] = { 0 };
	long b = 1;
	struct ftr_usdt *all = watch("*", 4, &seen[0]), *one = watch("plain", 1, &seen[1]), *two;

	CHECK_INT(ftrtest_plain_semaphore, 2);
	two = watch("p*n", 1, &seen[2]);
	plain(1, &b);
	CHECK_INT(ftr_usdt_detach(one), 0);
	plain(1, &b);
	CHECK_INT(ftr_usdt_detach(all), 0);
	plain(1, &b);
	CHECK_INT(loop(3), 3);
	CHECK_INT(ftr_usdt_detach(two), 0);
	plain(1, &b);
	CHECK_INT(seen[0].hits, 2);
	CHECK_INT(seen[1].hits, 1);
	CHECK_INT(seen[2].hits, 3);
	CHECK_INT(ftrtest_plain_semaphore, 0);
}

static void a_handler_detaches_itself(void)
{
	struct seen seen = { 0 };

	seen.detach = watch("loop", 1, &seen);
	CHECK_INT(loop(10), 45);
	CHECK_INT(seen.hits, 1);
	/* and what could not be freed then is used again, or freed, later */
	for (int i = 0; i < 5; i++) {
		struct ftr_usdt *u;

		seen = (struct seen){ 0 };
		u = watch("loop", 1, &seen);
		CHECK_INT(loop(10), 45);
		CHECK_INT(seen.hits, 10);
		CHECK_INT(ftr_usdt_detach(u), 0);
	}
}

static void nest(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	++*(unsigned *)data;
	loop(5);
}

static void a_handler_does_not_see_itself(void)
{
	struct seen seen = { 0 };
	struct ftr_usdt *nested, *u = watch("loop", 1, &seen);
	unsigned hits = 0;

	CHECK_INT(ftr_usdt_attach("ftrtest", "loop", NULL, nest, &hits, &nested), 1);
	CHECK_INT(loop(2), 1);
	CHECK_INT(hits, 2);
	CHECK_INT(seen.hits, 2 + 2 * 5);
	CHECK_INT(ftr_usdt_detach(nested), 0);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

static void errors(void)
{
	struct seen seen;
	struct ftr_usdt *u;

	CHECK_INT(ftr_usdt_attach("ftrtest", "none", NULL, note, &seen, &u), -ENOENT);
	CHECK(!strcmp(ftr_error(), "no loaded module has such a static probe"));
	CHECK_INT(ftr_usdt_attach("ftrtest", NULL, "no*module", note, &seen, &u), -ENOENT);
	CHECK_INT(ftr_usdt_attach(NULL, NULL, NULL, NULL, &seen, &u), -EINVAL);
	CHECK_INT(ftr_usdt_detach(NULL), -EINVAL);
}

#if defined(__aarch64__)
static void note_paged(struct ftr_usdt_hit *hit, void *data)
{
	int64_t *values = data;

	CHECK_INT(ftr_usdt_argument(hit, 0, &values[0]), 0);
	CHECK_INT(ftr_usdt_argument(hit, 1, &values[1]), 0);
}

static void variables_by_page(void)
{
	int64_t values[2] = { 0 };
	struct ftr_usdt *u;

	CHECK_INT(ftr_usdt_attach("ftrtest_page", NULL, NULL, note_paged, values, &u), 1);
	CHECK_INT(by_page(), 1234);
	CHECK_INT(values[0], 1234);
	CHECK_INT(values[1], 5678);
	CHECK_INT(ftr_usdt_detach(u), 0);
}
#endif

/* ---- registers ---- */

static void spoil(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	++*(unsigned *)data;
	spoil_registers();
}

static void registers(void)
{
	struct ftr_usdt *u;
	unsigned hits = 0;

	CHECK_INT(keeps_all(), 0);
	CHECK_INT(ftr_usdt_attach("ftrtest", "kept", NULL, spoil, &hits, &u), 1);
	CHECK_INT(keeps_all(), 0);
	CHECK_INT(hits, 1);
	CHECK_INT(ftr_usdt_detach(u), 0);
#if defined(__aarch64__)
	if (getauxval(AT_HWCAP) & HWCAP_SVE) {
		CHECK_INT(keeps_sve(), 0);
		CHECK_INT(ftr_usdt_attach("ftrtest_sve", NULL, NULL, spoil, &hits, &u), 1);
		CHECK_INT(keeps_sve(), 0);
		CHECK_INT(hits, 2);
		CHECK_INT(ftr_usdt_detach(u), 0);
	}
#endif
}

/* ---- unwinding ---- */

struct stack {
	void *addresses[32];
	int n;
	int at_probe; /* index of the probe's address; n: it is not there */
};

static void look_back(struct ftr_usdt_hit *hit, void *data)
{
	struct stack *s = data;

	s->n = backtrace(s->addresses, 32);
	s->at_probe = 0;
	while (s->at_probe < s->n && s->addresses[s->at_probe] != ftr_usdt_probe(hit)->address)
		s->at_probe++;
}

__attribute__((noinline, noclone)) static int calls_plain(long *b)
{
	volatile long room[4] = { *b, *b, *b, *b }; /* see plain() */

	(void)room;
	return plain(1, b) + (int)*b;
}

static bool is_in_caller(const void *address)
{
	return (uintptr_t)address - (uintptr_t)calls_plain < 256;
}

/* Unwinders see the program at the probe, and its callers. */
static void call_stacks(void)
{
	struct stack stack = { .n = 0 };
	struct ftr_usdt *u;
	long b = 5;

	backtrace(stack.addresses, 32); /* loads what it needs */
	CHECK_INT(ftr_usdt_attach("ftrtest", "plain", NULL, look_back, &stack, &u), 1);
	CHECK_INT(calls_plain(&b), 11);
	CHECK_INT(ftr_usdt_detach(u), 0);
	while (stack.at_probe < stack.n && !is_in_caller(stack.addresses[stack.at_probe]))
		stack.at_probe++; /* a traced function's return point comes in between */
	CHECK(stack.at_probe < stack.n, "%d addresses", stack.n);
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

static void attached_while_threads_run(void)
{
	pthread_t threads[3];
	bool wrong = false;

	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, runner, &wrong));
	for (int i = 0; i < 5; i++) {
		unsigned hits = 0, before;
		struct ftr_usdt *u;

		CHECK_INT(ftr_usdt_attach("ftrtest", "loop", NULL, count, &hits, &u), 1);
		loop(7);
		CHECK(__atomic_load_n(&hits, __ATOMIC_RELAXED) >= 7);
		CHECK_INT(ftr_usdt_detach(u), 0);
		before = __atomic_load_n(&hits, __ATOMIC_RELAXED);
		loop(7);
		CHECK_INT(__atomic_load_n(&hits, __ATOMIC_RELAXED), before);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(!wrong);
}

static void a_forked_child_has_them(void)
{
	struct seen seen = { 0 };
	struct ftr_usdt *u = watch("loop", 1, &seen);
	int status = -1;
	pid_t child = fork();

	if (!child) {
		bool right = loop(10) == 45 && seen.hits == 10 && !ftr_usdt_detach(u);

		right = right && loop(10) == 45 && seen.hits == 10;
		_exit(!right);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	loop(1);
	CHECK_INT(seen.hits, 1);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

static atomic_int inside, may_leave;

static void stay(struct ftr_usdt_hit *hit, void *data)
{
	(void)hit;
	++*(atomic_int *)data;
	atomic_store(&inside, 1);
	while (!atomic_load(&may_leave))
		sched_yield();
}

static void *loop_once(void *arg)
{
	loop(1);
	return arg;
}

/* A handler runs in a thread that the child does not have: nobody waits for it there. */
static void forked_amid_a_hit(void)
{
	atomic_int hits = 0;
	struct ftr_usdt *u;
	pthread_t thread;
	int status = -1;
	pid_t child;

	CHECK_INT(ftr_usdt_attach("ftrtest", "loop", NULL, stay, &hits, &u), 1);
	CHECK_INT(pthread_create(&thread, NULL, loop_once, NULL), 0);
	while (!atomic_load(&inside))
		sched_yield();
	child = fork();
	if (!child) {
		alarm(60);
		CHECK_INT(ftr_usdt_detach(u), 0);
		CHECK_INT(loop(3), 3);
		CHECK_INT(hits, 1);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(status == 0, "status %x", (unsigned)status);
	atomic_store(&may_leave, 1);
	pthread_join(thread, NULL);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

/* Not even for arguments in memory. */
static void note_in_memory(struct ftr_usdt_hit *hit, void *data)
{
	CHECK_INT(ftr_usdt_double(hit, 2, data), 0);
}

static void hits_make_no_system_call(void)
{
	const float memory[2] = { 0.5f, 0.25f };
	struct ftr_usdt *u, *none;
	double seen = 0;
	int status = -1;
	pid_t child;

	CHECK_INT(ftr_usdt_attach("ftrtest_floats", NULL, NULL, note_in_memory, &seen, &u), 1);
	child = fork();
	if (!child) {
		CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
		CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &no_calls), 0);
		CHECK_INT(floats(1, 1, &memory[0]), 2);
		CHECK(seen == memory[0]);
		CHECK_INT(ftr_usdt_attach("ftrtest", "loop", NULL, note, &seen, &none), -EPERM);
		CHECK_INT(ftr_usdt_detach(u), -EPERM);
		CHECK_INT(floats(1, 1, &memory[1]), 2);
		CHECK(seen == memory[0]);
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(status == 0, "status %x", (unsigned)status);
	CHECK_INT(ftr_usdt_detach(u), 0);
}

int main(void)
{
	arguments();
	a_wide_nop();
	floating_point_arguments();
	a_probe_that_is_jumped_to();
	a_probe_at_a_functions_start();
	several_attachments();
	a_handler_detaches_itself();
	a_handler_does_not_see_itself();
	errors();
#if defined(__aarch64__)
	variables_by_page();
#endif
	registers();
	call_stacks();
	attached_while_threads_run();
	a_forked_child_has_them();
	forked_amid_a_hit();
	if (!is_emulated()) /* no seccomp there */
		hits_make_no_system_call();
	puts("ok");
	return 0;
}
#endif
