/* SPDX-License-Identifier: MIT */
/* Call stacks from handlers, through functions that have handlers too. */
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static const void *stacks[2][16]; /* at the entry, at the return */
static unsigned depths[2];
static volatile long sink;

static void note(struct ftr_call *call, void *data)
{
	int which = *(int *)data;

	depths[which] = ftr_call_stack(call, stacks[which], 16);
	CHECK(stacks[which][0] == ftr_call_caller(call));
}

static void nothing(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
}

NOINLINE static long leaf(long n)
{
	return n + sink;
}

NOINLINE static long middle(long n)
{
	return leaf(n) + 1;
}

NOINLINE static long outer(long n)
{
	return middle(n) + 1;
}

static int compare(const void *a, const void *b)
{
	return (int)leaf(*(const int *)a - *(const int *)b);
}

static void starts_with(int which, const char *const *names, unsigned n)
{
	char text[256], wanted[64];

	for (unsigned i = 0; i < n; i++) {
		CHECK(i < depths[which], "%u of %u", i, depths[which]);
		ftr_describe(stacks[which][i], text, sizeof(text));
		snprintf(wanted, sizeof(wanted), "%s+0x", names[i]);
		CHECK(!strncmp(text, wanted, strlen(wanted)), "%u: %s, not %s", i, text, names[i]);
	}
}

static void on_signal(int signal)
{
	(void)signal;
	sink = leaf(1) - 2;
}

/* A signal handler on a stack of its own, with no room for an unwinder. */
static void small_stack(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 6 * page;
	char *memory = mmap(NULL, page + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	CHECK(memory != MAP_FAILED && !mprotect(memory + page, size, PROT_READ | PROT_WRITE));
	CHECK_INT(sigaltstack(&(stack_t){ .ss_sp = memory + page, .ss_size = size }, NULL), 0);
	CHECK_INT(sigaction(SIGUSR1, &action, NULL), 0);
	sink = 1;
	raise(SIGUSR1);
	CHECK_INT(sink, 0);
	CHECK_INT(depths[0], 1);
	CHECK_INT(depths[1], 1);
}

NOINLINE static void in_handler(void)
{
	sink++;
}

static volatile unsigned alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
	in_handler();
}

/* Whatever a signal interrupts, also the search for a stack, what its handler calls is counted. */
static void amid_signals(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	struct ftr_probe *counter = attach(in_handler, NULL, NULL, NULL);

	signal(SIGALRM, on_alarm);
	CHECK_INT(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (alarms < 300)
		outer(1);
	CHECK_INT(setitimer(ITIMER_REAL, &never, NULL), 0);
	CHECK_COUNTS(counter, alarms, alarms, 0);
	CHECK_INT(ftr_detach(counter), 0);
}

int main(void)
{
	static const char *const names[] = { "middle", "outer", "main" };
	static const char *const sorting[] = { "compare" };
	int entry = 0, ret = 1, numbers[2] = { 2, 1 };
	/* Not a constant: code that refers to the inside of a function keeps it from being patched. */
	const char *volatile inside = (const char *)leaf;
	struct ftr_probe *between = NULL;
	char text[64];

	need_handlers();
	if (ftr_call_stack_prepare()) {
		puts("SKIP: there is no libunwind.so.8");
		return 77;
	}
	attach(leaf, note, NULL, &entry);
	attach(leaf, NULL, note, &ret);
	for (int traced = 0; traced < 2; traced++) {
		if (traced)
			between = attach(middle, nothing, nothing, NULL);
		depths[0] = depths[1] = 0;
		CHECK_INT(outer(1), 3);
		starts_with(0, names, 3);
		starts_with(1, names, 3);
	}
	CHECK_INT(ftr_detach(between), 0);
	qsort(numbers, 2, sizeof(int), compare);
	starts_with(0, sorting, 1);
	CHECK(depths[0] > 2);
	CHECK_INT(ftr_describe(inside + 1, text, sizeof(text)), 0);
	CHECK(!strncmp(text, "leaf+0x1 in probe_stack", 23), "%s", text);
	CHECK_INT(ftr_describe(&depths, text, sizeof(text)), -ENOENT);
	small_stack();
	sink = 0;
	amid_signals();
	puts("ok");
	return 0;
}
