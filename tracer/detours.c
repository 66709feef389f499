/* SPDX-License-Identifier: MIT */
#include "detours.h"
#include "pool.h"
#include "target.h"
#include "unload.h"

/* What is kept for the next probe: so many images, and of so many bytes; but the latest in any case. */
#define KEEP_MAX      16
#define KEEP_SIZE_MAX (1u << 20)

static struct {
	struct detours *first;
	uint64_t serial;
	/* those without users */
	size_t nidle, size;
	size_t left, left_size; /* when they were looked at last */
} detours;

static size_t size_of(const struct detours *d)
{
	return d->hi - d->lo;
}

/* @d has no users any more, or none yet. */
static void begin_idle(struct detours *d)
{
	d->idle = ++detours.serial;
	detours.nidle++;
	detours.size += size_of(d);
}

static void end_idle(const struct detours *d)
{
	detours.nidle--;
	detours.size -= size_of(d);
}

void detours_add(const struct plan *plan)
{
	bool stays = false;

	for (size_t i = 0; i < plan->count; i++)
		stays |= plan->functions[i].site.choice == SITE_TRAP; /* see trap_add() */
	for (const struct plan_image *image = plan->images; image && !stays; image = image->next) {
		struct detours *d = pool_alloc(sizeof(*d));

		if (!d)
			continue;
		*d = (struct detours){ .next = detours.first, .handle = image->handle,
			.lo = image->lo, .hi = image->hi };
		detours.first = d;
		begin_idle(d);
	}
}

struct detours *detours_at(uint64_t address)
{
	struct detours *d = detours.first;

	while (d && address - d->lo >= d->hi - d->lo)
		d = d->next;
	return d;
}

void detours_use(struct detours *d)
{
	if (d && !d->users++)
		end_idle(d);
}

void detours_leave(struct detours *d)
{
	if (d && !--d->users)
		begin_idle(d);
}

/* ---- who is in them ---- */

/* A function of an image. */
struct member {
	uint32_t id;
	struct target *target;
	enum target_kind kind;
	size_t image; /* in search.list */
};

struct search {
	struct arena arena;
	struct detours **list; /* by address */
	struct code_range *ranges;
	bool *busy;
	size_t n;
	struct member *members; /* by id */
	size_t nmembers;
};

/* The latest first. */
static int compare_idle(const void *a, const void *b)
{
	const struct detours *const *x = a, *const *y = b;

	return (*x)->idle > (*y)->idle ? -1 : 1;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct detours *const *x = a, *const *y = b;

	return (*x)->lo < (*y)->lo ? -1 : 1;
}

/* How many of them are kept. */
static size_t kept(const struct search *s)
{
	size_t n = 0, size = 0;

	while (n < s->n && n < KEEP_MAX && (!n || size + size_of(s->list[n]) <= KEEP_SIZE_MAX))
		size += size_of(s->list[n++]);
	return n;
}

/* The images in question. */
static bool choose(struct search *s, bool all)
{
	size_t first;

	s->list = arena_alloc(&s->arena, detours.nidle * sizeof(*s->list));
	s->ranges = arena_alloc(&s->arena, detours.nidle * sizeof(*s->ranges));
	s->busy = arena_alloc(&s->arena, detours.nidle);
	if (!s->list || !s->ranges || !s->busy)
		return false;
	for (struct detours *d = detours.first; d; d = d->next)
		if (!d->users && !d->stays)
			s->list[s->n++] = d;
	mem_sort(s->list, s->n, sizeof(*s->list), compare_idle);
	first = all ? 0 : kept(s);
	s->list += first;
	s->n -= first;
	mem_sort(s->list, s->n, sizeof(*s->list), compare_addresses);
	for (size_t i = 0; i < s->n; i++)
		s->ranges[i] = (struct code_range){ s->list[i]->lo, s->list[i]->hi };
	return s->n;
}

