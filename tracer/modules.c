/* SPDX-License-Identifier: MIT */
#include "modules.h"
#include "../arch/sys.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool same_file(const struct module *m, const struct mapping *map)
{
	return map->inode == m->inode && map->major == m->major && map->minor == m->minor
		&& str_eq(map->path, m->path);
}

/*
 * Is @bytes what is mapped? Device and inode numbers do not always agree with those of the maps
 * file (overlay file systems); the first bytes hold the headers and usually the build id.
 */
static bool same_start(const struct module *module, const void *bytes, uint64_t size)
{
	uint64_t n = module->hi - module->lo;

	n = n < size ? n : size;
	return !memcmp(bytes, (const void *)module->lo, n < 1024 ? n : 1024);
}

/*
 * The ELF header is mapped at the start of a module; its program headers tell the bias. They are
 * read from memory: what is mapped is what runs.
 */
static bool bias_of(const struct mapping *first, uint64_t *bias)
{
	const Elf64_Ehdr *header = (const void *)first->lo;
	const Elf64_Phdr *ph;

	if (first->offset || !(first->prot & PROT_READ)
		|| memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_phoff > 4000
		|| header->e_phoff + header->e_phnum * sizeof(*ph) > first->hi - first->lo)
		return false;
	ph = (const void *)(first->lo + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD) {
			*bias = first->lo + ph[i].p_offset - ph[i].p_vaddr;
			return true;
		}
	return false;
}

int modules_find(struct modules *modules, const struct maps *maps, uint64_t program,
	struct arena *arena)
{
	uint64_t here = (uint64_t)&modules_find;

	*modules = (struct modules){ 0 };
	modules->list = arena_alloc(arena, maps->count * sizeof(*modules->list));
	if (!modules->list)
		return -ENOMEM;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *map = &maps->list[i];
		struct module *m = &modules->list[modules->count];
		bool code = false;

		if (!map->inode || map->path[0] != '/')
			continue;
		*m = (struct module){ .path = map->path, .lo = map->lo, .hi = map->hi,
			.inode = map->inode, .major = map->major, .minor = map->minor };
		if (!bias_of(map, &m->bias))
			continue;
		/* Its further segments follow at growing offsets; a copy begins at 0 again. */
		for (size_t k = i; k < maps->count; k++) {
			const struct mapping *part = &maps->list[k];

			if (k > i && (part->inode && !same_file(m, part)))
				break;
			if (k > i && part->inode && !part->offset)
				break;
			if (!part->inode)
				continue;
			m->hi = part->hi;
			code |= part->prot & PROT_EXEC;
			i = k;
		}
		if (!code)
			continue;
		m->main = program >= m->lo && program < m->hi;
		m->ours = here >= m->lo && here < m->hi;
		modules->count++;
	}
	return 0;
}

int modules_open(const struct module *module, struct elffile *elf, const char **why)
{
	struct stat st;
	void *bytes;
	int err, fd = sys_open(module->path, O_RDONLY, 0);

	*why = "cannot be opened";
	if (fd < 0)
		return fd;
	err = (int)sys_call(SYS_fstat, fd, &st);
	if (!err) {
		bytes = sys_mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (sys_failed(bytes)) {
			err = -ENOMEM;
			*why = "cannot be mapped";
		} else {
			*why = "is not the file that is mapped";
			err = same_start(module, bytes, (uint64_t)st.st_size) ? 0 : -ESTALE;
			if (!err)
				err = elffile_parse(elf, bytes, (uint64_t)st.st_size, why);
			if (err)
				sys_munmap(bytes, (size_t)st.st_size);
		}
	}
	sys_close(fd);
	return err;
}

void modules_close(struct elffile *elf)
{
	sys_munmap((void *)elf->bytes, elf->size);
	elf->bytes = NULL;
}
