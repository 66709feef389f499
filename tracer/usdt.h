/* SPDX-License-Identifier: MIT */
/*
 * Static probes of sys/sdt.h: include/ftr/ftr.h. What its parts share: usdt.c has the functions of
 * the API and who is attached, usdt_find.c the places and their detours, usdt_patch.c the patches,
 * usdt_hit.c what happens when a probe runs.
 *
 * A probe is a nop somewhere in a function. A jump takes its place and, where the nop is shorter,
 * that of the instructions behind it, chosen by the same rules as at a function's entry: for the planner
 * a probe is a function that begins at the nop. Where that cannot be, a breakpoint takes it. The detours
 * of a module's probes are in memory near it, which is never writable and executable: it is a file
 * that was written before.
 *
 * A place counts who is between its first and its last look at its list of hooks; a list that was
 * replaced is given back once nobody is. The counters are in memory that a fork wipes, since the
 * child does not have its parent's other threads.
 */
#ifndef TRACER_USDT_H
#define TRACER_USDT_H

#include "plan.h"
#include "stap.h"
#include "../include/ftr/ftr.h"

#define USDT_PLACES_MAX 16384

struct usdt_hook {
	ftr_usdt_handler *handler;
	void *data;
	const struct ftr_usdt *owner;
};

/* Never changed while it is in use. */
struct usdt_hooks {
	struct arena arena; /* its own memory */
	struct usdt_hooks *next; /* once it was replaced */
	size_t n;
	struct usdt_hook list[];
};

/* Memory with detours of one module. */
struct usdt_region {
	struct usdt_region *next;
	uint64_t lo, hi; /* 0: given back */
	unsigned users;	 /* places that are patched */
};

/* A probe that was attached to. Never freed; made another one once nobody can know it any more. */
struct usdt_place {
	struct usdt_place *next;
	struct ftr_usdt_probe probe;
	struct stap_arg args[STAP_ARGS_MAX];
	uint16_t *semaphore;
	struct usdt_hooks *hooks, *replaced;
	uint32_t *running;
	struct usdt_region *region; /* where its detour is, or was; NULL: it had none */
	uint64_t detour;
	struct isa_patch patch, original;
	uint8_t window;
	bool trap; /* patched by a breakpoint */
	bool patched;
	bool lost;  /* its breakpoint was given up while somebody was attached */
	bool taken; /* patched, or about to be, or hooks are left */
};

struct ftr_usdt {
	struct ftr_usdt *next;
	struct arena arena; /* its own memory */
	struct usdt_place **places; /* sorted by address */
	void **pins; /* handles that keep the modules loaded */
	size_t n, npins, room;
};

/* In memory that a fork wipes. */
struct usdt_wiped {
	uint32_t lock;
	uint32_t breakpoints; /* a lock, inside of the other one: see usdt_patch.c */
	uint32_t blocking;    /* threads that are about to block SIGTRAP, or do for a while */
	uint32_t running[USDT_PLACES_MAX];
};

struct usdt {
	struct usdt_wiped *wiped;
	struct usdt_place *places;
	uint32_t nplaces;
	struct usdt_region *regions;
	struct ftr_usdt *attached;
	struct arena arena;
};
extern struct usdt usdt;

/* What to look for. */
struct usdt_search {
	const char *provider, *name, *module;
	struct ftr_usdt *result;
	struct maps maps;
	struct arena arena;
};

/* Fill search->result with all places, which get detours. 0 or -errno. */
int usdt_find(struct usdt_search *search);

/*
 * Patch those of the places that are wanted and not patched, or restore the others. -EAGAIN: it
 * takes breakpoints, call breakpoints_guard() first; else 0 or -errno. @blocked: the signals that the
 * calling thread blocks for the program.
 */
int usdt_patch(struct ftr_usdt *u, bool wanted, uint64_t blocked);

/* Places whose breakpoints were given up are not patched any more. */
void usdt_settle(void);

/* SIGTRAP is about to be blocked or handled, or system calls to be forbidden: all breakpoints go. Any
 * thread, in handlers too. */
void usdt_give_up(void);
bool usdt_has_breakpoints(void);

/* One thread more or less is about to, or does it for the time of a call. */
void usdt_blocking(int by);

/* Somebody is attached to it. */
static inline bool usdt_is_wanted(const struct usdt_place *place)
{
	return place->hooks && place->hooks->n;
}

static inline bool usdt_is_running(const struct usdt_place *place)
{
	return __atomic_load_n(place->running, __ATOMIC_SEQ_CST) != 0;
}

/* A counter that a fork has wiped meanwhile stays 0. */
static inline void usdt_count_down(uint32_t *counter)
{
	uint32_t n = __atomic_load_n(counter, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(
			    counter, &n, n - 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void usdt_free_hooks(struct usdt_hooks *hooks);

/* Does the calling thread execute a handler? */
bool usdt_in_handler(void);

#endif
