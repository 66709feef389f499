/* SPDX-License-Identifier: MIT */
#include "../arch/mem.h"
#include "gaps.h"

#define GAP_LOWEST    0x10000ull  /* vm.mmap_min_addr is not more than this */
#define GAP_STACK_MIN (8ull << 20)
#define GAP_STACK_MAX (16ull << 30) /* what "unlimited" counts as */
#define GAP_GUARD     256	    /* pages the kernel keeps free under a stack */

enum gap_rank {
	GAP_BELOW_PROGRAM,
	GAP_ABOVE_LOADER,
	GAP_BELOW_LIBRARIES,
	GAP_BETWEEN,
	GAP_ABOVE_BREAK
};

/* What the search knows and has found so far. */
struct gap_search {
	const struct gap_request *request;
	uint64_t size;	     /* rounded to pages */
	uint64_t program_lo; /* start of the main program */
	uint64_t loader_hi;
	uint64_t lowest_lib; /* start of the lowest file mapping above the program and the break */
	uint64_t brk;
	bool heap; /* the break has been used: it no longer is where it began */
	uint64_t stack_lo;
	uint64_t stack_room; /* from here up to the stack is room to grow */
	uint64_t best;
	uint64_t best_distance;
	enum gap_rank best_rank;
};

static uint64_t gap_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t gap_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t gap_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t gap_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool gap_refused(const struct gap_request *request, uint64_t addr)
{
	for (size_t i = 0; i < request->nrefused; i++)
		if (request->refused[i] == addr)
			return true;
	return false;
}

/* Take @addr when it is better than what has been found. */
static void gap_offer(struct gap_search *s, enum gap_rank rank, uint64_t addr)
{
	const struct gap_request *r = s->request;
	uint64_t distance =
		addr < r->text_lo ? gap_sub(r->text_hi, addr) : gap_sub(addr + s->size, r->text_lo);

	if (gap_refused(r, addr))
		return;
	if (s->best
		&& (rank > s->best_rank || (rank == s->best_rank && distance >= s->best_distance)))
		return;
	s->best = addr;
	s->best_rank = rank;
	s->best_distance = distance;
}

/* Offer the place at the upper end of what of the free range [@lo, @hi) is in reach; unless
 * @top_only, the one at the lower end too. */
static void gap_range(
	struct gap_search *s, enum gap_rank rank, uint64_t lo, uint64_t hi, bool top_only)
{
	const struct gap_request *r = s->request;
	uint64_t mask = r->page - 1;

	lo = gap_max(gap_max(lo, GAP_LOWEST), gap_sub(r->text_hi, r->reach));
	hi = gap_min(hi, gap_add(r->text_lo, r->reach));
	if (lo > UINT64_MAX - mask || gap_sub(hi, lo) < s->size)
		return;
	lo = (lo + mask) & ~mask;
	hi = (hi - s->size) & ~mask;
	if (hi < lo)
		return;
	gap_offer(s, rank, hi);
	if (!top_only)
		gap_offer(s, rank, lo);
}

/*
 * The free range [@lo, @hi) that the break grows into. What is below the break is free to take
 * (the kernel starts it at a random distance from the program). Above, the far end is where
 * libraries are, unless that is out of reach.
 */
static void gap_break(struct gap_search *s, uint64_t lo, uint64_t hi)
{
	const struct gap_request *r = s->request;
	bool far_end = hi <= gap_add(r->text_lo, r->reach);

	if (!s->heap)
		gap_range(s, GAP_BETWEEN, lo, s->brk, false);
	gap_range(s, far_end ? GAP_BELOW_LIBRARIES : GAP_ABOVE_BREAK,
		gap_add(s->brk, r->reach / 4), hi, true);
}

/* The free range [@lo, @hi) that ends at a mapping. */
static void gap_consider(struct gap_search *s, uint64_t lo, uint64_t hi)
{
	uint64_t end = hi == s->stack_lo ? s->stack_room : hi;

	if (s->brk >= lo && s->brk < hi)
		gap_break(s, lo, end);
	else if (hi == s->program_lo)
		gap_range(s, GAP_BELOW_PROGRAM, lo, end, false);
	else if (s->loader_hi && lo >= s->loader_hi)
		gap_range(s, GAP_ABOVE_LOADER, lo, end, false);
	else
		gap_range(s, hi == s->lowest_lib ? GAP_BELOW_LIBRARIES : GAP_BETWEEN, lo, end,
			false);
}

/* Both from one file. */
static bool gap_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static void gap_landmarks(struct gap_search *s, const struct maps *maps)
{
	const struct gap_request *r = s->request;
	const struct mapping *program = maps_from(maps, r->program);
	const struct mapping *loader = r->loader ? maps_from(maps, r->loader) : NULL;
	const struct mapping *heap = maps_named(maps, "[heap]");
	const struct mapping *stack = maps_named(maps, "[stack]");
	uint64_t limit = gap_min(gap_max(r->stack_limit, GAP_STACK_MIN), GAP_STACK_MAX);

	if (stack) {
		s->stack_lo = stack->lo;
		s->stack_room = gap_sub(gap_min(gap_sub(stack->hi, limit), stack->lo),
			GAP_GUARD * r->page);
	}
	/* Each of program and loader is mapped from one file, without others between. */
	while (loader && loader + 1 < maps->list + maps->count && gap_same_file(loader, loader + 1))
		loader++;
	if (loader)
		s->loader_hi = loader->hi;
	s->heap = heap;
	s->brk = gap_max(r->brk, heap ? heap->hi : 0);
	s->brk = (s->brk + r->page - 1) & ~(r->page - 1);
	if (!program)
		return;
	while (program > maps->list && gap_same_file(program - 1, program))
		program--;
	s->program_lo = program->lo;
	for (size_t i = 0; i < maps->count && !s->lowest_lib; i++) {
		const struct mapping *m = maps->list + i;

		if (m->inode && m->lo > s->program_lo && m->lo >= s->brk
			&& !gap_same_file(m, program))
			s->lowest_lib = m->lo;
	}
}

uint64_t gap_find(const struct maps *maps, const struct gap_request *request)
{
	struct gap_search s = { .request = request };
	uint64_t lo = 0;
	bool low_stack;

	if (!request->size || !request->page || (request->page & (request->page - 1)))
		return 0;
	s.size = gap_add(request->size, request->page - 1) & ~(request->page - 1);
	gap_landmarks(&s, maps);
	low_stack = s.loader_hi > s.stack_lo; /* under qemu-user */
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *m = maps->list + i;

		/* What is above the stack is not for programs to choose; see [vsyscall]. */
		if (m->lo >> 63 || (s.stack_lo && m->lo > s.stack_lo && !low_stack))
			break;
		gap_consider(&s, lo, m->lo);
		lo = m->hi;
	}
	if (s.stack_lo && low_stack)
		gap_consider(&s, lo, gap_add(lo, request->reach));
	return s.best;
}
