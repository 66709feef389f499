/* SPDX-License-Identifier: MIT */
/*
 * Detours that nothing leads to any more are given back, but not while somebody is in them: a thread
 * in a function's body, a stack that does not run, handlers that are owed by a row of jumps.
 */
#define _GNU_SOURCE 1
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdbool.h>
#include <ucontext.h>

#define MANY 1100 /* more than there can be images at a time */
#define KEPT 33 /* images that stay for the next probe, at most; see tracer/detours.c */

/* Images of detours that are mapped. */
static int images(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "r-xp") && strstr(line, ".detours");
	fclose(f);
	return n;
}

static struct ftr_function *functions;
static int nfunctions;

/* By handlers: the detours for counts, which others() needs, are not made here. */
NOINLINE static void list_functions(void)
{
	const struct ftr_probe_spec all = { .name = "[ms]*", .module = "libc.so*",
		.entry = check_no_handler, .flags = FTR_BEST_EFFORT };
	struct ftr_probe *probe;

	nfunctions = ftr_attach(&all, &probe);
	CHECK(nfunctions > 100, "%s", ftr_error());
	free(functions);
	functions = calloc((size_t)nfunctions, sizeof(*functions));
	for (int i = 0; i < nfunctions; i++)
		CHECK_INT(ftr_probe_function(probe, (unsigned)i, &functions[i]), 0);
	CHECK_INT(ftr_detach(probe), 0);
}

/* Attach to @n functions, one after the other, each with an image of its own. */
static void others(int n)
{
	for (int i = 0; i < n; i++)
		CHECK_INT(ftr_detach(attach(functions[i % nfunctions].address, NULL, NULL, NULL)),
			0);
}

static void many_functions(void)
{
	int before = images();

	others(MANY);
	CHECK(images() <= before + KEPT, "%d images, then %d", before, images());
}

static void whole_letters(void)
{
	const struct ftr_probe_spec all = { .name = "[ms]*", .module = "libc.so*",
		.entry = check_no_handler, .flags = FTR_BEST_EFFORT | FTR_GENERAL_REGS };

	for (int i = 0; i < 5; i++) {
		struct ftr_probe *probe;

		CHECK(ftr_attach(&all, &probe) > 100, "%s", ftr_error());
		CHECK_INT(strtol("12", NULL, 10), 12);
		CHECK_INT(ftr_detach(probe), 0);
	}
}

/* ---- a thread in a body ---- */

static sem_t inside, go_on;

NOINLINE static int sits(int n)
{
	sem_post(&inside);
	while (sem_wait(&go_on))
		;
	return n + 1;
}

static void *call_sits(void *arg)
{
	CHECK_INT(sits(6), 7);
	return arg;
}

static long returns;

static void on_return(struct ftr_call *call, void *data)
{
	(void)data;
	CHECK_INT(*(int *)ftr_result(call, 'i'), 7);
	returns++;
}

/* Detached while the call is in progress; @again: attached when it returns. */
static void thread_in_body(bool again)
{
	struct ftr_probe *probe = attach(sits, NULL, on_return, NULL);
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, call_sits, NULL), 0);
	sem_wait(&inside);
	CHECK_INT(ftr_detach(probe), 0);
	others(2 * KEPT);
	if (again)
		probe = attach(sits, NULL, on_return, NULL);
	sem_post(&go_on);
	pthread_join(thread, NULL);
	if (again)
		CHECK_INT(ftr_detach(probe), 0);
	CHECK_INT(returns, 0);
}

/* ---- a stack that does not run ---- */

static ucontext_t fiber, back;

NOINLINE static int switches(int n)
{
	swapcontext(&fiber, &back);
	return n + 1;
}

static void in_fiber(void)
{
	CHECK_INT(switches(1), 2);
}

static void fiber_in_body(void)
{
	struct ftr_probe *probe = attach(switches, NULL, NULL, NULL);

	getcontext(&fiber);
	fiber.uc_stack.ss_sp = malloc(65536);
	fiber.uc_stack.ss_size = 65536;
	fiber.uc_link = &back;
	makecontext(&fiber, in_fiber, 0);
	swapcontext(&back, &fiber);
	CHECK_INT(ftr_detach(probe), 0);
	others(2 * KEPT);
	swapcontext(&back, &fiber);
	free(fiber.uc_stack.ss_sp);
}

/* ---- a row of jumps ---- */

#if defined(__x86_64__)

static void count(struct ftr_call *call, void *data)
{
	(void)call;
	++*(long *)data;
}

int jumped_to(int n);
int jumps(int n);

NOINLINE int jumped_to(int n)
{
	return sits(n);
}

__asm__(".text\n.type jumps, @function\njumps:\n"
	"	.cfi_startproc\n"
	"	lea 1(%rdi), %edi\n"
	"	nop\n"
	"	nop\n"
	"	jmp jumped_to\n"
	"	.cfi_endproc\n"
	".size jumps, . - jumps\n");

static void *call_jumps(void *arg)
{
	CHECK_INT(jumps(5), 7);
	return arg;
}

