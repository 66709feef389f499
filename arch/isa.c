/* SPDX-License-Identifier: MIT */
/* The words for choices and reasons that reports and logs print. */
#include "arch.h"

static const char *const reasons[REASON_COUNT] = {
	[REASON_NONE] = "none",
	[REASON_TOO_SHORT] = "too-short",
	[REASON_JUMP_INSIDE] = "jump-inside",
	[REASON_LOOP_TO_ENTRY] = "loop-to-entry",
	[REASON_JUMP_TABLE] = "jump-table",
	[REASON_UNDECODABLE] = "undecodable",
	[REASON_NOT_RELOCATABLE] = "not-relocatable",
	[REASON_OUT_OF_REACH] = "out-of-reach",
	[REASON_MEMORY_DIFFERS] = "memory-differs",
	[REASON_TEXT_RELOCATIONS] = "text-relocations",
	[REASON_FRAGMENT] = "fragment",
	[REASON_SIGNAL_FRAME] = "signal-frame",
	[REASON_RESOLVER] = "resolver",
	[REASON_UNWINDER] = "unwinder",
	[REASON_NO_IMAGE] = "no-image",
	[REASON_TRAP_UNSAFE] = "trap-unsafe",
	[REASON_RETURNS_TWICE] = "returns-twice",
	[REASON_READS_RETURN] = "reads-return-address",
	[REASON_NO_RETURN] = "no-return-address",
	[REASON_FOREIGN_STACK] = "foreign-stack",
	[REASON_WATCHED] = "watched",
	[REASON_HIDDEN_UNWINDER] = "hidden-unwinder",
};

static const char *const choices[] = {
	[SITE_REFUSED] = "refused",
	[SITE_NOPS] = "nops",
	[SITE_ONE] = "one",
	[SITE_SEVERAL] = "several",
	[SITE_PADDING] = "padding",
	[SITE_HOP] = "hop",
	[SITE_TRAP] = "trap",
	[SITE_ISLAND] = "island",
};

/* Values come from data files as well: an unknown one gets a word, too. */
const char *isa_reason_name(enum site_reason reason)
{
	if ((unsigned int)reason >= REASON_COUNT || !reasons[reason])
		return "unknown";
	return reasons[reason];
}

const char *isa_choice_name(enum site_choice choice)
{
	if ((unsigned int)choice >= sizeof(choices) / sizeof(choices[0]))
		return "unknown";
	return choices[choice];
}
