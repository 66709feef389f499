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

/*
 * May the first three instructions give way? Nothing may go behind the first one, and x16 must be
 * nobody's from there to behind the third, where the body comes back by way of it.
 */
static bool has_long_window(const struct a64_func *state, const struct a64_code *code)
{
	const uint8_t *window = code->bytes + state->offset;

	if (code->n < state->offset / 4u + A64_WINDOW_MAX
		|| state->facts & (FACT_LANDED | FACT_SWITCHES | FACT_SCRATCH_IN))
		return false;
	for (unsigned i = 0; i < A64_WINDOW_MAX; i++) {
		uint32_t insn = insn_read(window + 4 * i);
		enum insn_kind kind = insn_kind(insn);
		struct insn_uses uses = insn_uses(insn);

		if ((uses.reads | uses.writes) & (1u << 16 | 1u << 17) || kind == INSN_UNDEFINED
			|| kind == INSN_LDR_SIMD || kind == INSN_BLR || kind == INSN_BR
			|| (insn_ends(kind, insn) && i + 1 < A64_WINDOW_MAX)
			|| (kind == INSN_BL && i + 1 < A64_WINDOW_MAX))
			return false;
	}
	return true;
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
	site->far_len = has_long_window(state, &code) ? 4 * A64_WINDOW_MAX : 0;
	site->scratch_in = state->facts & FACT_SCRATCH_IN || func->anonymous;
	site->scratch_out = state->facts & FACT_SCRATCH_OUT || scan->indirect_out;
	site->leaf = !(state->facts & FACT_CALLS);
	site->reason = state->keeps;
	site->entry_only = state->keeps != REASON_NONE;
}
