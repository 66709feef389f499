/* SPDX-License-Identifier: MIT */
#include "tables.h"
#include "format.h"

struct sizes {
	size_t functions, skipped, aliases, strings;
};

static size_t string_size(const char *s)
{
	return s && *s ? strlen(s) + 1 : 0;
}

static void measure(const struct plan *plan, struct sizes *sizes)
{
	sizes->strings += string_size(plan->module->path) + string_size(plan->image_path);
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_function *f = &plan->functions[i];

		if (f->id)
			sizes->functions++;
		else
			sizes->skipped++;
		sizes->strings += string_size(f->symbol->name);
		sizes->aliases += f->symbol->naliases;
		for (size_t k = 0; k < f->symbol->naliases; k++)
			sizes->strings += string_size(f->symbol->aliases[k]);
	}
}

struct writer {
	struct symbols_module *modules;
	struct symbols_function *functions;
	uint32_t *aliases;
	char *strings;
	uint32_t nstrings, naliases, nskipped;
};

static uint32_t add_string(struct writer *w, const char *s)
{
	size_t n = string_size(s);
	uint32_t at = w->nstrings;

	if (!n)
		return 0;
	memcpy(w->strings + at, s, n);
	w->nstrings += (uint32_t)n;
	return at;
}

static void add_function(struct writer *w, const struct plan_function *f, uint32_t module,
	struct symbols_function *out)
{
	const struct symbol *s = f->symbol;

	*out = (struct symbols_function){ .address = s->start, .size = (uint32_t)(s->end - s->start),
		.module = module, .name = add_string(w, s->name), .alias = w->naliases,
		.naliases = s->naliases, .choice = f->site.choice, .reason = f->site.reason };
	for (size_t k = 0; k < s->naliases; k++)
		w->aliases[w->naliases++] = add_string(w, s->aliases[k]);
}

static void add_module(struct writer *w, const struct plan *plan, uint32_t index)
{
	struct symbols_module *m = &w->modules[index];
	const struct elf_part *id = &plan->elf.build_id;

	m->path = add_string(w, plan->module->path);
	m->image = add_string(w, plan->image_path);
	m->bias = plan->module->bias;
	m->build_id_len = id->size < sizeof(m->build_id) ? (uint32_t)id->size : sizeof(m->build_id);
	if (id->bytes)
		memcpy(m->build_id, id->bytes, m->build_id_len);
	else
		m->build_id_len = 0;
}

const void *tables_build(const struct plan *plans, size_t nplans, uint32_t first_id,
	struct arena *arena, size_t *size)
{
	struct sizes n = { .strings = 1 };
	struct symbols_header *h;
	struct writer w = { .nstrings = 1 }; /* offset 0 is the empty string */
	uint8_t *out;

	for (size_t i = 0; i < nplans; i++)
		measure(&plans[i], &n);
	*size = sizeof(*h) + nplans * sizeof(*w.modules)
		+ (n.functions + n.skipped) * sizeof(*w.functions) + n.aliases * 4 + n.strings;
	out = arena_alloc(arena, *size);
	if (!out)
		return NULL;
	h = (struct symbols_header *)out;
	*h = (struct symbols_header){ .magic = FORMAT_SYMBOLS_MAGIC, .version = FORMAT_VERSION,
		.machine = arch_isa->elf_machine, .first_id = first_id,
		.nfunctions = (uint32_t)n.functions, .nskipped = (uint32_t)n.skipped,
		.nmodules = (uint32_t)nplans, .modules_offset = sizeof(*h),
		.naliases = (uint32_t)n.aliases, .strings_size = n.strings, .file_size = *size };
	h->functions_offset = h->modules_offset + nplans * sizeof(*w.modules);
	h->aliases_offset = h->functions_offset
		+ (n.functions + n.skipped) * sizeof(*w.functions);
	h->strings_offset = h->aliases_offset + n.aliases * 4;
	w.modules = (void *)(out + h->modules_offset);
	w.functions = (void *)(out + h->functions_offset);
	w.aliases = (void *)(out + h->aliases_offset);
	w.strings = (char *)(out + h->strings_offset);
	for (uint32_t i = 0; i < nplans; i++) {
		add_module(&w, &plans[i], i);
		for (size_t k = 0; k < plans[i].count; k++) {
			const struct plan_function *f = &plans[i].functions[k];

			add_function(&w, f, i,
				f->id ? &w.functions[f->id - first_id]
				      : &w.functions[n.functions + w.nskipped++]);
		}
	}
	return out;
}
