/* SPDX-License-Identifier: MIT */
/* What the files of this port share. See ../arch.h for the contract they fulfil together. */
#ifndef ARCH_ARM64_A64_H
#define ARCH_ARM64_A64_H

#include "../arch.h"

#define A64_WINDOW_MAX 3 /* instructions: adrp, add, br */
#define A64_PIECE_MAX  6 /* instructions of the longest copy of one */

/* How every return point begins: stp x10, x9, [sp, #-48]!; add x9, sp, #48. */
#define A64_RETURN_MARK 0x9100c3e9a9bd27eaull

/* Of struct isa_env.features: HWCAP_ATOMICS, HWCAP_SVE, HWCAP_GCS. */
#define A64_FEATURE_ATOMICS (1ull << 8)
#define A64_FEATURE_SVE (1ull << 22)
#define A64_FEATURE_GCS (1ull << 32)

/* Indexes of registers in struct ftr_call: x0 to x15 come first. */
enum { A64_CALL_X8 = 8, A64_CALL_X18 = 16, A64_CALL_NZCV };

/* Where x29 and x30 are while handlers run, below the stack slot. */
#define A64_HOOK_LINK 64

/* Where each displaced instruction went. */
struct a64_moved {
	uint32_t size;		       /* bytes written */
	uint8_t to[A64_WINDOW_MAX + 1]; /* offset in the copy; to[n] is its end */
	bool ends; /* the last instruction never goes on behind itself: no jump back is needed */
};

/*
 * Copy the window of @n instructions at @code, which are at run-time address @from, so that they do
 * the same at run-time address @at. A call becomes the loading of x30 and a branch, and can only be
 * the last one. Uses x16 only where @free16 says that it
 * holds nothing.
 * @out has room for A64_PIECE_MAX instructions for each. 0; -EINVAL: holds something that cannot be
 * moved exactly; -ERANGE: a branch is out of reach of @at.
 */
int a64_relocate(const uint8_t *code, uint32_t n, uint64_t from, uint64_t at, bool free16,
	uint8_t *out, struct a64_moved *moved);

/* Make @insn, a branch without a target, one to @target. False: out of reach. */
bool a64_branch(uint32_t insn, uint64_t at, uint64_t target, uint32_t *out);
#define A64_B  0x14000000u
#define A64_BL 0x94000000u

/* Load an address or number into register @rd, with at most 4 instructions. Returns their count. */
unsigned a64_load_number(unsigned rd, uint64_t value, uint32_t *out);

/* scan.c and site.c, the arm64 members of struct isa */
int a64_scan(struct isa_module *module);
void a64_site(const struct isa_module *module, size_t index, struct isa_site *site);

/* emit.c */
uint32_t a64_emit_common(const struct isa_env *env, uint64_t at, uint8_t *out,
	struct isa_common *common, struct isa_range *ranges);
int a64_emit(const struct isa_emit *in, uint8_t *out, struct isa_detour *detour);
int a64_patch(const struct isa_emit *in, struct isa_patch patches[2]);
/* hit.c */
size_t a64_nop(const uint8_t *code, size_t room);
int a64_emit_hit(const struct isa_emit *in, uint64_t stub, uint64_t record, uint8_t *out);
/* abi.c */
struct isa_place a64_argument(const char *types, unsigned n);
struct isa_place a64_result(char type);
bool a64_uses_vectors(const uint8_t *code, size_t size);
/* cie.c */
size_t a64_cie(enum isa_cie which, uint64_t root, uint8_t *out, size_t room);

#endif