static size_t index_of(const struct search *s, const struct detours *d)
{
	size_t i = 0;

	while (i < s->n && s->list[i] != d)
		i++;
	return i;
}

static void count_members(struct target *t, void *arg)
{
	struct search *s = arg;

	for (int kind = 0; kind < TARGET_KINDS; kind++)
		s->nmembers += t->detours[kind].image && !t->detours[kind].image->users;
}

static void add_members(struct target *t, void *arg)
{
	struct search *s = arg;

	for (int kind = 0; kind < TARGET_KINDS; kind++) {
		const struct detours *d = t->detours[kind].image;
		size_t image = d && !d->users ? index_of(s, d) : s->n;

		if (image < s->n)
			s->members[s->nmembers++] = (struct member){ *target_id(t, kind), t, kind,
				image };
	}
}

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static bool find_members(struct search *s)
{
	target_each(count_members, s);
	s->members = arena_alloc(&s->arena, s->nmembers * sizeof(*s->members));
	s->nmembers = 0;
	if (!s->members)
		return false;
	target_each(add_members, s);
	mem_sort(s->members, s->nmembers, sizeof(*s->members), compare_members);
	return true;
}

/* A call of function @id, or of one whose return handlers are owed at @info, may return. */
static void note_call(uint32_t id, uint64_t info, void *arg)
{
	struct search *s = arg;
	size_t low = 0, high = s->nmembers;

	for (size_t i = 0; info && i < s->n; i++)
		s->busy[i] |= info - s->ranges[i].lo < s->ranges[i].hi - s->ranges[i].lo;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->members[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->nmembers && s->members[low].id == id; low++)
		s->busy[s->members[low].image] = true;
}

static void find_busy(struct search *s, const void *frame)
{
	const struct unload what = { s->ranges, s->busy, s->n };

	unload_find_busy(&what, note_call, s, frame);
}

/* ---- giving them back ---- */

static void forget_members(const struct search *s)
{
	for (size_t i = 0; i < s->nmembers; i++) {
		const struct member *m = &s->members[i];

		if (!s->busy[m->image])
			m->target->detours[m->kind] = (struct target_detour){ 0 };
	}
}

static struct detours *unlist(const struct search *s)
{
	struct detours *list = NULL;
	size_t i;

	for (struct detours **at = &detours.first; *at;) {
		struct detours *d = *at;

		i = index_of(s, d);
		if (i == s->n || s->busy[i] || d->stays) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		d->next = list;
		list = d;
		end_idle(d);
	}
	return list;
}

static struct detours *take_away(struct search *s)
{
	const struct unload what = { s->ranges, s->busy, s->n };

	forget_members(s);
	if (!unload_retire(&what))
		for (size_t i = 0; i < s->n; i++)
			s->list[i]->stays |= !s->busy[i];
	return unlist(s);
}

/* Every thread is to be looked at, so not all the time for the sake of a few. */
static bool are_many(void)
{
	return detours.nidle >= detours.left + KEEP_MAX
		|| detours.size >= detours.left_size + KEEP_SIZE_MAX;
}

struct detours *detours_sweep(bool all, const void *frame)
{
	struct search s = { .n = 0 };
	struct detours *list = NULL;

	/* On other CPUs a return address may be in a register alone. */
	if (!arch_slot_in_memory || !(all ? detours.nidle : are_many()))
		return NULL;
	if (choose(&s, all) && find_members(&s)) {
		find_busy(&s, frame);
		list = take_away(&s);
	}
	detours.left = detours.nidle;
	detours.left_size = detours.size;
	arena_free(&s.arena);
	return list;
}

void detours_close(const struct detours *list)
{
	for (; list; list = list->next)
		unload_image(list->handle, list->lo);
}

void detours_free(struct detours *list)
{
	while (list) {
		struct detours *next = list->next;

		pool_free(list, sizeof(*list));
		list = next;
	}
}
