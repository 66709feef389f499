/* SPDX-License-Identifier: MIT */
/*
 * Functions that ask who called them, and backtraces from inside traced functions: the program's
 * own frames are all there, in order (frames named ...@ftr may stand between them).
 *
 * flags: -O2 -rdynamic
 * flags: -O0 -rdynamic
 * flags: -O2 -rdynamic -fno-pie -no-pie
 * flags: clang -O2 -rdynamic
 * expect: shows_backtrace calls=10
 * expect: level_three calls=10
 * expect: level_two calls=10
 * expect: level_one calls=10
 * expect: who_calls calls=20
 * expect: jumps_there calls=10
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>
#include <unwind.h>

NOIPA int shows_backtrace(void);
NOIPA int level_three(void);
NOIPA int level_two(void);
NOIPA int level_one(void);
NOIPA void who_calls(void);
NOIPA void jumps_there(void);
NOIPA void the_caller(void);

static char seen[1000];

static void note(void *address)
{
	Dl_info info;

	if (!dladdr((char *)address - 1, &info) || !info.dli_sname)
		return;
	if (strstr(info.dli_sname, "@ftr") || strlen(seen) > 900)
		return;
	strcat(strcat(seen, info.dli_sname), " ");
}

static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *arg)
{
	note((void *)_Unwind_GetIP(context));
	return _URC_NO_REASON;
}

static void check(const char *what)
{
	if (!strstr(seen, "shows_backtrace level_three level_two level_one main "))
		printf("%s misses frames: %s\n", what, seen);
}

NOIPA int shows_backtrace(void)
{
	void *frames[100];
	int n;

	HIT();
	seen[0] = 0;
	n = backtrace(frames, 100);
	for (int i = 0; i < n; i++)
		note(frames[i]);
	check("backtrace");
	seen[0] = 0;
	_Unwind_Backtrace(each, NULL);
	check("_Unwind_Backtrace");
	return 1;
}

NOIPA int level_three(void)
{
	HIT();
	return OPAQUE(shows_backtrace)() + 1;
}

NOIPA int level_two(void)
{
	HIT();
	return OPAQUE(level_three)() + 1;
}

NOIPA int level_one(void)
{
	HIT();
	return OPAQUE(level_two)() + 1;
}

NOIPA void who_calls(void)
{
	void *address = __builtin_return_address(0);
	Dl_info info;

	HIT();
	if (!dladdr(address, &info) || !info.dli_sname
		|| (strcmp(info.dli_sname, "the_caller") && strcmp(info.dli_sname, "jumps_there")))
		printf("called from %s\n", info.dli_sname ? info.dli_sname : "nowhere");
}

/* Optimised it ends in a jump: who_calls() is to see where it was called from itself. */
NOIPA void jumps_there(void)
{
	HIT();
	who_calls();
}

NOIPA void the_caller(void)
{
	OPAQUE(who_calls)();
	OPAQUE(jumps_there)();
	__asm__ volatile("");
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 10; i++) {
		sum += OPAQUE(level_one)();
		the_caller();
	}
	printf("%d\n", sum);
	hits("");
	return 0;
}
