/* SPDX-License-Identifier: MIT */
/*
 * Handlers at the entries and returns of functions (include/ftr/ftr.h).
 *
 * A hooked function's detour goes through the hook stubs of its image's common part, at its entry
 * once the shadow entry is in place, at its return before anything else. They put the call's
 * registers into a struct ftr_call and come here. What is to be called is in the function's
 * hook_point: an immutable list, replaced as a whole under RCU (rcu.h). A read side section is as
 * short as copying one hook; no handler runs inside it, so handlers may attach and detach, and a
 * hook that has been taken away does not run, even when the call has begun before. A list of one
 * plain hook is in the hook_plain, too, for stubs that call handlers by themselves.
 *
 * A call remembers which hooks have seen its entry, and a word for each, in a struct hook_state;
 * only those see its return. Every shadow entry has a place for one at the same index of a second
 * array, so there is nothing to allocate in a call, and nothing to give back. That place would be
 * lost when the function ends in a jump to another one, which takes over its entry: then the state
 * is parked in an entry of the overflow, under the slot's address plus 1, and its handlers run when
 * the last function in such a row returns. Parked states go with the entry.
 */
#ifndef RETHOOK_HOOK_H
#define RETHOOK_HOOK_H

#include "../include/ftr/ftr.h"
#include "shadow.h"

/* Never changed while it is in a list, but by hook_silence(). */
struct hook {
	uint64_t serial; /* never used again; rises in attach order; not 0 */
	ftr_handler *entry, *ret; /* NULL: none */
	void *data;
	int thread;   /* 0: all */
	bool vectors; /* its handlers may change vector registers */
	bool silent;  /* hook_silence() has taken its handlers: leave it out of new lists */
	uint8_t place; /* hook_publish()'s: of its word, when it has a return handler */
};

struct hook_list {
	uint32_t count;
	bool vectors; /* any of them */
	/* hook_publish()'s: */
	bool uniform;	 /* there is nothing to ask about a hook but what it is to call */
	uint8_t places;	 /* all hooks' places are below */
	uint64_t taken;	 /* a bit for each place that is in use */
	uint64_t newest; /* serial of the last one */
	struct hook hooks[]; /* in attach order */
};

/* Most hooks with return handlers in a list. */
#define HOOK_RETURNS_MAX 61

/* A function with handlers. Lives as long as a detour that names it (struct isa_emit). */
struct hook_point {
	struct hook_plain plain;
	struct hook_list *list; /* RCU; NULL: none */
	uint64_t version; /* of the list, never used again; 0 while it is replaced */
	struct ftr_function function;
};

/* Make room for the states of all threads there are, for lists of so many return handlers. False: there
 * is no memory, and return handlers would not be called in some thread. */
bool hook_prepare_returns(unsigned handlers);

/*
 * Make @list the list of @point; NULL: none. Returns the former one, which may be freed once
 * hook_synchronize() has returned true; its memory must stay readable for ever. One writer at a time.
 */
struct hook_list *hook_publish(struct hook_point *point, struct hook_list *list);

/* Where there is no memory for a list without it: the handlers of hook @serial are not called any more,
 * as if a list without it had been published. */
void hook_silence(struct hook_point *point, uint64_t serial);

/*
 * Wait until no thread reads a list that was replaced before. May be called from a handler. False:
 * this cannot be told (rcu_synchronize()), or waited for, since system calls are forbidden; replaced
 * lists must stay.
 */
bool hook_synchronize(void);

/* Does a handler of hook @serial run in another thread? Reliable once the hook is in no list and
 * hook_synchronize() has returned. */
bool hook_running(uint64_t serial);

/* How many handlers is the calling thread in? */
unsigned hook_nested(void);
static inline bool hook_in_handler(void)
{
	return hook_nested();
}

/* The calling thread's errno, found without a call that may be hooked once there are hooks. */
int *hook_errno(void);

/* Whether the handler that begins at @code may change vector registers, as far as can be told. */
bool hook_uses_vectors(ftr_handler *code);

/* ---- a call's handlers, for tracer/call.c ---- */

/* What is on while the handlers of a list run: ftr_call.visit. */
struct hook_visit {
	bool more;	 /* hooks that may be to be called behind it */
	bool vectors;
	const struct detour_info *info;
	struct shadow_thread *thread;
	struct hook_activation *active; /* thread->active[depth] */
	uint8_t place;
	uint32_t depth;
	uint32_t index;	 /* of the hook below in the list it was in, */
	uint64_t serial; /* and its serial */
	uint64_t limit;	 /* newer ones have not seen the entry */
	ftr_handler *handler; /* what runs */
	void *data;
	struct hook_state *state; /* NULL: no return will be seen */
};

/* How many calls of the function are open in this thread, this one not included; 0 where its returns
 * are not seen. */
unsigned hook_depth(const struct ftr_call *call);

/* Make call->word and call->ret what they are. */
void hook_unfold(struct ftr_call *call);

/* In a handler that leaves vectors alone: call @function, which may not. */
void hook_call_apart(struct ftr_call *call, ftr_handler *function, void *data);

/* ---- the C side of the stubs; see struct isa_env ---- */

void hook_set_env(struct isa_env *env);
void hook_entered(struct ftr_call *call);
void hook_returned(struct ftr_call *call);
void hook_finish(struct ftr_call *call);

/* ---- for rethook/shadow.c ---- */

/* Make room for the states of all threads, without system calls later. */
void hook_seal(void);

/* The call of @entry, SHADOW_HOOKED, ends in a jump. */
void hook_park(struct shadow_thread *thread, const struct shadow_entry *entry);

/* Is there anything parked for @slot? */
bool hook_is_owed(const struct shadow_thread *thread, uint64_t slot);

/* Whose detour the handlers of a parked entry are called by; 0: @entry is an ordinary one. */
uint64_t hook_parked_info(struct shadow_thread *thread, const struct shadow_entry *entry);

/* A frame with parked states returns; @frame->go leads it to their handlers. */
void hook_owe(struct slow_frame *frame);

/* It does not return. */
void hook_forget(struct shadow_thread *thread, uint64_t slot);
void hook_forget_all(struct shadow_thread *thread);

#endif
