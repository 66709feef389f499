/* SPDX-License-Identifier: MIT */
/*
 * What a place inside a function is sent to, when it is a nop:
 *
 *	stp	x16, x30, [sp, #-32]!
 *	ldr	x16, stub
 *	blr	x16			hit.S
 *	ldp	x16, x30, [sp], #32
 *	b	back
 * record, site, stub			hit.S finds the first two by x30
 *
 * There is no red zone. Everything else is as the program left it.
 */
#include "a64.h"
#include "insn.h"
#include <errno.h>

enum { BACK = 4, WORDS = 6, SIZE = WORDS * 4 + 24 };

size_t a64_nop(const uint8_t *code, size_t room)
{
	return room >= 4 && insn_read(code) == INSN_NOP ? 4 : 0;
}

int a64_emit_hit(const struct isa_emit *in, uint64_t stub, uint64_t record, uint8_t *out)
{
	uint32_t code[WORDS] = {
		0xa9be7bf0, /* stp x16, x30, [sp, #-32]! */
		0x58000130, /* ldr x16, . + 36 */
		0xd63f0200, /* blr x16 */
		0xa8c27bf0, /* ldp x16, x30, [sp], #32 */
		0,
		INSN_NOP,
	};
	uint64_t site = in->func->start + in->site->offset + (uint64_t)in->bias;
	const uint64_t words[3] = { record, site, stub };

	if (in->site->choice != SITE_ONE || in->site->len != 4)
		return -EINVAL;
	if (!a64_branch(A64_B, in->at + BACK * 4, site + 4, &code[BACK]))
		return -ERANGE;
	memcpy(out, code, sizeof(code));
	memcpy(out + sizeof(code), words, sizeof(words));
	return SIZE;
}
