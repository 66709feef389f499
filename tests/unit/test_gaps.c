/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "trampolines/gaps.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

/* A program at random addresses. */
static const char pie[] =
	"5598a9b33000-5598a9b34000 r--p 00000000 fe:00 7 /tmp/pp\n"
	"5598a9b34000-5598a9b35000 r-xp 00001000 fe:00 7 /tmp/pp\n"
	"5598a9b37000-5598a9b38000 rw-p 00003000 fe:00 7 /tmp/pp\n"
	"5598b132b000-5598b134c000 rw-p 00000000 00:00 0 [heap]\n"
	"7f3f82990000-7f3f82993000 rw-p 00000000 00:00 0 \n"
	"7f3f82993000-7f3f829b9000 r--p 00000000 fe:00 8 /lib/libc.so.6\n"
	"7f3f829b9000-7f3f82b0f000 r-xp 00026000 fe:00 8 /lib/libc.so.6\n"
	"7f3f82b0f000-7f3f82b75000 rw-p 00000000 00:00 0 \n"
	"7f3f82b82000-7f3f82b86000 r--p 00000000 00:00 0 [vvar]\n"
	"7f3f82b86000-7f3f82b88000 r--p 00000000 00:00 0 [vvar_vclock]\n"
	"7f3f82b88000-7f3f82b8a000 r-xp 00000000 00:00 0 [vdso]\n"
	"7f3f82b8a000-7f3f82b8b000 r--p 00000000 fe:00 9 /lib/ld.so\n"
	"7f3f82b8b000-7f3f82bb1000 r-xp 00001000 fe:00 9 /lib/ld.so\n"
	"7f3f82bbd000-7f3f82bbf000 rw-p 00033000 fe:00 9 /lib/ld.so\n"
	"7ffea2131000-7ffea2152000 rw-p 00000000 00:00 0 [stack]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

/* The same before its first instruction. */
static const char pie_at_start[] =
	"5598a9b33000-5598a9b34000 r--p 00000000 fe:00 7 /tmp/pp\n"
	"5598a9b34000-5598a9b38000 r-xp 00001000 fe:00 7 /tmp/pp\n"
	"7f3f82b8a000-7f3f82bb1000 r-xp 00000000 fe:00 9 /lib/ld.so\n"
	"7ffea2131000-7ffea2152000 rw-p 00000000 00:00 0 [stack]\n";

/* One at a fixed low address, its break at once behind it. */
static const char fixed[] =
	"00400000-00401000 r--p 00000000 fe:00 7 /tmp/np\n"
	"00401000-00402000 r-xp 00001000 fe:00 7 /tmp/np\n"
	"00402000-00405000 rw-p 00002000 fe:00 7 /tmp/np\n"
	"00405000-00500000 rw-p 00000000 00:00 0 [heap]\n"
	"7f3f82993000-7f3f829b9000 r-xp 00000000 fe:00 8 /lib/libc.so.6\n"
	"7f3f82b8b000-7f3f82bb1000 r-xp 00001000 fe:00 9 /lib/ld.so\n"
	"7ffea2131000-7ffea2152000 rw-p 00000000 00:00 0 [stack]\n";

/* The same with a hole between the program and its break. */
static const char hole[] =
	"00400000-00405000 r-xp 00000000 fe:00 7 /tmp/np\n"
	"01367000-01388000 rw-p 00000000 00:00 0 [heap]\n"
	"7f3f82993000-7f3f829b9000 r-xp 00000000 fe:00 8 /lib/libc.so.6\n"
	"7f3f82b8b000-7f3f82bb1000 r-xp 00001000 fe:00 9 /lib/ld.so\n"
	"7ffea2131000-7ffea2152000 rw-p 00000000 00:00 0 [stack]\n";

/* The stack 32 MiB above the loader, libraries 3 MiB apart, memory below them taken. */
static const char tight[] =
	"10000000-10100000 r-xp 00000000 fe:00 7 /tmp/p\n"
	"70000000-78000000 rw-p 00000000 00:00 0 \n"
	"78000000-78100000 r-xp 00000000 fe:00 8 /lib/a.so\n"
	"78400000-78500000 r-xp 00000000 fe:00 10 /lib/b.so\n"
	"78500000-78600000 r-xp 00000000 fe:00 9 /lib/ld.so\n"
	"7a5df000-7a600000 rw-p 00000000 00:00 0 [stack]\n";

/* Under qemu-user the stack lies between the program and its loader. */
static const char emulated[] =
	"5500000000-5500020000 r-xp 00000000 fe:00 7 /tmp/m\n"
	"5502021000-5502022000 ---p 00000000 00:00 0 \n"
	"5502022000-5502822000 rw-p 00000000 00:00 0 [stack]\n"
	"5502822000-5502864000 r-xp 00000000 fe:00 9 /lib/ld.so\n"
	"5502880000-5502a2f000 r-xp 00000000 fe:00 8 /lib/libc.so.6\n";

struct row {
	const char *name, *maps;
	struct gap_request request;
	uint64_t want;
};

