/* SPDX-License-Identifier: MIT */
/*
 * The loader's view comes first: program headers and the dynamic section say what is in memory, so
 * everything needed to trace is found without section headers. These add .symtab, exact extents
 * and names. Sources: System V ABI, chapters 4 and 5; LSB 5.0 core, "Exception Frames".
 */
#include "elffile.h"

#include <elf.h>
#include <errno.h>

#define EH_PTR_PCREL_SDATA4 0x1b /* how every linker writes the pointer in .eh_frame_hdr */

static bool elf_holds(const struct elffile *elf, uint64_t offset, uint64_t size)
{
	return offset <= elf->size && size <= elf->size - offset;
}

/* A table of @n aligned entries; NULL when it is not all in the file. */
static const void *elf_table(const struct elffile *elf, uint64_t offset, uint64_t n, size_t entry)
{
	if (!elf_holds(elf, offset, n * entry) || ((uintptr_t)elf->bytes + offset) % 8)
		return NULL;
	return elf->bytes + offset;
}

/*
 * How many bytes are in the file from @addr on to the end of its segment. Segments overlap in
 * damaged files only; the one that goes on longest is taken, so that a part of a range is always
 * found where the range is.
 */
static uint64_t elf_room(const struct elffile *elf, uint64_t addr, const uint8_t **bytes)
{
	const Elf64_Phdr *ph = elf->phdrs, *end = ph + elf->nphdrs;
	uint64_t room = 0;

	for (; ph < end; ph++) {
		uint64_t in = addr - ph->p_vaddr, size = ph->p_filesz;

		if (ph->p_type != PT_LOAD || ph->p_offset > elf->size)
			continue;
		if (size > elf->size - ph->p_offset)
			size = elf->size - ph->p_offset;
		if (addr < ph->p_vaddr || in >= size || size - in <= room)
			continue;
		*bytes = elf->bytes + ph->p_offset + in;
		room = size - in;
	}
	return room;
}

const uint8_t *elffile_at(const struct elffile *elf, uint64_t addr, uint64_t size)
{
	const uint8_t *bytes = NULL;

	return elf_room(elf, addr, &bytes) >= size ? bytes : NULL;
}

static struct elf_part elf_part_at(const struct elffile *elf, uint64_t addr, uint64_t size)
{
	struct elf_part part = { elffile_at(elf, addr, size), addr, size };

	return part.bytes ? part : (struct elf_part){ 0 };
}

static struct elf_part elf_section_part(const struct elffile *elf, const Elf64_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || !elf_holds(elf, sh->sh_offset, sh->sh_size))
		return (struct elf_part){ 0 };
	return (struct elf_part){ elf->bytes + sh->sh_offset, sh->sh_addr, sh->sh_size };
}

const char *elffile_string(const struct elf_part *strings, uint64_t offset)
{
	/* One look at the last byte proves every string of a well-formed table. */
	if (!strings->bytes || offset >= strings->size || strings->bytes[strings->size - 1])
		return "";
	return (const char *)strings->bytes + offset;
}

static const Elf64_Shdr *elf_find_section(const struct elffile *elf, const char *name)
{
	const struct elf_part names = { (const uint8_t *)elf->shstr, 0, elf->shstr_size };
	const Elf64_Shdr *sh = elf->shdrs;

	for (size_t i = 0; i < elf->nshdrs; i++)
		if (str_eq(elffile_string(&names, sh[i].sh_name), name))
			return &sh[i];
	return NULL;
}

struct elf_part elffile_section(const struct elffile *elf, const char *name)
{
	const Elf64_Shdr *sh = elf_find_section(elf, name);

	return sh ? elf_section_part(elf, sh) : (struct elf_part){ 0 };
}

/* Section headers are a convenience: when they are damaged the file is read without them. */
static void elf_read_sections(struct elffile *elf, const Elf64_Ehdr *eh)
{
	const Elf64_Shdr *sh;
	struct elf_part names;
	uint64_t n = eh->e_shnum, strings = eh->e_shstrndx;

	if (!eh->e_shoff || eh->e_shentsize != sizeof(*sh))
		return;
	sh = elf_table(elf, eh->e_shoff, 1, sizeof(*sh));
	if (!sh)
		return;
	if (!n)
		n = sh->sh_size;
	if (strings == SHN_XINDEX)
		strings = sh->sh_link;
	if (n > UINT16_MAX || strings >= n || !elf_table(elf, eh->e_shoff, n, sizeof(*sh)))
		return;
	names = elf_section_part(elf, &sh[strings]);
	if (!names.bytes)
		return;
	elf->shdrs = sh;
	elf->nshdrs = (uint16_t)n;
	elf->shstr = (const char *)names.bytes;
	elf->shstr_size = names.size;
}

