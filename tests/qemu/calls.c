/* SPDX-License-Identifier: MIT */
/*
 * Each row's function is called N times, then 2 N times, each time between a call of begin() and
 * one of end(): the difference is what N calls take, free of all that happens once.
 */
#include "tools/bench/target.h"
#include <stdio.h>
#include <stdlib.h>

#define WARM_UP 100

__attribute__((noipa)) void begin(void);
__attribute__((noipa)) void end(void);

__attribute__((noipa)) void begin(void)
{
	__asm__ volatile("");
}

__attribute__((noipa)) void end(void)
{
	__asm__ volatile("");
}

/* Not traced, unlike its caller. */
__attribute__((noipa)) static void callee(void)
{
	__asm__ volatile("");
}

__attribute__((noipa, aligned(64))) void ftr_bench_calls(void);
void ftr_bench_calls(void)
{
	callee();
	__asm__ volatile("");
}

static BENCH_LOOP(loop_calls, ftr_bench_calls())

/* Ends in a jump to another traced function. */
__attribute__((noipa, aligned(64))) void ftr_bench_tailed(void);
void ftr_bench_tailed(void)
{
	__asm__ volatile("");
}

__attribute__((noipa, aligned(64))) void ftr_bench_tail(void);
void ftr_bench_tail(void)
{
	__asm__ volatile("");
	ftr_bench_tailed();
}

static BENCH_LOOP(loop_tail, ftr_bench_tail())

#define ROW(name) { #name, loop_##name }

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*loop)(uint64_t rounds);
	} rows[] = { ROW(empty), ROW(stack), ROW(nop), ROW(push), ROW(ret), ROW(calls), ROW(tail),
		ROW(nop_only), ROW(push_only) };
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		rows[i].loop(WARM_UP);
		for (int times = 1; times <= 2; times++) {
			begin();
			rows[i].loop(rounds * (unsigned int)times);
			end();
		}
		printf("%s %llu\n", rows[i].name, (unsigned long long)(WARM_UP + rounds * 3));
	}
	return 0;
}
