/* SPDX-License-Identifier: MIT */
/* The image of detours: loaded by this program's loader, called, and read by the usual tools. */
#define _GNU_SOURCE 1
#include "trampolines/image.h"
#include "trampolines/maps.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	 4096
#define ROOM	 (1u << 20)

/*
 * A CPU whose detours are `mov $id, %eax; ret` (x86_64). The common part is four times
 * `mov $-1, %eax; ret`.
 */
static uint32_t tiny_common(
	const struct isa_env *env, uint64_t at, uint8_t *out, struct isa_common *common,
	struct isa_range *ranges)
{
	static const uint8_t code[8] = { 0xb8, 0xff, 0xff, 0xff, 0xff, 0xc3, 0x90, 0x90 };

	(void)env;
	for (int i = 0; i < 4; i++)
		memcpy(out + 8 * i, code, 8);
	*common = (struct isa_common){ at, 32, 0, 8, 16, 24 };
	ranges[0] = (struct isa_range){ .size = 32, .cie = CIE_PLAIN };
	return 1;
}

static size_t tiny_cie(enum isa_cie which, uint64_t nodes, uint8_t *out, size_t room)
{
	/* DW_CFA_def_cfa rsp+8; DW_CFA_offset ra at cfa-8 */
	static const uint8_t plain[] = { 0x0c, 7, 8, 0x90, 1 };

	(void)which;
	(void)nodes;
	cr_assert(room >= ISA_CFI_MAX);
	memcpy(out, plain, sizeof(plain));
	return sizeof(plain);
}

static const struct isa tiny = {
	.name = "tiny",
	.elf_machine = EM_X86_64,
	.ra_column = 16,
	.reach = 1u << 31,
	.detour_max = 64,
	.common_max = 64,
	.emit_common = tiny_common,
	.cie = tiny_cie,
};

/* D: mov, ret. T: nop; push; pop; ret. B: mov, ret. */
static struct isa_detour tiny_detour(uint8_t *out, uint32_t id)
{
	static const uint8_t tail[] = { 0x90, 0x50, 0x58, 0xc3, 0xb8, 1, 0, 0, 0, 0xc3 };
	struct isa_detour d = { .size = 16, .ret = 6, .body = 10, .nranges = 2 };

	out[0] = 0xb8;
	memcpy(out + 1, &id, 4);
	out[5] = 0xc3;
	memcpy(out + 6, tail, sizeof(tail));
	d.ranges[0] = (struct isa_range){ .start = 0, .size = 6, .cie = CIE_PLAIN };
	d.ranges[1] = (struct isa_range){ .start = 6, .size = 10, .cie = CIE_DETOUR,
		/* advance 2, cfa_offset 16, advance 1, cfa_offset 8 */
		.cfi = { 0x42, 0x0e, 16, 0x41, 0x0e, 8 }, .cfi_len = 6 };
	return d;
}

/* For tests that load an image: tests/target does so on every CPU. */
static void need_x86_64(void)
{
#ifndef __x86_64__
	cr_skip_test("the code in its images is for x86_64");
#endif
}

static uint64_t free_range(size_t size)
{
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert(p != MAP_FAILED);
	munmap(p, size);
	return (uint64_t)(uintptr_t)p;
}

static void add(struct image *im, uint32_t id, const char *name)
{
	uint8_t *out;
	uint64_t at = image_next(im, &out);
	struct isa_detour d = tiny_detour(out, id);

	cr_assert(at % 16 == 0);
	cr_assert(image_add(im, &d, name, 0xabc0 + id) == 0, "%u", id);
}

/* An image with the detours `one@ftr` (returns 1), `sub_abc2@ftr` (2) and `three@ftr` (3). */
static void build(struct image *im, uint64_t base, const void **bytes, size_t *size)
{
	cr_assert(image_begin(im, &tiny, base, ROOM, PAGE, 0, NULL, 3) == 0);
	add(im, 1, "one");
	add(im, 2, NULL);
	add(im, 3, "three");
	cr_assert(image_finish(im, bytes, size) == 0);
}

