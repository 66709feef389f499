/* SPDX-License-Identifier: MIT */
/*
 * The planner: small functions with the site each must get; and over whole libraries, a check that
 * decodes every instruction and knows nothing of the planner's byte scan.
 */
#define _GNU_SOURCE 1
#include "arch/x86_64/x86.h"
#include "arch/x86_64/decoder.h"
#include "support_module.h"
#include "support_qemu.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TEXT 0x401000u
#define DATA 0x402000u
#define SLOT 0x403000u

#define CODE(text)  .code = text, .size = sizeof(text) - 1
#define FUNCS(...)  .funcs = { __VA_ARGS__ }
#define REFUSED(why) .choice = SITE_REFUSED, .reason = why
#define GETS(what, why, at, n) .choice = what, .reason = why, .offset = at, .len = n
#define PAD8	    "\x0f\x1f\x84\x00\x00\x00\x00\x00"
#define PAD5	    "\x0f\x1f\x44\x00\x00"

struct piece {
	uint8_t start, end, limit; /* offsets in the code; limit 0: the next start or the end */
	bool anonymous;
	int8_t ra; /* a single row: the return address is at ra(%rsp); -1: no rows */
};

struct row {
	const char *name;
	const char *code;
	uint8_t size;
	struct piece funcs[3]; /* end 0: no more */
	uint8_t index;	       /* of the one asked for */
	uint8_t choice, reason;
	uint8_t offset, len; /* len 0: do not care */
	bool entry_only, flags_in;
	uint8_t hop;	/* offset of the padding in the code */
	uint8_t lands;	/* a pointer goes to this offset, if not 0 */
	bool in_data;	/* ... and is known from data only */
	int32_t table[2]; /* offsets of targets from DATA, where they are stored */
	uint8_t keeps[3]; /* of the functions, see struct isa_func */
	uint8_t slot;	  /* of the word at SLOT */
};

