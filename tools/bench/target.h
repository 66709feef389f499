/* SPDX-License-Identifier: MIT */
/*
 * libftr-bench-target.so: the functions that are called, traced or not, and the loops that call
 * them. These are in the same library so that calls are the near ones of an ordinary program; to
 * trace them too costs one call in many thousands.
 */
#ifndef TOOLS_BENCH_TARGET_H
#define TOOLS_BENCH_TARGET_H

#include <stdint.h>

#define FIB_N	  30
#define FIB_CALLS 2692537 /* of itself by fib(FIB_N), the first one included */

void ftr_bench_empty(void);
long ftr_bench_registers(long a, long b, long c, long d, long e, long f);
long ftr_bench_stack(
	long a, long b, long c, long d, long e, long f, long g, long h, long i, long j);
long ftr_bench_fib(long n);
/* By their first instruction. */
void ftr_bench_nop(void);
void ftr_bench_push(void);
void ftr_bench_ret(void);
void ftr_bench_nop_only(void); /* entry only */
void ftr_bench_push_only(void);
#ifdef __x86_64__
void ftr_bench_nop5(void);
#endif

#define BENCH_USE(value) __asm__ volatile("" : : "r"(value))
#define BENCH_LOOP(name, body)                                                                     \
	void name(uint64_t rounds)                                                                 \
	{                                                                                          \
		while (rounds--) {                                                                 \
			body;                                                                      \
		}                                                                                  \
	}

void loop_empty(uint64_t rounds);
void loop_registers(uint64_t rounds);
void loop_stack(uint64_t rounds);
void loop_fib(uint64_t rounds);
void loop_nop(uint64_t rounds);
void loop_push(uint64_t rounds);
void loop_ret(uint64_t rounds);
void loop_nop_only(uint64_t rounds);
void loop_push_only(uint64_t rounds);
void loop_nop5(uint64_t rounds);

#endif
