/* SPDX-License-Identifier: MIT */
/*
 * Layout, in the order of addresses and of the file; every address is the base plus the offset:
 *
 *   R-X  ELF header, program headers, .text
 *   R--  notes, .hash, .dynsym, .dynstr, .eh_frame_hdr, .eh_frame
 *   RW-  .dynamic: the loader adds the load bias to it when it puts the image elsewhere, and would
 *        fault in read-only memory
 *   not loaded: .shstrtab, section headers
 *
 * .symtab and .dynsym are the same bytes, so are .strtab and .dynstr: the loader, debuggers and
 * profilers each look for their own kind. No name is ever found in the hash table, it is there
 * because loaders take the number of symbols from it.
 *
 * Sources: System V gABI, chapters 4 and 5; LSB 5.0 core, "Exception Frames".
 */
#define _GNU_SOURCE 1
#include "../arch/mem.h"
#include "image.h"
#include "../arch/sys.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

#define IMAGE_ROOM_MAX 0x7fff0000u /* offsets must fit the signed 32 bits of unwind tables */
#define IMAGE_PHDRS    9
#define IMAGE_ALIGN    16 /* of a detour */
#define IMAGE_SMALL    512 /* more than all read-only parts of a fixed size */
#define IMAGE_CIE_MAX  (48 + ISA_CFI_MAX)
#define IMAGE_FD_MIN   100 /* memfd numbers start here, out of the program's way */
#define IMAGE_HUGE     (2u << 20)

#define EH_ABSPTR       0x00
#define EH_UDATA4       0x03
#define EH_PCREL_SDATA4 0x1b
#define EH_TABLE        0x3b /* relative to .eh_frame_hdr, sdata4 */

enum image_section {
	SECTION_NULL,
	SECTION_TEXT,
	SECTION_PROPERTY,
	SECTION_BUILD_ID,
	SECTION_HASH,
	SECTION_DYNSYM,
	SECTION_DYNSTR,
	SECTION_EH_FRAME_HDR,
	SECTION_EH_FRAME,
	SECTION_DYNAMIC,
	SECTION_SYMTAB,
	SECTION_STRTAB,
	SECTION_SHSTRTAB,
	SECTIONS
};

static const struct image_section_kind {
	char name[20];
	uint32_t type, flags, align, entsize;
	uint8_t link;
	bool new_page; /* begins a segment */
	uint8_t same_as; /* the section whose bytes these are */
} image_kinds[SECTIONS] = {
	[SECTION_TEXT] = { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 64, 0, 0, false, 0 },
	[SECTION_PROPERTY] = { ".note.gnu.property", SHT_NOTE, SHF_ALLOC, 8, 0, 0, true, 0 },
	[SECTION_BUILD_ID] = { ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 4, 0, 0, false, 0 },
	[SECTION_HASH] = { ".hash", SHT_HASH, SHF_ALLOC, 8, 4, SECTION_DYNSYM, false, 0 },
	[SECTION_DYNSYM] = { ".dynsym", SHT_DYNSYM, SHF_ALLOC, 8, sizeof(Elf64_Sym),
		SECTION_DYNSTR, false, 0 },
	[SECTION_DYNSTR] = { ".dynstr", SHT_STRTAB, SHF_ALLOC, 1, 0, 0, false, 0 },
	[SECTION_EH_FRAME_HDR] = { ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 4, 0, 0, false, 0 },
	[SECTION_EH_FRAME] = { ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8, 0, 0, false, 0 },
	[SECTION_DYNAMIC] = { ".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 8, sizeof(Elf64_Dyn),
		SECTION_DYNSTR, true, 0 },
	[SECTION_SYMTAB] = { ".symtab", SHT_SYMTAB, 0, 8, sizeof(Elf64_Sym), SECTION_STRTAB, false,
		SECTION_DYNSYM },
	[SECTION_STRTAB] = { ".strtab", SHT_STRTAB, 0, 1, 0, 0, false, SECTION_DYNSTR },
	[SECTION_SHSTRTAB] = { ".shstrtab", SHT_STRTAB, 0, 1, 0, 0, false, 0 },
};

struct image_hash {
	uint32_t nbucket, nchain, bucket; /* the chains follow, all zero */
};

struct image_property {
	Elf64_Nhdr note;
	char name[4];
	uint32_t type, size, value, pad;
};

struct image_build_id {
	Elf64_Nhdr note;
	char name[4];
	uint8_t id[20];
};

