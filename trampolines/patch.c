/* SPDX-License-Identifier: MIT */
/*
 * Patches whose pages are adjacent make a run, which is stored as a whole (but see
 * patch_run_length()): by one write to /proc/self/mem, which reaches read-only text without a change
 * of protection, or where the kernel or a sandbox forbids that, by taking the right to execute away
 * for the moment of the store.
 */
#define _GNU_SOURCE 1
#include "../arch/mem.h"
#include "patch.h"
#include "flush.h"
#include "maps.h"
#include "../arch/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#define PATCH_RUN_MAX (1u << 20)

struct patch_writer {
	const struct patch_how *how;
	int mem; /* /proc/self/mem, or negative */
	bool mem_failed; /* it could not be written, and will hardly be */
	uint8_t *buffer; /* PATCH_RUN_MAX */
	struct arena arena;
	struct maps maps; /* read when first needed */
};

static uint8_t *patch_at(const struct isa_patch *patch)
{
	return (uint8_t *)(uintptr_t)patch->addr;
}

static bool patch_in_place(const struct isa_patch *patch)
{
	return !memcmp(patch_at(patch), patch->bytes, patch->len);
}

static bool patch_all_in_place(const struct isa_patch *patches, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!patch_in_place(patches + i))
			return false;
	return true;
}

bool patch_sorted(const struct isa_patch *patches, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t end = patches[i].addr + patches[i].len;

		if (patches[i].len > ISA_PATCH_MAX || end < patches[i].addr)
			return false;
		if (i + 1 < n && patches[i + 1].addr < end)
			return false;
	}
	return true;
}

/* ---- one way ---- */

static int patch_through_mem(struct patch_writer *w, const struct isa_patch *run, size_t n)
{
	uint64_t lo = run[0].addr;
	size_t size = (size_t)(run[n - 1].addr + run[n - 1].len - lo);
	long err;

	memcpy(w->buffer, patch_at(run), size);
	for (size_t i = 0; i < n; i++)
		memcpy(w->buffer + (run[i].addr - lo), run[i].bytes, run[i].len);
	err = sys_pwrite_all(w->mem, w->buffer, size, lo);
	/* Emulated kernels have accepted such writes to no effect. */
	return err ? (int)err : patch_all_in_place(run, n) ? 0 : -EIO;
}

/* ---- the other ---- */

static int patch_read_maps(struct patch_writer *w)
{
	struct maps guards;

	if (w->maps.count)
		return 0;
	if (maps_read(&w->maps, "/proc/self/maps", &w->arena))
		return -EACCES;
	/* Only smaps shows PROT_BTI; it is not in every kernel, and under qemu-user it is the
	 * host's: no protection but this is taken from it. */
	if (maps_read(&guards, "/proc/self/smaps", &w->arena))
		return 0;
	for (size_t i = 0; i < w->maps.count; i++) {
		const struct mapping *guard = maps_from(&guards, w->maps.list[i].lo);

		w->maps.list[i].guarded = guard && guard->guarded
			&& guard->lo <= w->maps.list[i].lo;
	}
	return 0;
}

static int patch_old_prot(const struct patch_writer *w, const struct mapping *m)
{
	if (!(m->prot & PROT_EXEC))
		return m->prot;
	return m->prot | w->how->exec_prot | (m->guarded ? PATCH_GUARDED : 0);
}

/*
 * The rights that pages have while they are stored into. What an emulator executes is its own
 * translation, which the processor cannot write: that the program's page is both for a moment is a
 * matter of the emulator's tables. Others go on executing there.
 */
static int patch_open_prot(const struct patch_writer *w, const struct mapping *m)
{
	return PROT_READ | PROT_WRITE | (w->how->running ? patch_old_prot(w, m) : 0);
}

/*
 * Make the pages of [@lo, @hi) writable, or restore them. *@done: how far it got. A range may span
 * several mappings.
 */
static int patch_protect(
	struct patch_writer *w, uint64_t lo, uint64_t hi, bool writable, uint64_t *done)
{
	for (*done = lo; *done < hi;) {
		const struct mapping *m = maps_from(&w->maps, *done);
		uint64_t end = m && m->hi < hi ? m->hi : hi;
		int err;

		if (!m || m->lo > *done)
			return -EFAULT;
		err = (int)sys_call(SYS_mprotect, *done, end - *done,
			writable ? patch_open_prot(w, m) : patch_old_prot(w, m));
		if (err)
			return err;
		*done = end;
	}
	return 0;
}

/* What is one unit of code is replaced at once. */
static void patch_put(const struct isa_patch *patch)
{
	uint32_t word;

	if (patch->len != sizeof(word) || patch->addr % sizeof(word)) {
		memcpy(patch_at(patch), patch->bytes, patch->len);
		return;
	}
	memcpy(&word, patch->bytes, sizeof(word));
	__atomic_store_n((uint32_t *)(uintptr_t)patch->addr, word, __ATOMIC_RELEASE);
}