/* valgrind ends a program whose libraries have such names and are not its own. */
Test(image, names_that_valgrind_obeys_are_not_taken_over)
{
	static const char *const names[] = { "_vgnU_freeres", "_vgr10010ZU_libcZdsoZa_malloc",
		"_vgw00000ZZ_libcZdsoZa_free" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const void *bytes;
		struct image im;
		size_t size;

		cr_assert(image_begin(&im, &tiny, free_range(ROOM), ROOM, PAGE, 0, NULL, 1) == 0);
		add(&im, 4, names[i]);
		cr_assert(image_finish(&im, &bytes, &size) == 0);
		cr_expect(!memmem(bytes, size, names[i], strlen(names[i])), "%s", names[i]);
		cr_expect(memmem(bytes, size, "sub_abc4@ftr", 13), "%s", names[i]);
		image_free(&im);
	}
}

#define TEXT 576 /* offset of the common part, behind the headers */

static uint64_t detour_at(uint64_t base, int index)
{
	return base + TEXT + 32 + (uint64_t)index * 16;
}

static char *temporary(char path[64])
{
	static int count;

	snprintf(path, 64, "/tmp/ftr-test-image.%d.%d", (int)getpid(), count++);
	unlink(path);
	return path;
}

static void check_loaded(uint64_t base)
{
	static const struct {
		int index;
		unsigned offset;
		const char *name;
		int result;
	} rows[] = {
		{ 0, 0, "one@ftr", 1 },
		{ 1, 0, "sub_abc2@ftr", 2 },
		{ 2, 0, "three@ftr", 3 },
		{ 2, 15, "three@ftr", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uintptr_t at = detour_at(base, rows[i].index) + rows[i].offset;
		Dl_info info;

		cr_assert(dladdr((void *)at, &info), "%s: dladdr", rows[i].name);
		cr_assert_str_eq(info.dli_sname, rows[i].name);
		cr_assert(info.dli_fbase == (void *)(uintptr_t)base, "%s", rows[i].name);
		if (!rows[i].offset)
			cr_assert(((int (*)(void))at)() == rows[i].result, "%s", rows[i].name);
	}
}

/* No page is writable and executable; the stack is not executable; the image is R-X, R--, RW-. */
static void check_maps(const char *path)
{
	static const int prots[] = { PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE };
	struct arena arena = { 0 };
	struct maps maps;
	int n = 0;

	cr_assert(maps_read(&maps, "/proc/self/maps", &arena) == 0);
	for (size_t i = 0; i < maps.count; i++) {
		const struct mapping *m = maps.list + i;

		cr_assert((m->prot & (PROT_WRITE | PROT_EXEC)) != (PROT_WRITE | PROT_EXEC),
			"%lx %s", (unsigned long)m->lo, m->path);
		if (str_eq(m->path, "[stack]"))
			cr_assert(!(m->prot & PROT_EXEC));
		if (str_starts(m->path, path)) {
			cr_assert(n < 3 && m->prot == prots[n], "segment %d of %s", n, path);
			n++;
		}
	}
	cr_assert(n == 3, "%d segments", n);
	arena_free(&arena);
}

Test(image, loads_from_a_file_and_runs)
{
	uint64_t base = free_range(ROOM);
	struct image im;
	const void *bytes;
	const char *why = "";
	char path[64];
	void *handle;
	size_t size;

	need_x86_64();
	build(&im, base, &bytes, &size);
	cr_assert(image_common(&im)->base == base + 576);
	cr_assert(image_write(bytes, size, temporary(path)) == 0);
	image_free(&im);
	cr_assert(image_load(path, base, &handle, &why) == 0, "%s", why);
	check_loaded(base);
	check_maps(path);
	cr_assert(!dlsym(handle, "one@ftr"), "no name is ever found by look-up");
	dlclose(handle);
	unlink(path);
}

Test(image, loads_from_a_memfd_and_runs)
{
	struct image im;
	const void *bytes;
	const char *why = "";
	char paths[2][64];
	void *handle;
	size_t size;

	need_x86_64();
	for (int i = 0; i < 2; i++) {
		uint64_t base = free_range(ROOM);
		int fd;

		build(&im, base, &bytes, &size);
		fd = image_memfd(bytes, size, paths[i]);
		image_free(&im);
		cr_assert(fd >= 0, "%d", fd);
		cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		cr_assert(write(fd, "x", 1) < 0, "sealed");
		cr_assert(image_load(paths[i], base, &handle, &why) == 0, "%s", why);
		check_loaded(base);
		check_maps("/memfd:ftr.detours");
		close(fd);
		dlclose(handle);
	}
	cr_assert(!str_eq(paths[0], paths[1]), "a number is used once");
}

Test(image, elsewhere_is_noticed_and_undone)
{
	uint64_t base = free_range(ROOM);
	struct image im;
	const void *bytes;
	const char *why = NULL;
	char path[64];
	void *handle, *taken;
	size_t size;

	need_x86_64();
	build(&im, base, &bytes, &size);
	cr_assert(image_write(bytes, size, temporary(path)) == 0);
	image_free(&im);
	taken = mmap((void *)(uintptr_t)base, PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert(taken == (void *)(uintptr_t)base);
	cr_assert(image_load(path, base, &handle, &why) == -EADDRNOTAVAIL);
	cr_assert(!handle && why);
	cr_assert(!dlopen(path, RTLD_NOW | RTLD_NOLOAD), "unloaded again");
	munmap(taken, PAGE);
	unlink(path);
	cr_assert(image_load(path, base, &handle, &why) == -ELIBBAD);
	cr_assert(!handle && *why);
}

Test(image, refuses_what_it_cannot_do)
{
	static const struct {
		const char *name;
		uint64_t base;
		size_t room, page;
		int result;
	} rows[] = {
		{ "usable", 0x10000, ROOM, PAGE, 0 },
		{ "large pages", 0x10000, ROOM, 0x10000, 0 },
		{ "no base", 0, ROOM, PAGE, -EINVAL },
		{ "base inside a page", 0x10010, ROOM, PAGE, -EINVAL },
		{ "page size 0", 0x10000, ROOM, 0, -EINVAL },
		{ "page size 3000", 0x10000, ROOM, 3000, -EINVAL },
		{ "no room", 0x10000, 2 * PAGE, PAGE, -ENOSPC },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct image im;
		int got = image_begin(&im, &tiny, rows[i].base, rows[i].room, rows[i].page, 0,
			NULL, 1);

		cr_expect(got == rows[i].result, "%s: %d", rows[i].name, got);
		if (!got)
			image_free(&im);
	}
}

Test(image, stays_as_it_was_when_a_detour_is_refused)
{
	static const struct {
		const char *name;
		struct isa_detour detour;
	} rows[] = {
		{ "too large", { .size = 65 } },
		{ "return point outside", { .size = 16, .ret = 17 } },
		{ "body outside", { .size = 16, .body = 17 } },
		{ "three ranges", { .size = 16, .nranges = 3 } },
		{ "range outside", { .size = 16, .nranges = 1, .ranges = { { .start = 8, .size = 9 } } } },
		{ "no such CIE", { .size = 16, .nranges = 1, .ranges = { { .cie = CIE_COUNT } } } },
		{ "unwind rows too long",
			{ .size = 16, .nranges = 1, .ranges = { { .cfi_len = ISA_CFI_MAX + 1 } } } },
	};
	struct image im;
	uint8_t *out;
	uint64_t at;

	cr_assert(image_begin(&im, &tiny, 0x10000, ROOM, PAGE, 0, NULL, 1) == 0);
	at = image_next(&im, &out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect(image_add(&im, &rows[i].detour, "f", 0) == -EINVAL, "%s", rows[i].name);
		cr_expect(image_next(&im, &out) == at, "%s", rows[i].name);
	}
	image_free(&im);
}

/* Fill the room; what was accepted must still be loadable and fit. */
/* Zeros are no instruction on any CPU but x86_64. */
Test(image, is_zero_but_for_what_was_added)
{
	static const uint8_t zeros[PAGE];
	const uint8_t *bytes;
	struct isa_detour d;
	struct image im;
	uint8_t *out;
	size_t size, end = TEXT + 32;

	cr_assert(image_begin(&im, &tiny, 0x10000, ROOM, PAGE, 0, NULL, 3) == 0);
	for (uint32_t i = 0; i < 3; i++) {
		image_next(&im, &out);
		memset(out, 0xcc, tiny.detour_max); /* refused */
		d = tiny_detour(out, i);
		d.size = d.ranges[1].start + 4;
		d.nranges = 1;
		cr_assert(image_add(&im, &d, "f", 0) == 0);
	}
	image_next(&im, &out);
	memset(out, 0xcc, tiny.detour_max);
	cr_assert(image_finish(&im, (const void **)&bytes, &size) == 0);
	for (int i = 0; i < 3; i++, end += 16)
		cr_expect(!memcmp(bytes + end + 10, zeros, 6), "behind %d", i);
	cr_expect(!memcmp(bytes + end, zeros, PAGE - end), "behind the last");
	image_free(&im);
}

Test(image, full_is_no_error_for_what_is_in_it)
{
	const size_t room = 16 * PAGE;
	uint64_t base = free_range(room);
	struct isa_detour d;
	const void *bytes;
	const Elf64_Phdr *ph;
	const char *why = "";
	struct image im;
	char path[64];
	void *handle;
	uint8_t *out;
	size_t size;
	int n = 0, err;

	need_x86_64();
	cr_assert(image_begin(&im, &tiny, base, room, PAGE, 0, NULL, 1) == 0);
	do {
		image_next(&im, &out);
		d = tiny_detour(out, 7);
		err = image_add(&im, &d, "f", 0);
	} while (!err && ++n < 10000);
	cr_assert(err == -ENOSPC && n > 100, "%d after %d", err, n);
	cr_assert(image_finish(&im, &bytes, &size) == 0);
	ph = (const Elf64_Phdr *)((const uint8_t *)bytes + sizeof(Elf64_Ehdr));
	cr_assert(ph[2].p_vaddr + ph[2].p_memsz <= base + room);
	cr_assert(image_write(bytes, size, temporary(path)) == 0);
	image_free(&im);
	cr_assert(image_load(path, base, &handle, &why) == 0, "%s", why);
	cr_assert(((int (*)(void))(uintptr_t)detour_at(base, n - 1))() == 7);
	dlclose(handle);
	unlink(path);
}

Test(image, parts_grow_beyond_the_hint)
{
	const uint32_t n = 40000;
	uint64_t base = free_range(64 * ROOM);
	const char *why = "";
	const void *bytes;
	struct image im;
	char path[64], name[32];
	void *handle;
	size_t size;

	need_x86_64();
	cr_assert(image_begin(&im, &tiny, base, 64 * ROOM, PAGE, 0, NULL, 1) == 0);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "function_number_%u", i);
		add(&im, i, name);
	}
	cr_assert(image_finish(&im, &bytes, &size) == 0);
	cr_assert(image_write(bytes, size, temporary(path)) == 0);
	image_free(&im);
	cr_assert(image_load(path, base, &handle, &why) == 0, "%s", why);
	for (uint32_t i = 0; i < n; i++)
		cr_assert(((uint32_t(*)(void))(uintptr_t)detour_at(base, (int)i))() == i);
	dlclose(handle);
	unlink(path);
}

