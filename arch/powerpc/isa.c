/* SPDX-License-Identifier: MIT */
#include "powerpc.h"
#include <elf.h>

const struct isa isa_powerpc = {
	.name = "powerpc",
	.elf_machine = EM_PPC64,
	.elf_flags = 2, /* ELFv2 */
	.ra_column = 65,
	.entry_cfa_base = 1,
	.entry_cfa_offset = 0,
	.entry_ra_offset = 0,
	.patch_size = 4,
	.reach = PPC_REACH - (64 << 10),
	.detour_max = 1024,
	.common_max = 2048,
	.scan = ppc_scan,
	.site = ppc_site,
	.island = ppc_island,
	.emit_common = ppc_emit_common,
	.emit = ppc_emit,
	.nop = ppc_nop,
	.emit_hit = ppc_emit_hit,
	.patch = ppc_patch,
	.argument = ppc_argument,
	.result = ppc_result,
	.uses_vectors = ppc_uses_vectors,
	.cie = ppc_cie,
};
