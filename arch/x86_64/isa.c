/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include <elf.h>

const struct isa isa_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.elf_flags = 0,
	.ra_column = 16,
	.entry_cfa_base = 7,
	.entry_cfa_offset = 8,
	.entry_ra_offset = -8,
	.patch_size = X86_JUMP_SIZE,
	.reach = (1ull << 31) - (1 << 20),
	.detour_max = 1024,
	.common_max = 4096,
	.scan = x86_scan,
	.site = x86_site,
	.emit_common = x86_emit_common,
	.emit = x86_emit,
	.nop = x86_nop_len,
	.emit_hit = x86_emit_hit,
	.patch = x86_patch,
	.argument = x86_argument,
	.result = x86_result,
	.uses_vectors = x86_uses_vectors,
	.cie = x86_cie,
};
