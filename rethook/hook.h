/* SPDX-License-Identifier: MIT */
/*
 * Handlers at the entries and returns of functions (include/ftr/ftr.h).
 *
 * A hooked function's detour goes through the hook stubs of its image's common part, which save the
 * call's registers in a struct ftr_call and come here. What is to be called is in the function's
 * hook_point: an immutable list, replaced as a whole under RCU (liburcu-bp). The read side is as
 * short as copying the list's pointers; no handler runs inside it, so handlers may attach and
 * detach.
 *
 * A call remembers the serials of the hooks that saw its entry; only those see its return.
 */
#ifndef RETHOOK_HOOK_H
#define RETHOOK_HOOK_H

#include "../include/ftr/ftr.h"
#include "../arch/arch.h"

/* Never changed while it is in a list. */
struct hook {
	uint64_t serial; /* never used again */
	ftr_handler *entry, *ret; /* NULL: none */
	void *data;
	int thread;   /* 0: all */
	bool vectors; /* its handlers may change vector registers */
};

struct hook_list {
	uint32_t count;
	bool vectors; /* any of them */
	struct hook hooks[]; /* in attach order */
};

/* A function with handlers. Lives as long as a detour that names it (struct isa_emit). */
struct hook_point {
	struct hook_list *list; /* RCU; NULL: none */
	struct ftr_function function;
};

/*
 * Make @list the list of @point; NULL: none. Returns the former one, which may be freed once
 * hook_synchronize() has returned. One writer at a time.
 */
struct hook_list *hook_publish(struct hook_point *point, struct hook_list *list);

/* Wait until no thread reads a list that was replaced before. May be called from a handler. */
void hook_synchronize(void);

/* While a thread reads what is replaced like a list; short, and not around handlers. Makes no system
 * call. */
void hook_read_begin(void);
void hook_read_end(void);

/* Does a handler of hook @serial run in another thread? Reliable once the hook is in no list and
 * hook_synchronize() has returned. */
bool hook_running(uint64_t serial);

/* Is the calling thread in a handler? */
bool hook_in_handler(void);

/* Whether the handler that begins at @code may change vector registers, as far as can be told. */
bool hook_uses_vectors(ftr_handler *code);

/* The C side of the stubs; see struct isa_env. */
void hook_entered(struct ftr_call *call);
void hook_returned(struct ftr_call *call);

#endif
