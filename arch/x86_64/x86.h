/* SPDX-License-Identifier: MIT */
/* What the files of this port share. See ../arch.h for the contract they fulfil together. */
#ifndef ARCH_X86_64_X86_H
#define ARCH_X86_64_X86_H

#include "../arch.h"

#define X86_JUMP_SIZE  5 /* e9 rel32 */
/* mov rax, -40(rsp) with a four-byte displacement: how every return point begins, see emit.c */
#define X86_RETURN_MARK 0xffffffd824848948ull

#define X86_WINDOW_MAX 24 /* the longest window: 4 one-byte instructions and one of 15 bytes */

/* Indexes among the registers that the slow stubs save behind a struct slow_frame. */
#define X86_SAVED_RSI 0
#define X86_SAVED_RDI 1
#define X86_SAVED_R8  2
#define X86_SAVED_R9  3

/*
 * Where detours and their stubs keep registers, relative to the stack slot of the return address, and
 * where handlers find those of their call: arguments in order, and results.
 */
enum {
	X86_SAVE_R11 = -8,
	X86_SAVE_R10 = -16,
	X86_SAVE_RESULT2 = -24, /* rdx at a return */
	X86_SAVE_RAX = -32,
	X86_SAVE_R9 = -40,
	X86_SAVE_R8 = -48,
	X86_SAVE_RCX = -56,
	X86_SAVE_RDX = -64, /* at an entry */
	X86_SAVE_RSI = -72,
	X86_SAVE_RDI = -80,
	X86_SAVE_RBX = -88,
	X86_SAVE_CONDITIONS = -96, /* lahf and seto */
	X86_SAVE_FLAGS = -104,	   /* for DF */
	X86_SAVE_END = X86_SAVE_FLAGS
};

/* Where each displaced instruction went. */
struct x86_moved {
	uint32_t size;			/* bytes written */
	uint16_t to[X86_WINDOW_MAX + 1]; /* offset in the copy of the instruction at this window
					 * offset; 0xffff inside one; to[len] is the copy's end */
	bool ends; /* the last instruction never goes on behind itself: no jump back is needed */
};

/*
 * Copy the window [@code, @code + @len), link-time address @addr, so that it does the same at
 * run-time address @at. Run-time addresses of the module are link-time ones + @bias. A call
 * inside becomes a push of the original return address and a jump. Clobbers nothing below the
 * stack pointer but what the original does. 0; -EINVAL: holds something that cannot be moved
 * exactly; -ERANGE: refers to something out of reach of @at.
 */
int x86_relocate(const uint8_t *code, uint64_t addr, size_t len, int64_t bias, uint64_t at,
	uint8_t *out, size_t room, struct x86_moved *moved);

/* scan.c and site.c, the x86_64 members of struct isa */
int x86_scan(struct isa_module *module);
void x86_site(const struct isa_module *module, size_t index, struct isa_site *site);

/* abi.c */
struct isa_place x86_argument(const char *types, unsigned n);
struct isa_place x86_result(char type);
bool x86_uses_vectors(const uint8_t *code, size_t size);

/* emit.c */
uint32_t x86_emit_common(const struct isa_env *env, uint64_t at, uint8_t *out,
	struct isa_common *common, struct isa_range *ranges);
int x86_emit(const struct isa_emit *in, uint8_t *out, struct isa_detour *detour);
int x86_patch(const struct isa_emit *in, struct isa_patch patches[2]);
int x86_emit_hit(const struct isa_emit *in, uint64_t stub, uint64_t record, uint8_t *out);
/* cie.c */
size_t x86_cie(enum isa_cie which, uint64_t root, uint8_t *out, size_t room);

#endif
