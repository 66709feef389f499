/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "session.h"
#include "batch.h"
#include "catalog.h"
#include "probe.h"
#include "record.h"
#include "../trampolines/trap.h"
#include "watch.h"
#include "where.h"
#include "wiped.h"
#include "../arch/sys.h"
#include "../rethook/hook.h"
#include "../rethook/mirror.h"
#include "../rethook/shadow.h"
#include "../rethook/unwind.h"
#include "../trampolines/image.h"
#include "../trampolines/live.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define HWCAP2_GUARDS (1ull << 17) /* HWCAP2_BTI, of arm64 */
#define PROBE_IDS 16384 /* functions that probes may be attached to */

struct session session;

static uint64_t auxiliary(char *const *envp, uint64_t type)
{
	const Elf64_auxv_t *aux;

	while (*envp)
		envp++;
	for (aux = (const void *)(envp + 1); aux->a_type != AT_NULL; aux++)
		if (aux->a_type == type)
			return aux->a_un.a_val;
	return 0;
}

void session_see(char *const *envp)
{
	struct rlimit stack = { 0, 0 };

	sys_call(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &stack);
	sys_page = auxiliary(envp, AT_PAGESZ);
	session.phdr = auxiliary(envp, AT_PHDR);
	session.phnum = auxiliary(envp, AT_PHNUM);
	session.features = auxiliary(envp, AT_HWCAP);
	session.guards = arch_isa->elf_machine == EM_AARCH64
		&& auxiliary(envp, AT_HWCAP2) & HWCAP2_GUARDS;
	session.settings = (struct plan_settings){
		.env = &session.env,
		.functions = &session.function_filter,
		.root = (uint64_t)&shadow_root,
		.page = sys_page,
		.patch = { .page = sys_page,
			.avoid_mem = !patch_mem_executes() },
		.place = { .page = sys_page,
			.program = session.phdr,
			.loader = auxiliary(envp, AT_BASE),
			.brk = (uint64_t)sys_call(SYS_brk, 0),
			.stack_limit = stack.rlim_cur },
	};
}

int session_modules(struct modules *modules, struct maps *maps, struct arena *arena)
{
	int err = maps_read(maps, "/proc/self/maps", arena);

	if (!err)
		err = modules_find(modules, maps, session.phdr, session.phnum, arena);
	return !err || catalog_lacks(err) ? err : -EIO;
}

static int64_t tls_offset(const void *variable)
{
	return (int64_t)((uintptr_t)variable - arch_thread_pointer());
}

static void renew(struct shadow_thread *thread)
{
	record_renew(thread);
	probe_renewed(thread);
}

/* Pages of it come as they are used. NULL: tail calls take longer. */
static const struct detour_info **make_infos(void)
{
	void *memory = sys_mmap(NULL, INFOS_MAX * sizeof(struct detour_info *), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return sys_failed(memory) ? NULL : memory;
}

void session_set_env(void)
{
	mirror_setup(session.config.mode);
	session.env = (struct isa_env){
		.mode = session.config.mode,
		.tls_mirror = tls_offset(&shadow_words.mirror),
		.tls_current = tls_offset(&shadow_words.current),
		.tls_own = tls_offset(&shadow_words.own),
		.mask = shadow_root.mask,
		.features = session.features,
		.infos = make_infos(),
		.slow_entry = (uint64_t)shadow_slow_entry,
		.slow_exit = (uint64_t)shadow_slow_exit,
		.slow_unwind = (uint64_t)shadow_slow_unwind,
		.slow_release = (uint64_t)shadow_slow_release,
		.personality = (uint64_t)unwind_personality,
	};
	hook_set_env(&session.env);
	shadow_hooks = (struct shadow_hooks){
		.mode = session.config.mode,
		.infos = session.env.infos,
		.attach = record_attach,
		.renew = renew,
		.lost_call = record_lost_call,
		.borrowed = record_borrowed,
		.point = where_point,
		.watch = watch_entered,
	};
	unwind_find = unwinders_find;
}

/* In the child, where the emulator has wiped nothing. */
static void forked(void)
{
	record_wipe();
	wiped_forked();
	live_forked();
}

void session_start(void)
{
	if (session.settings.patch.avoid_mem && __register_atfork)
		__register_atfork(NULL, NULL, forked, NULL);
	session.ready = true;
}

/* How many bytes of instructions the patch at @addr replaces. */
static uint8_t window_at(const struct plan *plan, uint64_t addr)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_function *f = &plan->functions[i];

		if (f->symbol->start + f->site.offset + plan->module->bias == addr)
			return f->site.len;
	}
	return 0;
}

static int patch_live(const struct plan *plan, struct arena *arena)
{
	uint8_t *windows = arena_alloc(arena, plan->npatches);

	if (!windows)
		return -ENOMEM;
	for (size_t i = 0; i < plan->npatches; i++)
		windows[i] = window_at(plan, plan->patches[i].addr);
	return live_store(plan->patches, plan->npatches, windows, NULL, &session.settings.patch);
}

static int watch_module(const struct plan *plan, struct arena *arena)
{
	int err = patch_live(plan, arena);

	return err ? err : where_add(plan);
}

/* What the tracer watches for its own sake, probes need to know too: see watch.h. */
static int watch_process(void)
{
	struct batch batch = { .first_id = 1 };
	struct arena arena = { 0 };
	struct modules modules;
	struct maps maps;
	int err = session_modules(&modules, &maps, &arena);

	if (!err) {
		batch_plan_watched(&batch, &modules);
		batch_load(&batch);
	}
	for (size_t i = 0; !err && i < batch.nall; i++)
		err = watch_module(&batch.plans[i], &arena);
	batch_free(&batch);
	arena_free(&arena);
	return err;
}

/* What is watched leads to our code for good: where that is a part of another library (libftr.a), the
 * library must stay. libftr.so does by itself. */
static void stay(void)
{
	const Elf64_Ehdr *start;
	Dl_info info;

	if (!dladdr(&session, &info))
		return;
	start = info.dli_fbase;
	if ((uint64_t)start + start->e_phoff != session.phdr) /* not of the program itself */
		image_loader.open(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

int session_ready(void)
{
	const char *why;
	int err;

	if (session.ready)
		return 0;
	session.config.mode = MODE_COUNT;
	session.config.data[0] = 0;
	session_set_env();
	err = record_begin(&session.config, NULL, &why);
	if (!err)
		err = record_open(1, PROBE_IDS, &why);
	if (!err) {
		stay();
		err = watch_process();
	}
	if (!err)
		session_start();
	return err;
}