static const struct row rows[] = {
	{ .name = "a 5-byte nop",
		CODE("\x0f\x1f\x44\x00\x00\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_NOPS, REASON_NONE, 0, 5) },
	{ .name = "five nops",
		CODE("\x90\x90\x90\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_NOPS, REASON_NONE, 0, 5) },
	{ .name = "nops of 2, 3 and 4",
		CODE("\x66\x90\x0f\x1f\x00\x0f\x1f\x40\x00\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_NOPS, REASON_NONE, 0, 5) },
	{ .name = "endbr64, nops",
		CODE("\xf3\x0f\x1e\xfa\x90\x90\x90\x90\x90\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_NOPS, REASON_NONE, 4, 5) },
	{ .name = "four nops only",
		CODE("\x90\x90\x90\x90\x31\xc0\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 6) },
	{ .name = "pause is no nop",
		CODE("\xf3\x90\x90\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "mov $1,%eax",
		CODE("\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5) },
	{ .name = "jmp rel32",
		CODE("\xe9\x00\x10\x00\x00"),
		FUNCS({ 0, 5, 0, 0, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5) },
	{ .name = "push, mov, sub",
		CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\xc9\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 8) },
	{ .name = "endbr64, push, mov, xor",
		CODE("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x31\xc0\x5d\xc3"),
		FUNCS({ 0, 12, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 4, 6) },
	{ .name = "padding of nops",
		CODE("\x31\xc0\xc3" PAD8),
		FUNCS({ 0, 3, 0, 0, -1 }),
		GETS(SITE_PADDING, REASON_NONE, 0, 3) },
	{ .name = "padding of int3",
		CODE("\xc3\xcc\xcc\xcc\xcc"),
		FUNCS({ 0, 1, 0, 0, -1 }),
		GETS(SITE_PADDING, REASON_NONE, 0, 1) },
	{ .name = "endbr64, padding",
		CODE("\xf3\x0f\x1e\xfa\xc3" PAD8),
		FUNCS({ 0, 5, 0, 0, -1 }),
		GETS(SITE_PADDING, REASON_NONE, 4, 1) },
	{ .name = "padding is something",
		CODE("\x31\xc0\xc3\x01\x02\x03"),
		FUNCS({ 0, 3, 0, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
	{ .name = "padding is run into",
		CODE("\x31\xc0" PAD8),
		FUNCS({ 0, 2, 0, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
	{ .name = "padding is jumped to",
		CODE("\x74\x01\xc3" PAD8),
		FUNCS({ 0, 3, 0, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
	{ .name = "padding too short",
		CODE("\xc3\x90\x90\x90"),
		FUNCS({ 0, 1, 0, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
	{ .name = "padding of 5, one is another's",
		CODE("\xc3\x90\x90\x90\x90\xc3"),
		FUNCS({ 0, 1, 0, 0, -1 }, { 4, 6, 0, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
	{ .name = "padding cut by the limit",
		CODE("\xc3\xcc\xcc\xcc\xcc"),
		FUNCS({ 0, 1, 3, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
	{ .name = "hop ahead",
		CODE("\x31\xc0\xc3\x31\xc0\x31\xd2\xc3" PAD8),
		FUNCS({ 0, 3, 0, 0, -1 }, { 3, 8, 0, 0, -1 }),
		GETS(SITE_HOP, REASON_NONE, 0, 2),
		.hop = 8 },
	{ .name = "hop back",
		CODE("\x31\xc0\x31\xd2\x90\xc3" PAD8 "\x31\xc0\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }, { 14, 17, 0, 0, -1 }),
		GETS(SITE_HOP, REASON_NONE, 0, 2), .index = 1,
		.hop = 6 },
	{ .name = "the padding serves once",
		CODE("\x31\xc0\xc3\x31\xd2\xc3\xc3" PAD8),
		FUNCS({ 0, 3, 0, 0, -1 }, { 3, 6, 0, 0, -1 }, { 6, 7, 0, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
	{ .name = "a jump inside",
		CODE("\x55\x48\x89\xe5\xff\xc0\xeb\xf9\xc3"),
		FUNCS({ 0, 9, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "a jump inside, rel32",
		CODE("\x55\x48\x89\xe5\xff\xc0\xe9\xf6\xff\xff\xff\xc3"),
		FUNCS({ 0, 12, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "a jcc inside, rel32",
		CODE("\x55\x48\x89\xe5\xff\xc0\x0f\x85\xf5\xff\xff\xff\xc3"),
		FUNCS({ 0, 13, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "a loop inside",
		CODE("\x55\x48\x89\xe5\xff\xc0\xe2\xf9\xc3"),
		FUNCS({ 0, 9, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "a jump inside, from elsewhere",
		CODE("\x55\x48\x89\xe5\xff\xc0\xc3\x31\xc0\xeb\xf6"),
		FUNCS({ 0, 7, 0, 0, -1 }, { 7, 11, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "a jump inside, from unknown code",
		CODE("\x55\x48\x89\xe5\xff\xc0\xc3\x31\xc0\xeb\xf6"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "a call inside",
		CODE("\x55\x48\x89\xe5\xff\xc0\xe8\xf6\xff\xff\xff\xc3"),
		FUNCS({ 0, 12, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "a lea of the inside",
		CODE("\x55\x48\x89\xe5\xff\xc0\x48\x8d\x05\xf4\xff\xff\xff\xc3"),
		FUNCS({ 0, 14, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "data read from the inside",
		CODE("\x55\x48\x89\xe5\xff\xc0\x80\x3d\xf4\xff\xff\xff\x07\xc3"),
		FUNCS({ 0, 14, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	/* jmp *DATA(%rip), whose displacement has the bytes of a short jump */
	{ .name = "a PLT entry that looks like a jump inside",
		CODE("\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\xff"
		     "\x25\xeb\x0f\x00\x00\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		     "\x55\x48\x89\xe5\xff\xc0\xc3"),
		FUNCS({ 32, 39, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 6) },
	{ .name = "the same to what is no word of data",
		CODE("\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\xff"
		     "\x25\xeb\x0f\x10\x00\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		     "\x55\x48\x89\xe5\xff\xc0\xc3"),
		FUNCS({ 32, 39, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE) },
	{ .name = "what looks like a jump inside",
		CODE("\x55\x48\x89\xe5\xff\xc0\xb8\xeb\xf8\xeb\xf6\xc3"),
		FUNCS({ 0, 12, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 6) },
	{ .name = "a jump behind the window",
		CODE("\x55\x48\x89\xe5\xff\xc0\xeb\xfe\xc3"),
		FUNCS({ 0, 9, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 6) },
	{ .name = "a jump inside, but behind the hop",
		CODE("\x31\xc0\xff\xc7\xff\xc8\xeb\xfa" PAD8),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_HOP, REASON_NONE, 0, 2),
		.hop = 8 },
	{ .name = "a pointer inside",
		CODE("\x55\x48\x89\xe5\xff\xc0\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE),
		.lands = 1 },
	{ .name = "a pointer inside, found in data",
		CODE("\x55\x48\x89\xe5\xff\xc0\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE),
		.lands = 4, .in_data = true },
	{ .name = "a pointer behind the window",
		CODE("\x55\x48\x89\xe5\xff\xc0\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 6),
		.lands = 6 },
	/* push; mov; lea DATA(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; jmp *%rax */
	{ .name = "a jump table inside",
		CODE("\x55\x48\x89\xe5\x31\xc0\x48\x8d\x15\xf3\x0f\x00\x00\x48\x63\x04"
		     "\xba\x48\x01\xd0\xff\xe0\xc3"),
		FUNCS({ 0, 23, 0, 0, -1 }),
		REFUSED(REASON_JUMP_TABLE),
		.table = { 22 - 0x1000, 4 - 0x1000 } },
	{ .name = "a jump table to the entry",
		CODE("\x55\x48\x89\xe5\x31\xc0\x48\x8d\x15\xf3\x0f\x00\x00\x48\x63\x04"
		     "\xba\x48\x01\xd0\xff\xe0\xc3"),
		FUNCS({ 0, 23, 0, 0, -1 }),
		REFUSED(REASON_LOOP_TO_ENTRY),
		.table = { 22 - 0x1000, 0 - 0x1000 } },
	{ .name = "a jump table behind the window",
		CODE("\x55\x48\x89\xe5\x31\xc0\x48\x8d\x15\xf3\x0f\x00\x00\x48\x63\x04"
		     "\xba\x48\x01\xd0\xff\xe0\xc3"),
		FUNCS({ 0, 23, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 6),
		.table = { 22 - 0x1000, 6 - 0x1000 } },
	{ .name = "a loop to the entry",
		CODE("\xff\xcf\xff\xc0\x75\xfa\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		REFUSED(REASON_LOOP_TO_ENTRY) },
	{ .name = "a loop to behind endbr64",
		CODE("\xf3\x0f\x1e\xfa\xff\xcf\xff\xc0\x75\xfa\xc3"),
		FUNCS({ 0, 11, 0, 0, -1 }),
		REFUSED(REASON_LOOP_TO_ENTRY) },
	{ .name = "a loop to the entry, rel32",
		CODE("\xff\xcf\xff\xc0\x90\xe9\xf6\xff\xff\xff"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		REFUSED(REASON_LOOP_TO_ENTRY) },
	{ .name = "recursion is no loop",
		CODE("\xff\xcf\xff\xc0\x90\xe8\xf6\xff\xff\xff\xc3"),
		FUNCS({ 0, 11, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "a tail call is no loop",
		CODE("\xff\xcf\xff\xc0\x90\xc3\x31\xc0\xeb\xf6"),
		FUNCS({ 0, 6, 0, 0, -1 }, { 6, 10, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "no instruction",
		CODE("\x06\x90\x90\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		REFUSED(REASON_UNDECODABLE) },
	{ .name = "a call that ends the window",
		CODE("\x50\xe8\x00\x10\x00\x00\x58\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 6) },
	{ .name = "a call that returns into the patch",
		CODE("\xff\xd0\x90\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		REFUSED(REASON_NOT_RELOCATABLE) },
	{ .name = "a call to ask where we are",
		CODE("\xe8\x00\x00\x00\x00\x58\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		REFUSED(REASON_NOT_RELOCATABLE) },
	{ .name = "a transaction",
		CODE("\xc7\xf8\x00\x00\x00\x00\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		REFUSED(REASON_NOT_RELOCATABLE) },
	{ .name = "sigreturn",
		CODE("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"),
		FUNCS({ 0, 9, 0, 0, -1 }),
		REFUSED(REASON_SIGNAL_FRAME) },
	{ .name = "sigreturn, short",
		CODE("\xb8\x0f\x00\x00\x00\x0f\x05"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		REFUSED(REASON_SIGNAL_FRAME) },
	{ .name = "reads its return address",
		CODE("\x48\x8b\x04\x24\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 5),
		.entry_only = true },
	{ .name = "the same by its rows",
		CODE("\x48\x8b\x04\x24\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, 0 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 5),
		.entry_only = true },
	{ .name = "reads it behind a push",
		CODE("\x53\x90\x48\x8b\x44\x24\x08\x5b\xc3"),
		FUNCS({ 0, 9, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 7),
		.entry_only = true },
	{ .name = "takes its address by rows",
		CODE("\x90\x90\x48\x8d\x44\x24\x18\xc3"),
		FUNCS({ 0, 8, 0, 0, 0x18 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 7),
		.entry_only = true },
	{ .name = "lea (%rsp) is a copy of rsp",
		CODE("\x48\x8d\x04\x24\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, 0 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "jc behind a 64-bit shift by 32",
		CODE("\x48\xc1\xe8\x20\x90\x73\x00\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "pops it",
		CODE("\x59\x90\x90\x90\x90\xff\xe1"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 5),
		.entry_only = true },
	{ .name = "pops it, by rows",
		CODE("\x90\x90\x90\x90\x90\x59\xff\xe1"),
		FUNCS({ 0, 8, 0, 0, 0 }),
		GETS(SITE_NOPS, REASON_READS_RETURN, 0, 5),
		.entry_only = true },
	{ .name = "drops it",
		CODE("\x48\x83\xc4\x08\x90\x5b\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 5),
		.entry_only = true },
	{ .name = "pushes and pops",
		CODE("\x53\x90\x31\xc0\x5b\xc3\x90"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "pushes and pops with a single row",
		CODE("\x53\x90\x31\xc0\x5b\xc3\x90"),
		FUNCS({ 0, 6, 0, 0, 0 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "reads its arguments",
		CODE("\x48\x8b\x44\x24\x08\xc3"),
		FUNCS({ 0, 6, 0, 0, 0 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5) },
	{ .name = "reads through r12",
		CODE("\x49\x8b\x04\x24\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, 0 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "calls its own middle, which pops",
		CODE("\xb8\x01\x00\x00\x00\xe8\x01\x00\x00\x00\xf4\x58\xc3"),
		FUNCS({ 0, 13, 0, 0, 0x18 }),
		GETS(SITE_ONE, REASON_READS_RETURN, 0, 5),
		.entry_only = true },
	{ .name = "a fragment",
		CODE("\x85\xff\x90\x90\x0f\x84\x07\x00\x00\x00\xc3\x90\x90\x90\x90\x90"
		     "\x90\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 11, 0, 0, -1 }, { 17, 23, 0, true, -1 }),
		REFUSED(REASON_FRAGMENT), .index = 1 },
	{ .name = "the same with a name",
		CODE("\x85\xff\x90\x90\x0f\x84\x07\x00\x00\x00\xc3\x90\x90\x90\x90\x90"
		     "\x90\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 11, 0, 0, -1 }, { 17, 23, 0, false, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5), .index = 1 },
	{ .name = "the same with its address in data",
		CODE("\x85\xff\x90\x90\x0f\x84\x07\x00\x00\x00\xc3\x90\x90\x90\x90\x90"
		     "\x90\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 11, 0, 0, -1 }, { 17, 23, 0, true, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5), .index = 1,
		.lands = 17 },
	{ .name = "without a name, but aligned",
		CODE("\x85\xff\x90\x90\x0f\x84\x06\x00\x00\x00\xc3\x90\x90\x90\x90\x90"
		     "\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 11, 0, 0, -1 }, { 16, 22, 0, true, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5), .index = 1 },
	{ .name = "without a name, but tail-called",
		CODE("\x85\xff\x90\x90\x90\xe9\x07\x00\x00\x00\x90\x90\x90\x90\x90\x90"
		     "\x90\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }, { 17, 23, 0, true, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5), .index = 1 },
	{ .name = "jumps to what returns twice",
		CODE("\x31\xf6\x0f\x1f\x00\xe9\x00\x00\x00\x00\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }, { 10, 16, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "jumps to it, short",
		CODE("\x31\xf6\x0f\x1f\x00\xeb\x00\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }, { 7, 13, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "jumps to it on a condition",
		CODE("\x31\xf6\x0f\x1f\x00\x85\xc0\x0f\x84\x01\x00\x00\x00\xc3\xb8\x01"
		     "\x00\x00\x00\xc3"),
		FUNCS({ 0, 14, 0, 0, -1 }, { 14, 20, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "jumps to it over another",
		CODE("\x31\xf6\x0f\x1f\x00\xe9\x00\x00\x00\x00\xe9\x00\x00\x00\x00\xb8"
		     "\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }, { 10, 15, 0, 0, -1 }, { 15, 21, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .keeps = { [2] = REASON_RETURNS_TWICE } },
	{ .name = "jumps to it over another behind it",
		CODE("\x31\xc0\x90\x90\x90\xc3\x31\xf6\x0f\x1f\x00\xeb\xf3\x31\xf6\x0f"
		     "\x1f\x00\xeb\xf2"),
		FUNCS({ 0, 6, 0, 0, -1 }, { 6, 13, 0, 0, -1 }, { 13, 20, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.index = 2, .entry_only = true, .keeps = { [0] = REASON_RETURNS_TWICE } },
	{ .name = "jumps into its cold part",
		CODE("\x31\xf6\x0f\x1f\x00\xe9\x05\x00\x00\x00\xb8\x01\x00\x00\x00\x90"
		     "\xe9\x00\x00\x00\x00\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }, { 10, 21, 0, 0, -1 }, { 21, 27, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .keeps = { [2] = REASON_RETURNS_TWICE } },
	{ .name = "jumps to what reads its return address",
		CODE("\x31\xf6\x0f\x1f\x00\xe9\x00\x00\x00\x00\x48\x8b\x04\x24\x90\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }, { 10, 16, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 0),
		.entry_only = true },
	{ .name = "jumps to a retpoline",
		CODE("\x31\xf6\x0f\x1f\x00\xe9\x00\x00\x00\x00\xe8\x01\x00\x00\x00\xf4"
		     "\x48\x89\x04\x24\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }, { 10, 21, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.keeps = { [1] = REASON_READS_RETURN } },
	{ .name = "runs into what returns twice",
		CODE("\x31\xf6\x0f\x1f\x00\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 5, 0, 0, -1 }, { 5, 11, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "runs into it over nops",
		CODE("\x31\xf6\x0f\x1f\x00\x0f\x1f\x44\x00\x00\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 5, 0, 0, -1 }, { 10, 16, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "does not run over int3",
		CODE("\x31\xf6\x0f\x1f\x00\xcc\xcc\xcc\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 5, 0, 0, -1 }, { 8, 14, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "calls before it",
		CODE("\x31\xf6\x0f\x1f\x00\xe8\x00\x10\x00\x00\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }, { 10, 16, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "calls it",
		CODE("\x31\xf6\x0f\x1f\x00\xe8\x01\x00\x00\x00\xc3\xb8\x01\x00\x00\x00"
		     "\xc3\x0f\x1f\x84\x00\x00\x00\x00\x00\x0f\x1f\x84\x00\x00\x00\x00"
		     "\x00"),
		FUNCS({ 0, 11, 0, 0, -1 }, { 11, 17, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "has a constant that looks like a jump to it",
		CODE("\xb8\xe9\x02\x00\x00\x00\xc0\xc3\xb8\x01\x00\x00\x00\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }, { 8, 14, 0, 0, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 0),
		.keeps = { [1] = REASON_RETURNS_TWICE } },
	{ .name = "jumps to it through a word",
		CODE("\x31\xf6\x0f\x1f\x00\xff\x25\xf5\x1f\x00\x00"),
		FUNCS({ 0, 11, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .slot = REASON_RETURNS_TWICE },
	{ .name = "the same with bnd",
		CODE("\x31\xf6\x0f\x1f\x00\xf2\xff\x25\xf4\x1f\x00\x00"),
		FUNCS({ 0, 12, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_RETURNS_TWICE, 0, 0),
		.entry_only = true, .slot = REASON_RETURNS_TWICE },
	{ .name = "jumps through another word",
		CODE("\x31\xf6\x0f\x1f\x00\xff\x25\xfd\x1f\x00\x00"),
		FUNCS({ 0, 11, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.slot = REASON_RETURNS_TWICE },
	{ .name = "calls it through a word",
		CODE("\x31\xf6\x0f\x1f\x00\xff\x15\xf5\x1f\x00\x00\xc3"),
		FUNCS({ 0, 12, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.slot = REASON_RETURNS_TWICE },
	{ .name = "jumps to its stub",
		CODE("\x31\xf6\x0f\x1f\x00\xe9\x00\x00\x00\x00\xff\x25\xf0\x1f\x00\x00"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 0),
		.entry_only = true, .slot = REASON_READS_RETURN },
	{ .name = "jumps to its stub, endbr64 and bnd",
		CODE("\x31\xf6\x0f\x1f\x00\xe9\x00\x00\x00\x00\xf3\x0f\x1e\xfa\xf2\xff"
		     "\x25\xeb\x1f\x00\x00"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 0),
		.entry_only = true, .slot = REASON_READS_RETURN },
	{ .name = "jumps to a stub behind it",
		CODE("\x90\xff\x25\xf9\x1f\x00\x00\xff\x25\xfb\x1f\x00\x00\x31\xf6\x0f"
		     "\x1f\x00\xe9\xf0\xff\xff\xff"),
		FUNCS({ 0, 1, 0, 0, -1 }, { 13, 23, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.index = 1, .slot = REASON_READS_RETURN },
	{ .name = "adds to its return address",
		CODE("\x48\x83\x04\x24\x02\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_ONE, REASON_READS_RETURN, 0, 0),
		.entry_only = true },
	{ .name = "replaces it",
		CODE("\x48\x89\x04\x24\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 0),
		.entry_only = true },
	{ .name = "swaps it",
		CODE("\x48\x87\x04\x24\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 0),
		.entry_only = true },
	{ .name = "adds to it by its frame",
		CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x48\x83\x45\x08\x02\xc9\xc3"),
		FUNCS({ 0, 15, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 0),
		.entry_only = true },
	{ .name = "has another local there",
		CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x48\x83\x45\xf8\x02\xc9\xc3"),
		FUNCS({ 0, 15, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "adds to it behind a branch",
		CODE("\x53\x85\xff\x90\x90\x75\x02\x5b\xc3\x5b\x48\x83\x04\x24\x02\xc3"),
		FUNCS({ 0, 16, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_READS_RETURN, 0, 0),
		.entry_only = true },
	{ .name = "adds to it behind lea",
		CODE("\x48\x8d\x64\x24\xf8\x90\x48\x83\x44\x24\x08\x02\x48\x8d\x64\x24"
		     "\x08\xc3"),
		FUNCS({ 0, 18, 0, 0, -1 }),
		GETS(SITE_ONE, REASON_READS_RETURN, 0, 0),
		.entry_only = true },
	{ .name = "aligns its stack",
		CODE("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xe0\x41\xff\x72\xf8\x55\x48\x89"
		     "\xe5\xc9\xc3"),
		FUNCS({ 0, 19, 0, 0, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 0) },
	{ .name = "aligns its stack, by rows",
		CODE("\x4c\x8d\x54\x24\x08\x48\x83\xe4\xe0\x41\xff\x72\xf8\x55\x48\x89"
		     "\xe5\xc9\xc3"),
		FUNCS({ 0, 19, 0, 0, 0 }),
		GETS(SITE_ONE, REASON_NONE, 0, 0) },
	{ .name = "cut off by its end",
		CODE("\x48\xb8\x01\x02\xc3"),
		FUNCS({ 0, 5, 0, 0, -1 }),
		REFUSED(REASON_UNDECODABLE) },
	{ .name = "nothing but endbr64",
		CODE("\xf3\x0f\x1e\xfa" PAD8),
		FUNCS({ 0, 4, 0, 0, -1 }),
		REFUSED(REASON_TOO_SHORT) },
};

/* Of these it is told whether flags that come in are kept. */
static const struct row flag_rows[] = {
	{ .name = "adc at the entry",
		CODE("\x48\x11\xd8\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5),
		.flags_in = true },
	{ .name = "jc behind moves",
		CODE("\x48\x89\xf8\x73\x02\x31\xc0\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5),
		.flags_in = true },
	{ .name = "jc behind inc, which keeps the carry",
		CODE("\xff\xc0\x90\x73\x02\x31\xc0\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5),
		.flags_in = true },
	{ .name = "jc behind a shift by %cl",
		CODE("\xd3\xe0\x90\x73\x02\x31\xc0\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5),
		.flags_in = true },
	{ .name = "jc behind cmp",
		CODE("\x39\xf7\x90\x73\x02\x31\xc0\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 5) },
	{ .name = "jc behind a call",
		CODE("\xe8\x00\x10\x00\x00\x73\x02\x31\xc0\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_ONE, REASON_NONE, 0, 5) },
	{ .name = "jc behind a jump to it",
		CODE("\xeb\x03\x31\xc0\xc3\x73\xfb\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		REFUSED(REASON_JUMP_INSIDE),
		.flags_in = true },
	{ .name = "jumps to adc",
		CODE("\x48\x89\xf8\x48\x89\xf3\xeb\x00\x48\x11\xd8\x90\x90\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }, { 8, 14, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "jumps to what jumps to adc",
		CODE("\x48\x89\xf8\x48\x89\xf3\xeb\x00\x48\x89\xf8\x48\x89\xf3\xeb\x00"
		     "\x48\x11\xd8\x90\x90\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }, { 8, 16, 0, 0, -1 }, { 16, 22, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "runs into adc",
		CODE("\x48\x89\xf8\x48\x89\xf3\x48\x11\xd8\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }, { 6, 12, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "calls adc first",
		CODE("\x48\x89\xf8\x48\x89\xf3\xe8\x01\x00\x00\x00\xc3\x48\x11\xd8\x90"
		     "\x90\xc3"),
		FUNCS({ 0, 12, 0, 0, -1 }, { 12, 18, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "tests and calls adc",
		CODE("\x48\x89\xf8\x48\x89\xf3\x85\xc0\xe8\x01\x00\x00\x00\xc3\x48\x11"
		     "\xd8\x90\x90\xc3"),
		FUNCS({ 0, 14, 0, 0, -1 }, { 14, 20, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "jumps to what returns them",
		CODE("\x48\x89\xf8\x48\x89\xf3\xeb\x00\x48\x89\xfa\x48\x89\xd1\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }, { 8, 15, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "jumps to what writes them",
		CODE("\x48\x89\xf8\x48\x89\xf3\xeb\x00\x48\x89\xfa\x85\xff\x90\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }, { 8, 15, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "jumps over an endbr64 to what writes them",
		CODE("\x48\x89\xf8\x48\x89\xf3\xeb\x04\xf3\x0f\x1e\xfa\x85\xff\x90\x90"
		     "\x90\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }, { 8, 18, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "jumps into the middle of another function",
		CODE("\x48\x89\xf8\x48\x89\xf3\xeb\x05\x85\xff\x90\x90\x90\x85\xff\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }, { 8, 16, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "jumps to unknown code",
		CODE("\x48\x89\xf8\xe9\x00\x10\x00\x00"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "tests and jumps to unknown code",
		CODE("\x85\xff\x48\x89\xf8\xe9\x00\x10\x00\x00"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "returns them",
		CODE("\x48\x8b\x07\x48\x89\xc2\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "returns them behind an endbr64, pops arguments",
		CODE("\xf3\x0f\x1e\xfa\x48\x8d\x47\x07\xc2\x10\x00"),
		FUNCS({ 0, 11, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 4, 0),
		.flags_in = true },
	{ .name = "returns its own",
		CODE("\x48\x8b\x07\x48\x01\xf8\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "returns the carry behind dec",
		CODE("\x48\x8b\x07\xff\xc8\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "writes them piece by piece",
		CODE("\x48\x8b\x07\xff\xc8\xf8\xc3"),
		FUNCS({ 0, 7, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "jrcxz to a return",
		CODE("\x48\x89\xf8\xe3\x02\x31\xc0\xc3"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "jz behind dec to a return",
		CODE("\x48\x89\xf8\xff\xcf\x74\x02\x31\xc0\xc3"),
		FUNCS({ 0, 10, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "jumps to its own return",
		CODE("\x48\x89\xf8\x48\x89\xf3\xeb\x02\x31\xc0\xc3"),
		FUNCS({ 0, 11, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "returns them behind many moves",
		CODE("\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89"
		     "\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48"
		     "\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8\x48\x89\xf8"
		     "\xc3"),
		FUNCS({ 0, 52, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "runs into what returns them",
		CODE("\x48\x89\xf8\x48\x89\xf3\x48\x89\xfa\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }, { 6, 12, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "runs into what writes them",
		CODE("\x48\x89\xf8\x48\x89\xf3\x48\x01\xfa\x90\x90\xc3"),
		FUNCS({ 0, 6, 0, 0, -1 }, { 6, 12, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
	{ .name = "runs into nothing",
		CODE("\x48\x89\xf8\x48\x89\xf3"),
		FUNCS({ 0, 6, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "calls what returns them",
		CODE("\x48\x89\xf8\x48\x89\xf3\xe8\x01\x00\x00\x00\xc3\x48\x89\xfa\x90"
		     "\x90\xc3"),
		FUNCS({ 0, 12, 0, 0, -1 }, { 12, 18, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0),
		.flags_in = true },
	{ .name = "does not return",
		CODE("\x48\x89\xf8\x48\x89\xf3\x0f\x0b"),
		FUNCS({ 0, 8, 0, 0, -1 }),
		GETS(SITE_SEVERAL, REASON_NONE, 0, 0) },
};

static void plan_row(const struct row *row, struct isa_site *site)
{
	/* exactly as long as the code: ASan sees what goes beyond */
	uint8_t *code = memcpy(malloc(row->size), row->code, row->size);
	struct isa_row unwind[3];
	struct isa_func funcs[3];
	uint64_t words[1] = { row->lands ? TEXT + row->lands : 0 };
	struct arena arena = { 0 };
	struct isa_text text = { code, TEXT, row->size };
	struct isa_text datas[] = {
		{ (const uint8_t *)row->table, DATA, sizeof(row->table) },
		{ (const uint8_t *)words, DATA + 0x100, sizeof(words) },
	};
	struct isa_slot slot = { SLOT, row->slot };
	struct isa_module module = { .isa = &isa_x86_64, .arena = &arena, .texts = &text,
		.slots = &slot, .nslots = row->slot != 0,
		.ntexts = 1, .funcs = funcs, .datas = datas, .ndatas = 2,
		.pointers = row->in_data ? NULL : words, .npointers = row->lands != 0 };

	while (module.nfuncs < 3 && row->funcs[module.nfuncs].end) {
		const struct piece *p = &row->funcs[module.nfuncs];
		size_t next = module.nfuncs + 1;
		uint8_t limit = next < 3 && p[1].end ? p[1].start : row->size;

		if (p->limit)
			limit = p->limit;
		unwind[module.nfuncs] = (struct isa_row){ 0, p->ra, 7 };
		funcs[module.nfuncs] = (struct isa_func){ .start = TEXT + p->start,
			.end = TEXT + p->end, .limit = TEXT + limit, .anonymous = p->anonymous,
			.keeps = row->keeps[module.nfuncs],
			.rows = p->ra < 0 ? NULL : &unwind[module.nfuncs], .nrows = p->ra >= 0 };
		module.nfuncs = next;
	}
	cr_assert_eq(module.isa->scan(&module), 0);
	module.isa->site(&module, row->index, site);
	arena_free(&arena);
	free(code);
}

static void check_row(const struct row *row, struct isa_site *site)
{
	plan_row(row, site);
	cr_expect(site->choice == row->choice && site->reason == row->reason, "%s: %s, %s",
		row->name, isa_choice_name(site->choice), isa_reason_name(site->reason));
	cr_expect(!row->len || (site->len == row->len && site->offset == row->offset),
		"%s: window at %d, %d bytes", row->name, site->offset, site->len);
	cr_expect_eq(site->entry_only, row->entry_only, "%s: entry only", row->name);
	cr_expect_eq(site->hop, row->hop ? TEXT + row->hop : 0, "%s: hop to %#lx", row->name,
		site->hop);
}

Test(site, small_functions)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct isa_site site;

		check_row(&rows[i], &site);
	}
}

Test(site, flags_that_come_in)
{
	for (size_t i = 0; i < sizeof(flag_rows) / sizeof(flag_rows[0]); i++) {
		const struct row *row = &flag_rows[i];
		struct isa_site site;

		check_row(row, &site);
		cr_expect_eq(site.flags_in, row->flags_in, "%s: flags in", row->name);
	}
}

/* ---- whole libraries ---- */

/* For every byte of a text: what may not be there. */
enum { INSIDE = 1, PADDING_USED = 2 };

struct checker {
	const struct isa_module *code;
	const struct isa_text *text;
	uint8_t *marks;
	unsigned int faults;
};

static void mark(struct checker *c, uint64_t addr, size_t len, uint8_t what)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t at = addr + i - c->text->addr;

		if (at >= c->text->size)
			continue;
		cr_expect(!(c->marks[at] & what), "%#lx is used twice", addr + i);
		c->marks[at] |= what;
	}
}

static void mark_site(struct checker *c, size_t index)
{
	const struct isa_func *func = &c->code->funcs[index];
	uint64_t patch;
	struct isa_site site;

	c->code->isa->site(c->code, index, &site);
	patch = func->start + site.offset;
	if (site.choice == SITE_REFUSED)
		return;
	mark(c, patch + 1, (size_t)site.len - 1, INSIDE);
	if (site.choice == SITE_PADDING)
		mark(c, func->end, patch + X86_JUMP_SIZE - func->end, PADDING_USED);
	if (site.choice == SITE_HOP)
		mark(c, site.hop, X86_JUMP_SIZE, PADDING_USED);
	cr_expect(site.choice != SITE_HOP || site.hop - (patch + 2) + 128 < 256,
		"hop out of reach");
	cr_expect(patch + site.len <= func->end, "window beyond the end");
}

/* No direct branch and no address taken may be of a marked byte, and no code may be in padding. */
static void check_function(struct checker *c, const struct isa_func *func)
{
	struct insn insn;

	for (uint64_t addr = func->start; addr < func->end; addr += insn.len) {
		uint64_t at = addr - c->text->addr, target;

		if (at >= c->text->size ||
			!decoder_read(c->text->bytes + at, func->end - addr, &insn))
			return;
		if (c->marks[at] & PADDING_USED)
			c->faults++;
		if (insn.rel_at) {
			target = addr + insn.len + (int64_t)insn.rel;
		} else if (insn.rip_at) {
			int32_t disp;

			memcpy(&disp, c->text->bytes + at + insn.rip_at, 4);
			target = addr + insn.len + (int64_t)disp;
		} else {
			continue;
		}
		at = target - c->text->addr;
		/* Data between functions may look like a branch into the padding of any. */
		if (at < c->text->size && (c->marks[at] & INSIDE ||
			(c->marks[at] && target >= func->end && target < func->limit))) {
			cr_expect_fail("%#lx refers to %#lx", addr, target);
			c->faults++;
		}
	}
}

static void check_text(struct checker *c)
{
	c->marks = calloc(c->text->size, 1);
	for (size_t i = 0; i < c->code->nfuncs; i++)
		mark_site(c, i);
	for (size_t i = 0; i < c->code->nfuncs && c->faults < 10; i++)
		check_function(c, &c->code->funcs[i]);
	free(c->marks);
}

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void report(const char *path, const struct support_module *module, double time)
{
	unsigned int choices[SITE_ISLAND + 1] = { 0 }, reasons[REASON_COUNT] = { 0 };
	unsigned int functions = 0, entry_only = 0;
	char text[512];
	size_t len = 0;

	for (size_t i = 0; i < module->code.nfuncs; i++) {
		struct isa_site site;

		/* what symbols_read() refuses is nobody's function */
		if (module->symbols.list[i].reason &&
			module->symbols.list[i].reason < REASON_RETURNS_TWICE)
			continue;
		functions++;
		module->code.isa->site(&module->code, i, &site);
		choices[site.choice]++;
		if (site.choice == SITE_REFUSED)
			reasons[site.reason]++;
		entry_only += site.entry_only;
	}
	for (int i = 0; i <= SITE_ISLAND; i++) {
		if (choices[i])
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %s %u,",
				isa_choice_name(i), choices[i]);
	}
	for (int i = 0; i < REASON_COUNT; i++) {
		if (reasons[i])
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %s %u,",
				isa_reason_name(i), reasons[i]);
	}
	cr_log_info("%s: %u functions, %.2f%% patchable, %.0f ms of CPU time:%s entry only %u",
		path, functions,
		100.0 * (functions - choices[SITE_REFUSED]) / (functions ? functions : 1), time,
		text, entry_only);
	/* far below what was measured: a planner that refuses too much must not go unseen */
	cr_expect(choices[SITE_REFUSED] * 20 <= functions, "%s: %u of %u refused", path,
		choices[SITE_REFUSED], functions);
}

Test(site, nothing_lands_in_windows_of_libraries, .timeout = 280)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/bin/python3.11",
		"/usr/bin/node",
	};

	if (support_qemu())
		cr_skip_test("takes too long under emulation; what it computes does not depend on the host");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct support_module module;
		double start;

		if (!support_module_open(&module, paths[i], &isa_x86_64)) {
			cr_log_info("%s: absent", paths[i]);
			continue;
		}
		start = milliseconds();
		cr_assert_eq(module.code.isa->scan(&module.code), 0);
		report(paths[i], &module, milliseconds() - start);
		for (size_t t = 0; t < module.code.ntexts; t++) {
			struct checker c = { .code = &module.code, .text = &module.code.texts[t] };

			check_text(&c);
		}
		support_module_close(&module);
	}
}