#define PIE   .program = 0x5598a9b33040, .loader = 0x7f3f82b8a000, .page = 4096
#define LOW   .program = 0x400040, .loader = 0x7f3f82b8b000, .page = 4096
#define TIGHT .program = 0x10000040, .loader = 0x78500000, .page = 4096
#define TEXT(lo, hi) .text_lo = (lo), .text_hi = (hi)
#define REFUSED(...) .refused = (const uint64_t[]){ __VA_ARGS__ }, \
	.nrefused = sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)

static const struct row rows[] = {
	{ "the program: right below it", pie,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = MIB(1) },
		0x5598a9b33000 - MIB(1) },
	{ "size is rounded to pages", pie,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = 4097 },
		0x5598a9b33000 - 8192 },
	{ "large pages", pie,
		{ .program = 0x5598a9b33040, .page = 65536,
			TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = 4096 },
		0x5598a9b20000 },
	{ "that is refused: the far end of the same gap", pie,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = MIB(1),
			REFUSED(0x5598a9b33000 - MIB(1)) },
		0x5598a9b35000 - GIB(2) },
	{ "refused too: between program and break", pie,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = MIB(1),
			REFUSED(0x5598a9b33000 - MIB(1), 0x5598a9b35000 - GIB(2)) },
		0x5598a9b38000 },
	{ "nothing but the break's room left: far above it", pie,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = MIB(1),
			REFUSED(0x5598a9b33000 - MIB(1), 0x5598a9b35000 - GIB(2), 0x5598a9b38000,
				0x5598b132b000 - MIB(1)) },
		0x5598a9b34000 + GIB(2) - MIB(1) },
	{ "nothing left", pie,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = MIB(1),
			REFUSED(0x5598a9b33000 - MIB(1), 0x5598a9b35000 - GIB(2), 0x5598a9b38000,
				0x5598b132b000 - MIB(1), 0x5598a9b34000 + GIB(2) - MIB(1)) },
		0 },
	{ "a library: right above the loader", pie,
		{ PIE, TEXT(0x7f3f829b9000, 0x7f3f82b0f000), .reach = GIB(2), .size = MIB(1) },
		0x7f3f82bbf000 },
	{ "the loader itself too", pie,
		{ PIE, TEXT(0x7f3f82b8b000, 0x7f3f82bb1000), .reach = MIB(128), .size = MIB(1) },
		0x7f3f82bbf000 },
	{ "a library, loader refused twice: below the lowest mapping", pie,
		{ PIE, TEXT(0x7f3f829b9000, 0x7f3f82b0f000), .reach = GIB(2), .size = MIB(1),
			REFUSED(0x7f3f82bbf000, 0x7f3f829b9000 + GIB(2) - MIB(1)) },
		0x7f3f82990000 - MIB(1) },
	{ "small: the gap between libraries is the last choice", pie,
		{ PIE, TEXT(0x7f3f829b9000, 0x7f3f82b0f000), .reach = GIB(2), .size = KIB(48),
			REFUSED(0x7f3f82bbf000, 0x7f3f829b9000 + GIB(2) - KIB(48),
				0x7f3f82990000 - KIB(48)) },
		0x7f3f82b75000 },
	{ "a fixed program: below it", fixed,
		{ LOW, TEXT(0x401000, 0x402000), .reach = GIB(2), .size = MIB(3) }, 0x100000 },
	{ "not below 64 KiB", fixed,
		{ LOW, TEXT(0x401000, 0x402000), .reach = GIB(2), .size = MIB(4) - KIB(64) },
		0x10000 },
	{ "too large for that: as far above the break as can be", fixed,
		{ LOW, TEXT(0x401000, 0x402000), .reach = GIB(2), .size = MIB(4) },
		0x401000 + GIB(2) - MIB(4) },
	{ "but not close to the break", fixed,
		{ LOW, TEXT(0x401000, 0x402000), .reach = MIB(32), .size = MIB(25) }, 0 },
	{ "the hole below the break is better", hole,
		{ LOW, TEXT(0x400000, 0x405000), .reach = GIB(2), .size = MIB(4) }, 0x405000 },
	{ "a break known from brk() only", hole,
		{ LOW, TEXT(0x400000, 0x405000), .reach = GIB(2), .size = MIB(4), .brk = 0x1388010 },
		0x405000 },
	{ "no break yet: right behind the program, where it will begin", pie_at_start,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = MIB(1),
			.brk = 0x5598b132b000,
			REFUSED(0x5598a9b33000 - MIB(1), 0x5598a9b35000 - GIB(2)) },
		0x5598a9b38000 },
	{ "but not above where it will begin", pie_at_start,
		{ PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = MIB(1),
			.brk = 0x5598a9b38000,
			REFUSED(0x5598a9b33000 - MIB(1), 0x5598a9b35000 - GIB(2)) },
		0x5598a9b34000 + GIB(2) - MIB(1) },
	{ "a break that has grown since", fixed,
		{ LOW, TEXT(0x401000, 0x402000), .reach = MIB(32), .size = MIB(4),
			.brk = 0x1900000 }, 0 },
	{ "room for the stack is kept: 8 MiB at least", tight,
		{ TIGHT, TEXT(0x78400000, 0x78500000), .reach = MIB(128), .size = MIB(23) },
		0x78600000 },
	{ "and its guard", tight,
		{ TIGHT, TEXT(0x78400000, 0x78500000), .reach = MIB(128), .size = MIB(24) }, 0 },
	{ "its limit", tight,
		{ TIGHT, TEXT(0x78400000, 0x78500000), .reach = MIB(128), .size = MIB(8),
			.stack_limit = MIB(24) }, 0 },
	{ "which leaves some", tight,
		{ TIGHT, TEXT(0x78400000, 0x78500000), .reach = MIB(128), .size = MIB(7),
			.stack_limit = MIB(24) }, 0x78600000 },
	{ "an unlimited stack leaves nothing here", tight,
		{ TIGHT, TEXT(0x78400000, 0x78500000), .reach = MIB(128), .size = MIB(2),
			.stack_limit = UINT64_MAX }, 0x78200000 },
	{ "out of reach", tight,
		{ TIGHT, TEXT(0x70000000, 0x78000000), .reach = MIB(128), .size = MIB(2) }, 0 },
	{ "text larger than the reach", tight,
		{ TIGHT, TEXT(0x78000000, 0x78500000), .reach = MIB(2), .size = MIB(2) }, 0 },
	{ "a stack below the libraries ends nothing", emulated,
		{ .program = 0x5500000040, .loader = 0x5502822000, .page = 4096,
			TEXT(0x5502880000, 0x5502a2f000), .reach = MIB(128), .size = MIB(4) },
		0x5502a2f000 },
	{ "no size", pie, { PIE, TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2) }, 0 },
	{ "no page size", pie,
		{ TEXT(0x5598a9b34000, 0x5598a9b35000), .reach = GIB(2), .size = 1 }, 0 },
};

