/* SPDX-License-Identifier: MIT */
/*
 * Tail calls: a chain of jumps, and ten million mutual ones in constant memory.
 *
 * flags: -O2
 * flags: -Os
 * flags: clang -O2
 * flags: -O2 -fno-pie -no-pie
 * expect: first calls=1000
 * expect: second calls=1000
 * expect: third calls=1000
 * expect: other_arguments calls=1000
 * expect: ping calls=5000001
 * expect: pong calls=5000000
 */
#include "target.h"

#include <sys/resource.h>

static NOIPA long third(long x)
{
	HIT();
	return x * 3;
}

static NOIPA long second(long x)
{
	HIT();
	return third(x + 2);
}

static NOIPA long other_arguments(const char *text, long x, double y)
{
	HIT();
	return second(x + text[0] + (long)y);
}

static NOIPA long first(long x)
{
	HIT();
	return other_arguments("a", x, 2.5);
}

/* Compilers make no indirect tail calls for ELFv2 (powerpc). */
#ifdef __powerpc64__
#define TAIL(function) function
#else
#define TAIL(function) OPAQUE(function)
#endif

static NOIPA long pong(long n);

static NOIPA long ping(long n)
{
	HIT();
	return n ? TAIL(pong)(n - 1) : 4711;
}

static NOIPA long pong(long n)
{
	HIT();
	return TAIL(ping)(n - 1);
}

static long resident_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

int main(void)
{
	long sum = 0, before;

	for (int i = 0; i < 1000; i++)
		sum += first(i);
	before = resident_kib();
	printf("%ld %ld\n", sum, ping(10 * 1000 * 1000));
	CHECK(resident_kib() - before < 16 * 1024);
	hits("");
	return 0;
}