static void elf_read_symtab(struct elffile *elf)
{
	const Elf64_Shdr *shdrs = elf->shdrs;

	for (size_t i = 0; i < elf->nshdrs; i++) {
		if (shdrs[i].sh_type != SHT_SYMTAB || shdrs[i].sh_link >= elf->nshdrs)
			continue;
		elf->symtab = elf_section_part(elf, &shdrs[i]);
		elf->strtab = elf_section_part(elf, &shdrs[shdrs[i].sh_link]);
		return;
	}
}

/* ---- the dynamic section ---- */

/* The values of the tags that every system knows, and of one that only GNU has. */
struct elf_dynamic {
	uint64_t tag[DT_NUM];
	uint64_t gnu_hash;
};

static void elf_read_dynamic(const struct elffile *elf, struct elf_dynamic *dynamic)
{
	const Elf64_Phdr *ph = elf->phdrs;
	const uint8_t *bytes = NULL;
	uint64_t size = 0;

	for (size_t i = 0; i < elf->nphdrs && !bytes; i++) {
		if (ph[i].p_type != PT_DYNAMIC)
			continue;
		size = ph[i].p_filesz;
		bytes = elffile_at(elf, ph[i].p_vaddr, size);
	}
	for (; bytes && size >= sizeof(Elf64_Dyn); size -= sizeof(Elf64_Dyn)) {
		Elf64_Dyn dyn;

		memcpy(&dyn, bytes, sizeof(dyn));
		bytes += sizeof(dyn);
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag > 0 && dyn.d_tag < DT_NUM)
			dynamic->tag[dyn.d_tag] = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_GNU_HASH)
			dynamic->gnu_hash = dyn.d_un.d_ptr;
	}
}

static uint32_t elf_word(const uint8_t *bytes, uint64_t index)
{
	uint32_t word;

	memcpy(&word, bytes + index * sizeof(word), sizeof(word));
	return word;
}

/*
 * A DT_GNU_HASH table does not say how many symbols there are. They are sorted by bucket, so the
 * last one is the end of the chain that begins furthest; the lowest bit ends a chain.
 */
static uint64_t elf_gnu_hash_count(const struct elffile *elf, uint64_t addr)
{
	const uint8_t *bytes = NULL;
	uint64_t words = elf_room(elf, addr, &bytes) / 4, buckets, chains, last = 0;
	uint32_t nbuckets, first;

	if (words < 4)
		return 0;
	nbuckets = elf_word(bytes, 0);
	first = elf_word(bytes, 1);
	buckets = 4 + 2 * (uint64_t)elf_word(bytes, 2); /* the bloom filter has 64-bit words */
	chains = buckets + nbuckets;
	if (chains > words)
		return 0;
	for (uint64_t i = buckets; i < chains; i++)
		if (elf_word(bytes, i) > last)
			last = elf_word(bytes, i);
	if (last < first)
		return first;
	for (uint64_t i = chains + last - first; i < words; i++, last++)
		if (elf_word(bytes, i) & 1)
			return last + 1;
	return 0;
}

/* DT_HASH says it outright: there is one chain word per symbol. */
static uint64_t elf_hash_count(const struct elffile *elf, uint64_t addr)
{
	const uint8_t *bytes = elffile_at(elf, addr, 8);

	return bytes ? elf_word(bytes, 1) : 0;
}

/* Undefined symbols may follow those that a DT_GNU_HASH table counts: relocations refer to them. */
static uint64_t elf_relocated_count(const struct elf_part *part)
{
	uint64_t n = 0;

	for (uint64_t at = 0; part->size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, part->bytes + at, sizeof(rela));
		if (ELF64_R_SYM(rela.r_info) >= n)
			n = ELF64_R_SYM(rela.r_info) + 1;
	}
	return n;
}

