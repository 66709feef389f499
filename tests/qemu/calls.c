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

#define ROW(name) { #name, loop_##name }

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*loop)(uint64_t rounds);
	} rows[] = { ROW(empty), ROW(stack), ROW(nop), ROW(push), ROW(ret), ROW(nop_only),
		ROW(push_only) };
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
