/* SPDX-License-Identifier: MIT */
#include "decoder.h"

#include <errno.h>
#include <Zydis/Decoder.h>

/* With more prefixes than this, the rel32 form of a branch would exceed 15 bytes. */
#define INSN_REL_AT_MAX 10

static ZydisDecoder decoder;

int decoder_open(void)
{
	return ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
		       ZYDIS_STACK_WIDTH_64))
		? -ENOENT
		: 0;
}

static bool has_prefix(const ZydisDecodedInstruction *z, uint8_t prefix)
{
	for (uint8_t i = 0; i < z->raw.prefix_count; i++) {
		if (z->raw.prefixes[i].value == prefix)
			return true;
	}
	return false;
}

/* Of a jump, call or branch whose displacement or target operand has the usual 64-bit form. */
static enum insn_kind branch_kind(const ZydisDecodedInstruction *z)
{
	bool relative = z->raw.imm[0].is_relative;

	/*
	 * Intel ignores an operand size prefix here, AMD truncates the target. Branches in another
	 * encoding (jkzd) are those of a CPU that is gone.
	 */
	if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || has_prefix(z, 0x66) ||
		z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return INSN_FIXED;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return relative ? INSN_JUMP : INSN_JUMP_INDIRECT;
	case ZYDIS_MNEMONIC_CALL:
		return relative ? INSN_CALL : INSN_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_RET:
		return INSN_RETURN;
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
		return INSN_LOOP;
	case ZYDIS_MNEMONIC_XBEGIN:
		return INSN_FIXED;
	default:
		return relative ? INSN_BRANCH : INSN_FIXED;
	}
}

static enum insn_kind kind_of(const ZydisDecodedInstruction *z)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return INSN_STOP;
	case ZYDIS_MNEMONIC_XABORT:
	case ZYDIS_MNEMONIC_XEND:
		return INSN_PLAIN;
	/* These hand the address behind them to the kernel, to a register or to a debugger. */
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_XBEGIN:
		return INSN_FIXED;
	default:
		break;
	}
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
		return branch_kind(z);
	default:
		return INSN_PLAIN;
	}
}

/* A shift or a repeated string instruction leaves the flags alone when the count is 0. */
static bool may_do_nothing(const ZydisDecodedInstruction *z)
{
	uint64_t mask = z->operand_width == 64 ? 0x3f : 0x1f;
	bool no_count = (z->raw.imm[0].value.u & mask) == 0; /* in cl, or an odd immediate */

	if (z->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		return true;
	if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return ((z->opcode & 0xfe) == 0xd2 || (z->opcode & 0xfe) == 0xc0) && no_count;
	return z->opcode_map == ZYDIS_OPCODE_MAP_0F && (z->opcode & 0xf6) == 0xa4 && no_count;
}

static void set_flags(struct insn *insn, const ZydisDecodedInstruction *z)
{
	const ZydisAccessedFlags *flags = z->cpu_flags;

	if (!flags)
		return;
	insn->reads = flags->tested & INSN_FLAGS;
	if (!may_do_nothing(z))
		insn->writes = (flags->modified | flags->set_0 | flags->set_1 | flags->undefined) &
			INSN_FLAGS;
}

/* A call through rsp, or through memory found by rsp, sees the return address it pushes. */
static bool uses_stack_pointer(const ZydisDecodedInstruction *z, const struct insn *insn)
{
	bool is_register = insn->modrm >> 6 == 3;

	return (insn->modrm & 7) == 4 && !insn->rex_b && (is_register || z->raw.sib.base == 4);
}

static void set_memory(struct insn *insn, const ZydisDecodedInstruction *z)
{
	uint8_t mod = insn->modrm >> 6, rm = insn->modrm & 7;

	if (mod == 3)
		return;
	if (mod == 0 && rm == 5) {
		if (z->raw.disp.size != 32)
			return;
		insn->rip_at = z->raw.disp.offset;
		if (z->address_width != 64)
			insn->kind = INSN_FIXED;
		return;
	}
	if (insn->map == 0xff)
		return;
	if (rm == 4) {
		bool has_rex = z->attributes & ZYDIS_ATTRIB_HAS_REX;

		if (z->raw.sib.index != 4 || (has_rex && z->raw.rex.X))
			return;
		rm = z->raw.sib.base;
		if (mod == 0 && rm == 5)
			return;
	}
	insn->base = rm + (insn->rex_b ? 8 : 0);
	insn->disp = (int32_t)z->raw.disp.value;
}

static bool is_extended(const ZydisDecodedInstruction *z)
{
	switch (z->meta.isa_ext) {
	case ZYDIS_ISA_EXT_BASE:
		return z->meta.isa_set == ZYDIS_ISA_SET_FXSAVE
			|| z->meta.isa_set == ZYDIS_ISA_SET_FXSAVE64;
	case ZYDIS_ISA_EXT_ADOX_ADCX:
	case ZYDIS_ISA_EXT_BMI1:
	case ZYDIS_ISA_EXT_BMI2:
	case ZYDIS_ISA_EXT_CET:
	case ZYDIS_ISA_EXT_LONGMODE:
	case ZYDIS_ISA_EXT_LZCNT:
	case ZYDIS_ISA_EXT_MOVBE:
	case ZYDIS_ISA_EXT_PAUSE:
		return false;
	default:
		return true;
	}
}

bool decoder_read(const uint8_t *code, size_t room, struct insn *insn)
{
	ZydisDecodedInstruction z;

	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, code, room, &z)))
		return false;
	*insn = (struct insn){
		.len = z.length,
		.kind = kind_of(&z),
		.map = 0xff,
		.opcode = z.opcode,
		.base = INSN_NO_BASE,
		.rex_b = (z.attributes & ZYDIS_ATTRIB_HAS_REX) && z.raw.rex.B,
		.rex_r = (z.attributes & ZYDIS_ATTRIB_HAS_REX) && z.raw.rex.R,
		.imm_size = z.raw.imm[0].size / 8,
		.imm = (int32_t)z.raw.imm[0].value.s,
		.extended = is_extended(&z),
	};
	if (z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && z.opcode_map <= ZYDIS_OPCODE_MAP_0F)
		insn->map = z.opcode_map == ZYDIS_OPCODE_MAP_0F;
	if (z.attributes & ZYDIS_ATTRIB_HAS_MODRM) {
		insn->modrm_at = z.raw.modrm.offset;
		insn->modrm = code[insn->modrm_at];
		set_memory(insn, &z);
		if (insn->kind == INSN_CALL_INDIRECT && uses_stack_pointer(&z, insn))
			insn->kind = INSN_FIXED;
	}
	if (z.raw.imm[0].is_relative) {
		insn->rel_at = z.raw.imm[0].offset;
		insn->rel_size = insn->imm_size;
		insn->rel = insn->imm;
		if (insn->rel_at > INSN_REL_AT_MAX)
			insn->kind = INSN_FIXED;
	}
	set_flags(insn, &z);
	return true;
}
