/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as code: planned as a module, and every window that the planner finds, as well as the
 * bytes themselves, relocated. Nothing outside the input may be read, a window must be relocatable
 * whenever its detour is near, and the copy must decode into whole instructions at the places
 * that x86_moved tells.
 */
#include "arch/x86_64/x86.h"
#include "arch/x86_64/decoder.h"

#include <errno.h>
#include <stdlib.h>

#define TEXT  0x400000u
#define FUNCS 8

#define CHUNK	   400
#define CHUNKS_MAX 20
#define HEADER	   17 /* two addresses and the room for a copy */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool truth)
{
	if (!truth)
		abort();
}

/* Does @moved describe what was written? */
static void check_copy(const uint8_t *copy, size_t len, const struct x86_moved *moved)
{
	struct insn insn;
	uint32_t at = 0;

	check(moved->to[0] == 0 && moved->to[len] == moved->size);
	for (size_t off = 1; off <= len; off++) {
		if (moved->to[off] == 0xffff)
			continue;
		while (at < moved->to[off]) {
			check(decoder_read(copy + at, moved->size - at, &insn));
			at += insn.len;
		}
		check(at == moved->to[off]);
	}
}

static int relocate(const uint8_t *code, uint64_t addr, size_t len, uint64_t at, size_t room)
{
	uint8_t *out = malloc(room + !room);
	struct x86_moved moved;
	int err;

	check(out);
	err = x86_relocate(code, addr, len, 0, at, out, room, &moved);
	check(err == 0 || err == -EINVAL || err == -ERANGE);
	if (err == 0) {
		check(moved.size <= room);
		check_copy(out, len, &moved);
	}
	free(out);
	return err;
}

/* Split the text at offsets taken from the first bytes. */
static size_t make_funcs(const uint8_t *data, size_t size, struct isa_func *funcs,
	struct isa_row *rows)
{
	size_t n = 0, at = 0;

	while (n < FUNCS && n < size && at < size) {
		size_t len = data[n] % 61;
		size_t end = at + len < size ? at + len : size;
		size_t limit = end + data[n] / 61 * 4 < size ? end + data[n] / 61 * 4 : size;

		rows[n] = (struct isa_row){ .from = data[n] % 3, .offset = data[n] % 5 * 8,
			.base = data[n] % 2 ? 7 : 6 };
		funcs[n] = (struct isa_func){ .start = TEXT + at, .end = TEXT + end,
			.limit = TEXT + limit, .rows = &rows[n], .nrows = data[n] % 7 != 0,
			.anonymous = data[n] % 11 == 0 };
		n++;
		at = limit + (limit == end && len == 0);
	}
	return n;
}

static void plan(const uint8_t *data, size_t size)
{
	struct isa_func funcs[FUNCS];
	struct isa_row rows[FUNCS];
	struct arena arena = { 0 };
	struct isa_text text = { data, TEXT, size };
	struct isa_module module = { .arena = &arena, .texts = &text, .ntexts = 1,
		.funcs = funcs, .nfuncs = make_funcs(data, size, funcs, rows),
		.datas = &text, .ndatas = 1 };

	check(x86_scan(&module) == 0);
	for (size_t i = 0; i < module.nfuncs; i++) {
		struct isa_site site;
		uint64_t patch;

		x86_site(&module, i, &site);
		if (site.choice == SITE_REFUSED)
			continue;
		patch = funcs[i].start + site.offset;
		check(site.len > 0 && site.len <= X86_WINDOW_MAX);
		check(patch + site.len <= funcs[i].end);
		check(site.choice != SITE_PADDING || patch + X86_JUMP_SIZE <= funcs[i].limit);
		check(site.choice != SITE_HOP || (site.hop >= TEXT &&
				site.hop + X86_JUMP_SIZE <= TEXT + size &&
				site.hop - (patch + 2) + 128 < 256));
		/* Far operands may be out of reach; everything else has been judged. */
		check(relocate(data + (patch - TEXT), patch, site.len, TEXT + 0x100000, 512) !=
			-EINVAL);
	}
	arena_free(&arena);
}

static void one_chunk(const uint8_t *data, size_t size)
{
	size_t len = (size - HEADER) % (X86_WINDOW_MAX + 2);
	uint64_t addr, at;

	memcpy(&addr, data, 8);
	memcpy(&at, data + 8, 8);
	relocate(data + HEADER, addr, len, at, data[16]);
	relocate(data + HEADER, TEXT, len, TEXT + 0x1000, data[16]);
	plan(data + HEADER, size - HEADER);
}

/* Of large inputs, such as whole programs, a few pieces all over them are taken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t step = size / CHUNKS_MAX > CHUNK ? size / CHUNKS_MAX : CHUNK;

	if (decoder_open())
		return 0;
	for (size_t at = 0; at < size && size - at > HEADER; at += step)
		one_chunk(data + at, size - at < CHUNK ? size - at : CHUNK);
	return 0;
}
