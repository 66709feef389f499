/* SPDX-License-Identifier: MIT */
/* What the files of this port share. See ../arch.h for the contract they fulfil together. */
#ifndef ARCH_POWERPC_POWERPC_H
#define ARCH_POWERPC_POWERPC_H

#include "../arch.h"

#define PPC_REACH 0x2000000 /* of b and bl, both ways */

/* Where the slow stubs leave a return address for the detour, relative to the stack slot. */
#define PPC_KEPT_RETURN (-192)

/* Indexes of registers in struct ftr_call: r3 to r10 come first. */
enum { PPC_CALL_R2 = 8, PPC_CALL_CR, PPC_CALL_XER, PPC_CALL_CTR };
#define PPC_VECTORS 32 /* isa_place.index of v0; f0 is 0 */

/* Indexes among the registers that the slow stubs save behind a struct slow_frame: r2 to r10. */
#define PPC_SAVED_R3 1

/*
 * Copy the window [@code, @code + @len), one instruction at run-time address @from, so that it
 * does the same at run-time address @at. What is relative to the place is worked out anew. @out
 * has room for PPC_COPY_MAX bytes. Clobbers nothing but what the original does, and 8 bytes below
 * the stack pointer when it is a call. Returns the size; *@ends: it never goes on behind itself,
 * else its end is where to go on behind the window. -EINVAL: cannot be moved exactly; -ERANGE:
 * refers to something out of reach of @at.
 */
#define PPC_COPY_MAX 48
int ppc_relocate(const uint8_t *code, size_t len, uint64_t from, uint64_t at, uint8_t *out,
	bool *ends);

/* The code at a link-time address, @size bytes; NULL when not all of them are in one text. */
const uint8_t *ppc_code_at(const struct isa_module *module, uint64_t addr, size_t size);

/* scan.c and site.c, members of struct isa */
int ppc_scan(struct isa_module *module);
void ppc_site(const struct isa_module *module, size_t index, struct isa_site *site);

/* island.c */
bool ppc_island(const struct isa_module *module, size_t index, uint64_t lo, uint64_t hi,
	struct isa_site *site);
/* emit.c */
uint32_t ppc_emit_common(const struct isa_env *env, uint64_t at, uint8_t *out,
	struct isa_common *common, struct isa_range *ranges);
int ppc_emit(const struct isa_emit *in, uint8_t *out, struct isa_detour *detour);
int ppc_patch(const struct isa_emit *in, struct isa_patch patches[2]);
/* hit.c */
size_t ppc_nop(const uint8_t *code, size_t room);
int ppc_emit_hit(const struct isa_emit *in, uint64_t stub, uint64_t record, uint8_t *out);
/* abi.c */
struct isa_place ppc_argument(const char *types, unsigned n);
struct isa_place ppc_result(char type);
bool ppc_uses_vectors(const uint8_t *code, size_t size);
/* cie.c */
size_t ppc_cie(enum isa_cie which, uint64_t root, uint8_t *out, size_t room);

#endif