/* What was written at image_next() and not added must not be in the image. */
Test(image, build_id_depends_on_the_contents_only)
{
	static const struct {
		const char *name;
		uint32_t id;
		const char *symbol;
		bool junk, same;
	} rows[] = {
		{ "the same again", 1, "f", false, true },
		{ "with a rejected detour", 1, "f", true, true },
		{ "other code", 2, "f", false, false },
		{ "other name", 1, "g", false, false },
	};
	uint8_t first[20];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t *bytes;
		const Elf64_Ehdr *eh;
		struct image im;
		uint8_t *out;
		size_t size;

		cr_assert(image_begin(&im, &tiny, 0x10000, ROOM, PAGE, 0, NULL, 1) == 0);
		add(&im, rows[i].id, rows[i].symbol);
		image_next(&im, &out);
		if (rows[i].junk)
			memset(out, 0xcc, 64);
		cr_assert(image_finish(&im, (const void **)&bytes, &size) == 0);
		eh = (const Elf64_Ehdr *)bytes;
		bytes += ((const Elf64_Shdr *)(bytes + eh->e_shoff))[3].sh_offset + 16;
		if (!i)
			memcpy(first, bytes, 20);
		cr_expect(!memcmp(first, bytes, 20) == rows[i].same, "%s", rows[i].name);
		image_free(&im);
	}
}