/* The handlers of the first are owed at the return of the second. */
static void handlers_owed(void)
{
	long first_returns = 0, second_returns = 0;
	struct ftr_probe *first = attach(jumps, NULL, count, &first_returns);
	struct ftr_probe *second = attach(jumped_to, NULL, count, &second_returns);
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, call_jumps, NULL), 0);
	sem_wait(&inside);
	CHECK_INT(ftr_detach(first), 0);
	others(2 * KEPT);
	sem_post(&go_on);
	pthread_join(thread, NULL);
	CHECK_INT(ftr_detach(second), 0);
	CHECK_INT(first_returns, 0);
	CHECK_INT(second_returns, 1);
}

int tailed(int n);
int tails(int n);

NOINLINE int tailed(int n)
{
	volatile int room[4] = { n, n, n, n };

	return room[3] + 1;
}

__asm__(".text\n.type tails, @function\ntails:\n"
	"	.cfi_startproc\n"
	"	lea 1(%rdi), %edi\n"
	"	nop\n"
	"	nop\n"
	"	jmp tailed\n"
	"	.cfi_endproc\n"
	".size tails, . - tails\n");

/* The newest detour of the function that jumps is one with handlers, and is given back. */
static void jumps_afterwards(void)
{
	struct ftr_probe *first = attach(tails, NULL, NULL, NULL);
	struct ftr_probe *second = attach(tailed, NULL, NULL, NULL);
	long entries = 0;

	CHECK_INT(ftr_detach(attach(tails, count, NULL, &entries)), 0);
	others(2 * KEPT);
	CHECK_INT(tails(5), 7);
	CHECK_COUNTS(first, 1, 1, 0);
	CHECK_COUNTS(second, 1, 1, 0);
	CHECK_INT(ftr_detach(first), 0);
	CHECK_INT(ftr_detach(second), 0);
}

#else
static void handlers_owed(void)
{
}

static void jumps_afterwards(void)
{
}
#endif

/* ---- frames that were left ---- */

static jmp_buf left;

NOINLINE static void leaves(void)
{
	longjmp(left, 1);
}

static void left_by_longjmp(void)
{
	struct ftr_probe *probe = attach(leaves, NULL, NULL, NULL);

	if (!setjmp(left))
		leaves();
	CHECK_INT(ftr_detach(probe), 0);
	others(2 * KEPT);
	probe = attach(leaves, NULL, NULL, NULL);
	if (!setjmp(left))
		leaves();
	CHECK_INT(ftr_detach(probe), 0);
}

/* ---- from a handler ---- */

static void detach_itself(struct ftr_call *call, void *data)
{
	struct ftr_probe **probe = data;

	(void)call;
	CHECK_INT(ftr_detach(*probe), 0);
	others(2 * KEPT);
}

NOINLINE static int plain(int n)
{
	volatile int room[4] = { n, n, n, n };

	return room[3] + 1;
}

static void from_a_handler(void)
{
	struct ftr_probe *probe = attach(plain, detach_itself, NULL, &probe);

	CHECK_INT(plain(1), 2);
	CHECK_INT(plain(1), 2);
	probe = attach(plain, NULL, detach_itself, &probe);
	CHECK_INT(plain(1), 2);
	CHECK_INT(plain(1), 2);
}

/* ---- a thread in a handler ---- */

static void on_entry_wait(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
	sem_post(&inside);
	while (sem_wait(&go_on))
		;
}

static void *call_plain(void *arg)
{
	CHECK_INT(plain(6), 7);
	return arg;
}

static void detach_other(struct ftr_call *call, void *data)
{
	(void)call;
	CHECK_INT(ftr_detach(data), 0);
}

/* Detached by another handler, which does not wait for it; no return is expected. */
static void thread_in_handler(void)
{
	struct ftr_probe *probe = attach(plain, on_entry_wait, NULL, NULL), *other;
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, call_plain, NULL), 0);
	sem_wait(&inside);
	other = attach(list_functions, detach_other, NULL, probe);
	list_functions();
	CHECK_INT(ftr_detach(other), 0);
	others(2 * KEPT);
	sem_post(&go_on);
	pthread_join(thread, NULL);
}

/* ---- a module that goes ---- */

static void module_goes(void)
{
	int before;

	others(2 * KEPT);
	before = images();
	for (int i = 0; i < 2 * KEPT; i++) {
		void *handle = dlopen("libcrypt.so.1", RTLD_NOW);
		struct ftr_probe *probe;

		if (!handle)
			return;
		CHECK_INT(ftr_detach(attach(dlsym(handle, "crypt"), NULL, NULL, NULL)), 0);
		CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "crypt" }), &probe), 1);
		CHECK_INT(dlclose(handle), 0);
		CHECK_INT(ftr_detach(probe), 0);
	}
	others(2 * KEPT);
	CHECK(images() <= before + KEPT, "%d images, then %d", before, images());
}

int main(void)
{
#if !defined(__x86_64__)
	puts("SKIP: images are given back on x86_64 alone");
	return 77;
#endif
	need_handlers();
	if (is_emulated()) {
		puts("SKIP: an emulator does not tell where its threads are");
		return 77;
	}
	sem_init(&inside, 0, 0);
	sem_init(&go_on, 0, 0);
	list_functions();
	many_functions();
	whole_letters();
	thread_in_body(false);
	thread_in_body(true);
	fiber_in_body();
	handlers_owed();
	jumps_afterwards();
	left_by_longjmp();
	from_a_handler();
	thread_in_handler();
	module_goes();
	puts("ok");
	return 0;
}
