/* SPDX-License-Identifier: MIT */
/* The memory of a shadow stack, against a model that is a plain list. */
#define _GNU_SOURCE 1
#include "rethook/mirror.h"
#include "support_random.h"
#include "support_qemu.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB	  (1ull << 20)
#define BASE	  0x7ff000000000ull
#define CALLS_MAX 2000
#define SEED	  20250302u

__attribute__((constructor)) static void seed(void)
{
	random_state = SEED;
}

static uint64_t window(void)
{
	return shadow_root.mask + 8;
}

static void begin(struct shadow_node *node, enum detour_mode mode)
{
	*node = (struct shadow_node){ 0 };
	mirror_setup(mode);
	cr_assert_eq(mirror_map(node), 0);
}

/* As a call does it. */
static struct shadow_entry *use(struct shadow_node *node, uint64_t slot)
{
	struct shadow_entry *e = mirror_place(node, slot);

	/* Freed by another thread, or given up half-way. */
	if (e->owner && !e->slot)
		e->owner = 0;
	if (e->owner)
		e = mirror_overflow(node, slot);
	cr_assert_not_null(e);
	e->owner = 1;
	e->slot = slot;
	return e;
}

/* ---- the window ---- */

static const struct {
	const char *name;
	enum detour_mode mode;
	rlim_t stack, space;
	uint64_t window, entry;
} windows[] = {
	{ "count", MODE_COUNT, 8 * MIB, RLIM_INFINITY, 8 * MIB, SHADOW_COUNT_SIZE },
	{ "profile", MODE_PROFILE, 8 * MIB, RLIM_INFINITY, 8 * MIB, SHADOW_TIMED_SIZE },
	{ "trace", MODE_TRACE, 8 * MIB, RLIM_INFINITY, 8 * MIB, SHADOW_TIMED_SIZE },
	{ "a small stack", MODE_PROFILE, MIB, RLIM_INFINITY, 8 * MIB, SHADOW_TIMED_SIZE },
	{ "a larger stack", MODE_PROFILE, 20 * MIB, RLIM_INFINITY, 32 * MIB, SHADOW_TIMED_SIZE },
	{ "no limit", MODE_COUNT, RLIM_INFINITY, RLIM_INFINITY, 64 * MIB, SHADOW_COUNT_SIZE },
	{ "little address space", MODE_COUNT, 8 * MIB, 1ull << 46, MIB, SHADOW_COUNT_SIZE },
};

Test(mirror, the_window_fits_the_limits)
{
	if (support_qemu())
		cr_skip_test("limits of memory have no effect here");
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		struct rlimit old, stack, old_space, space;

		getrlimit(RLIMIT_STACK, &old);
		getrlimit(RLIMIT_AS, &old_space);
		stack = (struct rlimit){ windows[i].stack, old.rlim_max };
		space = (struct rlimit){ windows[i].space, old_space.rlim_max };
		if (setrlimit(RLIMIT_STACK, &stack) || setrlimit(RLIMIT_AS, &space))
			continue; /* the limits here do not allow it */
		mirror_setup(windows[i].mode);
		setrlimit(RLIMIT_STACK, &old);
		setrlimit(RLIMIT_AS, &old_space);
		cr_expect_eq(window(), windows[i].window, "%s: %llu", windows[i].name,
			(unsigned long long)window());
		cr_expect_eq(shadow_root.scale * 8, windows[i].entry, "%s", windows[i].name);
		cr_expect_eq(shadow_root.zero, 0);
	}
}

Test(mirror, slots_of_one_window_have_places_of_their_own)
{
	static const enum detour_mode modes[] = { MODE_COUNT, MODE_PROFILE };

	for (size_t i = 0; i < 2; i++) {
		struct shadow_node node;
		uint64_t size, bottom;

		begin(&node, modes[i]);
		size = shadow_root.scale * 8;
		bottom = BASE & ~shadow_root.mask;
		for (uint64_t slot = bottom; slot < bottom + window(); slot += 8 * 4099) {
			uint64_t place = (uint64_t)mirror_place(&node, slot);

			cr_assert_eq(place, node.mirror + (slot - bottom) / 8 * size);
			cr_assert_eq(place, (uint64_t)mirror_place(&node, slot + window()));
			cr_assert_null(mirror_find(&node, slot), "nobody uses it yet");
		}
		/* The last one is inside. */
		use(&node, bottom + window() - 8);
		cr_assert_not_null(mirror_find(&node, bottom + window() - 8));
	}
}

