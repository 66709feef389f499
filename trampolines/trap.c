/* SPDX-License-Identifier: MIT */
#include "trap.h"
#include "live.h"
#include "places.h"
#include "signals.h"
#include "../arch/sys.h"
#include <errno.h>
#include <sys/uio.h>

struct trap {
	uint64_t site, detour;
	uint32_t module;
	bool gone;	  /* with its module */
	uint8_t original; /* the byte that the breakpoint replaces */
};

struct trap_table {
	size_t count;
	struct trap list[]; /* sorted by site */
};

static struct {
	struct trap_table *table; /* release: it is complete; the handler acquires it */
	struct trap_table *pending; /* to be added */
	size_t room;		  /* in it */
	struct arena arena;	  /* tables are kept: a handler may be looking */
	struct signal_action program; /* what SIGTRAP is for the program */
	bool given_up;
} traps;

static void on_trap(int signal, siginfo_t *info, void *context);

bool trap_is_free(uint64_t blocked)
{
	struct signal_action now = { 0 };

	return !(blocked & SIGNAL_BIT(SIGTRAP)) && !signal_look(SIGTRAP, &now)
		&& (!now.handler || now.handler == on_trap);
}

bool trap_possible(uint64_t blocked)
{
	return !trap_given_up() && trap_is_free(blocked);
}

static struct trap_table *new_table(size_t room)
{
	return arena_alloc(&traps.arena, sizeof(struct trap_table) + room * sizeof(struct trap));
}

static void append(struct trap_table *table, const struct trap_table *more)
{
	if (!more)
		return;
	memcpy(table->list + table->count, more->list, more->count * sizeof(*more->list));
	table->count += more->count;
}

int trap_add(uint64_t site, uint64_t detour, uint32_t module)
{
	struct trap_table *list = traps.pending;

	if (!list || list->count == traps.room) {
		size_t room = list ? 2 * traps.room : 256;

		list = new_table(room);
		if (!list)
			return -ENOMEM;
		list->count = 0;
		append(list, traps.pending);
		traps.pending = list;
		traps.room = room;
	}
	list->list[list->count++] = (struct trap){
		.site = site, .detour = detour, .module = module, .original = *(const uint8_t *)site
	};
	return 0;
}

static struct trap_table *current(void)
{
	return __atomic_load_n(&traps.table, __ATOMIC_ACQUIRE);
}

static int compare_sites(const void *a, const void *b)
{
	const struct trap *x = a, *y = b;

	return x->site < y->site ? -1 : x->site > y->site;
}

/* The first at @site or behind. */
static size_t find(const struct trap_table *table, uint64_t site)
{
	return mem_below(table->list, table->count, sizeof(table->list[0]), site);
}

/* Of several modules that have been at one place at most one is there. */
static uint64_t detour_of(uint64_t site)
{
	const struct trap_table *table = current();

	for (size_t i = table ? find(table, site) : 0;
		table && i < table->count && table->list[i].site == site; i++)
		if (!__atomic_load_n(&table->list[i].gone, __ATOMIC_RELAXED))
			return table->list[i].detour;
	return 0;
}

static uint64_t detour_at(uint64_t site)
{
	uint64_t detour = places_detour(site);

	return detour ? detour : detour_of(site);
}

/*
 * Whose breakpoint was it? It may be gone when its thread gets here, and set again between the look at
 * the tables and the look at the code: but not without a change.
 */
static bool is_ours(uint64_t site, uint64_t *detour)
{
	uint32_t changes;

	do {
		changes = live_changes();
		*detour = detour_at(site);
		if (*detour || live_owns(site))
			return true;
	} while (live_changes() != changes);
	return false;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	uint64_t site = arch_trap_site(context), detour;
	bool executed = info->si_code > 0; /* not sent by somebody */

	if (!executed || !is_ours(site, &detour)) {
		signal_pass_on(&traps.program, signal, info, context);
	} else if (detour) {
		arch_set_pc(context, detour);
	} else {
		/* First: who looks at this thread must not find it behind the breakpoint. */
		arch_set_pc(context, site);
		live_wait(site, context);
	}
}

int trap_install(void)
{
	return signal_take(SIGTRAP, on_trap, &traps.program);
}

bool trap_is_used(void)
{
	return current() || places_any();
}

void trap_remove(void)
{
	if (!trap_is_used())
		signal_give_back(SIGTRAP, on_trap, &traps.program);
}

int trap_ready(void)
{
	const struct trap_table *old = current(), *more = traps.pending;
	struct trap_table *table;

	if (!more)
		return 0;
	traps.pending = NULL;
	table = new_table((old ? old->count : 0) + more->count);
	if (!table)
		return -ENOMEM;
	table->count = 0;
	append(table, old);
	append(table, more);
	mem_sort(table->list, table->count, sizeof(*table->list), compare_sites);
	__atomic_store_n(&traps.table, table, __ATOMIC_RELEASE);
	return trap_install();
}

bool trap_present(uint32_t module, uint64_t lo, uint64_t hi, bool present)
{
	struct trap_table *table = current();
	bool any = false;

	for (size_t i = table ? find(table, lo) : 0;
		table && i < table->count && table->list[i].site < hi; i++)
		if (table->list[i].module == module) {
			__atomic_store_n(&table->list[i].gone, !present, __ATOMIC_RELAXED);
			any = true;
		}
	return !(present && any && trap_given_up());
}

/* Its module may just be leaving. */
static bool has_breakpoint(const struct trap *t)
{
	uint8_t byte = 0;
	struct iovec to = { &byte, 1 }, from = { (void *)t->site, 1 };

	return sys_call(SYS_process_vm_readv, sys_getpid(), &to, 1, &from, 1, 0) == 1
		&& byte == arch_breakpoint[0] && byte != t->original;
}

uint32_t trap_give_up(const struct patch_how *how)
{
	const struct trap_table *table;
	struct arena arena = { 0 };
	struct isa_patch *patches;
	uint32_t n = 0;

	__atomic_store_n(&traps.given_up, true, __ATOMIC_SEQ_CST);
	table = current();
	patches = table ? arena_alloc(&arena, table->count * sizeof(*patches)) : NULL;
	for (size_t i = 0; patches && i < table->count; i++)
		if (!table->list[i].gone && has_breakpoint(&table->list[i]))
			patches[n++] = (struct isa_patch){ .addr = table->list[i].site,
				.len = 1, .bytes = { table->list[i].original } };
	if (n && patch_store(patches, n, NULL, how))
		n = 0;
	arena_free(&arena);
	return n;
}

bool trap_given_up(void)
{
	return __atomic_load_n(&traps.given_up, __ATOMIC_SEQ_CST);
}
