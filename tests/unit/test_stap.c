/* SPDX-License-Identifier: MIT */
/* Notes of static probes, and the descriptions of their arguments for the three CPUs. */
#include "tracer/stap.h"
#include "support_elf.h"
#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>

#define NONE STAP_NO_REGISTER
#define FLOAT STAP_FLOAT_REGISTER

/* what one argument is; the size is negative when it is signed */
struct row {
	uint16_t machine;
	const char *text;
	int size;
	enum stap_kind kind;
	int base, index, scale, shift;
	int64_t value;
	const char *symbol;
	bool low;
};

static const struct row rows[] = {
	{ EM_X86_64, "-4@%edi", -4, STAP_REGISTER, 7, NONE, 1, 0, 0 },
	{ EM_X86_64, "8@%rax", 8, STAP_REGISTER, 0, NONE, 1, 0, 0 },
	{ EM_X86_64, "8@%rsp", 8, STAP_REGISTER, 4, NONE, 1, 0, 0 },
	{ EM_X86_64, "2@%bx", 2, STAP_REGISTER, 3, NONE, 1, 0, 0 },
	{ EM_X86_64, "1@%dl", 1, STAP_REGISTER, 2, NONE, 1, 0, 0 },
	{ EM_X86_64, "1@%sil", 1, STAP_REGISTER, 6, NONE, 1, 0, 0 },
	{ EM_X86_64, "-1@%ch", -1, STAP_REGISTER, 1, NONE, 1, 8, 0 },
	{ EM_X86_64, "8@%r8", 8, STAP_REGISTER, 8, NONE, 1, 0, 0 },
	{ EM_X86_64, "4@%r15d", 4, STAP_REGISTER, 15, NONE, 1, 0, 0 },
	{ EM_X86_64, "1@%r9b", 1, STAP_REGISTER, 9, NONE, 1, 0, 0 },
	{ EM_X86_64, "8f@%xmm3", 8, STAP_REGISTER, FLOAT + 3, NONE, 1, 0, 0 },
	{ EM_X86_64, "4@$5", 4, STAP_CONSTANT, NONE, NONE, 1, 0, 5 },
	{ EM_X86_64, "-4@$-1", -4, STAP_CONSTANT, NONE, NONE, 1, 0, -1 },
	{ EM_X86_64, "8@$0xff", 8, STAP_CONSTANT, NONE, NONE, 1, 0, 255 },
	{ EM_X86_64, "8@$table+16", 8, STAP_CONSTANT, NONE, NONE, 1, 0, 16, "table" },
	{ EM_X86_64, "8@-8(%rbp)", 8, STAP_MEMORY, 5, NONE, 1, 0, -8 },
	{ EM_X86_64, "8@(%rdx)", 8, STAP_MEMORY, 2, NONE, 1, 0, 0 },
	{ EM_X86_64, "4@(%rax,%rcx)", 4, STAP_MEMORY, 0, 1, 1, 0, 0 },
	{ EM_X86_64, "4@12(%r12,%r13,8)", 4, STAP_MEMORY, 12, 13, 8, 0, 12 },
	{ EM_X86_64, "4@table(,%rcx,4)", 4, STAP_MEMORY, NONE, 1, 4, 0, 0, "table" },
	{ EM_X86_64, "8@sym+8(%rip)", 8, STAP_MEMORY, NONE, NONE, 1, 0, 8, "sym" },
	{ EM_X86_64, "8@8+sym(%rip)", 8, STAP_MEMORY, NONE, NONE, 1, 0, 8, "sym" },
	{ EM_X86_64, "8@sym-4(%rip)", 8, STAP_MEMORY, NONE, NONE, 1, 0, -4, "sym" },
	{ EM_X86_64, "8@.LC0.x(%rip)", 8, STAP_MEMORY, NONE, NONE, 1, 0, 0, ".LC0.x" },
	{ EM_X86_64, "%rdi", 8, STAP_REGISTER, 7, NONE, 1, 0, 0 },
	{ EM_X86_64, "-16(%rbp)", 8, STAP_MEMORY, 5, NONE, 1, 0, -16 },
	{ EM_AARCH64, "8@x0", 8, STAP_REGISTER, 0, NONE, 1, 0, 0 },
	{ EM_AARCH64, "-4@w30", -4, STAP_REGISTER, 30, NONE, 1, 0, 0 },
	{ EM_AARCH64, "8@sp", 8, STAP_REGISTER, 31, NONE, 1, 0, 0 },
	{ EM_AARCH64, "8f@d9", 8, STAP_REGISTER, FLOAT + 9, NONE, 1, 0, 0 },
	{ EM_AARCH64, "-4@-1", -4, STAP_CONSTANT, NONE, NONE, 1, 0, -1 },
	{ EM_AARCH64, "8@[x19]", 8, STAP_MEMORY, 19, NONE, 1, 0, 0 },
	{ EM_AARCH64, "8@[sp, 16]", 8, STAP_MEMORY, 31, NONE, 1, 0, 16 },
	{ EM_AARCH64, "4@[x1, #-4]", 4, STAP_MEMORY, 1, NONE, 1, 0, -4 },
	{ EM_AARCH64, "4@[x1,x2]", 4, STAP_MEMORY, 1, 2, 1, 0, 0 },
	{ EM_AARCH64, "8@[x1, x2, lsl 3]", 8, STAP_MEMORY, 1, 2, 8, 0, 0 },
	{ EM_AARCH64, "-4@[sp, 12]", -4, STAP_MEMORY, 31, NONE, 1, 0, 12 },
	{ EM_AARCH64, "8@[x0, #:lo12:s]", 8, STAP_MEMORY, 0, NONE, 1, 0, 0, "s", true },
	{ EM_AARCH64, "8@[x0, :lo12:s+8]", 8, STAP_MEMORY, 0, NONE, 1, 0, 8, "s", true },
	{ EM_AARCH64, "1@w2", 1, STAP_REGISTER, 2, NONE, 1, 0, 0 },
	{ EM_AARCH64, "-8@100000", -8, STAP_CONSTANT, NONE, NONE, 1, 0, 100000 },
	{ EM_AARCH64, "4f@s3", 4, STAP_REGISTER, FLOAT + 3, NONE, 1, 0, 0 },
	{ EM_PPC64, "8@3", 8, STAP_REGISTER, 3, NONE, 1, 0, 0 },
	{ EM_PPC64, "-4@%r31", -4, STAP_REGISTER, 31, NONE, 1, 0, 0 },
	{ EM_PPC64, "4@i5", 4, STAP_CONSTANT, NONE, NONE, 1, 0, 5 },
	{ EM_PPC64, "-4@i-5", -4, STAP_CONSTANT, NONE, NONE, 1, 0, -5 },
	{ EM_PPC64, "8@16(1)", 8, STAP_MEMORY, 1, NONE, 1, 0, 16 },
	{ EM_PPC64, "8@-8(31)", 8, STAP_MEMORY, 31, NONE, 1, 0, -8 },
	{ EM_PPC64, "8@9,10", 8, STAP_MEMORY, 9, 10, 1, 0, 0 },
	{ EM_PPC64, "8@0,10", 8, STAP_MEMORY, NONE, 10, 1, 0, 0 },
	{ EM_PPC64, "4@9", 4, STAP_REGISTER, 9, NONE, 1, 0, 0 },
	{ EM_PPC64, "8@%r9", 8, STAP_REGISTER, 9, NONE, 1, 0, 0 },
	{ EM_PPC64, "-4@112(1)", -4, STAP_MEMORY, 1, NONE, 1, 0, 112 },
	{ EM_PPC64, "-8@i100000", -8, STAP_CONSTANT, NONE, NONE, 1, 0, 100000 },
	{ EM_PPC64, "8f@f2", 8, STAP_REGISTER, FLOAT + 2, NONE, 1, 0, 0 },
	{ EM_PPC64, "4f@%f2", 8, STAP_REGISTER, FLOAT + 2, NONE, 1, 0, 0 }, /* a double there */
	/* not understood */
	{ EM_X86_64, "3@%eax", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@", 0, STAP_UNKNOWN },
	{ EM_X86_64, "@%eax", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@%", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@%r16", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@%raxx", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@8(%rax", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@(%rax,%rcx,9)", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@%fs:8(%rax)", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@8(%rip)", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@a+b(%rip)", 0, STAP_UNKNOWN },
	{ EM_X86_64, "8@%rax%rax", 0, STAP_UNKNOWN },
	{ EM_AARCH64, "8@x31", 0, STAP_UNKNOWN },
	{ EM_AARCH64, "8@[x0, :lo12:]", 0, STAP_UNKNOWN },
	{ EM_AARCH64, "8@[x0, #:lo12:s", 0, STAP_UNKNOWN },
	{ EM_AARCH64, "8@[x0, x1, lsl 9]", 0, STAP_UNKNOWN },
	{ EM_AARCH64, "8@[x0, 8", 0, STAP_UNKNOWN },
	{ EM_AARCH64, "4f@s32", 0, STAP_UNKNOWN },
	{ EM_PPC64, "8@32", 0, STAP_UNKNOWN },
	{ EM_PPC64, "8f@f32", 0, STAP_UNKNOWN },
	{ EM_PPC64, "8@i", 0, STAP_UNKNOWN },
	{ EM_386, "4@%eax", 0, STAP_UNKNOWN },
};

Test(stap, arguments)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = rows + i;
		struct stap_arg args[STAP_ARGS_MAX], *a = args;

		cr_assert_eq(stap_parse(r->machine, r->text, args), 1, "%s", r->text);
		cr_assert_eq(a->kind, r->kind, "%s: kind %u", r->text, a->kind);
		if (r->kind == STAP_UNKNOWN)
			continue;
		cr_assert_eq(a->size, r->size < 0 ? -r->size : r->size, "%s", r->text);
		cr_assert_eq(a->is_signed, r->size < 0, "%s", r->text);
		cr_assert_eq(a->is_float, r->base >= FLOAT && r->base != NONE, "%s", r->text);
		cr_assert_eq(a->base, r->base, "%s: base %u", r->text, a->base);
		cr_assert_eq(a->index, r->index, "%s: index %u", r->text, a->index);
		cr_assert_eq(a->scale, r->scale, "%s", r->text);
		cr_assert_eq(a->shift, r->shift, "%s", r->text);
		cr_assert_eq(a->value, r->value, "%s: value %ld", r->text, (long)a->value);
		cr_assert_eq(!a->symbol, !r->symbol, "%s", r->text);
		cr_assert_eq(a->low, r->low, "%s", r->text);
		cr_assert(!r->symbol || (a->symbol_len == strlen(r->symbol)
			&& !memcmp(a->symbol, r->symbol, a->symbol_len)), "%s", r->text);
	}
}