struct image_eh_frame_hdr {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

/* An entry of the search table; while building, offsets from .text's and .eh_frame's start. */
struct image_index {
	int32_t code, fde;
};

/* The fixed part of an FDE; its instructions follow. */
struct image_fde {
	uint32_t length, cie;
	int32_t start; /* while building, from the image's start */
	uint32_t size;
	uint8_t augmentation;
} __attribute__((packed));

/* Branch protection that all code of an image supports. */
static const struct image_features {
	uint16_t machine;
	uint32_t type, value;
} image_features[] = {
	{ EM_X86_64, GNU_PROPERTY_X86_FEATURE_1_AND,
		GNU_PROPERTY_X86_FEATURE_1_IBT | GNU_PROPERTY_X86_FEATURE_1_SHSTK },
	{ EM_AARCH64, GNU_PROPERTY_AARCH64_FEATURE_1_AND,
		GNU_PROPERTY_AARCH64_FEATURE_1_BTI | GNU_PROPERTY_AARCH64_FEATURE_1_PAC
			| 1u << 2 /* GCS */ },
};

static uint64_t image_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

static const struct image_features *image_features_of(const struct isa *isa)
{
	for (size_t i = 0; i < sizeof(image_features) / sizeof(image_features[0]); i++)
		if (image_features[i].machine == isa->elf_machine)
			return image_features + i;
	return NULL;
}

/* ---- buffers ---- */

static int image_map(struct image_buffer *buffer, size_t size)
{
	bool large = size >= IMAGE_HUGE;

	size = image_up(size, IMAGE_HUGE);
	buffer->bytes = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(buffer->bytes)) {
		buffer->bytes = NULL;
		return -ENOMEM;
	}
	buffer->room = size;
	/* Page faults are most of the cost of a large image, and huge pages that of a small one. */
	if (large)
		sys_call(SYS_madvise, buffer->bytes, size, MADV_HUGEPAGE);
	return 0;
}

/* Room for @size bytes at the end of a part. They are zero unless written before. NULL: no
 * memory, and nothing has changed. */
static void *image_reserve(struct image *im, enum image_part part, size_t size)
{
	struct image_buffer *buffer = im->parts + part;

	if (buffer->room - im->used[part] < size) {
		size_t room = image_up(2 * buffer->room + size, IMAGE_HUGE);
		void *moved = (void *)sys_call(
			SYS_mremap, buffer->bytes, buffer->room, room, MREMAP_MAYMOVE);

		if (sys_failed(moved))
			return NULL;
		buffer->bytes = moved;
		buffer->room = room;
	}
	return buffer->bytes + im->used[part];
}

static void *image_append(struct image *im, enum image_part part, size_t size)
{
	void *at = image_reserve(im, part, size);

	if (at)
		im->used[part] += size;
	return at;
}

/* Returns the string's offset; 0: no memory. */
static uint32_t image_string(struct image *im, const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix) + 1;
	uint32_t offset = (uint32_t)im->used[IMAGE_STRINGS];
	char *s = image_append(im, IMAGE_STRINGS, n + m);

	if (!s)
		return 0;
	memcpy(s, name, n);
	memcpy(s + n, suffix, m);
	return offset;
}

/* ---- what a piece of code needs: symbols and unwind tables ---- */

/* @start: offset from the image's first byte. */
static int image_symbol(struct image *im, unsigned bind, const char *name, const char *suffix,
	uint64_t start, uint64_t size)
{
	uint32_t string = image_string(im, name, suffix);
	Elf64_Sym *sym = image_append(
		im, bind == STB_LOCAL ? IMAGE_LOCALS : IMAGE_GLOBALS, sizeof(*sym));

	if (!string || !sym)
		return -ENOMEM;
	*sym = (Elf64_Sym){
		.st_name = string,
		.st_info = (unsigned char)ELF64_ST_INFO(bind, STT_FUNC),
		.st_shndx = SECTION_TEXT,
		.st_value = im->base + start,
		.st_size = size,
	};
	return 0;
}

