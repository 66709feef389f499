/* SPDX-License-Identifier: MIT */
/*
 * A function that probes are attached to, and the detour that its calls take for their sake. One
 * caller at a time, except where a comment says otherwise.
 */
#ifndef TRACER_TARGET_H
#define TRACER_TARGET_H

#include "catalog.h"
#include "detours.h"
#include "../rethook/hook.h"

/* What a detour does, each more than the one before. */
enum target_kind {
	TARGET_NONE,   /* as it was found: its own code, or the tracer's detour */
	TARGET_COUNT,  /* counts */
	TARGET_ENTRY,  /* counts calls and runs entry handlers; the return is not seen */
	TARGET_BOTH,   /* counts and runs entry handlers */
	TARGET_RETURN, /* counts and runs entry and return handlers */
	TARGET_KINDS
};

struct target_detour {
	uint64_t address; /* run-time; 0: not made yet, or given back */
	struct detours *image;
};

/* Never freed, since numbers may be read at any time. */
struct target {
	struct target *next;
	struct catalog_module *module;
	uint64_t address; /* run-time */
	struct plan_function function; /* as it would be traced; .id once it has one */
	uint32_t entry_id; /* counts calls whose returns nobody wants to see; 0: none yet */
	bool traced;	  /* by the tracer too */
	bool patched;	  /* by it, be it only to watch it */
	struct hook_point point;
	/* probes attached: */
	uint32_t ncounters, nentries, nreturns;
	enum target_kind kind; /* of the detour that calls take now */
	struct target_detour detours[TARGET_KINDS];
	struct detours *left; /* the padding of a SITE_HOP still leads there, though nothing leads to it */
	struct isa_patch original[2];	/* what was there; valid unless TARGET_NONE */
	int noriginal;
	bool busy; /* see target_lead() */
};

/*
 * The target of a module's function, made now if need be; it is called @called where it has no name
 * of its own (NULL: neither). NULL: no memory. Its site is chosen:
 * ->function.site says when it cannot be patched, or is entry only.
 */
struct target *target_of(struct catalog_module *module, const struct symbol *symbol,
	const char *called);

/* Is it known of none of its calls when they end? */
static inline bool target_is_entry_only(const struct target *t)
{
	return t->function.site.entry_only;
}

/* The target at @address, NULL: none. May be called at any time by anyone. */
const struct target *target_find(uint64_t address);

/* Where the calls that a detour sees are counted. */
uint32_t *target_id(struct target *t, enum target_kind kind);

void target_each(void (*visit)(struct target *t, void *arg), void *arg);

/* Take away padding that a thread was about to execute at the time. */
void target_tidy(void);

/*
 * Make the detours that the probes of @targets need and that are missing. 0, or -errno with *@why.
 * The loader's lock is held (loader.h).
 */
int target_make(struct target *const *targets, size_t n, const char **why);

/*
 * Lead the calls of each of @targets to the detour that its probes need, which has been made. 0, or
 * -errno with *@why and nothing changed. With @partial those that threads do not leave are marked
 * ->busy and stay as they are, when others could be changed. A target whose module is gone is left
 * alone. @frame: see struct patch_how.
 */
int target_lead(
	struct target *const *targets, size_t n, const void *frame, bool partial, const char **why);

#endif
