/* SPDX-License-Identifier: MIT */
/*
 * Go moves goroutines' stacks and walks them by its own tables: entry only, the whole module.
 *
 * V8's built-in code has no unwind tables, and V8 walks it by looking up return addresses; it also
 * leaves by other return addresses than it was entered with. It is entry only. The C++ functions
 * that it calls are ordinary, but V8 reads and rewrites their return addresses; it asks a resolver
 * where these are kept, made for tracers like this one
 * (v8::V8::SetReturnAddressLocationResolver).
 */
#include "runtimes.h"
#include "../rethook/shadow.h"

#define V8_SET_RESOLVER "_ZN2v82V832SetReturnAddressLocationResolverEPFmmE"

enum site_reason runtimes_reason(const struct plan *plan, const struct symbol *symbol)
{
	if (plan->elf.go)
		return REASON_FOREIGN_STACK;
	if (!symbol->fde && symbol->name && str_starts(symbol->name, "Builtins_"))
		return REASON_FOREIGN_STACK;
	return REASON_NONE;
}

void runtimes_announce(const struct plan *plan)
{
	void (*set_resolver)(uint64_t (*)(uint64_t)) = NULL;

	for (size_t i = 0; i < plan->symbols.count; i++) {
		const struct symbol *s = &plan->symbols.list[i];

		if (s->name && str_eq(s->name, V8_SET_RESOLVER))
			set_resolver = (void (*)(uint64_t (*)(uint64_t)))(
				s->start + plan->module->bias);
	}
	if (set_resolver)
		set_resolver(shadow_locate);
}
