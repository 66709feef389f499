/* SPDX-License-Identifier: MIT */
/*
 * Two places where a return address can wait for its return: an array of the thread's own, and a
 * node from a free list that all threads share, which is what the kernel's rethook does. The list
 * is a stack by compare-and-swap whose head carries a count of changes, so that a node which was
 * taken and put back meanwhile is noticed. That is one atomic operation to take a node and one to
 * put it back: less than the kernel's list needs, so the comparison flatters the list.
 */
#include "returns.h"
#include <stdatomic.h>

#define NODES 64
#define DEPTH 64

struct node {
	_Alignas(64) uint64_t address;
	struct node *below; /* the thread's enclosing activation */
	_Atomic uint32_t next; /* in the free list: index + 1; 0: none */
};

static struct node nodes[NODES];
static _Alignas(64) _Atomic uint64_t head; /* count of changes << 32 | index + 1 */
static __thread struct node *newest;

static __thread struct returns_slot slots[DEPTH];
__thread struct returns_slot *returns_top;
uint64_t returns_entered, returns_left;

void pool_stack_enter(uint64_t address)
{
	returns_top++->address = address;
}

uint64_t pool_stack_leave(void)
{
	return (--returns_top)->address;
}

static void list_put(struct node *node)
{
	uint64_t old = atomic_load_explicit(&head, memory_order_relaxed);
	uint64_t new;

	do {
		atomic_store_explicit(&node->next, (uint32_t)old, memory_order_relaxed);
		new = ((old >> 32) + 1) << 32 | (uint64_t)(node - nodes + 1);
		/* release: pairs with list_take(), which reads node->next */
	} while (!atomic_compare_exchange_weak_explicit(
		&head, &old, new, memory_order_release, memory_order_relaxed));
}

/* There are more nodes than threads and depth together can use: the list is never empty. */
static struct node *list_take(void)
{
	uint64_t old = atomic_load_explicit(&head, memory_order_acquire);
	struct node *node;
	uint64_t new;

	do {
		node = &nodes[(uint32_t)old - 1];
		new = ((old >> 32) + 1) << 32 |
		      atomic_load_explicit(&node->next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&head, &old, new, memory_order_acquire, memory_order_acquire));
	return node;
}

void pool_list_enter(uint64_t address)
{
	struct node *node = list_take();

	node->address = address;
	node->below = newest;
	newest = node;
}

uint64_t pool_list_leave(void)
{
	struct node *node = newest;
	uint64_t address = node->address;

	newest = node->below;
	list_put(node);
	return address;
}

void returns_start_thread(void)
{
	returns_top = slots;
	if (head)
		return;
	for (int i = 0; i < NODES; i++)
		list_put(&nodes[i]);
}