/* ---- what is found ---- */

static struct {
	uint64_t slot;
	struct shadow_entry *entry;
} calls[CALLS_MAX];
static size_t ncalls;

static void check_all(const struct shadow_node *node)
{
	for (size_t i = 0; i < ncalls; i++)
		cr_assert_eq(mirror_find(node, calls[i].slot), calls[i].entry,
			"call %zu of %zu is not found", i, ncalls);
}

static bool is_called(uint64_t slot)
{
	for (size_t i = 0; i < ncalls; i++)
		if (calls[i].slot == slot)
			return true;
	return false;
}

static void add_call(struct shadow_node *node, uint64_t slot)
{
	if (is_called(slot) || ncalls == CALLS_MAX)
		return;
	cr_assert_null(mirror_find(node, slot), "found before it is called");
	calls[ncalls].slot = slot;
	calls[ncalls++].entry = use(node, slot);
}

static void end_call(struct shadow_node *node, size_t i, bool own)
{
	uint64_t slot = calls[i].slot;

	if (own)
		mirror_free(node, calls[i].entry);
	else
		mirror_free_foreign(node, calls[i].entry, slot);
	calls[i] = calls[--ncalls];
	cr_assert_null(mirror_find(node, slot), "found after it has returned");
}

static const struct {
	const char *name;
	uint64_t stacks; /* as many windows of slots */
	uint64_t depth;	 /* words of each that are used */
	bool fifo, others;
} mixes[] = {
	{ "one stack", 1, 64, false, false },
	{ "two stacks that share all places", 2, 64, false, false },
	{ "many stacks, oldest first", 40, 16, true, false },
	{ "many stacks, random order", 40, 16, false, false },
	{ "other threads end some calls", 8, 32, false, true },
	{ "one place for all", 500, 1, false, false },
};

Test(mirror, every_call_is_found_from_its_beginning_to_its_end)
{
	for (size_t m = 0; m < sizeof(mixes) / sizeof(mixes[0]); m++) {
		struct shadow_node node;

		begin(&node, m & 1 ? MODE_COUNT : MODE_PROFILE);
		ncalls = 0;
		for (int step = 0; step < 4000; step++) {
			uint64_t slot = BASE + random64() % mixes[m].stacks * window()
				+ random64() % mixes[m].depth * 8;

			if (random64() % 5 < 3)
				add_call(&node, slot);
			else if (ncalls)
				end_call(&node, mixes[m].fifo ? 0 : random64() % ncalls,
					!mixes[m].others || random64() % 2);
			if (step % 37 == 0)
				check_all(&node);
		}
		check_all(&node);
		while (ncalls)
			end_call(&node, random64() % ncalls, true);
		if (!mixes[m].others)
			cr_expect_eq(node.overflow_end, node.overflow,
				"%s: the overflow is not given back", mixes[m].name);
	}
}

/* What another thread has freed is given back when the owner frees one above it. */
Test(mirror, holes_of_other_threads_are_given_back)
{
	struct shadow_node node;
	struct shadow_entry *e[5];

	begin(&node, MODE_PROFILE);
	for (uint64_t i = 0; i < 5; i++)
		e[i] = use(&node, BASE + i * window());
	cr_assert_eq(node.overflow_end - node.overflow, 4 * sizeof(struct shadow_entry));
	mirror_free_foreign(&node, e[2], BASE + 2 * window());
	mirror_free_foreign(&node, e[3], BASE + 3 * window());
	cr_assert_eq(node.overflow_end - node.overflow, 4 * sizeof(struct shadow_entry));
	cr_assert_eq(mirror_find(&node, BASE + 4 * window()), e[4]);
	mirror_free(&node, e[4]);
	cr_assert_eq(node.overflow_end - node.overflow, sizeof(struct shadow_entry));
	cr_assert_eq(mirror_find(&node, BASE + window()), e[1]);
	mirror_free(&node, e[1]);
	cr_assert_eq(node.overflow_end, node.overflow);
	cr_assert_eq(mirror_find(&node, BASE), e[0]);
}