/* The FDE of a range of the code that starts at offset @start of the image. */
static int image_frame(struct image *im, uint64_t start, const struct isa_range *range)
{
	size_t size = image_up(sizeof(struct image_fde) + range->cfi_len, 4);
	size_t offset = im->used[IMAGE_FRAMES];
	struct image_fde *fde = image_append(im, IMAGE_FRAMES, size);
	struct image_index *index = image_append(im, IMAGE_INDEX, sizeof(*index));

	if (!fde || !index)
		return -ENOMEM;
	*fde = (struct image_fde){
		.length = (uint32_t)size - 4,
		.cie = (uint32_t)(offset + 4 - im->cie[range->cie]),
		.start = (int32_t)(start + range->start),
		.size = range->size,
	};
	memcpy(fde + 1, range->cfi, range->cfi_len);
	memset((uint8_t *)(fde + 1) + range->cfi_len, 0, /* DW_CFA_nop */
		size - sizeof(*fde) - range->cfi_len);
	*index = (struct image_index){ fde->start, (int32_t)offset };
	return 0;
}

static bool image_ranges_ok(const struct isa_range *ranges, uint32_t n, uint32_t size)
{
	for (uint32_t i = 0; i < n; i++)
		if (ranges[i].start > size || ranges[i].size > size - ranges[i].start
			|| ranges[i].cfi_len > ISA_CFI_MAX || ranges[i].cie >= CIE_COUNT)
			return false;
	return true;
}

static int image_frames(
	struct image *im, uint64_t start, const struct isa_range *ranges, uint32_t n)
{
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++)
		err = image_frame(im, start, ranges + i);
	return err;
}

static int image_cie(struct image *im, enum isa_cie which, uint64_t root)
{
	const char *augmentation = which == CIE_DETOUR ? "zPR" : "zR";
	uint8_t *start = image_reserve(im, IMAGE_FRAMES, IMAGE_CIE_MAX), *p = start + 8;
	size_t size = strlen(augmentation) + 1;
	uint64_t personality = im->common.base + im->common.personality;
	uint32_t length;

	if (!start)
		return -ENOMEM;
	memset(start, 0, IMAGE_CIE_MAX);
	*p++ = 1; /* version */
	memcpy(p, augmentation, size);
	p += size;
	*p++ = im->isa->elf_machine == EM_X86_64 ? 1 : 4; /* code alignment */
	*p++ = 0x78;					  /* data alignment: -8 */
	*p++ = im->isa->ra_column;
	if (which == CIE_DETOUR) {
		*p++ = 1 + 8 + 1;
		*p++ = EH_ABSPTR;
		memcpy(p, &personality, 8);
		p += 8;
	} else {
		*p++ = 1;
	}
	*p++ = EH_PCREL_SDATA4;
	p += im->isa->cie(which, root, p, (size_t)(start + IMAGE_CIE_MAX - p));

	length = (uint32_t)image_up((size_t)(p - start), 4) - 4;
	memcpy(start, &length, 4);
	im->cie[which] = (uint32_t)im->used[IMAGE_FRAMES];
	im->used[IMAGE_FRAMES] += length + 4;
	return 0;
}

static int image_common_symbols(struct image *im)
{
	const struct isa_common *c = &im->common;
	const struct {
		const char *name;
		uint32_t at;
	} entries[] = {
		{ "ftr.slow_entry", c->slow_entry },
		{ "ftr.slow_exit", c->slow_exit },
		{ "ftr.pad", c->pad },
		{ "ftr.personality", c->personality },
	};
	int err = 0;

	/* Each ends where the next one starts. */
	for (int i = 0; i < 4 && !err; i++) {
		uint32_t end = c->size;

		for (int j = 0; j < 4; j++)
			if (entries[j].at > entries[i].at && entries[j].at < end)
				end = entries[j].at;
		err = image_symbol(im, STB_LOCAL, entries[i].name, "",
			im->text_start + entries[i].at, end - entries[i].at);
	}
	return err;
}

/* ---- building ---- */

/* Upper bound of the address space the image takes when finished now. */
static uint64_t image_extent(const struct image *im)
{
	uint64_t symbols = (im->used[IMAGE_LOCALS] + im->used[IMAGE_GLOBALS]) / sizeof(Elf64_Sym);
	uint64_t data = symbols * (sizeof(Elf64_Sym) + 4) + im->used[IMAGE_STRINGS]
		+ im->used[IMAGE_INDEX] + im->used[IMAGE_FRAMES] + IMAGE_SMALL;

	return image_up(im->used[IMAGE_TEXT], im->page) + image_up(data, im->page) + im->page;
}

/* Account for code that is in place, and see that the next detour has room. What a refused detour may
 * have left behind the code goes: zeros are no instruction. */
