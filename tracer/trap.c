/* SPDX-License-Identifier: MIT */
#include "trap.h"
#include "../arch/sys.h"
#include <errno.h>
#include <signal.h>

struct trap {
	uint64_t site, detour;
};

static struct {
	struct trap *list; /* sorted by site once the handler is installed */
	size_t count, room;
	struct arena arena;
} traps;

/* The kernel's struct sigaction: rt_sigaction(2). */
struct action {
	void (*handler)(int, siginfo_t *, void *);
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};
#define SA_RESTORER 0x04000000

static long set_action(const struct action *action, struct action *old)
{
	return sys_call(SYS_rt_sigaction, SIGTRAP, action, old, 8);
}

bool trap_possible(void)
{
	struct action old = { 0 };
	uint64_t blocked = 0;

	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, 8);
	return !(blocked & 1ull << (SIGTRAP - 1)) && !set_action(NULL, &old) && !old.handler;
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
	uint64_t detour = detour_of(arch_trap_site(context));
	struct action dfl = { 0 };

	(void)info;
	if (detour) {
		arch_set_pc(context, detour);
		return;
	}
	/* Somebody else's: what would have happened without us. */
	set_action(&dfl, NULL);
	sys_call(SYS_tgkill, sys_getpid(), sys_gettid(), signal);
}

int trap_ready(void)
{
	struct action action = { .handler = on_trap, .restorer = arch_signal_return,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART | SA_RESTORER };

	if (!traps.count)
		return 0;
	mem_sort(traps.list, traps.count, sizeof(*traps.list), compare_sites);
	return (int)set_action(&action, NULL);
}
