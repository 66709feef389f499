/* SPDX-License-Identifier: MIT */
#include "a64.h"
#include <elf.h>

const struct isa isa_arm64 = {
	.name = "arm64",
	.elf_machine = EM_AARCH64,
	.elf_flags = 0,
	.ra_column = 30,
	.entry_cfa_base = 31,
	.entry_cfa_offset = 0,
	.entry_ra_offset = 0,
	.patch_size = 4,
	.reach = (1ull << 27) - (1 << 20),
	.far_reach = (1ull << 32) - (1 << 20),
	.detour_max = 1024,
	.common_max = 4096,
	.scan = a64_scan,
	.site = a64_site,
	.emit_common = a64_emit_common,
	.emit = a64_emit,
	.nop = a64_nop,
	.emit_hit = a64_emit_hit,
	.patch = a64_patch,
	.argument = a64_argument,
	.result = a64_result,
	.uses_vectors = a64_uses_vectors,
	.cie = a64_cie,
};
