/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "modules.h"
#include "../arch/sys.h"
#include "../rethook/shadow.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

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

/* Where the module that begins with @first ends, by its program headers; 0: they are not there. */
static uint64_t end_of(const struct mapping *first)
{
	const Elf64_Ehdr *header = (const void *)first->lo;
	const Elf64_Phdr *ph = (const void *)(first->lo + header->e_phoff);
	uint64_t begin = 0, end = 0;

	if (!(first->prot & PROT_READ) || memcmp(header->e_ident, ELFMAG, SELFMAG)
		|| header->e_phoff + header->e_phnum * sizeof(*ph) > first->hi - first->lo)
		return 0;
	for (const Elf64_Phdr *p = ph; p < ph + header->e_phnum; p++) {
		if (p->p_type != PT_LOAD)
			continue;
		if (!end)
			begin = p->p_vaddr - p->p_offset;
		end = p->p_vaddr + p->p_memsz;
	}
	return end ? first->lo + (end - begin) : 0;
}

/* Extend a module over the mappings of its file that follow @map, the first one. */
static bool set_extent(struct module *m, const struct maps *maps, const struct mapping *map)
{
	const struct mapping *end = maps->list + maps->count, *first = map;
	uint64_t known_end = end_of(first);
	bool code = false;

	m->lo = map->lo;
	m->path = map->path;
	for (; map < end; map++) {
		bool same = map->inode == first->inode && str_eq(map->path, first->path);
		/* A small file's first page may be mapped twice, the second time for its data. */
		bool copy = known_end ? map->lo >= known_end : map > first && !map->offset;

		if (map->inode && (!same || copy))
			break;
		if (!map->inode)
			continue;
		m->hi = map->hi;
		code |= map->prot & PROT_EXEC;
	}
	return code;
}

/* The first mapping of the file that is mapped at @addr. */
static const struct mapping *first_mapping(const struct maps *maps, uint64_t addr)
{
	const struct mapping *map = maps_from(maps, addr), *at;

	if (!map || addr < map->lo || !map->inode)
		return NULL;
	for (at = map; at >= maps->list; at--) {
		if (!at->inode)
			continue;
		if (at->inode != map->inode || !str_eq(at->path, map->path))
			break;
		if (!at->offset)
			return at;
	}
	return NULL;
}

/*
 * The first mapping of a loaded module: where address 0 of its file went, since its dynamic section may be
 * in a second mapping of the first page; else, where the file begins with another address.
 */
static const struct mapping *first_of(const struct maps *maps, const struct link_map *map)
{
	const struct mapping *first = first_mapping(maps, map->l_addr);
	const struct mapping *data = maps_from(maps, (uint64_t)map->l_ld);

	if (first && data && first->inode == data->inode && str_eq(first->path, data->path))
		return first;
	return first_mapping(maps, (uint64_t)map->l_ld);
}

/* gABI, "Dynamic Section": the loader leaves its list's address in the program's DT_DEBUG. */
static const struct r_debug *loader_list(uint64_t phdr, uint64_t phnum)
{
	const Elf64_Phdr *ph = (const void *)phdr;
	const Elf64_Dyn *dyn = NULL;
	uint64_t bias = 0;

	for (uint64_t i = 0; i < phnum; i++) {
		if (ph[i].p_type == PT_PHDR)
			bias = phdr - ph[i].p_vaddr;
		if (ph[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(ph[i].p_vaddr + bias);
	}
	for (; dyn && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_DEBUG)
			return (const void *)dyn->d_un.d_ptr;
	return NULL;
}

/* A link namespace's list: glibc's struct r_debug_extended, from version 2.35 on. */
struct name_space {
	struct r_debug debug;
	const struct name_space *next;
};

static const struct name_space *next_space(const struct r_debug *first, const struct name_space *at)
{
	return first->r_version > 1 ? at->next : NULL;
}

bool modules_settled(const struct r_debug *loader)
{
	const struct name_space *at = (const void *)loader;

	for (; at; at = next_space(loader, at))
		if (at->debug.r_state != RT_CONSISTENT)
			return false;
	return true;
}

static void add_module(struct modules *modules, const struct maps *maps, const struct link_map *map,
	uint64_t phdr)
{
	struct module *m = &modules->list[modules->count];
	const struct mapping *first = first_of(maps, map);
	uint64_t here = (uint64_t)&modules_settled;

	*m = (struct module){ .bias = map->l_addr, .ld = (uint64_t)map->l_ld };
	if (!first || !set_extent(m, maps, first))
		return;
	for (size_t i = 0; i < modules->count; i++)
		if (modules->list[i].ld == m->ld)
			return; /* the loader itself, which all namespaces share */
	m->main = phdr >= m->lo && phdr < m->hi;
	m->ours = !m->main && ((here >= m->lo && here < m->hi) || shadow_pad_of(m->lo));
	modules->count++;
}

int modules_find(struct modules *modules, const struct maps *maps, uint64_t phdr, uint64_t phnum,
	struct arena *arena)
{
	const struct r_debug *debug = loader_list(phdr, phnum);
	const struct name_space *first = (const void *)debug, *at;
	const struct link_map *map;
	size_t n = 0;

	*modules = (struct modules){ .loader = debug };
	if (!debug || !debug->r_map)
		return -ENOENT;
	for (at = first; at; at = next_space(debug, at))
		for (map = at->debug.r_map; map; map = map->l_next)
			n++;
	modules->list = arena_alloc(arena, n * sizeof(*modules->list));
	if (!modules->list)
		return -ENOMEM;
	for (at = first; at; at = next_space(debug, at))
		for (map = at->debug.r_map; map; map = map->l_next)
			add_module(modules, maps, map, phdr);
	return 0;
}

bool modules_at(struct module *module, const struct maps *maps, uint64_t addr)
{
	const struct mapping *first = first_mapping(maps, addr);
	const Elf64_Ehdr *header = first ? (const void *)first->lo : NULL;
	const Elf64_Phdr *ph;

	*module = (struct module){ 0 };
	if (!first || !set_extent(module, maps, first)
		|| memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_phoff > 1024
		|| header->e_phnum > 32)
		return false;
	ph = (const void *)(first->lo + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD) {
			module->bias = first->lo + ph[i].p_offset - ph[i].p_vaddr;
			return true;
		}
	return false;
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
