/* SPDX-License-Identifier: MIT */
/*
 * Prints its own call stack, innermost function first, from deep inside itself and of a callback
 * of libc; or waits for another program to look at it.
 *
 *     chain backtrace|unwind|libunwind|signal|thread|trap|wait
 */
#define _GNU_SOURCE
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <execinfo.h>
#include <libunwind.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define NOIPA __attribute__((noipa))

static volatile int sink;
static const char *how;

static void print_name(void *pc)
{
	Dl_info info;

	if (!dladdr((char *)pc - 1, &info) || !info.dli_sname)
		info.dli_sname = "?";
	printf("%s\n", info.dli_sname);
}

NOIPA void by_backtrace(void)
{
	void *pcs[200];
	int n = backtrace(pcs, 200);

	for (int i = 0; i < n; i++)
		print_name(pcs[i]);
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *arg)
{
	int before;
	void *pc = (void *)_Unwind_GetIPInfo(context, &before);

	(void)arg;
	if (pc)
		print_name((char *)pc + before);
	return _URC_NO_REASON;
}

NOIPA void by_unwind(void)
{
	_Unwind_Backtrace(visit, NULL);
	sink++;
}

NOIPA void by_libunwind(void)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc;

	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (pc)
			print_name((void *)pc);
	} while (unw_step(&cursor) > 0);
}

NOIPA void handler(int signal)
{
	(void)signal;
	by_backtrace();
	by_unwind();
	by_libunwind();
}

NOIPA void leaf(int n)
{
	sink += n;
	if (!strcmp(how, "backtrace") || !strcmp(how, "thread")) {
		by_backtrace();
	} else if (!strcmp(how, "unwind")) {
		by_unwind();
	} else if (!strcmp(how, "libunwind")) {
		by_libunwind();
	} else if (!strcmp(how, "signal")) {
		signal(SIGUSR1, handler);
		raise(SIGUSR1);
	} else if (!strcmp(how, "trap")) {
#ifdef __x86_64__
		__asm__ volatile("int3");
#endif
	} else if (!strcmp(how, "wait")) {
		write(1, "ready\n", 6);
		for (;;)
			pause();
	}
	sink++;
}

#define CALLS(name, next)                                                                          \
	NOIPA void name(int n)                                                                     \
	{                                                                                          \
		sink += n;                                                                         \
		next(n + 1);                                                                       \
		sink++;                                                                            \
	}
CALLS(inner5, leaf)
CALLS(inner4, inner5)
CALLS(inner3, inner4)
CALLS(inner2, inner3)
CALLS(inner1, inner2)

/* A frame of another kind: its size is not known before. */
NOIPA void varies(int n)
{
	volatile char room[n + 100];

	room[n] = 1;
	inner1(n);
	sink += room[n];
}

NOIPA int compare(const void *a, const void *b)
{
	if (!sink++)
		return 0;
	if (how) {
		varies(3);
		how = NULL;
	}
	return *(const char *)a - *(const char *)b;
}

NOIPA void sorts(int n)
{
	char letters[] = "zyxwv";

	sink = 1;
	qsort(letters, 5, 1, compare);
	sink += n;
}
CALLS(outer5, sorts)
CALLS(outer4, outer5)
CALLS(outer3, outer4)

/* The stack pointer is aligned: the frame is found by another register. */
NOIPA void aligns(int n)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[0] = 1;
	outer3(n);
	sink += room[0];
}
CALLS(outer2, aligns)
CALLS(outer1, outer2)

NOIPA void *runs(void *arg)
{
	outer1(0);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	how = argc > 1 ? argv[1] : "backtrace";
	if (strcmp(how, "thread")) {
		runs(NULL);
		return 0;
	}
	pthread_create(&thread, NULL, runs, NULL);
	pthread_join(thread, NULL);
	return 0;
}
