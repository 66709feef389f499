/* SPDX-License-Identifier: MIT */
#include "target.h"

/* A call is a call: nothing is inlined, cloned or left out. */
#define FUNCTION __attribute__((noipa, aligned(64)))

FUNCTION void ftr_bench_empty(void)
{
}

FUNCTION long ftr_bench_registers(long a, long b, long c, long d, long e, long f)
{
	return a + b + c + d + e + f;
}

FUNCTION long ftr_bench_stack(
	long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	return a + b + c + d + e + f + g + h + i + j;
}

FUNCTION long ftr_bench_fib(long n)
{
	return n < 2 ? n : ftr_bench_fib(n - 1) + ftr_bench_fib(n - 2);
}

BENCH_LOOP(loop_empty, ftr_bench_empty())
BENCH_LOOP(loop_registers, BENCH_USE(ftr_bench_registers(1, 2, 3, 4, 5, 6)))
BENCH_LOOP(loop_stack, BENCH_USE(ftr_bench_stack(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))
BENCH_LOOP(loop_fib, BENCH_USE(ftr_bench_fib(FIB_N)))
BENCH_LOOP(loop_nop, ftr_bench_nop())
BENCH_LOOP(loop_push, ftr_bench_push())
BENCH_LOOP(loop_ret, ftr_bench_ret())
BENCH_LOOP(loop_nop_only, ftr_bench_nop_only())
BENCH_LOOP(loop_push_only, ftr_bench_push_only())
#ifdef __x86_64__
BENCH_LOOP(loop_nop5, ftr_bench_nop5())
#endif
