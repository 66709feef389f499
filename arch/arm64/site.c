/* SPDX-License-Identifier: MIT */
/*
 * Chooses where and how a function is patched: one branch at the entry, behind a landing pad. Where
 * no detour can be near enough, plan.c asks for the long form, three instructions that need x16.
 */
#include "scan.h"

static void refuse(struct isa_site *site, enum site_reason reason)
{
	site->choice = SITE_REFUSED;
	site->reason = (uint8_t)reason;
}

/* mov x8, #139; svc #0: the kernel lets signal handlers return here. */
static bool is_restorer(const struct a64_code *code)
{
	return code->n >= 2 && insn_read(code->bytes) == 0xd2801168
		&& insn_read(code->bytes + 4) == 0xd4000001;
}

void a64_site(const struct isa_module *module, size_t index, struct isa_site *site)
{
	const struct isa_func *func = &module->funcs[index];
	const struct a64_scan *scan = module->scan;
	const struct a64_func *state = &scan->funcs[index];
	struct a64_code code = a64_code_of(module, func);
	uint32_t first;

	*site = (struct isa_site){ .offset = state->offset };
	if (code.n <= state->offset / 4u) {
		refuse(site, REASON_TOO_SHORT);
		return;
	}
	first = insn_read(code.bytes + state->offset);
	if (is_restorer(&code))
		refuse(site, REASON_SIGNAL_FRAME);
	else if (func->anonymous && state->facts & FACT_BRANCHED_TO
		&& !(state->facts & FACT_REFERRED))
		refuse(site, REASON_FRAGMENT);
	else if (state->facts & FACT_LOOPS)
		refuse(site, REASON_LOOP_TO_ENTRY);
	else if (insn_kind(first) == INSN_UNDEFINED)
		refuse(site, REASON_UNDECODABLE);
	else
		site->choice = first == INSN_NOP ? SITE_NOPS : SITE_ONE;
	if (site->choice == SITE_REFUSED)
		return;
	site->len = 4;
	site->scratch_in = state->facts & FACT_SCRATCH_IN || func->anonymous;
	site->reason = state->keeps;
	site->entry_only = state->keeps != REASON_NONE;
}
