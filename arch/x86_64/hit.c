/* SPDX-License-Identifier: MIT */
/*
 * What a place inside a function is sent to:
 *
 *	lea	-128(%rsp), %rsp	the red zone may be in use
 *	push	record(%rip)
 *	push	site(%rip)
 *	call	*stub(%rip)		hit.S
 *	lea	144(%rsp), %rsp
 *	...				the displaced instructions
 *	jmp	back
 * record, site, stub
 *
 * No flag changes. Where the program was is on the stack for unwinders, see hit.S.
 */
#include "x86.h"
#include <errno.h>

/* Offsets in `code`. */
enum { RECORD = 7, SITE = 13, STUB = 19, END = 31 };

static void put_rel32(uint8_t *out, uint32_t field, uint32_t target)
{
	int32_t rel = (int32_t)target - (int32_t)(field + 4);

	memcpy(out + field, &rel, sizeof(rel));
}

int x86_emit_hit(const struct isa_emit *in, uint64_t stub, uint64_t record, uint8_t *out)
{
	static const uint8_t code[END] = {
		0x48, 0x8d, 0x64, 0x24, 0x80,		  /* lea -128(%rsp), %rsp */
		0xff, 0x35, 0, 0, 0, 0,			  /* push record(%rip) */
		0xff, 0x35, 0, 0, 0, 0,			  /* push site(%rip) */
		0xff, 0x15, 0, 0, 0, 0,			  /* call *stub(%rip) */
		0x48, 0x8d, 0xa4, 0x24, 0x90, 0, 0, 0,	  /* lea 144(%rsp), %rsp */
	};
	uint64_t site = in->func->start + in->site->offset, words[3];
	const struct isa_text *texts = in->module->texts, *text = NULL;
	struct x86_moved moved;
	uint32_t at = END;
	int64_t back;
	int err;

	for (size_t i = 0; i < in->module->ntexts && !text; i++)
		if (site - texts[i].addr < texts[i].size)
			text = texts + i;
	if (!text || text->size - (site - text->addr) < in->site->len)
		return -EINVAL;
	memcpy(out, code, END);
	err = x86_relocate(text->bytes + (site - text->addr), site, in->site->len, in->bias,
		in->at + at, out + at, HIT_DETOUR_MAX - END - X86_JUMP_SIZE - 8 - sizeof(words),
		&moved);
	if (err)
		return err;
	at += moved.size;
	if (!moved.ends) {
		back = (int64_t)(site + in->site->len + (uint64_t)in->bias - (in->at + at + 5));
		if (back != (int32_t)back)
			return -ERANGE;
		out[at] = 0xe9;
		memcpy(out + at + 1, &back, 4);
		at += X86_JUMP_SIZE;
	}
	at = (at + 7) & ~7u;
	words[0] = record;
	words[1] = site + (uint64_t)in->bias;
	words[2] = stub;
	memcpy(out + at, words, sizeof(words));
	put_rel32(out, RECORD, at);
	put_rel32(out, SITE, at + 8);
	put_rel32(out, STUB, at + 16);
	return (int)(at + sizeof(words));
}
