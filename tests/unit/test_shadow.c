/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the shadow stack, driven without any generated code: a call is a word of a
 * stack of ours that gets a return point, a return takes the real address back.
 */
#define _GNU_SOURCE 1
#include "rethook/shadow.h"
#include "rethook/mirror.h"
#include "rethook/thread.h"
#include "arch/sys.h"
#include "support_qemu.h"
#include "support_random.h"
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCS	     8
#define THREADS_MAX  8
#define PAD	     0x1234560
#define RESUME	     0x7654320
#define RET(n)	     (0x500000ull + (uint64_t)(n) * 16)
#define GO(n, where) ((uint64_t)&infos[n] + where)
#define RESUME_AT    64
#define BYPASS_AT    128
#define LEAVE_AT     192
#define SEED	     20250303u

/* What arch_is_return_point() looks for at a return point, and before it. */
#if defined(__x86_64__)
#include "arch/x86_64/x86.h"
#define MARK	    X86_RETURN_MARK
#define MARK_BEFORE 0
#elif defined(__aarch64__)
#include "arch/arm64/a64.h"
#define MARK	    A64_RETURN_MARK
#define MARK_BEFORE 0
#else
#define MARK	    0
#define MARK_BEFORE (0x48000001ull << 32) /* bl */
#endif

/* A return point of each function, as far as anyone looks. */
static uint64_t points_room[1 + FUNCS][2];
static uint64_t (*const points)[2] = points_room + 1;
static struct detour_info infos[FUNCS];
static struct func_record records[THREADS_MAX][FUNCS];
static int attached, lost, renewed;
static bool is_borrowed, nothing_to_give;
static pid_t parent;
static uint64_t *stack; /* two windows of words */

static bool attach(struct shadow_thread *t)
{
	if (nothing_to_give || attached == THREADS_MAX)
		return false;
	__atomic_store_n(&t->records[0], (uint64_t)records[attached++], __ATOMIC_RELEASE);
	return getpid() != parent;
}

static void renew(struct shadow_thread *t)
{
	(void)t;
	renewed++;
}

static void lost_call(void)
{
	lost++;
}

static bool borrowed(void)
{
	return is_borrowed;
}

