/* SPDX-License-Identifier: MIT */
/*
 * What a place inside a function is sent to, when it is a nop:
 *
 *	stdu	r1, -512(r1)		the program may use 288 bytes below
 *	std	r0, 64(r1)
 *	mflr	r0
 *	std	r0, 72(r1)
 *	mfctr	r0
 *	std	r0, 80(r1)
 *	...				r0 = stub, by five instructions that change no condition
 *	mtctr	r0
 *	bctrl				hit.S
 *	ld	r0, 80(r1)
 *	mtctr	r0
 *	ld	r0, 72(r1)
 *	mtlr	r0
 *	ld	r0, 64(r1)
 *	addi	r1, r1, 512
 *	b	back
 * record, site				hit.S finds them by LR
 */
#include "powerpc.h"
#include "encode.h"
#include <errno.h>

enum { FRAME = 512, OLD_R0 = 64, OLD_LR = 72, OLD_CTR = 80, WORDS = 20, BACK = WORDS - 1 };

size_t ppc_nop(const uint8_t *code, size_t room)
{
	uint32_t word = 0;

	if (room >= 4)
		memcpy(&word, code, 4);
	return word == PPC_NOP ? 4 : 0;
}

int ppc_emit_hit(const struct isa_emit *in, uint64_t stub, uint64_t record, uint8_t *out)
{
	uint64_t site = in->func->start + in->site->offset + (uint64_t)in->bias;
	int64_t back = (int64_t)(site + 4 - (in->at + BACK * 4));
	const uint64_t words[2] = { record, site };
	uint32_t code[WORDS] = {
		ppc_stdu(R1, -FRAME, R1),
		ppc_std(R0, OLD_R0, R1),
		ppc_mfspr(R0, SPR_LR),
		ppc_std(R0, OLD_LR, R1),
		ppc_mfspr(R0, SPR_CTR),
		ppc_std(R0, OLD_CTR, R1),
	};
	const uint32_t rest[] = {
		ppc_mtspr(SPR_CTR, R0),
		PPC_BCTRL,
		ppc_ld(R0, OLD_CTR, R1),
		ppc_mtspr(SPR_CTR, R0),
		ppc_ld(R0, OLD_LR, R1),
		ppc_mtspr(SPR_LR, R0),
		ppc_ld(R0, OLD_R0, R1),
		ppc_addi(R1, R1, FRAME),
		ppc_b(back, false),
	};

	if (in->site->choice != SITE_ONE || in->site->len != 4)
		return -EINVAL;
	if (!ppc_in_reach(back))
		return -ERANGE;
	ppc_constant(code + 6, R0, stub);
	memcpy(code + 11, rest, sizeof(rest));
	memcpy(out, code, sizeof(code));
	memcpy(out + sizeof(code), words, sizeof(words));
	return (int)(sizeof(code) + sizeof(words));
}