Test(stap, lists_of_arguments)
{
	struct stap_arg args[STAP_ARGS_MAX];

	cr_assert_eq(stap_parse(EM_X86_64, "", args), 0);
	cr_assert_eq(stap_parse(EM_X86_64, " ", args), 0);
	cr_assert_eq(stap_parse(EM_X86_64, "8@%rdi non#sense -4@8(%rsp) ", args), 3);
	cr_assert_eq(args[1].kind, STAP_UNKNOWN);
	cr_assert_eq(args[2].base, 4);
	cr_assert_eq(stap_parse(EM_AARCH64, "8@[x0, 8] 4@w1", args), 2);
	cr_assert_eq(args[1].base, 1);
	/* as many as there may be, and more */
	cr_assert_eq(stap_parse(EM_X86_64, "1 2 3 4 5 6 7 8 9 10 11 12 13 14", args), 12);
}

Test(stap, values)
{
	static const struct {
		const char *text;
		uint64_t raw;
		int64_t value;
	} values[] = {
		{ "-4@%edi", 0x12345678ffffffff, -1 },
		{ "4@%edi", 0x12345678ffffffff, 0xffffffff },
		{ "-1@%ah", 0x8012, -128 },
		{ "1@%ah", 0x8012, 0x80 },
		{ "-8@%rax", 0x8000000000000000, INT64_MIN },
		{ "-2@4(%rax)", 0x18000, -32768 },
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct stap_arg args[STAP_ARGS_MAX];

		stap_parse(EM_X86_64, values[i].text, args);
		cr_assert_eq(stap_extend(args, values[i].raw), values[i].value, "%s",
			values[i].text);
	}
}

