/* SPDX-License-Identifier: MIT */
/*
 * Moves a window to another address.
 *
 *   in the window          in the copy
 *   anything, RIP-relative the same, displacement re-based
 *   jmp rel                jmp rel32
 *   jcc rel                jcc rel32
 *   loop, jrcxz rel8       loop +2; jmp +5; jmp rel32
 *   call                   push the original return address; jmp
 *   everything else        the same bytes
 *
 * A branch to an instruction of the window goes to its copy. The size of a copy does not depend
 * on where a branch goes, so two passes suffice: the second knows where everything is.
 */
#include "x86.h"
#include "decoder.h"

#include <errno.h>

#define MOVED_NONE 0xffff
#define PIECE_MAX  40 /* the longest copy of one instruction */

struct mover {
	uint64_t from; /* run-time address of the window */
	uint64_t at;   /* of the copy */
	size_t len;
	struct x86_moved *moved;
};

/* The copy of one instruction under construction. */
struct piece {
	uint8_t bytes[PIECE_MAX];
	uint32_t len;
	uint64_t at; /* run-time address of bytes[0] */
};

static void put(struct piece *piece, const void *bytes, uint32_t n)
{
	memcpy(piece->bytes + piece->len, bytes, n);
	piece->len += n;
}

static void put_u8(struct piece *piece, uint8_t byte)
{
	put(piece, &byte, 1);
}

/* Store @value at @where if it fits the 32-bit field there. */
static int store_rel32(uint8_t *where, int64_t value)
{
	int32_t field = (int32_t)value;

	if (field != value)
		return -ERANGE;
	memcpy(where, &field, 4);
	return 0;
}

/* Append the four bytes that send the branch before them to @target. */
static int put_rel32(struct piece *piece, uint64_t target)
{
	int64_t rel = (int64_t)(target - (piece->at + piece->len + 4));

	piece->len += 4;
	return store_rel32(piece->bytes + piece->len - 4, rel);
}

/* Where the copy of a jump to @target goes. */
static int jump_target(const struct mover *mover, uint64_t *target)
{
	uint64_t inside = *target - mover->from;

	if (inside >= mover->len)
		return 0;
	if (mover->moved->to[inside] == MOVED_NONE)
		return -EINVAL;
	*target = mover->at + mover->moved->to[inside];
	return 0;
}

/* Push a return address as a call would, with no other register, flag or word touched. */
static void put_push(struct piece *piece, uint64_t ret)
{
	int32_t low = (int32_t)ret;
	uint32_t high = ret >> 32;

	put_u8(piece, 0x68); /* push imm32, sign-extended */
	put(piece, &low, 4);
	if ((uint64_t)(int64_t)low == ret)
		return;
	put(piece, (const uint8_t[]){ 0xc7, 0x44, 0x24, 0x04 }, 4); /* movl $high, 4(%rsp) */
	put(piece, &high, 4);
}

static int put_same(struct piece *piece, const uint8_t *code, const struct insn *insn,
	uint64_t from)
{
	uint32_t start = piece->len;
	int64_t moved = (int64_t)(from - (piece->at + start));
	int32_t disp;

	put(piece, code, insn->len);
	if (!insn->rip_at)
		return 0;
	memcpy(&disp, code + insn->rip_at, 4);
	return store_rel32(piece->bytes + start + insn->rip_at, disp + moved);
}

/* Turn call r/m into push and jmp r/m. The operand is read after the push. */
static int put_call_indirect(struct piece *piece, const uint8_t *code, const struct insn *insn,
	uint64_t from)
{
	uint8_t *modrm;
	int err;

	put_push(piece, from + insn->len);
	modrm = piece->bytes + piece->len + insn->modrm_at;
	err = put_same(piece, code, insn, from);
	*modrm = (*modrm & 0xc7) | 4 << 3;
	return err;
}