static int image_keep(struct image *im, uint64_t size)
{
	size_t end = im->used[IMAGE_TEXT] + size;

	im->used[IMAGE_TEXT] = image_up(end, IMAGE_ALIGN);
	memset(im->parts[IMAGE_TEXT].bytes + end, 0, im->used[IMAGE_TEXT] - end);
	if (image_extent(im) > im->room)
		return -ENOSPC;
	return image_reserve(im, IMAGE_TEXT, im->isa->detour_max) ? 0 : -ENOMEM;
}

static int image_start(struct image *im, uint64_t root, const struct isa_env *env)
{
	struct isa_range ranges[4];
	char soname[40];
	uint32_t n;
	int err = 0;

	im->text_start = (uint32_t)image_up(
		sizeof(Elf64_Ehdr) + IMAGE_PHDRS * sizeof(Elf64_Phdr), 64);
	im->used[IMAGE_TEXT] = im->text_start;
	if (!image_reserve(im, IMAGE_TEXT, im->isa->common_max)
		|| !image_append(im, IMAGE_LOCALS, sizeof(Elf64_Sym))
		|| !image_append(im, IMAGE_STRINGS, 1))
		return -ENOMEM;
	n = im->isa->emit_common(env, im->base + im->text_start,
		im->parts[IMAGE_TEXT].bytes + im->text_start, &im->common, ranges);
	if (!image_ranges_ok(ranges, n, im->common.size))
		return -EINVAL;
	str_print(soname, sizeof(soname), "ftr-%lx.detours", (unsigned long)im->base);
	im->soname = image_string(im, soname, "");
	for (int which = 0; which < CIE_COUNT && !err; which++)
		err = image_cie(im, which, root);
	if (!err)
		err = image_frames(im, im->text_start, ranges, n);
	if (!err)
		err = image_common_symbols(im);
	if (!err)
		err = image_keep(im, im->common.size);
	return err;
}

int image_begin(struct image *im, const struct isa *isa, uint64_t base, size_t room, size_t page,
	uint64_t root, const struct isa_env *env, size_t max_detours)
{
	/* What a detour usually takes of each part; the text ends up holding all. */
	static const uint16_t usual[IMAGE_PARTS] = { 832, 256, 16, 48, 24, 160 };
	int err = 0;

	*im = (struct image){ .isa = isa, .base = base, .room = room, .page = page };
	if (im->room > IMAGE_ROOM_MAX)
		im->room = IMAGE_ROOM_MAX;
	if (!page || (page & (page - 1)) || !base || (base & (page - 1)))
		return -EINVAL;
	if (max_detours > im->room / IMAGE_ALIGN)
		max_detours = im->room / IMAGE_ALIGN;
	for (int part = 0; part < IMAGE_PARTS && !err; part++)
		err = image_map(im->parts + part, (max_detours + 1) * usual[part]);
	if (!err)
		err = image_start(im, root, env);
	if (err)
		image_free(im);
	return err;
}

const struct isa_common *image_common(const struct image *im)
{
	return &im->common;
}

uint64_t image_next(const struct image *im, uint8_t **out)
{
	*out = im->parts[IMAGE_TEXT].bytes + im->used[IMAGE_TEXT];
	return im->base + im->used[IMAGE_TEXT];
}

/* valgrind does what such names of any library's symbols say: replace or wrap functions, or be told. */
static bool is_order(const char *name)
{
	return str_starts(name, "_vgr") || str_starts(name, "_vgw") || str_starts(name, "_vgn");
}

int image_add(struct image *im, const struct isa_detour *d, const char *name, uint64_t fallback)
{
	uint64_t start = im->used[IMAGE_TEXT];
	size_t before[IMAGE_PARTS];
	char made_up[24];
	int err;

	if (d->size > im->isa->detour_max || d->ret > d->size || d->body > d->size
		|| d->nranges > 2 || !image_ranges_ok(d->ranges, d->nranges, d->size))
		return -EINVAL;
	if (!name || !*name || is_order(name)) {
		str_print(made_up, sizeof(made_up), "sub_%lx", (unsigned long)fallback);
		name = made_up;
	}
	memcpy(before, im->used, sizeof(before));
	/* One symbol for the whole: others inside would mislead debuggers, and double the names. */
	err = image_symbol(im, STB_GLOBAL, name, "@ftr", start, d->size);
	if (!err)
		err = image_frames(im, start, d->ranges, d->nranges);
	if (!err)
		err = image_keep(im, d->size);
	if (err)
		memcpy(im->used, before, sizeof(before));
	return err;
}