/* ---- notes ---- */

struct note {
	Elf64_Nhdr head;
	char owner[8];
	uint64_t pc, base, semaphore;
	char strings[32];
} __attribute__((packed));

static struct note make_note(uint64_t pc, uint64_t base, uint64_t semaphore, const char *strings,
	uint32_t size)
{
	struct note note = { { 8, (uint32_t)(3 * 8 + size), 3 }, "stapsdt", pc, base, semaphore,
		{ 0 } };

	memcpy(note.strings, strings, size);
	return note;
}
#define NOTE(pc, base, semaphore, strings)                                                         \
	make_note(pc, base, semaphore, strings, sizeof(strings))

/* An ELF file whose .note.stapsdt is the first @size bytes of @notes. */
static void make_file(struct make_elf *make, const struct note *notes, uint64_t size, bool base)
{
	uint64_t offset;

	make_begin(make);
	offset = make_add(make, notes, size);
	make_section(make, ".note.stapsdt", SHT_NOTE, 0, offset, size);
	if (base)
		make_section(make, ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, 0x100, 1);
	make_end(make, true);
}

static unsigned count(const struct make_elf *make, struct stap_probe *last)
{
	struct elffile elf;
	uint64_t at = 0;
	const char *why;
	unsigned n = 0;

	cr_assert(!elffile_parse(&elf, make->bytes, sizeof(make->bytes), &why), "%s", why);
	while (stap_next(&elf, &at, last))
		n++;
	return n;
}

