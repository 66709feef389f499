/* SPDX-License-Identifier: MIT */
#include "late.h"
#include "record.h"
#include "../arch/sys.h"
#include "../rethook/shadow.h"
#include "../trampolines/patch.h"
#include <link.h>

/* A module that is or was loaded. One that comes back to the same place gets its patches back. */
struct known {
	struct known *next;
	uint64_t bias, ld;
	bool loaded, seen;
	uint8_t build_id[32];
	size_t build_id_len;
	struct isa_patch *patches;
	size_t npatches;
};

/* Guarded by the loader's lock, which whoever calls late_changed() holds. */
static struct {
	const struct session *session;
	const struct r_debug *loader;
	struct arena arena;
	struct known *known;
	uint32_t batches;
	bool busy; /* our own images come through here too */
} late;

static struct known *find(const struct module *m)
{
	struct known *k = late.known;

	while (k && (k->bias != m->bias || k->ld != m->ld))
		k = k->next;
	return k;
}

static struct known *note(const struct module *m)
{
	struct known *k = find(m);

	if (!k) {
		k = arena_alloc(&late.arena, sizeof(*k));
		if (!k)
			return NULL;
		*k = (struct known){ .next = late.known, .bias = m->bias, .ld = m->ld };
		late.known = k;
	}
	k->loaded = k->seen = true;
	return k;
}

void late_start(const struct session *session, const struct modules *modules)
{
	late.session = session;
	late.loader = modules->loader;
	late.batches = 1;
	for (size_t i = 0; i < modules->count; i++)
		note(&modules->list[i]);
}

static bool has_build_id(const struct known *k, const struct module *m)
{
	struct elffile elf;
	const char *why;
	bool same;

	if (!k->build_id_len || modules_open(m, &elf, &why))
		return false;
	same = elf.build_id.bytes && elf.build_id.size == k->build_id_len
		&& !memcmp(elf.build_id.bytes, k->build_id, k->build_id_len);
	modules_close(&elf);
	return same;
}

/* Keep what the module needs should it go and come back. */
static void remember(const struct plan *plan)
{
	struct known *k = find(plan->module);
	const struct elf_part *id = &plan->elf.build_id;

	if (!k || !id->bytes || id->size > sizeof(k->build_id))
		return;
	k->patches = arena_alloc(&late.arena, plan->npatches * sizeof(*k->patches) + 1);
	if (!k->patches)
		return;
	memcpy(k->patches, plan->patches, plan->npatches * sizeof(*k->patches));
	k->npatches = plan->npatches;
	memcpy(k->build_id, id->bytes, id->size);
	k->build_id_len = id->size;
}

static void trace_new(const struct modules *modules)
{
	struct batch batch = { .first_id = record_next_id() };
	const char *why = "no room for more functions";
	int err = 0;

	batch_plan(&batch, late.session, modules);
	if (batch.nplans) {
		batch_load(&batch, late.session);
		err = record_grow(batch.next_id);
		if (!err)
			err = batch_record(&batch, late.batches++, &why);
		if (err)
			config_complain("%s: not traced: %s", batch.plans[0].module->path, why);
		else
			batch_patch(&batch, late.session);
	}
	for (size_t i = 0; !err && i < batch.nplans; i++)
		remember(&batch.plans[i]);
	batch_free(&batch);
}

/* Leave in @modules those that have come and are to be planned. */
static void keep_new(struct modules *modules)
{
	const struct patch_how how = { .page = late.session->settings.page };
	size_t n = 0;

	for (struct known *k = late.known; k; k = k->next)
		k->seen = false;
	for (size_t i = 0; i < modules->count; i++) {
		const struct module *m = &modules->list[i];
		struct known *k = find(m);
		bool was_loaded = k && k->loaded;

		note(m);
		if (was_loaded)
			continue;
		if (k && has_build_id(k, m))
			patch_store(k->patches, k->npatches, NULL, &how);
		else
			modules->list[n++] = *m;
	}
	modules->count = n;
	for (struct known *k = late.known; k; k = k->next)
		k->loaded = k->seen;
}

ARCH_ALIGNS_STACK void late_changed(void)
{
	struct arena arena = { 0 };
	struct modules modules;
	struct maps maps;

	if (!late.session || late.busy || late.loader->r_state != RT_CONSISTENT
		|| !shadow_pause(true))
		return;
	late.busy = true;
	if (!maps_read(&maps, "/proc/self/maps", &arena)
		&& !modules_find(&modules, &maps, late.session->phdr, late.session->phnum, &arena)) {
		keep_new(&modules);
		if (modules.count)
			trace_new(&modules);
	}
	arena_free(&arena);
	late.busy = false;
	shadow_pause(false);
}