static struct elf_part elf_symbols(const struct elffile *elf, uint64_t addr, uint64_t n)
{
	return elf_part_at(elf, addr, n * sizeof(Elf64_Sym)); /* 32 bits: no overflow */
}

static void elf_read_dynsym(struct elffile *elf, const struct elf_dynamic *dynamic)
{
	uint64_t table = dynamic->tag[DT_SYMTAB], n = 0, more;

	if (dynamic->tag[DT_HASH])
		n = elf_hash_count(elf, dynamic->tag[DT_HASH]);
	if (!n && dynamic->gnu_hash)
		n = elf_gnu_hash_count(elf, dynamic->gnu_hash);
	if (!n || !table)
		return;
	more = elf_relocated_count(&elf->rela);
	if (more < elf_relocated_count(&elf->plt_rela))
		more = elf_relocated_count(&elf->plt_rela);
	if (more > n)
		elf->dynsym = elf_symbols(elf, table, more);
	if (!elf->dynsym.bytes)
		elf->dynsym = elf_symbols(elf, table, n);
	elf->dynstr = elf_part_at(elf, dynamic->tag[DT_STRTAB], dynamic->tag[DT_STRSZ]);
}

static void elf_use_dynamic(struct elffile *elf)
{
	struct elf_dynamic dynamic = { 0 };
	const uint64_t *tag = dynamic.tag;

	elf_read_dynamic(elf, &dynamic);
	elf->textrel = tag[DT_TEXTREL] || tag[DT_FLAGS] & DF_TEXTREL;
	elf->pltgot = tag[DT_PLTGOT];
	if (tag[DT_RELA])
		elf->rela = elf_part_at(elf, tag[DT_RELA], tag[DT_RELASZ]);
	if (tag[DT_RELR])
		elf->relr = elf_part_at(elf, tag[DT_RELR], tag[DT_RELRSZ]);
	if (tag[DT_JMPREL] && tag[DT_PLTREL] == DT_RELA)
		elf->plt_rela = elf_part_at(elf, tag[DT_JMPREL], tag[DT_PLTRELSZ]);
	elf_read_dynsym(elf, &dynamic);
}

/* ---- notes and unwind tables ---- */

#define NOTE_GNU	"GNU" /* owners, four bytes each */
#define NOTE_GO		"Go\0"
#define NOTE_GO_BUILDID 4

/* The contents of a note in one PT_NOTE segment. */
static struct elf_part elf_note_in(struct elf_part notes, uint64_t align, const char owner[4],
	uint32_t type)
{
	uint64_t at = 0;

	while (notes.size - at >= sizeof(Elf64_Nhdr)) {
		uint64_t name = at + sizeof(Elf64_Nhdr), desc;
		Elf64_Nhdr nh;

		memcpy(&nh, notes.bytes + at, sizeof(nh));
		desc = (name + nh.n_namesz + align - 1) & -align;
		at = (desc + nh.n_descsz + align - 1) & -align;
		if (desc > notes.size || nh.n_descsz > notes.size - desc)
			break;
		if (nh.n_type == type && nh.n_namesz == 4
			&& !memcmp(notes.bytes + name, owner, 4))
			return (struct elf_part){ notes.bytes + desc, notes.addr + desc,
				nh.n_descsz };
		if (at > notes.size)
			break;
	}
	return (struct elf_part){ 0 };
}

static struct elf_part elf_note(const struct elffile *elf, const char owner[4], uint32_t type)
{
	const Elf64_Phdr *ph = elf->phdrs;
	struct elf_part found = { 0 };

	for (size_t i = 0; i < elf->nphdrs && !found.bytes; i++) {
		struct elf_part notes;

		if (ph[i].p_type != PT_NOTE)
			continue;
		notes = elf_part_at(elf, ph[i].p_vaddr, ph[i].p_filesz);
		if (notes.bytes)
			found = elf_note_in(notes, ph[i].p_align == 8 ? 8 : 4, owner, type);
	}
	return found;
}

/* Linux extensions to the gABI, ".note.gnu.property"; AAELF64, "Program Property". */
static bool elf_is_guarded(const struct elffile *elf)
{
	struct elf_part note = elf_note(elf, NOTE_GNU, NT_GNU_PROPERTY_TYPE_0);
	uint64_t at = 0;

	while (elf->machine == EM_AARCH64 && at <= note.size && note.size - at >= 12) {
		uint32_t type = elf_word(note.bytes + at, 0), size = elf_word(note.bytes + at, 1);

		if (type == GNU_PROPERTY_AARCH64_FEATURE_1_AND && size >= 4)
			return elf_word(note.bytes + at, 2) & GNU_PROPERTY_AARCH64_FEATURE_1_BTI;
		at += 8 + (((uint64_t)size + 7) & -8ull);
	}
	return false;
}

