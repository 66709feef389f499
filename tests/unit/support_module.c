/* SPDX-License-Identifier: MIT */
#include "support_module.h"
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool map_file(struct support_module *m, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat status;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && status.st_size > 0) {
		m->size = (size_t)status.st_size;
		m->bytes = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	if (m->bytes == MAP_FAILED)
		m->bytes = NULL;
	return m->bytes;
}

static bool read_segments(struct support_module *m)
{
	const Elf64_Phdr *ph = m->elf.phdrs;
	struct isa_text *texts = arena_alloc(&m->arena, 2 * m->elf.nphdrs * sizeof(*texts));
	struct isa_text *datas = texts + m->elf.nphdrs;

	if (!texts)
		return false;
	m->code.texts = texts;
	m->code.datas = datas;
	for (int i = 0; i < m->elf.nphdrs; i++, ph++) {
		struct isa_text part = { m->elf.bytes + ph->p_offset, ph->p_vaddr, ph->p_filesz };

		if (ph->p_type != PT_LOAD || !ph->p_filesz)
			continue;
		if (ph->p_flags & PF_X)
			texts[m->code.ntexts++] = part;
		datas[m->code.ndatas++] = part;
	}
	return true;
}

/* With RELR, as without relocations, the words themselves hold the addresses. */
static bool read_pointers(struct support_module *m)
{
	const Elf64_Rela *rela = (const void *)m->elf.rela.bytes;
	size_t n = m->elf.rela.size / sizeof(*rela);
	uint64_t *pointers;

	if (m->elf.type == ET_EXEC || m->elf.relr.bytes)
		return true;
	pointers = arena_alloc(&m->arena, (n + 1) * sizeof(*pointers));
	if (!pointers)
		return false;
	for (size_t i = 0; i < n; i++)
		pointers[i] = (uint64_t)rela[i].r_addend;
	m->code.pointers = pointers;
	m->code.npointers = n;
	return true;
}

static bool read_slots(struct support_module *m)
{
	struct isa_slot *slots;
	long n = symbols_slots(&m->elf, &m->arena, &slots);

	m->code.slots = slots;
	m->code.nslots = n > 0 ? (size_t)n : 0;
	return n >= 0;
}

static bool make_funcs(struct support_module *m)
{
	struct isa_func *funcs = arena_alloc(&m->arena, (m->symbols.count + 1) * sizeof(*funcs));

	if (!funcs)
		return false;
	for (size_t i = 0; i < m->symbols.count; i++) {
		const struct symbol *s = &m->symbols.list[i];
		struct isa_row *rows = NULL;
		long n = s->fde ? ehframe_rows(s->fde, &m->arena, &rows) : 0;

		funcs[i] = (struct isa_func){ .start = s->start, .end = s->end, .limit = s->limit,
			.rows = rows, .nrows = n > 0 ? (uint32_t)n : 0, .anonymous = !s->name,
			.keeps = symbols_keeps_return(s) };
	}
	m->code.funcs = funcs;
	m->code.nfuncs = m->symbols.count;
	return true;
}

bool support_module_open(struct support_module *m, const char *path, const struct isa *isa)
{
	const char *why;

	*m = (struct support_module){ 0 };
	m->code.isa = isa;
	m->code.arena = &m->arena;
	if (map_file(m, path) && !elffile_parse(&m->elf, m->bytes, m->size, &why) &&
		m->elf.machine == isa->elf_machine && read_segments(m) && read_pointers(m) &&
		read_slots(m) &&
		!symbols_read(&m->symbols, &m->elf, isa, &m->arena) && make_funcs(m))
		return true;
	support_module_close(m);
	return false;
}

void support_module_close(struct support_module *m)
{
	arena_free(&m->arena);
	if (m->bytes)
		munmap(m->bytes, m->size);
}
