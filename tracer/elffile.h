/* SPDX-License-Identifier: MIT */
/*
 * Reads an ELF64 file of any CPU from memory. The bytes are not trusted: whatever they say,
 * nothing outside them is read and nothing is allocated. Works with and without section headers.
 * Little endian only.
 */
#ifndef TRACER_ELFFILE_H
#define TRACER_ELFFILE_H

#include "../arch/mem.h"

/* A part of the file; addr is its link-time address (0 when it has none). */
struct elf_part {
	const uint8_t *bytes; /* NULL: absent */
	uint64_t addr;
	uint64_t size;
};

struct elffile {
	const uint8_t *bytes;
	uint64_t size;
	uint16_t machine; /* EM_* */
	uint16_t type;	  /* ET_EXEC or ET_DYN */
	uint64_t entry;	  /* e_entry */
	uint64_t pltgot;  /* DT_PLTGOT; 0: none */
	bool textrel;	  /* DT_TEXTREL or DF_TEXTREL */
	bool go;	  /* has Go's own symbol table (.gopclntab or .note.go.buildid) */
	struct elf_part symtab, strtab;	  /* .symtab and its strings */
	struct elf_part dynsym, dynstr;   /* DT_SYMTAB with its extent worked out, DT_STRTAB */
	struct elf_part eh_frame_hdr, eh_frame; /* eh_frame: extent worked out, see elffile.c */
	struct elf_part build_id;
	bool guarded; /* arm64: its code may be in pages that only landing pads can be jumped to */
	struct elf_part patchable; /* __patchable_function_entries */
	struct elf_part rela, relr, plt_rela; /* dynamic relocations */
	/* program headers, validated to lie in the file and to be aligned; their contents are not */
	const void *phdrs; /* Elf64_Phdr */
	uint16_t nphdrs;
	const void *shdrs; /* Elf64_Shdr; NULL when absent or damaged */
	uint16_t nshdrs;
	const char *shstr;
	uint64_t shstr_size;
};

/* 0, or -EINVAL with *@why set to a short constant text ("not an ELF file", "wrong class" ...). */
int elffile_parse(struct elffile *elf, const void *bytes, uint64_t size, const char **why);

/* The file's bytes at a link-time address, @size of them; NULL when not all are in the file. */
const uint8_t *elffile_at(const struct elffile *elf, uint64_t addr, uint64_t size);

/* The section called @name; .bytes NULL when absent (or SHT_NOBITS). */
struct elf_part elffile_section(const struct elffile *elf, const char *name);

/* A terminated string of a string table; "" when the offset is outside, or for every offset when
 * the table does not end in a zero byte. */
const char *elffile_string(const struct elf_part *strings, uint64_t offset);

#endif
