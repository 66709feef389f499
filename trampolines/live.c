/* SPDX-License-Identifier: MIT */
/*
 * How a jump of five bytes replaces instructions that others may be executing; all patches of a
 * call take each step together:
 *
 *              byte 0   others   a thread arriving now       a thread inside the window
 *   before     old      old      runs the old code           runs the old code
 *   step 1     int3     old      traps, sleeps, retries      runs the old code and leaves
 *   proof: every thread is seen outside; else byte 0 is put back, and all begins anew
 *   step 2     int3     new      traps, sleeps, retries      -
 *   step 3     new      new      runs the new code           -
 *
 * Each step ends with sync_cores(): a core may still hold bytes that it fetched before. Bytes are
 * stored through /proc/self/mem, one write each where others may execute them: no page changes its
 * protection.
 *
 * A breakpoint kills a thread that blocks SIGTRAP: those that do are put to sleep from before step 1
 * until after step 3. A thread that comes to block it within the fraction of a millisecond that a
 * breakpoint stands, and then runs into it, is not protected.
 *
 * A child forked in the middle has a copy of the breakpoints and of the table, but no thread that
 * goes on with the work. Whoever runs into a breakpoint there, or wants to patch, completes it:
 * table->goal says in which direction. What tells a forked child from its parent is a page that a
 * fork wipes.
 */
#define _GNU_SOURCE 1
#include "live.h"
#include "flush.h"
#include "signals.h"
#include "trap.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>

#define MEMBARRIER_SYNC_CORE	      (1 << 5) /* membarrier(2): private expedited */
#define MEMBARRIER_REGISTER_SYNC_CORE (1 << 6)

#define LIVE_PAGE (1u << 16) /* a multiple of every page size */
#define TRIES_MAX 100
#define SPINS_MAX 1000
#define WAIT_US	  2000 /* how long a thread sleeps at a breakpoint before it tries again */
#define PAUSE_US  200  /* between tries, times their number */

/* What is being replaced. */
struct live_table {
	struct threads threads;
	struct patch_how how;
	size_t n;
	struct isa_patch *new, *old; /* those that differ, sorted */
	struct isa_patch *goal; /* new or old: what the text shall be in the end */
	bool calls;		/* a window holds a call that returns into it */
	bool hold;		/* every thread has to be held meanwhile */
};

/* In a page of its own that is zero in a forked child. */
struct live_wiped {
	uint32_t pid; /* whose the page is; 0: a fork has wiped it */
	uint32_t lock; /* 0; 1: held; 2: held, others wait */
	uint32_t readers; /* of live.table, in SIGTRAP handlers */
	struct threads_sleeper sleepers[THREADS_SLEEPERS];
};
_Static_assert(sizeof(struct live_wiped) <= LIVE_PAGE, "it fits");

static struct {
	struct live_wiped *wiped;
	struct live_table *table; /* NULL: nothing is being replaced */
	uint32_t changes; /* of table; a futex */
	bool strict;	  /* a thread of this process must not make system calls */
	bool translated;  /* an emulator's translation of the code is executed */
} live;

/* ---- one at a time ---- */