static void begin(enum detour_mode mode)
{
	uint64_t window;

	parent = getpid();
	shadow_hooks = (struct shadow_hooks){ .mode = mode, .attach = attach, .renew = renew,
		.lost_call = lost_call, .borrowed = borrowed };
	mirror_setup(mode);
	for (uint32_t i = 0; i < FUNCS; i++) {
		points_room[i][1] = MARK_BEFORE;
		points[i][0] = MARK;
		infos[i] = (struct detour_info){ .id = i, .resume = RESUME_AT, .bypass = BYPASS_AT,
			.leave = LEAVE_AT };
	}
	shadow_add_image((uint64_t)points, (uint64_t)(points + FUNCS), PAD);
	window = shadow_root.mask + 8;
	stack = mmap(NULL, 2 * window, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert_neq(stack, MAP_FAILED);
}

static uint64_t *collides_with(const uint64_t *word)
{
	return (uint64_t *)((uint64_t)word + shadow_root.mask + 8);
}

/* ---- calls ---- */

/* Function @n is entered with the return address that is in *@word. Where it goes on. */
static uint64_t enter(uint32_t n, uint64_t *word)
{
	struct slow_frame f = { .slot = (uint64_t)word, .info = &infos[n], .ret = *word };

	shadow_slow_entry(&f);
	if (f.go == GO(n, RESUME_AT))
		*word = (uint64_t)points[n];
	return f.go;
}

static void call(uint32_t n, uint64_t *word, uint64_t ret)
{
	*word = ret;
	cr_assert_eq(enter(n, word), GO(n, RESUME_AT), "function %u is not traced", n);
}

static struct shadow_entry *entry_of(const uint64_t *word)
{
	return mirror_find(&shadow_self()->node, (uint64_t)word);
}

/* The function whose return point is in *@word returns: where to. */
static uint64_t finish(uint64_t *word)
{
	uint32_t n = (uint32_t)((*word - (uint64_t)points) / sizeof(points[0]));
	struct slow_frame f = { .slot = (uint64_t)word, .info = &infos[n] };

	shadow_slow_exit(&f);
	cr_assert_eq(f.go, GO(n, LEAVE_AT));
	*word = f.ret;
	shadow_slow_release(&f);
	return f.ret;
}

static void expect(const char *when, int thread, uint32_t n, uint64_t calls, uint64_t returned,
	uint64_t unwound)
{
	const struct func_record *r = &records[thread][n];

	cr_expect(r->calls == calls && r->returned == returned && r->unwound == unwound,
		"%s: function %u: %lu calls, %lu returned, %lu unwound; not %lu, %lu, %lu", when, n,
		r->calls, r->returned, r->unwound, calls, returned, unwound);
}

/* For tests of what a slot tells that holds its return point no longer. */
static void need_slots(void)
{
	if (!arch_slot_in_memory)
		cr_skip_test("a return address need not be in its slot on this CPU");
}

static const enum detour_mode modes[] = { MODE_COUNT, MODE_PROFILE };

/* A Criterion test is a process of its own, and a mode is for a process's whole life. */
#define BOTH(name)                                                                                 \
	static void name(void);                                                                    \
	Test(shadow_count, name)                                                                   \
	{                                                                                          \
		begin(modes[0]);                                                                   \
		name();                                                                            \
	}                                                                                          \
	Test(shadow_profile, name)                                                                 \
	{                                                                                          \
		begin(modes[1]);                                                                   \
		name();                                                                            \
	}                                                                                          \
	static void name(void)

BOTH(a_call_returns_to_its_caller)
{
	uint64_t *word = stack + 100;

	call(1, word, RET(1));
	expect("inside", 0, 1, 1, 0, 0);
	cr_assert_eq(entry_of(word)->ret, RET(1));
	cr_assert_eq(finish(word), RET(1));
	expect("after", 0, 1, 1, 1, 0);
	cr_assert_null(entry_of(word), "the entry is free");
	cr_assert_eq(attached, 1);
	cr_assert_eq(lost, 0);
}

BOTH(nested_calls_keep_their_callers_apart)
{
	for (int i = 0; i < 50; i++)
		call((uint32_t)i % FUNCS, stack + 1000 - i, RET(i));
	for (int i = 49; i >= 0; i--)
		cr_assert_eq(finish(stack + 1000 - i), RET(i), "depth %d", i);
	for (uint32_t n = 0; n < FUNCS; n++)
		expect("after", 0, n, n < 2 ? 7 : 6, n < 2 ? 7 : 6, 0);
}

BOTH(a_tail_call_takes_over_the_return_address)
{
	uint64_t *word = stack + 100;

	call(1, word, RET(1));
	cr_assert_eq(enter(2, word), GO(2, RESUME_AT));
	expect("the first has ended", 0, 1, 1, 1, 0);
	expect("the second is open", 0, 2, 1, 0, 0);
	for (int i = 0; i < 5000; i++)
		cr_assert_eq(enter(3, word), GO(3, RESUME_AT));
	cr_assert_eq(shadow_self()->node.overflow, 0, "a tail call needs no memory");
	cr_assert_eq(finish(word), RET(1));
	expect("after", 0, 2, 1, 1, 0);
	expect("after", 0, 3, 5000, 5000, 0);
	cr_assert_null(entry_of(word));
}

BOTH(a_slot_that_is_used_again_ends_the_call_that_was_left)
{
	uint64_t *word = stack + 100;

	call(1, word, RET(1)); /* left by a longjmp */
	call(2, word, RET(2));
	expect("the slot is used again", 0, 1, 1, 0, 1);
	expect("the slot is used again", 0, 2, 1, 0, 0);
	cr_assert_eq(finish(word), RET(2));
	expect("after", 0, 1, 1, 0, 1);
	expect("after", 0, 2, 1, 1, 0);
}

BOTH(two_stacks_share_a_place)
{
	uint64_t *low = stack + 100, *high = collides_with(low);

	for (int round = 0; round < 4; round++) {
		call(1, round & 1 ? low : high, RET(1));
		call(2, round & 1 ? high : low, RET(2));
		/* The order of the two must not matter. */
		if (round & 2) {
			cr_assert_eq(finish(round & 1 ? low : high), RET(1));
			cr_assert_eq(finish(round & 1 ? high : low), RET(2));
		} else {
			cr_assert_eq(finish(round & 1 ? high : low), RET(2));
			cr_assert_eq(finish(round & 1 ? low : high), RET(1));
		}
		expect("round", 0, 1, (uint64_t)round + 1, (uint64_t)round + 1, 0);
		expect("round", 0, 2, (uint64_t)round + 1, (uint64_t)round + 1, 0);
	}
}

BOTH(a_dead_frame_gives_its_place_away)
{
	uint64_t *low = stack + 100, *high = collides_with(low);

	need_slots();
	call(1, low, RET(1));
	*low = 0; /* left, and its memory used for something else */
	call(2, high, RET(2));
	expect("dead", 0, 1, 1, 0, 1);
	cr_assert_eq(shadow_self()->node.buckets && shadow_self()->node.overflow_end
			!= shadow_self()->node.overflow, false, "its place is free");
	cr_assert_eq(finish(high), RET(2));
}

BOTH(a_stack_that_is_unmapped_is_dead)
{
	uint64_t *high = stack + 100, *low;
	uint64_t window = shadow_root.mask + 8;
	uint8_t *three = mmap(NULL, 3 * window, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	need_slots();
	cr_assert_neq(three, MAP_FAILED);
	low = (uint64_t *)(three + 4096);
	high = collides_with(low);
	call(1, low, RET(1));
	munmap(three, 8192);
	call(2, high, RET(2));
	expect("unmapped", 0, 1, 1, 0, 1);
	cr_assert_eq(finish(high), RET(2));
}

BOTH(the_landing_pad_ends_a_call_as_unwound)
{
	uint64_t *word = stack + 100;
	struct slow_frame f = { .slot = (uint64_t)word };

	call(1, word, RET(1));
	cr_assert_eq(shadow_pad_of(*word), PAD);
	shadow_self()->resume = RESUME;
	shadow_slow_unwind(&f);
	cr_assert_eq(f.ret, RET(1));
	cr_assert_eq(f.go, RESUME);
	cr_assert_not_null(entry_of(word), "unwinders still find it");
	*word = f.ret;
	shadow_slow_release(&f);
	cr_assert_null(entry_of(word));
	expect("after", 0, 1, 1, 0, 1);
}

/* `ret n` and callees that pop their arguments return above their slot. */
BOTH(a_callee_may_pop_its_arguments)
{
	uint64_t *word = stack + 100;
	struct slow_frame f = { .slot = (uint64_t)(word + 3), .info = &infos[1] };

	call(1, word, RET(1));
	shadow_slow_exit(&f);
	cr_assert_eq(f.ret, RET(1));
	shadow_slow_release(&f);
	cr_assert_null(entry_of(word));
	expect("after", 0, 1, 1, 1, 0);
}

BOTH(entry_only_functions_are_counted)
{
	infos[1].leave = 0;
	stack[100] = RET(1);
	cr_assert_eq(enter(1, stack + 100), GO(1, BYPASS_AT));
	cr_assert_null(entry_of(stack + 100));
	expect("after", 0, 1, 1, 0, 0);
}

BOTH(a_thread_without_records_loses_its_calls)
{
	nothing_to_give = true;
	for (int i = 0; i < 3; i++) {
		stack[100] = RET(1);
		cr_assert_eq(enter(1, stack + 100), GO(1, BYPASS_AT));
		cr_assert_eq(stack[100], RET(1));
	}
	cr_assert_eq(lost, 3);
}

BOTH(a_vfork_child_leaves_its_parents_thread_alone)
{
	is_borrowed = true;
	stack[100] = RET(1);
	cr_assert_eq(enter(1, stack + 100), GO(1, BYPASS_AT));
	cr_assert_eq(lost, 1);
	cr_assert_null(shadow_self());
	is_borrowed = false;
	call(1, stack + 100, RET(1));
	cr_assert_eq(finish(stack + 100), RET(1));
}

BOTH(where_a_return_address_is_kept)
{
	uint64_t *word = stack + 100;

	*word = RET(1);
	cr_assert_eq(shadow_locate((uint64_t)word), (uint64_t)word);
	call(1, word, RET(1));
	cr_assert_eq(shadow_locate((uint64_t)word), (uint64_t)&entry_of(word)->ret);
	*(uint64_t *)shadow_locate((uint64_t)word) = RET(2);
	cr_assert_eq(finish(word), RET(2), "it may be written");
}

/* ---- threads and processes ---- */

static void *finishes(void *word)
{
	return (void *)finish(word);
}

static uint64_t finish_in_thread(uint64_t *word)
{
	pthread_t thread;
	void *ret;

	pthread_create(&thread, NULL, finishes, word);
	pthread_join(thread, &ret);
	return (uint64_t)ret;
}

static uint64_t sum(uint32_t n, size_t field)
{
	uint64_t total = 0;

	for (int t = 0; t < THREADS_MAX; t++)
		total += *(uint64_t *)((char *)&records[t][n] + field);
	return total;
}
#define SUM(n, field) sum(n, offsetof(struct func_record, field))

BOTH(a_fiber_returns_on_another_thread)
{
	uint64_t *word = stack + 100;

	for (uint64_t i = 1; i <= 5; i++) {
		call(1, word, RET(i));
		cr_assert_eq(finish_in_thread(word), RET(i));
		cr_assert_null(entry_of(word));
		cr_assert_eq(SUM(1, calls), i);
		cr_assert_eq(SUM(1, returned), i);
		cr_assert_eq(SUM(1, unwound), 0);
	}
}

static void *calls_two(void *word)
{
	call(2, word, RET(2));
	return NULL;
}

/* A tail call on another thread than the one that entered. */
BOTH(a_fiber_makes_a_tail_call_on_another_thread)
{
	uint64_t *word = stack + 100;
	struct slow_frame f;
	pthread_t thread;

	call(1, stack + 500, RET(1)); /* this thread has memory of its own */
	pthread_create(&thread, NULL, calls_two, word);
	pthread_join(thread, NULL);
	f = (struct slow_frame){ .slot = (uint64_t)word, .info = &infos[3], .ret = *word };
	shadow_slow_entry(&f);
	cr_assert_eq(f.go, GO(3, RESUME_AT));
	*word = (uint64_t)points[3];
	cr_assert_eq(finish(word), RET(2));
	cr_assert_eq(SUM(2, returned), 1);
	cr_assert_eq(SUM(3, returned), 1);
}

static struct shadow_thread *other;

static void *leaves_open(void *words)
{
	for (uint32_t n = 1; n <= 3; n++)
		call(n, (uint64_t *)words - n, RET(n));
	other = shadow_self();
	return NULL;
}

BOTH(calls_of_a_thread_that_has_ended_are_unwound)
{
	pthread_t thread;

	call(4, stack + 500, RET(4));
	pthread_create(&thread, NULL, leaves_open, stack + 100);
	pthread_join(thread, NULL);
	cr_assert_neq(other, shadow_self());
	other->tid = THREAD_FREE;
	shadow_close(other);
	for (uint32_t n = 1; n <= 3; n++) {
		cr_assert_eq(SUM(n, calls), 1);
		cr_assert_eq(SUM(n, returned), 0);
		cr_assert_eq(SUM(n, unwound), 1, "function %u", n);
	}
	cr_assert_eq(SUM(4, unwound), 0, "another thread's");
	cr_assert_eq(finish(stack + 500), RET(4));
	shadow_close(other);
	cr_assert_eq(SUM(1, unwound), 1, "once is enough");
}

/* Detours find no records in a pause; the slow path does. */
BOTH(a_pause_hides_the_records)
{
	struct shadow_thread *self;
	struct func_record *mine;

	call(1, stack + 100, RET(1));
	self = shadow_self();
	mine = shadow_records_of(self);
	for (int stopped = 0; stopped < 2; stopped++) {
		bool hidden = stopped && shadow_hooks.mode != MODE_COUNT;

		cr_assert_eq(self->records[0], hidden ? 0 : (uint64_t)mine);
		for (int twice = 0; twice < 2; twice++)
			cr_assert(shadow_pause(true));
		cr_expect_eq(self->records[0], 0);
		cr_expect_eq(shadow_records_of(self), mine);
		for (int twice = 0; twice < 2; twice++)
			cr_assert(shadow_pause(false));
		cr_expect_eq(self->records[0], hidden ? 0 : (uint64_t)mine, "%d", stopped);
		cr_expect_eq(shadow_records_of(self), mine);
		shadow_stop_clock();
	}
}

static void *leaves_paused(void *word)
{
	call(1, word, RET(1));
	cr_assert(shadow_pause(true));
	other = shadow_self();
	return NULL;
}

/* The thread that takes over its memory is not paused: a fork leaves such threads behind. */
BOTH(a_pause_ends_with_its_thread)
{
	pthread_t thread;

	pthread_create(&thread, NULL, leaves_paused, stack + 100);
	pthread_join(thread, NULL);
	while (!thread_is_gone(other)) /* to the kernel, which comes a little later */
		sched_yield();
	call(2, stack + 500, RET(2));
	cr_assert_eq(other, shadow_self(), "the memory is to be used again");
	call(3, stack + 400, RET(3));
	cr_assert_eq(SUM(3, calls), 1);
	cr_assert_neq(other->records[0], 0, "detours count again");
}

/* ---- a forked child ---- */

static pthread_barrier_t met;

static void *lives_on(void *word)
{
	call(1, word, RET(1));
	other = shadow_self();
	pthread_barrier_wait(&met);
	pthread_barrier_wait(&met);
	return NULL;
}

/* The first to be traced there frees the memory of threads that are not there, and of no others. */
BOTH(threads_that_a_child_has_begun_keep_their_memory)
{
	pthread_t thread;

	pthread_barrier_init(&met, NULL, 2);
	call(2, stack + 500, RET(2));
	pthread_create(&thread, NULL, lives_on, stack + 100);
	pthread_barrier_wait(&met);
	thread_only_survivor(shadow_self());
	cr_expect_neq(other->tid, THREAD_FREE);
	pthread_barrier_wait(&met);
	pthread_join(thread, NULL);
	while (!thread_is_gone(other))
		sched_yield();
	thread_only_survivor(shadow_self());
	cr_expect_eq(other->tid, THREAD_FREE);
}

static void *comes_first(void *word)
{
	call(1, word, RET(1));
	thread_only_survivor(shadow_self());
	return NULL;
}

static void *comes_next(void *word)
{
	call(3, word, RET(3));
	other = shadow_self();
	return NULL;
}

/* The forking thread's memory says that it is of a thread of the parent. */
BOTH(a_thread_of_a_child_does_not_give_the_forking_threads_memory_away)
{
	struct shadow_thread *mine;
	pthread_t thread;

	call(2, stack + 500, RET(2));
	mine = shadow_self();
	mine->tid = 0x3fffffff; /* nobody's */
	pthread_create(&thread, NULL, comes_first, stack + 100);
	pthread_join(thread, NULL);
	for (int i = 0; i < 4; i++) { /* one memory after the other is tried */
		pthread_create(&thread, NULL, comes_next, stack + 200 + 10 * i);
		pthread_join(thread, NULL);
		cr_expect_neq(other, mine);
	}
}

/* The process ends: open calls stay open, those whose frames are gone do not. */
BOTH(flush_tells_open_calls_from_left_ones)
{
	uint64_t *in = stack + 100, *out = stack + 50, *gone = stack + 60;

	need_slots();
	call(1, in, RET(1));
	call(2, gone, RET(2));
	*gone = 0;
	call(3, out, RET(3));
	shadow_flush((uint64_t)(stack + 10), (uint64_t)(stack + 55), 0);
	expect("flush", 0, 1, 1, 0, 0);
	expect("flush", 0, 2, 1, 0, 1);
	expect("flush", 0, 3, 1, 0, 1);
	shadow_flush((uint64_t)(stack + 10), (uint64_t)(stack + 55), 0);
	expect("twice", 0, 1, 1, 0, 0);
	expect("twice", 0, 2, 1, 0, 1);
	expect("twice", 0, 3, 1, 0, 1);
	cr_assert_eq(finish(in), RET(1));
	expect("it goes on", 0, 1, 1, 1, 0);
}

static int in_child(uint64_t *word)
{
	struct func_record *mine = records[1];

	if (finish(word) != RET(1))
		return 1;
	if (mine[1].returned || records[0][1].returned)
		return 2; /* the parent's call counts nowhere */
	call(2, word, RET(2));
	if (mine[2].calls != 1 || records[0][2].calls)
		return 3;
	if (finish(word) != RET(2) || mine[2].returned != 1)
		return 4;
	return 0;
}

BOTH(calls_of_the_parent_count_nowhere_in_the_child)
{
	uint64_t *word = stack + 100;
	int status;
	pid_t child;

	call(1, word, RET(1));
	child = fork();
	if (!child && support_qemu())
		thread_wipe();
	if (!child)
		_exit(in_child(word));
	waitpid(child, &status, 0);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "step %d", WEXITSTATUS(status));
	cr_assert_eq(finish(word), RET(1));
	expect("parent", 0, 1, 1, 1, 0);
}

/* ---- images ---- */

Test(shadow_count, only_return_points_of_images_are_known)
{
	static uint64_t elsewhere[2] = { MARK_BEFORE, MARK };

	begin(MODE_COUNT);
	cr_assert(shadow_is_return_point((uint64_t)points[0]));
	cr_assert(!shadow_is_return_point((uint64_t)points[0] + 8));
	cr_assert(!shadow_is_return_point((uint64_t)&elsewhere[1]));
	cr_assert(!shadow_is_return_point((uint64_t)(points + FUNCS)));
	cr_assert(!shadow_is_return_point(0));
	cr_assert_eq(shadow_pad_of((uint64_t)points[3]), PAD);
	cr_assert_eq(shadow_pad_of((uint64_t)points - 1), 0);
}

/* ---- anything, many times ---- */

struct open {
	uint64_t *word;
	uint32_t n;
	uint64_t ret;
};

__attribute__((constructor)) static void seed(void)
{
	random_state = SEED;
}

/* Calls in progress on two stacks whose words share places, outermost first. */
static struct {
	struct open calls[300];
	int depth;
	uint64_t *top;
} stacks[2];

static struct {
	uint64_t calls, returned, left;
} model[FUNCS];

static void random_call(int s)
{
	int depth = stacks[s].depth;
	uint64_t *above = depth ? stacks[s].calls[depth - 1].word : stacks[s].top;
	struct open o = { above - 1 - random64() % 3, (uint32_t)(random64() % FUNCS),
		RET(random64() % 1000) };

	if (depth == 300)
		return;
	call(o.n, o.word, o.ret);
	model[o.n].calls++;
	stacks[s].calls[stacks[s].depth++] = o;
}

static void random_tail_call(int s)
{
	struct open *o = &stacks[s].calls[stacks[s].depth - 1];
	uint32_t n = (uint32_t)(random64() % FUNCS);

	cr_assert_eq(enter(n, o->word), GO(n, RESUME_AT));
	model[o->n].returned++;
	model[n].calls++;
	o->n = n;
}

static void random_return(int s)
{
	struct open *o = &stacks[s].calls[--stacks[s].depth];

	cr_assert_eq(finish(o->word), o->ret, "a wrong return address");
	model[o->n].returned++;
}

static void random_longjmp(int s)
{
	uint64_t frames = random64() % 4 + 1;

	while (frames-- && stacks[s].depth) {
		struct open *o = &stacks[s].calls[--stacks[s].depth];

		model[o->n].left++;
		if (random64() % 2)
			*o->word = 0;
	}
}

static void random_step(void)
{
	int s = random64() % 8 == 0;
	uint64_t kind = random64() % 16;

	if (!stacks[s].depth || kind < 7)
		random_call(s);
	else if (kind < 9)
		random_tail_call(s);
	else if (kind < 15)
		random_return(s);
	else
		random_longjmp(s);
}

static void check_model(int step)
{
	for (uint32_t n = 0; n < FUNCS; n++) {
		const struct func_record *r = &records[0][n];

		cr_assert_eq(r->calls, model[n].calls, "step %d: function %u", step, n);
		cr_assert_eq(r->returned, model[n].returned, "step %d: function %u", step, n);
		cr_assert_leq(r->unwound, model[n].left, "step %d: function %u: %lu unwound of %lu",
			step, n, r->unwound, model[n].left);
	}
}

BOTH(every_return_address_is_right_and_every_call_is_counted_once)
{
	stacks[0].top = stack + 20000;
	stacks[1].top = collides_with(stack + 20000);
	for (int step = 0; step < 20000; step++) {
		random_step();
		if (step % 100 == 0)
			check_model(step);
	}
	for (int s = 0; s < 2; s++)
		while (stacks[s].depth)
			random_return(s);
	check_model(-1);
	if (!arch_slot_in_memory)
		return;
	/* All that were left have been found out, or are now. */
	for (uint64_t *word = stack; word < stack + 20000; word++)
		*word = *collides_with(word) = 0;
	shadow_flush(0, 0, 0);
	for (uint32_t n = 0; n < FUNCS; n++)
		cr_expect_eq(records[0][n].calls, records[0][n].returned + records[0][n].unwound,
			"function %u", n);
}

/* ---- times ---- */

Test(shadow_profile, own_time_is_without_the_callees)
{
	struct func_record *outer = &records[0][1], *inner = &records[0][2];

	begin(MODE_PROFILE);
	call(1, stack + 100, RET(1));
	for (int i = 0; i < 100; i++) {
		call(2, stack + 90, RET(2));
		finish(stack + 90);
	}
	finish(stack + 100);
	cr_expect_eq(outer->left, 0);
	cr_expect_eq(inner->left, 0);
	cr_expect_eq(inner->callees, 0);
	cr_expect_eq(outer->callees, inner->total);
	cr_expect_eq(outer->max, outer->total);
	cr_expect_eq(~outer->nmin, outer->total);
	cr_expect_leq(~inner->nmin, inner->max);
	cr_expect_leq(inner->max, inner->total);
}

Test(shadow_profile, recursion_is_counted_once)
{
	struct func_record *r = &records[0][1];

	begin(MODE_PROFILE);
	for (int i = 0; i < 20; i++)
		call(1, stack + 100 - i, RET(i));
	cr_expect_eq(r->total, 0);
	for (int i = 19; i >= 0; i--)
		finish(stack + 100 - i);
	cr_expect_eq(r->left, 0);
	cr_expect_eq(r->total, r->max, "the outermost one's");
	cr_expect_eq(r->callees, 0);
}

Test(shadow_profile, what_was_left_is_not_active)
{
	struct func_record *r = &records[0][1];
	uint64_t inner;

	begin(MODE_PROFILE);
	call(1, stack + 100, RET(1));
	call(1, stack + 90, RET(2)); /* left by a longjmp */
	call(2, stack + 95, RET(3));
	cr_expect_eq(r->calls - r->returned - r->left, 1);
	inner = r->max;
	cr_expect_eq(r->total, 0);
	finish(stack + 95);
	finish(stack + 100);
	cr_expect_eq(r->calls - r->returned - r->left, 0);
	cr_expect_eq(r->total, r->max);
	cr_expect_geq(r->total, inner);
}

/* The kernel wipes whole pages, however large they are: 64 KiB on many systems. */
Test(shadow_pages, what_a_fork_wipes_has_a_page_of_its_own)
{
	struct shadow_thread *thread;
	uint64_t page;

	sys_page = 65536;
	begin(MODE_COUNT);
	thread = thread_enter();
	cr_assert_not_null(thread);
	page = (uint64_t)thread->records & -65536ul;
	cr_expect_eq((uint64_t)thread->records, thread->node.mirror + MIRROR_RECORDS);
	cr_expect_eq(thread->node.mirror, page + 65536);
	cr_expect_eq(msync((void *)page, 65536, MS_ASYNC), 0);
}