/* ---- finishing ---- */

static size_t image_section_names(char *out)
{
	char *p = out;

	*p++ = 0;
	for (int i = 1; i < SECTIONS; i++) {
		size_t n = strlen(image_kinds[i].name) + 1;

		memcpy(p, image_kinds[i].name, n);
		p += n;
	}
	return (size_t)(p - out);
}

/* Give every section its place. Returns the end of the last. */
static uint64_t image_layout(const struct image *im, Elf64_Shdr *shdrs, size_t names_size)
{
	uint64_t symbols = im->used[IMAGE_LOCALS] + im->used[IMAGE_GLOBALS];
	uint64_t sizes[SECTIONS] = {
		[SECTION_TEXT] = im->used[IMAGE_TEXT] - im->text_start,
		[SECTION_PROPERTY] = sizeof(struct image_property),
		[SECTION_BUILD_ID] = sizeof(struct image_build_id),
		[SECTION_HASH] = sizeof(struct image_hash) + symbols / sizeof(Elf64_Sym) * 4,
		[SECTION_DYNSYM] = symbols,
		[SECTION_DYNSTR] = im->used[IMAGE_STRINGS],
		[SECTION_EH_FRAME_HDR] =
			sizeof(struct image_eh_frame_hdr) + im->used[IMAGE_INDEX],
		[SECTION_EH_FRAME] = im->used[IMAGE_FRAMES] + 4,
		[SECTION_DYNAMIC] = 7 * sizeof(Elf64_Dyn),
		[SECTION_SYMTAB] = symbols,
		[SECTION_STRTAB] = im->used[IMAGE_STRINGS],
		[SECTION_SHSTRTAB] = names_size,
	};
	uint64_t end = im->text_start;
	uint32_t name = 1;

	for (int i = 1; i < SECTIONS; i++) {
		const struct image_section_kind *kind = image_kinds + i;
		uint64_t at = image_up(end, kind->new_page ? im->page : kind->align);

		if (kind->same_as)
			at = shdrs[kind->same_as].sh_offset;
		shdrs[i] = (Elf64_Shdr){
			.sh_name = name,
			.sh_type = kind->type,
			.sh_flags = kind->flags,
			.sh_addr = kind->flags & SHF_ALLOC ? im->base + at : 0,
			.sh_offset = at,
			.sh_size = sizes[i],
			.sh_link = kind->link,
			.sh_addralign = kind->align,
			.sh_entsize = kind->entsize,
		};
		if (kind->type == SHT_DYNSYM || kind->type == SHT_SYMTAB)
			shdrs[i].sh_info = (uint32_t)(im->used[IMAGE_LOCALS] / sizeof(Elf64_Sym));
		if (!kind->same_as)
			end = at + sizes[i];
		name += (uint32_t)strlen(kind->name) + 1;
	}
	return end;
}

/* The segment from section @first to the end of section @last. */
static Elf64_Phdr image_segment(const Elf64_Shdr *shdrs, uint32_t type, uint32_t flags, int first,
	int last, uint64_t align)
{
	uint64_t size = shdrs[last].sh_offset + shdrs[last].sh_size - shdrs[first].sh_offset;

	return (Elf64_Phdr){
		.p_type = type,
		.p_flags = flags,
		.p_offset = shdrs[first].sh_offset,
		.p_vaddr = shdrs[first].sh_addr,
		.p_paddr = shdrs[first].sh_addr,
		.p_filesz = size,
		.p_memsz = size,
		.p_align = align,
	};
}