Test(image, write_is_whole_or_nothing)
{
	static const uint8_t bytes[100000];
	struct rlimit old, low = { 50000, 0 };
	struct stat st;
	char path[64];

	cr_assert(image_write(bytes, sizeof(bytes), temporary(path)) == 0);
	cr_assert(stat(path, &st) == 0 && st.st_size == sizeof(bytes) && (st.st_mode & 077) == 0);
	cr_assert(image_write(bytes, 10, path) == -EEXIST);
	cr_assert(stat(path, &st) == 0 && st.st_size == sizeof(bytes), "left alone");
	unlink(path);
	cr_assert(image_write(bytes, 10, "/nonexistent/x") == -ENOENT);
	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &low);
	cr_assert(image_write(bytes, sizeof(bytes), temporary(path)) == -EFBIG);
	cr_assert(stat(path, &st) < 0);
	setrlimit(RLIMIT_FSIZE, &old);
}

/* The loadable image of every CPU, by the fields that loaders look at. */
Test(image, headers_suit_the_cpu)
{
	static const struct {
		const char *name;
		uint16_t machine;
		uint32_t flags;
		size_t page;
		uint32_t property, value; /* 0: no note */
	} rows[] = {
		{ "x86_64", EM_X86_64, 0, 4096, 0xc0000002, 3 },
		{ "arm64", EM_AARCH64, 0, 65536, 0xc0000000, 7 },
		{ "powerpc", EM_PPC64, 2, 65536, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct isa isa = tiny;
		const uint8_t *bytes;
		const Elf64_Ehdr *eh;
		const Elf64_Phdr *ph;
		const uint32_t *note = NULL;
		struct image im;
		size_t size;
		int loads = 0, stacks = 0;

		isa.elf_machine = rows[i].machine;
		isa.elf_flags = rows[i].flags;
		cr_assert(image_begin(&im, &isa, 0x100000, ROOM, rows[i].page, 0, NULL, 1) == 0);
		cr_assert(image_finish(&im, (const void **)&bytes, &size) == 0);
		eh = (const Elf64_Ehdr *)bytes;
		ph = (const Elf64_Phdr *)(bytes + eh->e_phoff);
		cr_expect(eh->e_machine == rows[i].machine && eh->e_flags == rows[i].flags
			&& eh->e_type == ET_DYN, "%s", rows[i].name);
		for (; ph < (const Elf64_Phdr *)(bytes + eh->e_phoff) + eh->e_phnum; ph++) {
			if (ph->p_type == PT_LOAD) {
				cr_expect(ph->p_align == rows[i].page, "%s", rows[i].name);
				cr_expect(ph->p_vaddr == 0x100000 + ph->p_offset, "%s", rows[i].name);
				cr_expect(ph->p_offset % rows[i].page == 0, "%s", rows[i].name);
				loads++;
			} else if (ph->p_type == PT_GNU_STACK) {
				cr_expect(ph->p_flags == (PF_R | PF_W), "%s", rows[i].name);
				stacks++;
			} else if (ph->p_type == PT_GNU_PROPERTY) {
				note = (const uint32_t *)(bytes + ph->p_offset);
			}
		}
		cr_expect(loads == 3 && stacks == 1, "%s", rows[i].name);
		cr_expect(!note == !rows[i].property, "%s", rows[i].name);
		if (note)
			cr_expect(note[4] == rows[i].property && note[6] == rows[i].value, "%s",
				rows[i].name);
		image_free(&im);
	}
}

/* Run a command on an image and look for words in what it says; absent tools are skipped. */
Test(image, common_tools_read_it)
{
	static const struct {
		const char *tool, *command; /* %s: the image */
		const char *words[5];
		const char *forbidden;
	} rows[] = {
		{ "readelf", "readelf -a -W %s 2>&1",
			{ "FUNC    GLOBAL DEFAULT    1 one@ftr", "FUNC    LOCAL  DEFAULT    1 ftr.pad",
				"x86 feature: IBT, SHSTK", "Library soname: [ftr-", "Build ID: " },
			"arning" },
		{ "readelf", "readelf -W --debug-dump=frames %s 2>&1",
			{ "\"zPR\"", "\"zR\"", "DW_CFA_def_cfa_offset: 16", "ZERO terminator",
				"Augmentation data:     00 " },
			"arning" },
		{ "readelf", "readelf -W --debug-dump=frames-interp %s 2>&1", { "rsp+16" }, "arning" },
		{ "objdump", "objdump -d %s 2>&1",
			{ "<one@ftr>:", "<sub_abc2@ftr>:", "mov    $0x3,%eax" }, "@ftr." },
		{ "nm", "nm %s 2>&1", { " T one@ftr", " t ftr.pad" }, "no symbols" },
		{ "nm", "nm -D %s 2>&1", { " T one@ftr" }, "no symbols" },
		{ "gdb", "gdb -nx -batch -ex 'info functions @ftr' -ex 'info symbol 0x10000262' -ex 'x/i 0x10000260' %s 2>&1",
			{ "one@ftr + 2 in section .text", "three@ftr\n", "<one@ftr>", "mov    $0x1,%eax" }, "arning" },
		{ "eu-readelf", "eu-readelf -a -w %s 2>&1", { "one@ftr", "def_cfa_offset 16" },
			"invalid" },
		{ "eu-elflint", "eu-elflint %s 2>&1", { "No errors" }, "section" },
	};
	struct image im;
	const void *bytes;
	char path[64], *text = malloc(1 << 20);
	size_t size;
	int skipped = 0;

	build(&im, 0x10000000, &bytes, &size);
	cr_assert(image_write(bytes, size, temporary(path)) == 0);
	image_free(&im);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char command[256];
		size_t got;
		FILE *out;

		snprintf(command, sizeof(command), "command -v %s >/dev/null", rows[i].tool);
		if (system(command)) {
			skipped++;
			continue;
		}
		snprintf(command, sizeof(command), rows[i].command, path);
		out = popen(command, "r");
		cr_assert(out != NULL);
		got = fread(text, 1, (1 << 20) - 1, out);
		text[got] = 0;
		pclose(out);
		for (int w = 0; w < 5 && rows[i].words[w]; w++)
			cr_expect(str_find(text, rows[i].words[w]), "%s: no \"%s\" in:\n%s", command,
				rows[i].words[w], text);
		cr_expect(!str_find(text, rows[i].forbidden), "%s: says\n%s", command, text);
	}
	if (skipped)
		cr_log_warn("%d of the tools are not installed", skipped);
	free(text);
	unlink(path);
}