Test(mirror, a_full_overflow_gives_nothing_and_loses_nothing)
{
	struct shadow_node node;
	struct shadow_entry *e[3];

	begin(&node, MODE_COUNT);
	use(&node, BASE);
	e[0] = use(&node, BASE + window());
	node.overflow_room = node.overflow + 3 * sizeof(struct shadow_entry);
	e[1] = use(&node, BASE + 2 * window());
	e[2] = use(&node, BASE + 3 * window());
	for (int i = 0; i < 3; i++)
		cr_assert_null(mirror_overflow(&node, BASE + 4 * window()));
	for (uint64_t i = 0; i < 3; i++)
		cr_assert_eq(mirror_find(&node, BASE + (i + 1) * window()), e[i]);
	mirror_free(&node, e[2]);
	cr_assert_eq(use(&node, BASE + 4 * window()), e[2]);
}

/* ---- each ---- */

struct seen {
	size_t count, wrong;
	uint64_t last;
};

static void see(struct shadow_entry *e, void *arg)
{
	struct seen *seen = arg;

	seen->count++;
	if (mirror_find((struct shadow_node *)seen->last, e->slot) != e)
		seen->wrong++;
}

static uint64_t order_last, order_wrong;

static void see_order(struct shadow_entry *e, void *arg)
{
	(void)arg;
	order_wrong += e->slot <= order_last;
	order_last = e->slot;
}

static size_t resident(const struct shadow_node *node)
{
	size_t pages = window() * shadow_root.scale / 4096, n = 0;
	unsigned char *present = malloc(pages);

	cr_assert_eq(mincore((void *)node->mirror, window() * shadow_root.scale, present), 0);
	for (size_t i = 0; i < pages; i++)
		n += present[i] & 1;
	free(present);
	return n;
}

Test(mirror, each_call_is_visited_once_and_unused_memory_is_not_touched)
{
	struct shadow_node node;
	struct seen seen = { .last = (uint64_t)&node };
	size_t before;

	begin(&node, MODE_PROFILE);
	ncalls = 0;
	for (int i = 0; i < 1000; i++)
		add_call(&node, BASE + random64() % (2 * window() / 8) * 8);
	for (int i = 0; i < 50; i++)
		add_call(&node, calls[i].slot + 5 * window());
	before = resident(&node);
	mirror_each(&node, see, &seen);
	cr_expect_eq(seen.count, ncalls, "%zu of %zu", seen.count, ncalls);
	cr_expect_eq(seen.wrong, 0);
	cr_expect_eq(resident(&node), before);
}

Test(mirror, calls_are_visited_by_rising_slots)
{
	struct shadow_node node;
	uint64_t bottom;

	begin(&node, MODE_COUNT);
	bottom = BASE & ~shadow_root.mask;
	for (int i = 0; i < 500; i++) {
		uint64_t slot = bottom + random64() % (window() / 8) * 8;

		if (!mirror_find(&node, slot))
			use(&node, slot);
	}
	mirror_each(&node, see_order, NULL);
	cr_assert_eq(order_wrong, 0);
}

/* A call between its counter and its entry has an owner and no slot. */
Test(mirror, half_made_calls_are_visited_too)
{
	struct shadow_node node;
	struct seen seen = { .last = (uint64_t)&node };

	begin(&node, MODE_COUNT);
	mirror_place(&node, BASE)->owner = 1;
	mirror_each(&node, see, &seen);
	cr_assert_eq(seen.count, 1);
	cr_assert_null(mirror_find(&node, BASE));
}