static void image_headers(
	const struct image *im, uint8_t *bytes, const Elf64_Shdr *shdrs, uint64_t shoff)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *phdr = (Elf64_Phdr *)(ehdr + 1);

	*ehdr = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = im->isa->elf_machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(*ehdr),
		.e_shoff = shoff,
		.e_flags = im->isa->elf_flags,
		.e_ehsize = sizeof(*ehdr),
		.e_phentsize = sizeof(*phdr),
		.e_shentsize = sizeof(*shdrs),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTION_SHSTRTAB,
	};
	*phdr = image_segment(
		shdrs, PT_LOAD, PF_R | PF_X, SECTION_TEXT, SECTION_TEXT, im->page);
	phdr->p_filesz += phdr->p_offset; /* the headers come with the text */
	phdr->p_memsz = phdr->p_filesz;
	phdr->p_offset = 0;
	phdr->p_vaddr = phdr->p_paddr = im->base;
	phdr++;
	*phdr++ = image_segment(
		shdrs, PT_LOAD, PF_R, SECTION_PROPERTY, SECTION_EH_FRAME, im->page);
	*phdr++ = image_segment(
		shdrs, PT_LOAD, PF_R | PF_W, SECTION_DYNAMIC, SECTION_DYNAMIC, im->page);
	*phdr++ = image_segment(
		shdrs, PT_DYNAMIC, PF_R | PF_W, SECTION_DYNAMIC, SECTION_DYNAMIC, 8);
	if (image_features_of(im->isa)) {
		*phdr++ = image_segment(
			shdrs, PT_NOTE, PF_R, SECTION_PROPERTY, SECTION_PROPERTY, 8);
		*phdr++ = image_segment(
			shdrs, PT_GNU_PROPERTY, PF_R, SECTION_PROPERTY, SECTION_PROPERTY, 8);
	}
	*phdr++ = image_segment(shdrs, PT_NOTE, PF_R, SECTION_BUILD_ID, SECTION_BUILD_ID, 4);
	*phdr++ = image_segment(
		shdrs, PT_GNU_EH_FRAME, PF_R, SECTION_EH_FRAME_HDR, SECTION_EH_FRAME_HDR, 4);
	/* Without this one the loader makes the program's stack executable. */
	*phdr++ = (Elf64_Phdr){ .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16 };
	ehdr->e_phnum = (uint16_t)(phdr - (Elf64_Phdr *)(ehdr + 1));
}

static void image_property(const struct image *im, uint8_t *at, Elf64_Shdr *shdr)
{
	const struct image_features *features = image_features_of(im->isa);

	if (!features) {
		shdr->sh_type = SHT_NULL;
		return;
	}
	*(struct image_property *)at = (struct image_property){
		.note = { 4, 16, NT_GNU_PROPERTY_TYPE_0 },
		.name = "GNU",
		.type = features->type,
		.size = 4,
		.value = features->value,
	};
}

static void image_dynamic(const struct image *im, Elf64_Dyn *dyn, const Elf64_Shdr *shdrs)
{
	const Elf64_Dyn entries[] = {
		{ DT_SONAME, { im->soname } },
		{ DT_HASH, { shdrs[SECTION_HASH].sh_addr } },
		{ DT_STRTAB, { shdrs[SECTION_DYNSTR].sh_addr } },
		{ DT_SYMTAB, { shdrs[SECTION_DYNSYM].sh_addr } },
		{ DT_STRSZ, { shdrs[SECTION_DYNSTR].sh_size } },
		{ DT_SYMENT, { sizeof(Elf64_Sym) } },
		{ DT_NULL, { 0 } },
	};

	memcpy(dyn, entries, sizeof(entries));
}

