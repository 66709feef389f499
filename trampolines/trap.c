/* SPDX-License-Identifier: MIT */
#include "trap.h"
#include "live.h"
#include "signals.h"
#include <errno.h>

struct trap {
	uint64_t site, detour;
};

static struct {
	struct trap *list; /* sorted by site once the handler is installed */
	size_t count, room;
	struct arena arena;
	struct signal_action program; /* what SIGTRAP is for the program */
} traps;

bool trap_possible(void)
{
	struct signal_action now = { 0 };
	uint64_t blocked = 0;

	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof(blocked));
	return !(blocked & SIGNAL_BIT(SIGTRAP)) && !signal_look(SIGTRAP, &now) && !now.handler;
}

int trap_add(uint64_t site, uint64_t detour)
{
	if (traps.count == traps.room) {
		size_t room = traps.room ? 2 * traps.room : 256;
		struct trap *list = arena_alloc(&traps.arena, room * sizeof(*list));

		if (!list)
			return -ENOMEM;
		if (traps.count)
			memcpy(list, traps.list, traps.count * sizeof(*list));
		traps.list = list;
		traps.room = room;
	}
	traps.list[traps.count++] = (struct trap){ site, detour };
	return 0;
}

static int compare_sites(const void *a, const void *b)
{
	const struct trap *x = a, *y = b;

	return x->site < y->site ? -1 : x->site > y->site;
}

static uint64_t detour_of(uint64_t site)
{
	size_t low = 0, high = traps.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (traps.list[middle].site == site)
			return traps.list[middle].detour;
		if (traps.list[middle].site < site)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	uint64_t site = arch_trap_site(context), detour;
	bool executed = info->si_code > 0; /* not sent by somebody */

	detour = executed ? detour_of(site) : 0;
	if (detour) {
		arch_set_pc(context, detour);
	} else if (executed && live_owns(site)) {
		/* First: who looks at this thread must not find it behind the breakpoint. */
		arch_set_pc(context, site);
		live_wait(site, context);
	} else {
		signal_pass_on(&traps.program, signal, info, context);
	}
}

int trap_install(void)
{
	return signal_take(SIGTRAP, on_trap, &traps.program);
}

void trap_remove(void)
{
	if (!traps.count)
		signal_give_back(SIGTRAP, on_trap, &traps.program);
}

int trap_ready(void)
{
	if (!traps.count)
		return 0;
	mem_sort(traps.list, traps.count, sizeof(*traps.list), compare_sites);
	return trap_install();
}