static int patch_unprotected(struct patch_writer *w, const struct isa_patch *run, size_t n)
{
	uint64_t mask = w->how->page - 1, all = ~0ull, before;
	uint64_t end = run[n - 1].addr + run[n - 1].len;
	uint64_t lo = run[0].addr & ~mask, hi = (end + mask) & ~mask, writable, restored;
	int err = patch_read_maps(w), failed;

	if (err)
		return err;
	/* A signal handler may live in these very pages. */
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
	err = patch_protect(w, lo, hi, true, &writable);
	for (size_t i = 0; i < n && !err; i++)
		patch_put(run + i);
	failed = patch_protect(w, lo, writable, false, &restored);
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof(all));
	for (size_t i = 0; i < n; i++)
		arch_flush(run[i].addr, run[i].addr + run[i].len);
	return err ? err : failed;
}

/* ---- both ---- */

static int patch_run(struct patch_writer *w, const struct isa_patch *run, size_t n)
{
	if (w->mem >= 0 && !patch_through_mem(w, run, n))
		return 0;
	w->mem_failed = true;
	return patch_unprotected(w, run, n);
}

/*
 * How many patches from the first on make a run. Of what the kernel stores it flushes everything:
 * no bytes that stay as they are shall be between.
 */
static size_t patch_run_length(const struct patch_writer *w, const struct isa_patch *patches,
	size_t n)
{
	size_t i;

	if (arch_flushes && w->mem >= 0 && !w->mem_failed)
		return 1;
	for (i = 1; i < n; i++) {
		uint64_t last = (patches[i - 1].addr + patches[i - 1].len - 1) / w->how->page;

		if (patches[i].addr / w->how->page > last + 1
			|| patches[i].addr + patches[i].len - patches[0].addr > PATCH_RUN_MAX
			|| patch_in_place(patches + i))
			break;
	}
	return i;
}

/* */
static int patch_all(
	struct patch_writer *w, const struct isa_patch *patches, size_t n, size_t *done)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i = *done) {
		size_t length = 1, stored = 0;

		if (!patch_in_place(patches + i)) {
			length = stored = patch_run_length(w, patches + i, n - i);
			err = patch_run(w, patches + i, length);
		}
		flush_count(length, stored);
		*done = i + length;
	}
	return err;
}

void patch_save(const struct isa_patch *patches, size_t n, struct isa_patch *old)
{
	for (size_t i = 0; i < n; i++) {
		old[i] = (struct isa_patch){ .addr = patches[i].addr, .len = patches[i].len };
		memcpy(old[i].bytes, patch_at(patches + i), patches[i].len);
	}
}

int patch_store(const struct isa_patch *patches, size_t n, struct isa_patch *old,
	const struct patch_how *how)
{
	struct patch_writer w = { .how = how, .mem = -1 };
	size_t done = 0, undone;
	int err = -ENOMEM;

	if (!patch_sorted(patches, n))
		return -EINVAL;
	w.buffer = arena_alloc(&w.arena, PATCH_RUN_MAX);
	if (!old && n <= SIZE_MAX / sizeof(*old))
		old = arena_alloc(&w.arena, n * sizeof(*old));
	if (w.buffer && old) {
		patch_save(patches, n, old);
		if (!how->avoid_mem)
			w.mem = sys_open("/proc/self/mem", O_RDWR, 0);
		err = patch_all(&w, patches, n, &done);
		for (size_t from = 0; err && from < done; from += undone)
			patch_all(&w, old + from, done - from, &undone);
	}
	if (w.mem >= 0)
		sys_close(w.mem);
	arena_free(&w.arena);
	return err;
}

/* ---- what runs ---- */

/* Two functions of a few instructions, which differ in what they return only. */
#define PATCH_TRY 16
#define PATCH_TRIED(name, value)                                                                   \
	static __attribute__((noinline, aligned(32))) int name(void)                               \
	{                                                                                          \
		__asm__ volatile("");                                                              \
		return value;                                                                      \
	}
PATCH_TRIED(patch_tried_old, 1)
PATCH_TRIED(patch_tried_new, 2)

bool patch_mem_executes(void)
{
	static int (*volatile const tried)(void) = patch_tried_old;
	static int (*volatile const wanted)(void) = patch_tried_new;
	int mem = sys_open("/proc/self/mem", O_RDWR, 0), before = tried();

	if (mem < 0)
		return true;
	sys_pwrite_all(mem, (const void *)wanted, PATCH_TRY, (uint64_t)(uintptr_t)tried);
	sys_close(mem);
	return memcmp((const void *)tried, (const void *)wanted, PATCH_TRY) || tried() != before
		|| before == wanted();
}