static int image_compare(const void *a, const void *b)
{
	const struct image_index *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

/* Copy .eh_frame and its table to their places, and make offsets relative to where they are. */
static void image_unwind(struct image *im, uint8_t *bytes, const Elf64_Shdr *shdrs)
{
	uint64_t frames_at = shdrs[SECTION_EH_FRAME].sh_offset;
	uint64_t header_at = shdrs[SECTION_EH_FRAME_HDR].sh_offset;
	struct image_index *index = (struct image_index *)im->parts[IMAGE_INDEX].bytes;
	size_t n = im->used[IMAGE_INDEX] / sizeof(*index);

	for (size_t i = 0; i < n; i++) {
		uint64_t fde_at = frames_at + (uint64_t)index[i].fde;
		struct image_fde *fde =
			(struct image_fde *)(im->parts[IMAGE_FRAMES].bytes + index[i].fde);

		fde->start -= (int32_t)(fde_at + offsetof(struct image_fde, start));
		index[i].code -= (int32_t)header_at;
		index[i].fde = (int32_t)(fde_at - header_at);
	}
	mem_sort(index, n, sizeof(*index), image_compare);
	*(struct image_eh_frame_hdr *)(bytes + header_at) = (struct image_eh_frame_hdr){
		.version = 1,
		.frame_encoding = EH_PCREL_SDATA4,
		.count_encoding = EH_UDATA4,
		.table_encoding = EH_TABLE,
		.frame = (int32_t)(frames_at
			- (header_at + offsetof(struct image_eh_frame_hdr, frame))),
		.count = (uint32_t)n,
	};
	memcpy(bytes + header_at + sizeof(struct image_eh_frame_hdr), index,
		im->used[IMAGE_INDEX]);
	memcpy(bytes + frames_at, im->parts[IMAGE_FRAMES].bytes, im->used[IMAGE_FRAMES]);
	/* Four zero bytes end the section. */
}

/*
 * An identifier of the contents for debuggers and profilers, which cache by it; not meant to
 * resist anybody. Four lanes, as one would wait for its multiplication.
 */
static void image_identify(const uint8_t *bytes, size_t size, uint8_t id[20])
{
	static const uint64_t prime = 0x9e3779b97f4a7c15ull;
	uint64_t lanes[4] = { size, 1, 2, 3 }, words[4];

	for (size_t at = 0; at + sizeof(words) <= size; at += sizeof(words)) {
		__builtin_memcpy(words, bytes + at, sizeof(words));
		for (int i = 0; i < 4; i++) {
			lanes[i] = (lanes[i] ^ words[i]) * prime;
			lanes[i] ^= lanes[i] >> 29;
		}
	}
	for (int i = 0; i < 8; i++) /* let every lane reach every other */
		lanes[i & 3] = (lanes[i & 3] ^ (lanes[(i + 1) & 3] >> 17)) * prime;
	lanes[2] ^= lanes[3];
	memcpy(id, lanes, 20);
}

/* Everything that is copied or computed once the layout is known. */
static void image_fill(struct image *im, uint8_t *bytes, Elf64_Shdr *shdrs)
{
	uint64_t locals_size = im->used[IMAGE_LOCALS];
	uint8_t *symbols = bytes + shdrs[SECTION_DYNSYM].sh_offset;

	image_property(im, bytes + shdrs[SECTION_PROPERTY].sh_offset,
		shdrs + SECTION_PROPERTY);
	*(struct image_hash *)(bytes + shdrs[SECTION_HASH].sh_offset) = (struct image_hash){
		.nbucket = 1,
		.nchain = (uint32_t)(shdrs[SECTION_DYNSYM].sh_size / sizeof(Elf64_Sym)),
	};
	memcpy(symbols, im->parts[IMAGE_LOCALS].bytes, locals_size);
	memcpy(symbols + locals_size, im->parts[IMAGE_GLOBALS].bytes, im->used[IMAGE_GLOBALS]);
	memcpy(bytes + shdrs[SECTION_DYNSTR].sh_offset, im->parts[IMAGE_STRINGS].bytes,
		im->used[IMAGE_STRINGS]);
	image_unwind(im, bytes, shdrs);
	image_dynamic(im, (Elf64_Dyn *)(bytes + shdrs[SECTION_DYNAMIC].sh_offset), shdrs);
}

int image_finish(struct image *im, const void **bytes, size_t *size)
{
	char names[SECTIONS * sizeof(image_kinds[0].name)];
	Elf64_Shdr shdrs[SECTIONS] = { { 0 } };
	size_t names_size = image_section_names(names);
	uint64_t end = image_layout(im, shdrs, names_size);
	uint64_t shoff = image_up(end, 8);
	struct image_build_id *build_id;
	uint8_t *out;

	*size = shoff + sizeof(shdrs);
	/* A detour that was written and not added may have left something. */
	memset(im->parts[IMAGE_TEXT].bytes + im->used[IMAGE_TEXT], 0, im->isa->detour_max);
	if (!image_reserve(im, IMAGE_TEXT, *size - im->used[IMAGE_TEXT]))
		return -ENOMEM;
	out = im->parts[IMAGE_TEXT].bytes;
	*bytes = out;
	image_fill(im, out, shdrs);
	image_headers(im, out, shdrs, shoff);
	memcpy(out + shdrs[SECTION_SHSTRTAB].sh_offset, names, names_size);
	memcpy(out + shoff, shdrs, sizeof(shdrs));
	build_id = (struct image_build_id *)(out + shdrs[SECTION_BUILD_ID].sh_offset);
	*build_id = (struct image_build_id){
		.note = { 4, sizeof(build_id->id), NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	image_identify(out, *size, build_id->id);
	return 0;
}

void image_free(struct image *im)
{
	for (int part = 0; part < IMAGE_PARTS; part++)
		if (im->parts[part].bytes)
			sys_munmap(im->parts[part].bytes, im->parts[part].room);
	*im = (struct image){ 0 };
}

/* ---- out of memory, into a file, into the process ---- */

/* A write beyond RLIMIT_FSIZE would raise a signal, into a memfd too. */
static bool exceeds_limit(size_t size)
{
	uint64_t limit[2]; /* soft, hard */

	return !sys_call(SYS_prlimit64, 0, 1 /* RLIMIT_FSIZE */, 0, limit) && size > limit[0];
}

int image_write(const void *bytes, size_t size, const char *path)
{
	long err;
	int fd;

	if (exceeds_limit(size))
		return -EFBIG;
	fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
	if (fd < 0)
		return fd;
	err = sys_write_all(fd, bytes, size);
	sys_close(fd);
	if (err)
		sys_call(SYS_unlinkat, AT_FDCWD, path, 0);
	return (int)err;
}

/* Move a descriptor to a number that no image had before. */
static int image_fresh_fd(int fd)
{
	static int next = IMAGE_FD_MIN;
	int fresh = (int)sys_call(
		SYS_fcntl, fd, F_DUPFD_CLOEXEC, __atomic_load_n(&next, __ATOMIC_RELAXED));

	if (fresh >= 0)
		__atomic_store_n(&next, fresh + 1, __ATOMIC_RELAXED);
	return fresh;
}

int image_memfd(const void *bytes, size_t size, char path[64])
{
	const unsigned int noexec_seal = 8; /* MFD_NOEXEC_SEAL: only against running it as a program */
	int fd, fresh;
	long err;

	if (exceeds_limit(size))
		return -EFBIG;
	fd = (int)sys_call(SYS_memfd_create, "ftr.detours",
		MFD_CLOEXEC | MFD_ALLOW_SEALING | noexec_seal);
	if (fd == -EINVAL)
		fd = (int)sys_call(
			SYS_memfd_create, "ftr.detours", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return fd;
	err = sys_write_all(fd, bytes, size);
	if (!err)
		err = sys_call(SYS_fcntl, fd, F_ADD_SEALS,
			F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	fresh = err ? (int)err : image_fresh_fd(fd);
	sys_close(fd);
	if (fresh >= 0)
		str_print(path, 64, "/proc/%d/fd/%d", sys_getpid(), fresh);
	return fresh;
}

/* Whether the object with this link map has its first byte at @base. */
static bool image_is_at(const struct link_map *map, uint64_t base)
{
	unsigned char resident;

	return !map->l_addr && (uint64_t)(uintptr_t)map->l_ld - base < IMAGE_ROOM_MAX
		&& !sys_call(SYS_mincore, base, 1, &resident)
		&& !memcmp((const void *)(uintptr_t)base, ELFMAG, SELFMAG);
}

struct image_loader image_loader = { dlopen, dlclose, dlinfo, dlerror };

/* Try what the loader does with a file, to learn which system call it is that fails. */
static int image_try(const char *path)
{
	int fd = sys_open(path, O_RDONLY, 0);
	size_t size = fd < 0 ? 0 : (size_t)sys_call(SYS_lseek, fd, 0, SEEK_END);
	void *text;

	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? fd : 0;
	text = sys_mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	sys_close(fd);
	if (sys_failed(text))
		return (intptr_t)text == -ENOMEM ? -ENOMEM : -EPERM;
	sys_munmap(text, size);
	return 0;
}

bool image_lacks(int err, const char **why)
{
	if (err == -EMFILE || err == -ENFILE)
		*why = "no file descriptor is left";
	else if (err == -ENOMEM)
		*why = "no memory for the detour image";
	else
		return false;
	return true;
}

/* The loader did not open the image. Its words are gone when it is called again. */
static int image_refused(const char *path, const char **why)
{
	static char said[256];
	const char *words = image_loader.error();
	int err = image_try(path);

	if (image_lacks(err, why))
		return err;
	if (err == -EPERM) {
		*why = "new executable memory is not allowed";
		return err;
	}
	str_print(said, sizeof(said), "%s", words ? words : "the loader does not say why");
	*why = said;
	return -ELIBBAD;
}

int image_load(const char *path, uint64_t base, void **handle, const char **why)
{
	struct link_map *map = NULL;

	*handle = image_loader.open(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle)
		return image_refused(path, why);
	if (!image_loader.info(*handle, RTLD_DI_LINKMAP, &map) && image_is_at(map, base))
		return 0;
	image_loader.close(*handle);
	*handle = NULL;
	*why = "the loader put the image at another address";
	return -EADDRNOTAVAIL;
}