static int put_call(struct piece *piece, const struct mover *mover, uint64_t next, uint64_t target)
{
	/* Calling itself is a call like any other; anything else inside is overwritten. */
	if (target - mover->from - 1 < mover->len - 1)
		return -EINVAL;
	put_push(piece, next);
	put_u8(piece, 0xe9);
	return put_rel32(piece, target);
}

static int put_loop(struct piece *piece, const uint8_t *code, const struct insn *insn,
	uint64_t target)
{
	put(piece, code, insn->rel_at); /* prefixes and opcode */
	put(piece, (const uint8_t[]){ 2, 0xeb, 5, 0xe9 }, 4);
	return put_rel32(piece, target);
}

/* Copy one instruction, which is at run-time address @from. */
static int put_insn(struct piece *piece, const struct mover *mover, const uint8_t *code,
	const struct insn *insn, uint64_t from)
{
	uint64_t next = from + insn->len;
	uint64_t target = next + (int64_t)insn->rel;
	int err;

	if (insn->kind == INSN_CALL)
		return put_call(piece, mover, next, target);
	if (insn->kind == INSN_CALL_INDIRECT)
		return put_call_indirect(piece, code, insn, from);
	if (!insn->rel_at)
		return insn->kind == INSN_FIXED ? -EINVAL : put_same(piece, code, insn, from);

	err = jump_target(mover, &target);
	if (err)
		return err;
	switch (insn->kind) {
	case INSN_LOOP:
		return put_loop(piece, code, insn, target);
	case INSN_JUMP:
		put(piece, code, insn->rel_at - 1);
		put_u8(piece, 0xe9);
		return put_rel32(piece, target);
	case INSN_BRANCH:
		put(piece, code, insn->rel_at - (insn->rel_size == 1 ? 1 : 2));
		put_u8(piece, 0x0f);
		put_u8(piece, 0x80 | (insn->opcode & 15));
		return put_rel32(piece, target);
	default:
		return -EINVAL;
	}
}

static int move_all(const struct mover *mover, const uint8_t *code, uint8_t *out, size_t room)
{
	struct x86_moved *moved = mover->moved;
	struct insn insn;
	size_t off;

	moved->size = 0;
	for (off = 0; off < mover->len; off += insn.len) {
		struct piece piece = { .at = mover->at + moved->size };
		int err;

		if (!decoder_read(code + off, mover->len - off, &insn))
			return -EINVAL;
		err = put_insn(&piece, mover, code + off, &insn, mover->from + off);
		if (err)
			return err;
		moved->ends = insn_ends(&insn);
		if (insn.kind == INSN_CALL || insn.kind == INSN_CALL_INDIRECT) {
			if (off + insn.len != mover->len)
				return -EINVAL; /* it would return into the patch */
			moved->ends = true;
		}
		if (piece.len > room - moved->size)
			return -EINVAL;
		memcpy(out + moved->size, piece.bytes, piece.len);
		moved->to[off] = moved->size;
		moved->size += piece.len;
	}
	moved->to[mover->len] = moved->size;
	return 0;
}

/* Fill in where instructions start: 0 for now, MOVED_NONE inside one. */
static int find_starts(const uint8_t *code, size_t len, struct x86_moved *moved)
{
	struct insn insn;

	memset(moved, 0xff, sizeof(*moved));
	for (size_t off = 0; off < len; off += insn.len) {
		if (!decoder_read(code + off, len - off, &insn))
			return -EINVAL;
		moved->to[off] = 0;
	}
	return 0;
}

int x86_relocate(const uint8_t *code, uint64_t addr, size_t len, int64_t bias, uint64_t at,
	uint8_t *out, size_t room, struct x86_moved *moved)
{
	struct mover mover = { .from = addr + bias, .at = at, .len = len, .moved = moved };
	int err;

	if (len == 0 || len > X86_WINDOW_MAX)
		return -EINVAL;
	err = decoder_open();
	if (!err)
		err = find_starts(code, len, moved);
	for (int pass = 0; !err && pass < 2; pass++)
		err = move_all(&mover, code, out, room);
	return err;
}