static bool overlaps(const struct maps *maps, uint64_t lo, uint64_t hi)
{
	const struct mapping *m = maps_from(maps, lo);

	return m && m->lo < hi;
}

Test(gaps, find)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct gap_request *r = &rows[i].request;
		struct arena arena = { 0 };
		struct maps maps;
		uint64_t got;

		cr_assert(maps_parse(&maps, rows[i].maps, &arena) == 0, "%s", rows[i].name);
		got = gap_find(&maps, r);
		cr_expect(got == rows[i].want, "%s: %lx, not %lx", rows[i].name,
			(unsigned long)got, (unsigned long)rows[i].want);
		if (got) {
			cr_expect(!overlaps(&maps, got, got + r->size), "%s", rows[i].name);
			cr_expect(r->text_hi - got <= r->reach || got > r->text_lo, "%s",
				rows[i].name);
			cr_expect(got + r->size - r->text_lo <= r->reach || got < r->text_lo, "%s",
				rows[i].name);
		}
		arena_free(&arena);
	}
}

/* Every answer, refused in turn: all differ, all are free, and the search ends. */
Test(gaps, refusing_ends)
{
	struct gap_request r = { PIE, TEXT(0x7f3f829b9000, 0x7f3f82b0f000), .reach = GIB(2),
		.size = KIB(16) };
	struct arena arena = { 0 };
	uint64_t refused[64];
	struct maps maps;

	cr_assert(maps_parse(&maps, pie, &arena) == 0);
	r.refused = refused;
	while ((refused[r.nrefused] = gap_find(&maps, &r))) {
		cr_assert(!overlaps(&maps, refused[r.nrefused], refused[r.nrefused] + r.size));
		for (size_t i = 0; i < r.nrefused; i++)
			cr_assert(refused[i] != refused[r.nrefused], "%zu", i);
		cr_assert(++r.nrefused < 64);
	}
	cr_assert(r.nrefused > 3);
	arena_free(&arena);
}

/* The kernel maps what is found in this very process, when asked the way the loader does. */
Test(gaps, own_process)
{
	const struct {
		const char *name;
		uint64_t text;
	} own[] = {
		{ "program", (uint64_t)(uintptr_t)gap_find },
		{ "libc", (uint64_t)(uintptr_t)&getenv },
	};
	struct arena arena = { 0 };
	struct maps maps;

	cr_assert(maps_read(&maps, "/proc/self/maps", &arena) == 0);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		const struct mapping *m = maps_from(&maps, own[i].text);
		struct gap_request r = {
			TEXT(m->lo, m->hi),
			.reach = GIB(2),
			.size = MIB(1),
			.page = (uint64_t)sysconf(_SC_PAGESIZE),
			.program = getauxval(AT_PHDR),
			.loader = getauxval(AT_BASE),
			.brk = (uint64_t)(uintptr_t)sbrk(0),
		};
		uint64_t got = gap_find(&maps, &r);
		void *p = mmap((void *)(uintptr_t)got, r.size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		cr_expect(got && p == (void *)(uintptr_t)got, "%s: %lx, mapped at %p", own[i].name,
			(unsigned long)got, p);
		munmap(p, r.size);
	}
	arena_free(&arena);
}
