/* SPDX-License-Identifier: MIT */
/* See returns_CPU.S. */
#ifndef TOOLS_BENCH_RETURNS_H
#define TOOLS_BENCH_RETURNS_H

#include <stdint.h>

void returns_swap(void);
void returns_stack(void);
void returns_list(void);

/* Used by the assembly only. */
struct returns_slot {
	uint64_t address, slot;
};
extern __thread struct returns_slot *returns_top;
extern uint64_t returns_entered, returns_left;
void pool_stack_enter(uint64_t address);
uint64_t pool_stack_leave(void);
void pool_list_enter(uint64_t address);
uint64_t pool_list_leave(void);

/* Every thread calls it before its first call of returns_*(); the first one before any other. */
void returns_start_thread(void);

#endif
