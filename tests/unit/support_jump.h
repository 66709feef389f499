/* SPDX-License-Identifier: MIT */
/* A function that is traced, and one that ends in a jump to another, which is traced too. */
#ifndef UNIT_SUPPORT_JUMP_H
#define UNIT_SUPPORT_JUMP_H

#include "arch/arch.h"
#include "rethook/shadow.h"
#include <criterion/criterion.h>

struct traced {
	struct isa_text text;
	struct isa_func func;
	struct isa_site site;
	struct isa_module module;
	struct isa_emit in;
	struct isa_detour detour;
	uint64_t start; /* where a call begins */
};

/* @second: what is @offset behind @first, @size bytes, with the id behind its. A call still begins
 * with the first. Its detour is not written. */
static inline void jump_to(struct traced *second, const struct traced *first, uint64_t offset, uint64_t size)
{
	*second = *first;
	second->func.start += offset;
	second->func.end = second->func.start + size;
	second->module.texts = &second->text;
	second->module.funcs = second->in.func = &second->func;
	second->site = (struct isa_site){ .choice = SITE_ONE, .len = 4, .scratch_in = first->site.scratch_in };
	second->in.site = &second->site;
	second->in.module = &second->module;
	second->in.at += 0x1000;
	second->in.id++;
}

/* Return points lead to the function in @infos, by id. */
static inline void jump_know(const struct detour_info **infos, const struct traced *t)
{
	if (t->detour.info)
		infos[t->in.id] = (const struct detour_info *)(t->in.at + t->detour.info);
}

/* Both have been called @calls times, of which @unwound ended in a longjmp. Clears the records of functions 1 and 2. */
static inline void check_jump_counts(struct func_record *records, const char *name, uint64_t calls, uint64_t unwound)
{
	for (int id = 1; id <= 2; id++) {
		struct func_record *r = &records[id];

		cr_assert_eq(r->calls, calls, "%s: %d has %lu calls, not %lu", name, id, r->calls, calls);
		cr_assert_eq(r->returned + r->unwound, calls, "%s: %d has returned %lu times, %lu unwound", name, id,
			r->returned, r->unwound);
		cr_assert_eq(r->unwound, unwound, "%s: %d", name, id);
		cr_assert_eq(r->left, unwound, "%s: %d", name, id);
		if (shadow_hooks.mode != MODE_COUNT)
			cr_assert(!r->callees && r->max <= r->total && ~r->nmin <= r->max, "%s: times of %d",
				name, id);
		memset(r, 0, sizeof(*r));
	}
}

#endif
