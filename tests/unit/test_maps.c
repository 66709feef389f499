/* SPDX-License-Identifier: MIT */
#include "trampolines/maps.h"
#include "support_qemu.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/mman.h>

#define RX (PROT_READ | PROT_EXEC)
#define RW (PROT_READ | PROT_WRITE)

Test(maps, lines)
{
	static const struct {
		const char *line;
		int result;
		struct mapping want;
	} rows[] = {
		{ "55d0c8a00000-55d0c8a02000 r-xp 00001000 fe:10 131 /usr/bin/a b (deleted)\n", 0,
			{ 0x55d0c8a00000, 0x55d0c8a02000, 0x1000, 131, 0xfe, 0x10, RX, false,
				false, "/usr/bin/a b (deleted)" } },
		{ "1000-2000 rw-s 00000000 00:01 7                          /dev/zero\\012x", 0,
			{ 0x1000, 0x2000, 0, 7, 0, 1, RW, true, false, "/dev/zero\\012x" } },
		{ "1000-2000 ---p 00000000 00:00 0 \n", 0,
			{ 0x1000, 0x2000, 0, 0, 0, 0, 0, false, false, "" } },
		{ "1000-2000 ---p 00000000 00:00 0\n", 0,
			{ 0x1000, 0x2000, 0, 0, 0, 0, 0, false, false, "" } },
		{ "1000-2000 ---p 00000000 00:00 0", 0,
			{ 0x1000, 0x2000, 0, 0, 0, 0, 0, false, false, "" } },
		{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n", 0,
			{ 0xffffffffff600000, 0xffffffffff601000, 0, 0, 0, 0, PROT_EXEC, false,
				false, "[vsyscall]" } },
		{ "junk\n1000-2000 r-xp 0 00:00 0\nRss: 4 kB\nVmFlags: rd ex mr bt sd \n", 0,
			{ 0x1000, 0x2000, 0, 0, 0, 0, RX, false, true, "" } },
		{ "1000-2000 r-xp 0 00:00 0\nVmFlags: rd ex bt", 0,
			{ 0x1000, 0x2000, 0, 0, 0, 0, RX, false, true, "" } },
		{ "1000-2000 r-xp 0 00:00 0\nVmFlags: rd ex abt btx\n", 0,
			{ 0x1000, 0x2000, 0, 0, 0, 0, RX, false, false, "" } },
		{ "VmFlags: bt\n", -EINVAL, { 0 } },
		{ "", -EINVAL, { 0 } },
		{ "2000-1000 r-xp 0 00:00 0\n", -EINVAL, { 0 } },
		{ "1000-1000 r-xp 0 00:00 0\n", -EINVAL, { 0 } },
		{ "1000 2000 r-xp 0 00:00 0\n", -EINVAL, { 0 } },
		{ "1000-2000 qwxp 0 00:00 0\n", -EINVAL, { 0 } },
		{ "1000-2000 r-x\n", -EINVAL, { 0 } },
		{ "1000-2000 r-xp", -EINVAL, { 0 } },
		{ "1000-2000 r-xp 0 00:00 x\n", -EINVAL, { 0 } },
		{ "1000-10000000000000000 r-xp 0 00:00 0\n", -EINVAL, { 0 } },
		{ "1000-3000 r-xp 0 00:00 0\n2000-4000 r-xp 0 00:00 0\n", -EINVAL, { 0 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct mapping *w = &rows[i].want, *m;
		struct arena arena = { 0 };
		struct maps maps;
		int got = maps_parse(&maps, rows[i].line, &arena);

		cr_expect(got == rows[i].result, "%s: %d", rows[i].line, got);
		if (!got && !rows[i].result) {
			m = maps.list;
			cr_expect(maps.count == 1, "%s", rows[i].line);
			cr_expect(m->lo == w->lo && m->hi == w->hi && m->offset == w->offset, "%s",
				rows[i].line);
			cr_expect(m->inode == w->inode && m->major == w->major
				&& m->minor == w->minor, "%s", rows[i].line);
			cr_expect(m->prot == w->prot && m->shared == w->shared
				&& m->guarded == w->guarded, "%s", rows[i].line);
			cr_expect(str_eq(m->path, w->path), "%s: path \"%s\"", rows[i].line,
				m->path);
		}
		arena_free(&arena);
	}
}

Test(maps, look_up)
{
	static const struct {
		uint64_t addr;
		int index; /* -1: none */
	} rows[] = {
		{ 0, 0 },
		{ 0x1000, 0 },
		{ 0x1fff, 0 },
		{ 0x2000, 1 },
		{ 0x2fff, 1 },
		{ 0x3000, 2 },
		{ 0x4fff, 2 },
		{ 0x5fff, 2 },
		{ 0x6000, -1 },
	};
	struct arena arena = { 0 };
	struct maps maps;

	cr_assert(maps_parse(&maps,
			  "1000-2000 r-xp 0 00:00 0 a\n2000-3000 r-xp 0 00:00 0 b\n"
			  "5000-6000 r-xp 0 00:00 0 b\n",
			  &arena)
		== 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct mapping *m = maps_from(&maps, rows[i].addr);

		cr_expect(m == (rows[i].index < 0 ? NULL : maps.list + rows[i].index), "%lx",
			(unsigned long)rows[i].addr);
	}
	cr_expect(maps_named(&maps, "b") == maps.list + 1);
	cr_expect(maps_named(&maps, "c") == NULL);
	arena_free(&arena);
}

Test(maps, own_process)
{
	static const char *const paths[] = { "/proc/self/maps", "/proc/self/smaps" };
	static int data;
	struct arena arena = { 0 };
	struct maps maps;

	for (int i = 0; i < (support_qemu() ? 1 : 2); i++) {
		const struct mapping *m;

		cr_assert(maps_read(&maps, paths[i], &arena) == 0, "%s", paths[i]);
		m = maps_from(&maps, (uintptr_t)&data);
		cr_assert(m && m->lo <= (uintptr_t)&data && m->prot == RW, "%s", paths[i]);
		m = maps_from(&maps, (uintptr_t)maps_read);
		cr_assert(m && m->prot == RX && m->inode, "%s", paths[i]);
	}
	cr_assert(maps_read(&maps, "/nonexistent", &arena) == -ENOENT);
	arena_free(&arena);
}
