/* SPDX-License-Identifier: MIT */
/*
 * A signal after each instruction of a call, in turn, whose handler calls another function on an
 * alternate stack that is placed so that both return addresses have the same place in the shadow
 * stack, whatever its window.
 *
 * flags: -O2
 * flags: -O0
 * needs: x86_64 kernel
 * expect: work calls=600
 * expect: inner calls=600
 */
#define _GNU_SOURCE
#include "target.h"

#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

enum { ROUNDS = 600, STACK = 1 << 16 };
#define WINDOW (64ul << 20) /* a multiple of all */
#define TRAP   0x100ul /* EFLAGS.TF: a SIGTRAP after each instruction */

static int steps; /* until the handler calls; negative: it does not */
static size_t pad; /* to move inner's slot by */
static char *room, *base; /* of two windows' size; the stack's start in it */
static uint64_t work_slot, inner_slot;

static uint64_t caller_slot(const void *frame)
{
	return (uint64_t)frame + 8;
}

static NOIPA int inner(int x)
{
	HIT();
	inner_slot = caller_slot(__builtin_frame_address(0));
	return x + 1;
}

static NOIPA int work(int x)
{
	HIT();
	work_slot = caller_slot(__builtin_frame_address(0));
	return x + 2;
}

static void on_step(int signal, siginfo_t *info, void *context)
{
	volatile char *unused = alloca(pad + 16);

	unused[0] = 0;
	if (steps >= 0 && steps-- == 0)
		CHECK(OPAQUE(inner)(7) == 8);
}

/* In the caller's frame, so that the call's return address is always at one place. */
static inline __attribute__((always_inline)) int stepped_call(int x, unsigned long trap)
{
	int (*call)(int) = OPAQUE(work);
	int result;

	__asm__ volatile(
		"pushfq; orq %2, (%%rsp); popfq; call *%3; pushfq; andq $~0x100, (%%rsp); popfq"
		: "=a"(result), "+D"(x)
		: "r"(trap), "r"(call)
		: "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return result;
}

static void place_stack(char *start)
{
	stack_t stack = {.ss_sp = start, .ss_size = STACK};

	base = start;
	CHECK(sigaltstack(&stack, NULL) == 0);
}

/* The kernel aligns the frame that it makes to 64 bytes. */
static void make_alias(int round)
{
	uint64_t offset = inner_slot - (uint64_t)base;

	if (round == 1)
		pad = (inner_slot - work_slot) & 63;
	if (round == 2)
		place_stack(room + ((work_slot - offset - (uint64_t)room) & (WINDOW - 1)));
	if (round > 2)
		CHECK(((inner_slot - work_slot) & (WINDOW - 1)) == 0);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	room = mmap(NULL, 2 * WINDOW, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(room != MAP_FAILED);
	sigaction(SIGTRAP, &action, NULL);
	place_stack(room);
	for (int i = 0; i < ROUNDS; i++) {
		make_alias(i);
		steps = i < 3 ? 0 : i - 3;
		CHECK(stepped_call(i, TRAP) == i + 2);
		if (steps >= 0) {
			steps = 0;
			raise(SIGTRAP);
		}
	}
	hits("");
	return 0;
}