Test(stap, notes)
{
	static struct make_elf make;
	struct note notes[3] = {
		NOTE(0x1234, MAKE_BASE + 0x100, 0x2000, "app\0begin\0-4@%edi 8@%rsi"),
		NOTE(0x1300, MAKE_BASE + 0x100, 0, "app\0end\0"),
	};
	struct stap_probe p;

	make_file(&make, notes, 2 * sizeof(*notes), true);
	/* notes are as long as they say: the strings are in 32 bytes here */
	cr_assert_eq(count(&make, &p), 1);
	notes[0].head.n_descsz = notes[1].head.n_descsz = 24 + 32;
	make_file(&make, notes, sizeof(*notes), true);
	cr_assert_eq(count(&make, &p), 1);
	cr_assert_str_eq(p.provider, "app");
	cr_assert_str_eq(p.name, "begin");
	cr_assert_str_eq(p.args, "-4@%edi 8@%rsi");
	cr_assert_eq(p.addr, 0x1234);
	cr_assert_eq(p.semaphore, 0x2000);
	make_file(&make, notes, 2 * sizeof(*notes), true);
	cr_assert_eq(count(&make, &p), 2);
	cr_assert_str_eq(p.name, "end");
	cr_assert_str_eq(p.args, "");
	cr_assert_eq(p.semaphore, 0);
}

Test(stap, moved_text)
{
	static struct make_elf make;
	struct note note = NOTE(0x1234, MAKE_BASE, 0x2000, "a\0b\0\0\0\0");
	struct stap_probe p;

	make_file(&make, &note, sizeof(note) - 24, true);
	cr_assert_eq(count(&make, &p), 1);
	cr_assert_eq(p.addr, 0x1334);
	cr_assert_eq(p.semaphore, 0x2100);
	make_file(&make, &note, sizeof(note) - 24, false);
	cr_assert_eq(count(&make, &p), 1);
	cr_assert_eq(p.addr, 0x1234);
}

Test(stap, damaged_notes)
{
	static struct make_elf make;
	struct note good = NOTE(1, 2, 3, "a\0b\0c"), bad;
	struct stap_probe p;

	/* cut off anywhere */
	for (uint64_t size = 0; size < sizeof(good.head) + 8 + good.head.n_descsz; size++) {
		make_file(&make, &good, size, false);
		cr_assert_eq(count(&make, &p), 0, "%lu bytes", (unsigned long)size);
	}
	bad = NOTE(1, 2, 3, "a\0b\0c");
	bad.head.n_descsz = 0xffffffff;
	make_file(&make, &bad, sizeof(bad), false);
	cr_assert_eq(count(&make, &p), 0);
	bad.head.n_descsz = 24 + 5; /* the last string does not end */
	make_file(&make, &bad, sizeof(bad), false);
	cr_assert_eq(count(&make, &p), 0);
	bad.head.n_descsz = 23;
	make_file(&make, &bad, sizeof(bad), false);
	cr_assert_eq(count(&make, &p), 0);
	bad = NOTE(1, 2, 3, "a\0b\0c");
	bad.head.n_namesz = 0xfffffffd;
	make_file(&make, &bad, sizeof(bad), false);
	cr_assert_eq(count(&make, &p), 0);
}
