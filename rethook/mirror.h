/* SPDX-License-Identifier: MIT */
/*
 * The memory of a shadow stack: a sparse array that mirrors a window of the address space, so that
 * every stack slot has its place. Slots further apart than the window, on other stacks or in
 * deeper recursion than the window is wide, share places; the later one goes to the overflow.
 */
#ifndef RETHOOK_MIRROR_H
#define RETHOOK_MIRROR_H

#include "../arch/arch.h"

extern struct shadow_root shadow_root;

/* Choose the window for this process, for entries of @mode's size. Before any mirror is made. */
void mirror_setup(enum detour_mode mode);

/* Reserve a thread's mirror, aligned to its size, and before it a page that a fork wipes. 0 or -ENOMEM. */
int mirror_map(struct shadow_node *node);

/* The place of @slot, whoever uses it. */
static inline struct shadow_entry *mirror_place(const struct shadow_node *node, uint64_t slot)
{
	return (struct shadow_entry *)(node->mirror + (slot & shadow_root.mask) * shadow_root.scale);
}

/* The entry of @slot in the mirror or the overflow; NULL when there is none. */
struct shadow_entry *mirror_find(const struct shadow_node *node, uint64_t slot);

/* Reserve the overflow's memory, which else is done at its first use. */
bool mirror_prepare(struct shadow_node *node);

/* A free entry in the overflow, to be filled by the calling thread for @slot; NULL when memory is
 * out. */
struct shadow_entry *mirror_overflow(struct shadow_node *node, uint64_t slot);

/* Free an entry of the calling thread's; its overflow may shrink. */
void mirror_free(struct shadow_node *node, struct shadow_entry *entry);

/* The same for a place in the mirror whose entry is not valid, or no longer. */
void mirror_give_up(struct shadow_entry *entry);

/* Free the entry of @slot of another thread's, which may be using the same place. */
void mirror_free_foreign(struct shadow_node *node, struct shadow_entry *entry, uint64_t slot);

/* Call @visit for every used entry (owner is not 0), by rising slots within the window. Reads no memory that has
 * not been used. */
void mirror_each(struct shadow_node *node, void (*visit)(struct shadow_entry *, void *), void *arg);

#endif