static int live_prepare(void)
{
	struct live_wiped *none = NULL, *w;

	if (__atomic_load_n(&live.wiped, __ATOMIC_ACQUIRE))
		return 0;
	w = sys_mmap(NULL, LIVE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(w))
		return -ENOMEM;
	w->pid = (uint32_t)sys_getpid();
	if (sys_call(SYS_madvise, w, LIVE_PAGE, MADV_WIPEONFORK)) {
		sys_munmap(w, LIVE_PAGE);
		return -EPERM;
	}
	if (__atomic_compare_exchange_n(
		    &live.wiped, &none, w, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		threads_sleepers = w->sleepers;
	else
		sys_munmap(w, LIVE_PAGE);
	return 0;
}

static bool live_try_lock(void)
{
	uint32_t free = 0;

	return __atomic_compare_exchange_n(
		&live.wiped->lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void live_lock(void)
{
	if (live_try_lock())
		return;
	while (__atomic_exchange_n(&live.wiped->lock, 2, __ATOMIC_ACQUIRE))
		threads_sleep(&live.wiped->lock, 2, 1000000);
}

static void live_unlock(void)
{
	if (__atomic_exchange_n(&live.wiped->lock, 0, __ATOMIC_RELEASE) == 2)
		sys_call(SYS_futex, &live.wiped->lock, FUTEX_WAKE_PRIVATE, 1);
}

/* ---- stores ---- */

/*
 * Threads that are not executing now will execute a serialising instruction before they do.
 * Without membarrier(2) every thread is made to sleep once instead.
 */
static int sync_cores(struct live_table *t)
{
	struct threads all = { .arena = t->threads.arena, .mem = t->threads.mem,
		.strict = t->threads.strict };
	long err = sys_call(SYS_membarrier, MEMBARRIER_SYNC_CORE, 0, 0);

	if (err == -EPERM && !sys_call(SYS_membarrier, MEMBARRIER_REGISTER_SYNC_CORE, 0, 0))
		err = sys_call(SYS_membarrier, MEMBARRIER_SYNC_CORE, 0, 0);
	if (!err)
		return 0;
	err = threads_outside(&all);
	t->threads.asked |= all.asked;
	return (int)err;
}

static int live_write(const struct live_table *t, uint64_t addr, const uint8_t *bytes, size_t len)
{
	struct isa_patch patch = { .addr = addr, .len = (uint8_t)len };
	const void *at = (const void *)(uintptr_t)addr;
	long err;

	if (!memcmp(at, bytes, len)) {
		flush_count(1, 0);
		return 0;
	}
	if (t->threads.mem < 0) { /* in a forked child that cannot open it */
		memcpy(patch.bytes, bytes, len);
		return patch_store(&patch, 1, NULL, &t->how);
	}
	flush_count(1, 1);
	err = sys_pwrite_all(t->threads.mem, bytes, len, addr);
	return err ? (int)err : memcmp(at, bytes, len) ? -EIO : 0;
}

/* Step 1. What is as short as one store needs no breakpoint. */
static int live_break(const struct live_table *t)
{
	int err = 0;

	for (size_t i = 0; i < t->n && !err; i++)
		if (t->new[i].len > arch_code_unit)
			err = live_write(t, t->new[i].addr, arch_breakpoint, arch_code_unit);
	return err;
}

static int live_write_tails(const struct live_table *t)
{
	int err = 0;

	for (size_t i = 0; i < t->n && !err; i++)
		if (t->goal[i].len > arch_code_unit)
			err = live_write(t, t->goal[i].addr + arch_code_unit,
				t->goal[i].bytes + arch_code_unit,
				(size_t)t->goal[i].len - arch_code_unit);
	return err;
}

static int live_write_firsts(const struct live_table *t)
{
	int err = 0;

	for (size_t i = 0; i < t->n && !err; i++)
		err = live_write(t, t->goal[i].addr, t->goal[i].bytes,
			t->goal[i].len < arch_code_unit ? t->goal[i].len : arch_code_unit);
	return err;
}

/* Steps 2 and 3, in the direction of the goal. */
static int live_complete(struct live_table *t)
{
	int err = live_write_tails(t);

	if (!err) {
		sync_cores(t);
		err = live_write_firsts(t);
		sync_cores(t);
	}
	return err;
}

static void live_go_back(struct live_table *t)
{
	live_break(t);
	sync_cores(t);
	__atomic_store_n(&t->goal, t->old, __ATOMIC_RELEASE);
	live_complete(t);
}

/* ---- the table ---- */

static void live_publish(struct live_table *t)
{
	__atomic_store_n(&live.table, t, __ATOMIC_SEQ_CST);
	threads_wake(&live.changes);
}

/* No handler reads the table any more; they block all signals, so they come to an end. */
static void live_await_readers(void)
{
	for (unsigned n = 0; __atomic_load_n(&live.wiped->readers, __ATOMIC_SEQ_CST); n++)
		if (n > SPINS_MAX)
			threads_pause(20);
}

static const struct isa_patch *live_find(const struct live_table *t, uint64_t site)
{
	size_t i = mem_below(t->new, t->n, sizeof(t->new[0]), site);

	return i < t->n && t->new[i].addr == site ? t->new + i : NULL;
}

/* Is @site being replaced now? For handlers. */
static bool live_replaces(uint64_t site)
{
	struct live_table *t;
	bool found;

	__atomic_fetch_add(&live.wiped->readers, 1, __ATOMIC_SEQ_CST);
	t = __atomic_load_n(&live.table, __ATOMIC_SEQ_CST);
	found = t && live_find(t, site);
	__atomic_fetch_sub(&live.wiped->readers, 1, __ATOMIC_SEQ_CST);
	return found;
}

static bool is_breakpoint(uint64_t site)
{
	return !memcmp((const void *)(uintptr_t)site, arch_breakpoint, arch_code_unit);
}

uint32_t live_changes(void)
{
	return __atomic_load_n(&live.changes, __ATOMIC_SEQ_CST);
}

/*
 * A thread may reach its handler long after it has hit the breakpoint: the table may be gone or
 * another one, but then so is the breakpoint, unless it was set again after the table was read.
 */
bool live_owns(uint64_t site)
{
	uint32_t changes;

	if (!__atomic_load_n(&live.wiped, __ATOMIC_ACQUIRE))
		return false;
	do {
		changes = __atomic_load_n(&live.changes, __ATOMIC_SEQ_CST);
		if (live_replaces(site) || !is_breakpoint(site))
			return true;
	} while (__atomic_load_n(&live.changes, __ATOMIC_SEQ_CST) != changes);
	return false;
}

/* ---- in a forked child ---- */

/* Do what is left of the parent's work. The lock is held. */
static void live_adopt(void)
{
	struct live_table *t = live.table;

	if (t) {
		t->threads.mem = t->how.avoid_mem ? -1 : sys_open("/proc/self/mem", O_RDWR, 0);
		live_complete(t);
		if (t->threads.mem >= 0)
			sys_close(t->threads.mem);
		live_publish(NULL); /* its memory stays */
	}
	__atomic_store_n(&live.wiped->pid, (uint32_t)sys_getpid(), __ATOMIC_RELEASE);
}

static bool live_orphaned(void)
{
	return !__atomic_load_n(&live.wiped->pid, __ATOMIC_ACQUIRE);
}

void live_forked(void)
{
	if (live.wiped)
		memset(live.wiped, 0, sizeof(*live.wiped));
}

void live_wait(uint64_t site, const void *context)
{
	uint32_t changes = __atomic_load_n(&live.changes, __ATOMIC_SEQ_CST);

	if (live_orphaned() && live_try_lock()) {
		if (live_orphaned())
			live_adopt();
		live_unlock();
	} else if (!live.strict && live_replaces(site)) {
		threads_sleep_in(context, &live.changes, changes, WAIT_US);
	}
}

/* ---- replacing ---- */

static void live_leave(uint64_t mask)
{
	signals_block(~LIVE_SIGNALS);
	live_unlock();
	signals_block(mask);
}

/*
 * Begin: no signal handler interrupts this thread, which could run into a breakpoint of ours and
 * wait for us; and no other thread is here. 0 or -errno.
 */
static int live_enter(uint64_t *mask)
{
	int err = live_prepare();

	if (err)
		return err;
	*mask = signals_block(~LIVE_SIGNALS);
	live_lock();
	signals_block(SIGNALS_ALL);
	if (live_orphaned())
		live_adopt();
	if (live.wiped->pid == (uint32_t)sys_getpid())
		return 0;
	live_leave(*mask); /* a child of vfork: its parent's threads cannot be seen from here */
	return -EPERM;
}

/* Make *@threads ready; the caller closes its file. 0 or -errno. */
static int live_search(struct threads *threads, struct arena *arena)
{
	threads->arena = arena;
	threads->mem = sys_open("/proc/self/mem", O_RDWR, 0);
	return threads->mem < 0 ? -EPERM : 0;
}

static bool returns_inside(const uint8_t *text, unsigned window)
{
	for (unsigned n = 1; n < window; n++)
		if (arch_call_ends(text, n))
			return true;
	return false;
}

/* Fill *@t with the patches that are not in place. 0 or -errno. */
static int live_tabulate(struct live_table *t, const struct isa_patch *patches, size_t n,
	const uint8_t *windows)
{
	struct arena *arena = t->threads.arena;
	struct code_range *inside = arena_alloc(arena, n * sizeof(*inside));

	t->new = arena_alloc(arena, n * sizeof(*t->new));
	t->old = arena_alloc(arena, n * sizeof(*t->old));
	if (!t->new || !t->old || !inside)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t lo = patches[i].addr;
		const uint8_t *text = (const uint8_t *)(uintptr_t)lo;
		uint8_t window = windows ? windows[i] : 0;

		if (!memcmp(text, patches[i].bytes, patches[i].len)) {
			flush_count(1, 0);
			continue;
		}
		t->hold |= !arch_may_replace(patches + i, text);
		t->new[t->n] = t->old[t->n] = patches[i];
		memcpy(t->old[t->n++].bytes, text, patches[i].len);
		if (window <= arch_code_unit)
			continue;
		t->calls |= returns_inside(text, window);
		inside[t->threads.nranges++] = (struct code_range){ lo + 1, lo + window };
	}
	t->threads.ranges = inside;
	t->goal = t->old;
	return 0;
}

/* Steps 1 to 3. -EBUSY: it may be tried again. */
static int live_steps(struct live_table *t)
{
	int err, failed;

	live_publish(t);
	err = live_break(t);
	if (!err)
		err = sync_cores(t);
	if (!err && t->threads.nranges)
		err = threads_outside(&t->threads);
	if (!err)
		__atomic_store_n(&t->goal, t->new, __ATOMIC_RELEASE);
	failed = live_complete(t);
	if (failed && !err)
		live_go_back(t);
	live_publish(NULL);
	return err ? err : failed;
}

/*
 * Instructions that the CPU does not let be replaced while they may be executed, and where the file
 * of the memory cannot be written, so that the page's right to execute is taken away for a moment:
 * every thread sleeps in our handler. It comes back by way of the kernel, which makes its core fetch anew.
 */
static int live_held(struct live_table *t)
{
	int err = t->threads.nranges ? threads_outside(&t->threads) : 0;

	return err ? err : patch_store(t->new, t->n, NULL, &t->how);
}

/* By a byte that is there already. */
static bool mem_refuses(const struct live_table *t)
{
	return sys_pwrite_all(t->threads.mem, t->old->bytes, 1, t->old->addr);
}

static int live_try(struct live_table *t)
{
	bool alone;
	int err;

	t->threads.everyone = t->hold;
	err = threads_hold_deaf(&t->threads);
	live.strict = t->threads.strict;
	alone = !err && threads_alone(&t->threads);
	/* What is stored may be a breakpoint that stays, and live_release() came in between. */
	if (!err && (trap_is_used() || !(alone || t->hold)))
		err = trap_install();
	if (!err && alone)
		return patch_store(t->new, t->n, NULL, &t->how);
	if (!err && (t->how.avoid_mem || t->threads.mem < 0))
		err = -EPERM;
	if (!err && t->threads.asked)
		err = sync_cores(t);
	if (!err)
		err = t->hold ? live_held(t) : live_steps(t);
	threads_let_go(&t->threads);
	if (err && err != -EBUSY && !t->hold && !t->how.avoid_mem && mem_refuses(t)) {
		t->hold = true;
		err = -EBUSY;
	}
	return err;
}

static int live_replace(struct live_table *t)
{
	int err;

	for (unsigned tries = 1;; tries++) {
		err = live_try(t);
		if (err != -EBUSY || tries == TRIES_MAX)
			break;
		threads_pause(tries * PAUSE_US);
	}
	live_await_readers();
	return err;
}

/*
 * Under an emulator (patch_mem_executes()) threads execute translations of whole instructions, and
 * a store into these makes new ones: any single instruction may be replaced. For more of them one
 * would have to know where threads are, which is not what the emulator's own threads look like.
 */
static bool live_one_by_one(const struct live_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->new[i].len > arch_code_unit)
			return false;
	return !t->threads.nranges;
}

static int live_translated(struct live_table *t)
{
	t->how.running = true;
	return patch_store(t->new, t->n, NULL, &t->how);
}

static int live_store_locked(const struct isa_patch *patches, size_t n, const uint8_t *windows,
	struct live_table *t, const void *frame)
{
	int err = live_tabulate(t, patches, n, windows);

	/* The calling thread is in none of these functions, but may have been called by one. */
	if (!err && t->calls)
		err = threads_self_outside(&t->threads, frame);
	live.translated = t->how.avoid_mem;
	if (!err && t->n)
		err = t->how.avoid_mem && live_one_by_one(t) ? live_translated(t) : live_replace(t);
	return err;
}

int live_store(const struct isa_patch *patches, size_t n, const uint8_t *windows,
	struct isa_patch *old, const struct patch_how *how)
{
	struct arena arena = { 0 };
	struct live_table *t;
	uint64_t mask;
	int err;

	if (!patch_sorted(patches, n))
		return -EINVAL;
	err = live_enter(&mask);
	if (err)
		return err;
	if (old)
		patch_save(patches, n, old);
	t = arena_alloc(&arena, sizeof(*t));
	err = -ENOMEM;
	if (t) {
		t->how = *how;
		err = live_search(&t->threads, &arena);
	}
	if (!err) {
		err = live_store_locked(patches, n, windows, t,
			how->frame ? how->frame : __builtin_frame_address(0));
		sys_close(t->threads.mem);
	}
	live_leave(mask);
	arena_free(&arena);
	return err;
}

/* Where threads are, some of which may be where it cannot be told. */
static int live_look(struct threads *threads, const void *frame)
{
	struct arena arena = { 0 };
	uint64_t mask;
	int err = live_enter(&mask);

	if (err)
		return err;
	err = live.translated ? -EPERM : live_search(threads, &arena);
	if (!err) {
		err = threads_outside(threads);
		threads_let_go(threads);
		if (!err && frame)
			err = threads_self_outside(threads, frame);
		sys_close(threads->mem);
	}
	live_leave(mask);
	arena_free(&arena);
	return err;
}

bool live_busy(const struct code_range *ranges, size_t n)
{
	struct threads threads = { .ranges = ranges, .nranges = n };

	return live_look(&threads, NULL) != 0;
}

void live_find_busy(const struct code_range *ranges, size_t n, bool *busy, const void *frame)
{
	struct threads threads = { .ranges = ranges, .nranges = n, .busy = busy };

	if (live_look(&threads, frame))
		memset(busy, true, n);
}

int live_hears_traps(void)
{
	struct arena arena = { 0 };
	struct threads threads = { .arena = &arena, .mem = -1 };
	uint64_t mask;
	int err = live_enter(&mask);

	if (err)
		return err;
	err = threads_none_deaf(&threads);
	live_leave(mask);
	arena_free(&arena);
	return err;
}

void live_release(void)
{
	struct arena arena = { 0 };
	struct threads threads = { .arena = &arena, .mem = -1 };
	uint64_t mask;

	if (live.translated || live_enter(&mask)) /* no breakpoints are used there */
		return;
	if (!threads_outside(&threads)) /* every thread has slept, so nobody is on the way */
		trap_remove();
	threads_let_go(&threads);
	live_leave(mask);
	arena_free(&arena);
}