/*
 * Without section headers: .eh_frame begins where its search table's header points to. Its end is
 * not written anywhere; it is the zero word behind the last record, or where the next record
 * would not fit into the segment.
 */
static struct elf_part elf_eh_frame_by_header(const struct elffile *elf)
{
	struct elf_part part = { 0 };
	const uint8_t *hdr = elf->eh_frame_hdr.bytes;
	uint64_t room;

	if (!hdr || elf->eh_frame_hdr.size < 8 || hdr[0] != 1 || hdr[1] != EH_PTR_PCREL_SDATA4)
		return part;
	part.addr = elf->eh_frame_hdr.addr + 4 + (uint64_t)(int32_t)elf_word(hdr, 1);
	room = elf_room(elf, part.addr, &part.bytes);
	while (room - part.size >= 4) {
		uint64_t len = elf_word(part.bytes + part.size, 0), head = 4;

		if (len == UINT32_MAX && room - part.size >= 12) {
			head = 12;
			memcpy(&len, part.bytes + part.size + 4, sizeof(len));
		}
		if (!len || len > room - part.size - head)
			break;
		part.size += head + len;
	}
	return part;
}

static void elf_find_eh_frame(struct elffile *elf)
{
	const Elf64_Phdr *ph = elf->phdrs;

	for (size_t i = 0; i < elf->nphdrs && !elf->eh_frame_hdr.bytes; i++)
		if (ph[i].p_type == PT_GNU_EH_FRAME)
			elf->eh_frame_hdr = elf_part_at(elf, ph[i].p_vaddr, ph[i].p_filesz);
	elf->eh_frame = elffile_section(elf, ".eh_frame");
	if (!elf->eh_frame.bytes)
		elf->eh_frame = elf_eh_frame_by_header(elf);
}

static bool elf_is_go(const struct elffile *elf)
{
	return elf_find_section(elf, ".gopclntab") || elf_find_section(elf, ".note.go.buildid")
		|| elf_find_section(elf, ".data.rel.ro.gopclntab")
		|| elf_note(elf, NOTE_GO, NOTE_GO_BUILDID).bytes;
}

/* What is wrong with the header; NULL: nothing. */
static const char *elf_check(const Elf64_Ehdr *eh)
{
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return "not an ELF file";
	if (eh->e_ident[EI_CLASS] != ELFCLASS64)
		return "wrong class";
	if (eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return "wrong byte order";
	if (eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return "not a program or library";
	if (!eh->e_phnum || eh->e_phnum == PN_XNUM || eh->e_phentsize != sizeof(Elf64_Phdr))
		return "no usable program headers";
	return NULL;
}

int elffile_parse(struct elffile *elf, const void *bytes, uint64_t size, const char **why)
{
	Elf64_Ehdr eh;

	*elf = (struct elffile){ .bytes = bytes, .size = size };
	*why = "not an ELF file";
	if (size < sizeof(eh))
		return -EINVAL;
	memcpy(&eh, bytes, sizeof(eh));
	*why = elf_check(&eh);
	if (*why)
		return -EINVAL;
	elf->phdrs = elf_table(elf, eh.e_phoff, eh.e_phnum, sizeof(Elf64_Phdr));
	if (!elf->phdrs) {
		*why = "program headers outside the file";
		return -EINVAL;
	}
	elf->nphdrs = eh.e_phnum;
	elf->machine = eh.e_machine;
	elf->type = eh.e_type;
	elf->entry = eh.e_entry;
	elf_read_sections(elf, &eh);
	elf_read_symtab(elf);
	elf_use_dynamic(elf);
	elf_find_eh_frame(elf);
	elf->build_id = elf_note(elf, NOTE_GNU, NT_GNU_BUILD_ID);
	elf->guarded = elf_is_guarded(elf);
	elf->patchable = elffile_section(elf, "__patchable_function_entries");
	elf->go = elf_is_go(elf);
	return 0;
}
