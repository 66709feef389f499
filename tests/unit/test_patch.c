/* SPDX-License-Identifier: MIT */
/*
 * Patches over mapped code, both ways: through /proc/self/mem, and (with a seccomp filter that
 * refuses writes with an offset) by changing the protection. The filter also kills the test when
 * anything asks for memory that is writable and executable. An emulated process has no filters.
 */
#define _GNU_SOURCE 1
#include "trampolines/patch.h"
#include "trampolines/flush.h"
#include "trampolines/maps.h"
#include "support_qemu.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE  4096u
#define PAGES 600u /* more than one run can hold */
#define RX    (PROT_READ | PROT_EXEC)

enum way { THROUGH_MEM, BY_PROTECTION, AVOIDING_MEM };

static struct patch_how how = { .page = PAGE };

static void use_way(enum way way)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* the number */),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, way == AVOIDING_MEM ? SECCOMP_RET_KILL_PROCESS :
							       SECCOMP_RET_ERRNO | EPERM),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 32 /* low word of the third argument */),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_WRITE | PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	how.avoid_mem = way == AVOIDING_MEM || (way == BY_PROTECTION && support_qemu());
	if (way == THROUGH_MEM || support_qemu())
		return;
	cr_assert(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	cr_assert(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* Read-only code, every byte the low byte of its own page number. */
static uint8_t *make_text(void)
{
	uint8_t *text = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(text != MAP_FAILED);
	for (unsigned i = 0; i < PAGES; i++)
		memset(text + i * PAGE, (int)i, PAGE);
	cr_assert(!mprotect(text, PAGES * PAGE, RX));
	return text;
}

static struct isa_patch patch(const uint8_t *at, uint8_t len, uint8_t byte)
{
	struct isa_patch p = { .addr = (uint64_t)(uintptr_t)at, .len = len };

	memset(p.bytes, byte, len);
	return p;
}

static int prot_at(const void *addr)
{
	struct arena arena = { 0 };
	const struct mapping *m;
	struct maps maps;
	int prot;

	cr_assert(!maps_read(&maps, "/proc/self/maps", &arena));
	m = maps_from(&maps, (uint64_t)(uintptr_t)addr);
	prot = m && m->lo <= (uint64_t)(uintptr_t)addr ? m->prot : -1;
	arena_free(&arena);
	return prot;
}

/* All of the text is as made but for the patches. */
static void check_text(const uint8_t *text, const struct isa_patch *patches, size_t n)
{
	size_t next = 0;

	for (size_t i = 0; i < PAGES * PAGE; i++) {
		uint64_t at = (uint64_t)(uintptr_t)(text + i);
		uint8_t want = (uint8_t)(i / PAGE);

		while (next < n && at >= patches[next].addr + patches[next].len)
			next++;
		if (next < n && at >= patches[next].addr)
			want = patches[next].bytes[at - patches[next].addr];
		if (text[i] != want)
			cr_assert(false, "offset %zx is %02x, not %02x", i, text[i], want);
	}
}

static void stores_and_undoes(enum way way)
{
	static const struct {
		size_t offset;
		uint8_t len, byte;
	} rows[] = {
		{ 0, 5, 0xaa },			   /* the first byte */
		{ 5, 5, 0xab },			   /* touching */
		{ 100, 1, 0xac },
		{ PAGE - 3, 6, 0xad },		   /* over a page's end */
		{ 2 * PAGE + 7, 0, 0 },		   /* nothing */
		{ 3 * PAGE, 16, 3 },		   /* is there already */
		{ 3 * PAGE + 16, 16, 0xae },
		{ 9 * PAGE - 1, 1, 0xaf },	   /* a page's last byte, far from the others */
		{ 100 * PAGE + 9, 5, 0xb0 },
		{ PAGES * PAGE - 16, 16, 0xb1 },   /* the last byte */
	};
	enum { N = sizeof(rows) / sizeof(rows[0]) };
	struct isa_patch patches[N], old[N], older[N];
	uint8_t *text = make_text();

	for (size_t i = 0; i < N; i++)
		patches[i] = patch(text + rows[i].offset, rows[i].len, rows[i].byte);
	use_way(way);
	cr_assert(patch_store(patches, N, old, &how) == 0);
	check_text(text, patches, N);
	cr_assert(prot_at(text) == RX && prot_at(text + PAGES * PAGE - 1) == RX);
	cr_assert(patch_store(patches, N, older, &how) == 0, "again");
	cr_assert(!memcmp(older[0].bytes, patches[0].bytes, 5));
	cr_assert(patch_store(old, N, NULL, &how) == 0, "undo");
	check_text(text, NULL, 0);
	cr_assert(prot_at(text) == RX);
}

Test(patch, stores_and_undoes_through_mem)
{
	stores_and_undoes(THROUGH_MEM);
}

Test(patch, stores_and_undoes_by_protection)
{
	stores_and_undoes(BY_PROTECTION);
}

Test(patch, stores_and_undoes_avoiding_mem)
{
	stores_and_undoes(AVOIDING_MEM);
}

static uint64_t asked, done;

/* Of these patches the first is there already. */
static void stores_flushed(const struct isa_patch *patches, uint64_t more)
{
	uint64_t asked_before = asked, done_before = done;

	cr_assert(patch_store(patches, 4, NULL, &how) == 0);
	cr_expect_eq(asked - asked_before, arch_flushes ? 4 : 0);
	cr_expect_eq(done - done_before, arch_flushes ? more : 0, "%d", (int)(done - done_before));
}

static void flushes_what_changes(enum way way)
{
	uint8_t *text = make_text();
	struct isa_patch patches[4] = { patch(text, 4, 0), patch(text + 4, 4, 0xaa),
		patch(text + 8, 4, 0xab), patch(text + 9 * PAGE, 12, 0xac) };

	use_way(way);
	cr_assert(patch_store(patches, 4, NULL, &how) == 0); /* nobody counts yet */
	flush_count_in(&asked, &done);
	stores_flushed(patches, 0);
	patches[2].bytes[3]++;
	stores_flushed(patches, 1);
	patches[1] = patch(text + 4, 4, 0);
	patches[2] = patch(text + 8, 4, 0);
	patches[3] = patch(text + 9 * PAGE, 12, 9);
	stores_flushed(patches, 3);
	stores_flushed(patches, 0);
	check_text(text, NULL, 0);
}

Test(patch, flushes_what_changes_through_mem)
{
	flushes_what_changes(THROUGH_MEM);
}

Test(patch, flushes_what_changes_by_protection)
{
	flushes_what_changes(BY_PROTECTION);
}

/* One patch in every page, and two hundred in one: runs of adjacent pages longer than a write. */
static void stores_many(enum way way)
{
	enum { N = PAGES + 200 };
	struct isa_patch *patches = calloc(N, sizeof(*patches));
	uint8_t *text = make_text();
	size_t n = 0;

	for (unsigned i = 0; i < 200; i++)
		patches[n++] = patch(text + 16 * i, 5, 0xcc);
	for (unsigned i = 0; i < PAGES; i++)
		patches[n++] = patch(text + i * PAGE + 4000, 5, 0xe9);
	use_way(way);
	cr_assert(patch_store(patches, n, NULL, &how) == 0);
	check_text(text, patches, n);
	cr_assert(prot_at(text) == RX && prot_at(text + PAGES * PAGE - 1) == RX);
	free(patches);
}

Test(patch, stores_many_through_mem)
{
	stores_many(THROUGH_MEM);
}

Test(patch, stores_many_by_protection)
{
	stores_many(BY_PROTECTION);
}

/* Pages of one run keep each its own protection. */
Test(patch, keeps_differing_protections)
{
	static const int prots[] = { PROT_READ, RX, PROT_READ | PROT_WRITE, RX, PROT_READ };
	struct isa_patch patches[10];
	uint8_t *text;

	if (support_qemu())
		cr_skip_test("mappings that differ in the right to execute are listed as one here");
	text = make_text();
	for (int i = 0; i < 5; i++) {
		cr_assert(!mprotect(text + i * PAGE, PAGE, prots[i]));
		patches[2 * i] = patch(text + i * PAGE + 8, 4, 0x90);
		patches[2 * i + 1] = patch(text + (i + 1) * PAGE - 2, 4, 0x91);
	}
	use_way(BY_PROTECTION);
	cr_assert(patch_store(patches, 10, NULL, &how) == 0);
	check_text(text, patches, 10);
	for (int i = 0; i < 5; i++)
		cr_expect(prot_at(text + i * PAGE) == prots[i], "page %d", i);
}

/* The last patch is in a file that is mapped shared and was opened for reading only: that can be
 * written in no way. What was stored before it must be taken back. */
static void takes_all_back(enum way way, unsigned file_page, unsigned page)
{
	struct isa_patch patches[4], old[4];
	uint8_t *text = make_text();
	char path[] = "/tmp/ftr-test-patch.XXXXXX";
	int fd = mkstemp(path), ro = open(path, O_RDONLY);

	cr_assert(fd >= 0 && ro >= 0);
	cr_assert(write(fd, text + file_page * PAGE, PAGE) == PAGE);
	cr_assert(mmap(text + file_page * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, ro, 0)
		!= MAP_FAILED);
	patches[0] = patch(text + 8, 5, 0xe9);
	patches[1] = patch(text + page * PAGE, 5, 0xe8);
	patches[2] = patch(text + file_page * PAGE - 2, 5, 0xe7);
	patches[3] = patch(text + file_page * PAGE + 80, 5, 0xe6);
	use_way(way);
	cr_assert(patch_store(patches, 4, old, &how) == -EACCES);
	check_text(text, NULL, 0);
	cr_assert(prot_at(text) == RX && prot_at(text + page * PAGE) == RX);
	cr_assert(prot_at(text + file_page * PAGE) == PROT_READ);
	unlink(path);
}

Test(patch, takes_all_back_through_mem)
{
	takes_all_back(THROUGH_MEM, 300, 200);
}

Test(patch, takes_all_back_through_mem_within_a_run)
{
	takes_all_back(THROUGH_MEM, 2, 1);
}

Test(patch, takes_all_back_by_protection)
{
	takes_all_back(BY_PROTECTION, 300, 200);
}

Test(patch, takes_all_back_by_protection_within_a_run)
{
	takes_all_back(BY_PROTECTION, 2, 1);
}

Test(patch, refuses_what_is_not_sorted)
{
	static const struct {
		const char *name;
		int first, second; /* offsets of patches of five bytes */
		uint8_t len;	   /* of the second */
		int result;
	} rows[] = {
		{ "apart", 0, 10, 5, 0 },
		{ "touching", 0, 5, 5, 0 },
		{ "overlapping", 0, 4, 5, -EINVAL },
		{ "the same", 0, 0, 5, -EINVAL },
		{ "descending", 10, 0, 5, -EINVAL },
		{ "too long", 0, 10, ISA_PATCH_MAX + 1, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t *text = make_text();
		struct isa_patch patches[2] = {
			patch(text + rows[i].first, 5, 0xe9),
			patch(text + rows[i].second, 5, 0xe9),
		};
		int got;

		patches[1].len = rows[i].len;
		got = patch_store(patches, 2, NULL, &how);
		cr_expect(got == rows[i].result, "%s: %d", rows[i].name, got);
		if (rows[i].result)
			check_text(text, NULL, 0);
		munmap(text, PAGES * PAGE);
	}
	cr_expect(patch_store(NULL, 0, NULL, &how) == 0, "none");
}

/* Blocked signals are as before, and the program's descriptors too. */
Test(patch, leaves_no_trace)
{
	uint8_t *text = make_text();
	struct isa_patch one = patch(text, 5, 0xe9);
	sigset_t before, after;
	int fd = dup(1), again;

	close(fd);
	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	use_way(BY_PROTECTION);
	cr_assert(patch_store(&one, 1, NULL, &how) == 0);
	sigprocmask(SIG_SETMASK, NULL, &after);
	cr_assert(sigismember(&after, SIGUSR1) && !sigismember(&after, SIGUSR2));
	again = dup(1);
	cr_assert(again == fd);
}

Test(patch, knows_whether_what_is_stored_is_executed)
{
	for (int i = 0; i < 3; i++)
		cr_expect_eq(patch_mem_executes(), !support_qemu(), "%d", i);
}
