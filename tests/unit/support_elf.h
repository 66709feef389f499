/* SPDX-License-Identifier: MIT */
/*
 * Makes small ELF files for tests. The whole file is one segment, readable and executable, loaded
 * at MAKE_BASE; parts are appended and may be described by section and program headers.
 */
#ifndef TESTS_UNIT_SUPPORT_ELF_H
#define TESTS_UNIT_SUPPORT_ELF_H

#include "arch/mem.h"
#include <elf.h>

#define MAKE_BASE 0x10000ul
#define MAKE_SIZE 0x4000
#define MAKE_PHDRS 8
#define MAKE_SHDRS 12

struct make_elf {
	_Alignas(16) uint8_t bytes[MAKE_SIZE];
	uint64_t next;
	Elf64_Phdr phdrs[MAKE_PHDRS];
	Elf64_Shdr shdrs[MAKE_SHDRS];
	uint16_t nphdrs, nshdrs;
	char names[256];
	uint32_t names_size;
};

static inline void make_phdr(struct make_elf *make, uint32_t type, uint64_t offset, uint64_t size)
{
	make->phdrs[make->nphdrs++] = (Elf64_Phdr){
		.p_type = type,
		.p_flags = PF_R | PF_X,
		.p_offset = offset,
		.p_vaddr = MAKE_BASE + offset,
		.p_filesz = size,
		.p_memsz = size,
		.p_align = 4,
	};
}

static inline void make_begin(struct make_elf *make)
{
	memset(make, 0, sizeof(*make));
	make->names_size = 1;
	make->nshdrs = 1;
	make->next = 0x400;
	make_phdr(make, PT_LOAD, 0, MAKE_SIZE);
}

/* Append bytes at the next multiple of 16; returns their offset. */
static inline uint64_t make_add(struct make_elf *make, const void *bytes, uint64_t size)
{
	uint64_t offset = (make->next + 15) & ~15ull;

	memcpy(make->bytes + offset, bytes, size);
	make->next = offset + size;
	return offset;
}

/* Describe a part by a section header; returns its index. */
static inline uint16_t make_section(struct make_elf *make, const char *name, uint32_t type,
	uint64_t flags, uint64_t offset, uint64_t size)
{
	make->shdrs[make->nshdrs] = (Elf64_Shdr){
		.sh_name = make->names_size,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = flags & SHF_ALLOC ? MAKE_BASE + offset : 0,
		.sh_offset = offset,
		.sh_size = size,
	};
	memcpy(make->names + make->names_size, name, strlen(name) + 1);
	make->names_size += (uint32_t)strlen(name) + 1;
	return make->nshdrs++;
}

/* Write the headers; @sections: with section headers. */
static inline void make_end(struct make_elf *make, bool sections)
{
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = make->nphdrs,
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	if (sections) {
		eh.e_shstrndx = make_section(make, ".shstrtab", SHT_STRTAB, 0, 0, 0);
		make->shdrs[eh.e_shstrndx].sh_size = make->names_size;
		make->shdrs[eh.e_shstrndx].sh_offset =
			make_add(make, make->names, make->names_size);
		eh.e_shnum = make->nshdrs;
		eh.e_shoff = make_add(make, make->shdrs, make->nshdrs * sizeof(Elf64_Shdr));
	}
	memcpy(make->bytes, &eh, sizeof(eh));
	memcpy(make->bytes + sizeof(eh), make->phdrs, make->nphdrs * sizeof(Elf64_Phdr));
}

/* Append the dynamic section, @n tags, and its program header. */
static inline void make_dynamic(struct make_elf *make, const Elf64_Dyn *tags, size_t n)
{
	uint64_t offset = make_add(make, tags, n * sizeof(*tags));

	make_phdr(make, PT_DYNAMIC, offset, n * sizeof(*tags));
}

#endif
