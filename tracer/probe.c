/* SPDX-License-Identifier: MIT */
#include "probe.h"
#include "loader.h"
#include "pool.h"
#include "session.h"
#include "wiped.h"
#include "../arch/sys.h"
#include "../rethook/rcu.h"
#include "../rethook/thread.h"
#include "../trampolines/live.h"
#include <errno.h>
#include <signal.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))
#define SPINS_MAX  1000 /* before the processor is given away */
#define BLOCKS_MAX 16384 /* threads at a time whose own numbers are told apart */

/* Who reads it without the lock: ftr_read() and its kin, and threads that begin. */
struct ftr_probe {
	struct ftr_probe *next; /* RCU */
	const struct ftr_probe *self; /* NULL: it is gone. Pool memory stays readable */
	uint64_t serial;
	struct ftr_probe_spec spec; /* without strings */
	bool stays; /* a thread may be reading it for ever */
	void (*release)(void *data); /* see probe_on_detach(), */
	void (*reset)(void *data);   /* and probe_on_reset() */
	struct target **targets;
	size_t ntargets, room;
	struct ftr_counts base;	  /* what there was before, in all, */
	uint64_t process;	  /* in this one (see this_process()), */
	struct ftr_counts *bases; /* and by thread, indexed by shadow_thread.block; NULL: nothing;
				   * a fork wipes it, as it does the counts */
};

static struct {
	struct ftr_probe *first; /* RCU */
	struct ftr_probe *retired; /* detached by a handler while others of its handlers ran */
	uint64_t serial;
	uint64_t *process; /* a fork wipes it; 0: not numbered yet */
	uint64_t processes; /* numbers given, in this one and its ancestors */
	int holder; /* thread id of who holds the lock; 0: nobody */
	unsigned closing; /* threads that close images, without the lock */
} probes;

/* ---- errors ---- */

static __thread char error_text[192] __attribute__((tls_model("initial-exec")));

int probe_fail(int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	str_vprint(error_text, sizeof(error_text), format, ap);
	va_end(ap);
	return err;
}

int probe_fail_system(int err)
{
	static const struct {
		int err;
		const char *why;
	} reasons[] = {
		{ -ENOMEM, "no memory" },
		{ -EMFILE, "no file descriptor is left" },
		{ -ENFILE, "the system has no file descriptor left" },
		{ -EIO, "/proc/self/maps cannot be read" },
		{ -EPERM, "system calls may be forbidden (seccomp)" },
		{ -ENOSYS, "this kernel cannot keep memory from forked children (MADV_WIPEONFORK)" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].err == err)
			return probe_fail(err, "%s", reasons[i].why);
	return probe_fail(err, "error %d", -err);
}

EXPORTED const char *ftr_error(void)
{
	return error_text;
}

static int fail_handle(int err)
{
	return probe_fail(err, "no such probe, or nowhere to put the answer");
}

/* ---- one at a time ---- */

/*
 * The lock, with all but LIVE_SIGNALS blocked and nothing recorded on this thread: what is called from
 * here is nobody's business. A holder that is not in this process (it forked away) has lost it.
 * Where system calls may be forbidden, none is made.
 */
struct quiet {
	uint64_t signals;
	bool paused, sealed;
	int error; /* errno, which the loader changes */
	const void *frame; /* of the function of the API */
	struct detours *unused; /* images to be closed at the end */
};

static void hold(int me)
{
	for (int free = 0; !__atomic_compare_exchange_n(&probes.holder, &free, me, false,
		     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);) {
		if (sys_call(SYS_tgkill, sys_getpid(), free, 0) != -ESRCH) {
			sys_call(SYS_sched_yield);
			free = 0;
		}
	}
}

static void let_go(void)
{
	__atomic_store_n(&probes.holder, 0, __ATOMIC_RELEASE);
}

static void begin(struct quiet *q)
{
	uint64_t all = ~LIVE_SIGNALS;

	q->error = *hook_errno();
	q->sealed = shadow_hooks.sealed;
	q->paused = false;
	q->unused = NULL;
	if (!q->sealed)
		sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &q->signals, 8);
}

static void take_lock(struct quiet *q)
{
	while (q->sealed && __atomic_exchange_n(&probes.holder, 1, __ATOMIC_ACQUIRE))
		;
	if (q->sealed)
		return;
	hold(sys_gettid());
	q->paused = session.ready && shadow_pause(true);
}

static void lock(struct quiet *q)
{
	begin(q);
	take_lock(q);
}

struct job {
	struct quiet *q;
	void (*work)(void *arg);
	void *arg;
};

static void lock_and_work(void *arg)
{
	struct job *job = arg;

	take_lock(job->q);
	job->work(job->arg);
}

/*
 * lock(), then @work(@arg), which may load modules, and reads and patches code that another thread
 * must not unload: for that time the loader's lock is held too.
 */
static void lock_loader(struct quiet *q, void (*work)(void *arg), void *arg)
{
	struct job job = { q, work, arg };

	begin(q);
	if (q->sealed)
		lock_and_work(&job);
	else
		loader_locked(lock_and_work, &job);
}

static void close_unused(const struct quiet *q)
{
	if (!q->unused)
		return;
	probes.closing++;
	let_go();
	detours_close(q->unused);
	hold(sys_gettid());
	detours_free(q->unused);
	probes.closing--;
}

static void unlock(const struct quiet *q)
{
	close_unused(q);
	if (q->paused)
		shadow_pause(false);
	let_go();
	*hook_errno() = q->error;
	if (!q->sealed)
		thread_restore_signals(&q->signals);
}

/*
 * A child of fork(2) must not find anything half done, nor a lock of the loader held that we hold
 * for the time of a look at its list. (glibc's; a C library that has none is not helped.)
 */
static void before_fork(void)
{
	if (shadow_hooks.sealed)
		return;
	for (hold(sys_gettid()); probes.closing; hold(sys_gettid())) {
		let_go();
		sys_call(SYS_sched_yield);
	}
}

static void watch_forks(void)
{
	static bool watched;

	if (!watched && __register_atfork)
		__register_atfork(before_fork, let_go, let_go, NULL);
	watched = true;
}

/* ---- which functions ---- */

struct search {
	const struct ftr_probe_spec *spec;
	struct ftr_probe *probe;
	const struct catalog_module *unread; /* its functions are not known */
	bool unresolved; /* there is an indirect function, but nobody knows what it stands for */
	size_t refused;	    /* functions that cannot be served, */
	const char *module; /* the last of them, or else a part of one, */
	const char *symbol;
	enum site_reason reason; /* and why */
	int err;
};

static bool reserve(struct ftr_probe *p)
{
	size_t room = p->room ? 2 * p->room : 4;
	struct target **list;

	if (p->ntargets < p->room)
		return true;
	list = pool_alloc(room * sizeof(*list));
	if (!list)
		return false;
	if (p->ntargets)
		memcpy(list, p->targets, p->ntargets * sizeof(*list));
	pool_free(p->targets, p->room * sizeof(*list));
	p->targets = list;
	p->room = room;
	return true;
}

/* What a compiler moves out of a function ("f.cold") has no calls: nothing is missed with it. */
static void refuse(struct search *s, const struct target *t)
{
	bool function = t->function.site.reason != REASON_FRAGMENT;

	if (!function && s->refused)
		return;
	s->refused += function;
	s->module = t->point.function.module;
	s->symbol = t->point.function.name;
	s->reason = t->function.site.reason;
}

static void take(struct search *s, struct catalog_module *module, const struct symbol *symbol,
	const char *called)
{
	struct target *t;

	int err = catalog_code(module);

	if (err) {
		if (catalog_lacks(err) || !(s->spec->flags & FTR_BEST_EFFORT))
			s->err = probe_fail(catalog_lacks(err) ? err : -ENOTSUP, "%s: %s",
				module->module.path, module->problem);
		return;
	}
	t = reserve(s->probe) ? target_of(module, symbol, called) : NULL;
	if (!t) {
		s->err = probe_fail(-ENOMEM, "no memory");
		return;
	}
	for (size_t i = 0; i < s->probe->ntargets; i++)
		if (s->probe->targets[i] == t)
			return;
	if (t->function.site.choice == SITE_REFUSED
		|| (s->spec->ret && t->function.site.entry_only)) {
		refuse(s, t);
		return;
	}
	s->probe->targets[s->probe->ntargets++] = t;
}

/* False: no function begins there. */
static bool take_address(struct search *s, uint64_t address, const char *called)
{
	struct catalog_module *module = catalog_at(address);
	const struct symbol *symbol = NULL;

	if (module && !catalog_names(module))
		symbol = catalog_symbol(module, address);
	if (!symbol || symbol->ifunc)
		return false;
	take(s, module, symbol, called);
	return true;
}

/* The library's own code, where it is part of the program. */
extern const char __start_ftr_text[] __attribute__((weak, visibility("hidden")));
extern const char __stop_ftr_text[] __attribute__((weak, visibility("hidden")));

static bool is_ours(uint64_t address)
{
	return address - (uint64_t)__start_ftr_text
		< (uint64_t)__stop_ftr_text - (uint64_t)__start_ftr_text;
}

static bool matches(const char *glob, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && str_glob(glob, names[i]))
			return true;
	return false;
}

/* What an indirect function (STT_GNU_IFUNC) is called for is its implementation. */
static void take_named(struct search *s, struct catalog_module *module, char *scratch)
{
	const struct symbols *symbols = &module->plan.symbols;
	const char *names[3];

	for (size_t i = 0; !s->err && i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];

		plan_symbol_names(&module->plan, symbol, true, scratch, names);
		if (names[2] && str_find(symbol->name, ".part."))
			names[2] = NULL; /* which the function itself calls, too */
		if (is_ours(symbol->start + module->module.bias)
			|| (!matches(s->spec->name, names, 3)
				&& !matches(s->spec->name, symbol->aliases, symbol->naliases)))
			continue;
		if (!symbol->ifunc)
			take(s, module, symbol, NULL);
		else if (!take_address(s, catalog_resolve(module, symbol), symbol->name))
			s->unresolved = true;
	}
}

static bool module_matches(const struct catalog_module *module, const char *glob)
{
	const char *names[2] = { module->module.path, str_base(module->module.path) };

	return !glob || matches(glob, names, 2);
}

static void search_modules(struct search *s)
{
	char *scratch = pool_alloc(2 * PLAN_NAME_MAX);
	uint64_t address = (uint64_t)s->spec->function;

	if (!scratch) {
		s->err = probe_fail(-ENOMEM, "no memory");
		return;
	}
	for (struct catalog_module *m = catalog_first(); m && !s->err; m = m->next) {
		int err;

		if (m->gone || !module_matches(m, s->spec->module)
			|| (address && m != catalog_at(address)))
			continue;
		err = catalog_names(m);
		if (catalog_lacks(err))
			s->err = probe_fail(err, "%s: %s", m->module.path, m->problem);
		else if (err)
			s->unread = m;
		else if (s->spec->name)
			take_named(s, m, scratch);
		else
			take_address(s, address, NULL);
	}
	pool_free(scratch, 2 * PLAN_NAME_MAX);
}

/* With a name, @function chooses among its bearers. */
static void keep_address(struct ftr_probe *p, uint64_t address)
{
	size_t n = 0;

	for (size_t i = 0; i < p->ntargets; i++)
		if (!address || p->targets[i]->address == address)
			p->targets[n++] = p->targets[i];
	p->ntargets = n;
}

/* The kernel's own code in every process (vDSO), in no file. By its functions' names on our CPUs. */
static bool is_kernels(const struct ftr_probe_spec *spec)
{
	return spec->name && (str_starts(spec->name, "__vdso_") || str_starts(spec->name, "__kernel_"));
}

/* Nothing was found. */
static int fail_search(const struct search *s)
{
	const struct ftr_probe_spec *spec = s->spec;
	char what[160];

	if (spec->name)
		str_print(what, sizeof(what), "%s: ", spec->name);
	else
		str_print(what, sizeof(what), "%p: ", (void *)spec->function);
	if (s->unresolved)
		return probe_fail(-ENOTSUP, "%snot known which code stands for this indirect function", what);
	if (is_kernels(spec))
		return probe_fail(-ENOTSUP, "%scode of the kernel (vDSO) is not patched", what);
	return probe_fail(-ENOENT, "%s%s%s%s%s%s", what,
		spec->name ? "no such function" : "no function begins there",
		s->unread ? "; " : "", s->unread ? s->unread->module.path : "",
		s->unread ? ": " : "", s->unread ? s->unread->problem : "");
}

static int find_functions(struct ftr_probe *probe, const struct ftr_probe_spec *spec)
{
	struct search s = { .spec = spec, .probe = probe };

	search_modules(&s);
	keep_address(probe, (uint64_t)spec->function);
	if (s.err)
		return s.err;
	if (probe->ntargets ? s.refused && !(spec->flags & FTR_BEST_EFFORT) : s.symbol != NULL)
		return probe_fail(s.reason >= REASON_RETURNS_TWICE ? -ENODATA : -ENOTSUP,
			"%s: %s (%s)", s.symbol, isa_reason_name(s.reason), s.module);
	return probe->ntargets ? 0 : fail_search(&s);
}

/* ---- what functions have ---- */

static bool has_handlers(const struct ftr_probe *p)
{
	return p->spec.entry || p->spec.ret;
}

/* Count @p among the probes of @t, or no longer. */
static void enlist_one(const struct ftr_probe *p, struct target *t, int by)
{
	if (p->spec.ret)
		t->nreturns += (uint32_t)by;
	if (p->spec.entry)
		t->nentries += (uint32_t)by;
	if (!has_handlers(p))
		t->ncounters += (uint32_t)by;
}

static void enlist(const struct ftr_probe *p, int by)
{
	for (size_t i = 0; i < p->ntargets; i++)
		enlist_one(p, p->targets[i], by);
}

static size_t list_size(uint32_t count)
{
	return sizeof(struct hook_list) + count * sizeof(struct hook);
}

static void free_list(struct hook_list *list)
{
	if (list)
		pool_free(list, list_size(list->count));
}

/* ---- lists of handlers ---- */

static struct hook hook_of(const struct ftr_probe *p)
{
	return (struct hook){ .serial = p->serial, .entry = p->spec.entry, .ret = p->spec.ret,
		.data = p->spec.data, .thread = p->spec.thread,
		.vectors = !(p->spec.flags & FTR_GENERAL_REGS)
			&& ((p->spec.entry && hook_uses_vectors(p->spec.entry))
				|| (p->spec.ret && hook_uses_vectors(p->spec.ret))) };
}

static bool is_kept(const struct hook *h, uint64_t serial)
{
	return h->serial != serial && !h->silent;
}

/* @old without the hook of @serial, and with @added at its end. *@made is false without memory. */
static struct hook_list *new_list(const struct hook_list *old, uint64_t serial,
	const struct hook *added, bool *made)
{
	uint32_t n = 0, count = added != NULL;
	struct hook_list *list;

	for (uint32_t i = 0; old && i < old->count; i++)
		count += is_kept(&old->hooks[i], serial);
	*made = true;
	if (!count)
		return NULL;
	list = pool_alloc(list_size(count));
	*made = list;
	if (!list)
		return NULL;
	for (uint32_t i = 0; old && i < old->count; i++)
		if (is_kept(&old->hooks[i], serial))
			list->hooks[n++] = old->hooks[i];
	if (added)
		list->hooks[n++] = *added;
	list->count = n;
	for (uint32_t i = 0; i < n; i++)
		list->vectors |= list->hooks[i].vectors;
	return list;
}

/*
 * Give the functions of @p new lists, with its hook or without it. All or, without memory, none;
 * then false.
 */
static bool publish(const struct ftr_probe *p, const struct hook *added)
{
	size_t size = p->ntargets * sizeof(struct hook_list *), n;
	struct hook_list **lists = pool_alloc(size);
	bool made = lists, unused = true;

	for (n = 0; made && n < p->ntargets; n++)
		lists[n] = new_list(p->targets[n]->point.list, p->serial, added, &made);
	for (size_t i = 0; made && i < n; i++)
		lists[i] = hook_publish(&p->targets[i]->point, lists[i]);
	if (made)
		unused = hook_synchronize();
	for (size_t i = 0; lists && unused && i < n; i++)
		free_list(lists[i]);
	pool_free(lists, size);
	return made;
}

static void silence(const struct ftr_probe *p)
{
	for (size_t i = 0; i < p->ntargets; i++)
		hook_silence(&p->targets[i]->point, p->serial);
}

/* ---- numbers ---- */

static uint64_t get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

/* Does @p make sure that the returns of @t are seen while it is there? */
static bool sees_returns(const struct ftr_probe *p, const struct target *t)
{
	return !target_is_entry_only(t) && (p->spec.ret || !has_handlers(p));
}

/*
 * What @thread has counted of the functions of @p. The ends first: what is counted meanwhile must
 * not let them exceed the calls.
 */
static void add_thread(const struct ftr_probe *p, const struct shadow_thread *thread,
	struct ftr_counts *sum)
{
	const struct func_record *r = shadow_records_of(thread);

	for (size_t i = 0; r && i < p->ntargets; i++) {
		const struct target *t = p->targets[i];

		if (!sees_returns(p, t))
			continue;
		sum->returned += get(&r[t->function.id].returned);
		sum->unwound += get(&r[t->function.id].unwound);
	}
	for (size_t i = 0; r && i < p->ntargets; i++) {
		const struct target *t = p->targets[i];

		sum->calls += get(&r[t->function.id].calls);
		if (!sees_returns(p, t))
			sum->calls += get(&r[t->entry_id].calls);
	}
}

static void add_all(const struct ftr_probe *p, struct ftr_counts *sum)
{
	struct ftr_counts later = { 0 };

	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		add_thread(p, t, sum);
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		add_thread(p, t, &later);
	sum->calls = later.calls;
}

/* The ends of calls that were in progress at @base may be among those since. */
static void subtract(struct ftr_counts *counts, const struct ftr_counts *base)
{
	uint64_t ended = base->returned + base->unwound, older;
	uint64_t open = base->calls > ended ? base->calls - ended : 0;

	counts->calls -= base->calls;
	counts->returned -= base->returned;
	counts->unwound -= base->unwound;
	older = counts->returned + counts->unwound;
	older = older > counts->calls ? older - counts->calls : 0;
	older = older < open ? older : open;
	if (older > counts->returned) {
		counts->unwound -= older - counts->returned;
		older = counts->returned;
	}
	counts->returned -= older;
}

/* A number that parent and child do not share: what is noted with it counts in one of them only. */
static uint64_t this_process(void)
{
	uint64_t none = 0, number = __atomic_load_n(probes.process, __ATOMIC_ACQUIRE);

	if (number)
		return number;
	number = __atomic_add_fetch(&probes.processes, 1, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(probes.process, &none, number, false, __ATOMIC_ACQ_REL,
		       __ATOMIC_ACQUIRE)
		? number
		: none;
}

static struct ftr_counts *bases_of(struct ftr_probe *p)
{
	struct ftr_counts *bases = __atomic_load_n(&p->bases, __ATOMIC_ACQUIRE), *none = NULL;
	size_t size = BLOCKS_MAX * sizeof(*bases);

	if (bases)
		return bases;
	bases = wiped_alloc(size);
	if (!bases)
		return NULL;
	if (__atomic_compare_exchange_n(
		    &p->bases, &none, bases, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return bases;
	wiped_free(bases, size);
	return none;
}

/* From now on @thread's numbers count from what they are. */
static void rebase(struct ftr_probe *p, const struct shadow_thread *thread)
{
	struct ftr_counts now = { 0 }, *bases;

	add_thread(p, thread, &now);
	if (thread->block >= BLOCKS_MAX || (!now.calls && !p->bases))
		return;
	bases = bases_of(p);
	if (bases)
		bases[thread->block] = now;
}

static void rebase_all(struct ftr_probe *p)
{
	p->base = (struct ftr_counts){ 0 };
	add_all(p, &p->base);
	p->process = this_process();
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		rebase(p, t);
}

void probe_renewed(struct shadow_thread *thread)
{
	rcu_lock(thread, 0);
	for (struct ftr_probe *p = __atomic_load_n(&probes.first, __ATOMIC_ACQUIRE); p;
		p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE))
		rebase(p, thread);
	rcu_unlock(thread, 0);
}

static bool is_probe(const struct ftr_probe *probe)
{
	return probe && __atomic_load_n(&probe->self, __ATOMIC_RELAXED) == probe;
}

EXPORTED int ftr_read_thread(const struct ftr_probe *p, int tid, struct ftr_counts *counts)
{
	const struct shadow_thread *t;

	if (!is_probe(p) || !counts)
		return fail_handle(-EINVAL);
	*counts = (struct ftr_counts){ 0 };
	t = tid ? thread_first() : shadow_self();
	while (t && tid && t->tid != tid)
		t = thread_next(t);
	if (!t)
		return 0;
	add_thread(p, t, counts);
	if (p->bases && t->block < BLOCKS_MAX)
		subtract(counts, &p->bases[t->block]);
	return 0;
}

EXPORTED int ftr_read(const struct ftr_probe *p, struct ftr_counts *counts)
{
	if (!is_probe(p) || !counts)
		return fail_handle(-EINVAL);
	if (p->spec.thread)
		return ftr_read_thread(p, p->spec.thread, counts);
	*counts = (struct ftr_counts){ 0 };
	add_all(p, counts);
	if (p->process == this_process())
		subtract(counts, &p->base);
	return 0;
}

EXPORTED int ftr_reset(struct ftr_probe *p)
{
	if (!is_probe(p))
		return fail_handle(-EINVAL);
	rebase_all(p);
	if (p->reset)
		p->reset(p->spec.data);
	return 0;
}

EXPORTED int ftr_probe_function(const struct ftr_probe *p, unsigned index,
	struct ftr_function *function)
{
	if (!is_probe(p) || !function || index >= p->ntargets)
		return fail_handle(-ENOENT);
	*function = p->targets[index]->point.function;
	return 0;
}

/* ---- attach and detach ---- */

static void free_probe(struct ftr_probe *p)
{
	if (p->bases)
		wiped_free(p->bases, BLOCKS_MAX * sizeof(*p->bases));
	pool_free(p->targets, p->room * sizeof(*p->targets));
	p->self = NULL;
	pool_free(p, sizeof(*p));
}

static void link_probe(struct ftr_probe *p)
{
	p->next = probes.first;
	__atomic_store_n(&probes.first, p, __ATOMIC_RELEASE);
}

static bool unlink_probe(const struct ftr_probe *p)
{
	struct ftr_probe **at = &probes.first;

	while (*at && *at != p)
		at = &(*at)->next;
	if (!*at)
		return false;
	__atomic_store_n(at, p->next, __ATOMIC_RELEASE);
	return true;
}

static int check_room(const struct ftr_probe *p)
{
	for (size_t i = 0; p->spec.ret && i < p->ntargets; i++)
		if (p->targets[i]->nreturns == HOOK_RETURNS_MAX)
			return probe_fail(-ENOSPC, "%s: has %u return handlers, which is the most",
				p->targets[i]->point.function.name, HOOK_RETURNS_MAX);
	return 0;
}

/* Leave out those that could not be patched for now. */
static void drop_busy(struct ftr_probe *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->ntargets; i++) {
		struct target *t = p->targets[i];

		if (t->busy)
			enlist_one(p, t, -1);
		else
			p->targets[n++] = t;
	}
	p->ntargets = n;
}

struct attachment {
	struct quiet *q;
	const struct ftr_probe_spec *spec;
	struct ftr_probe *probe;
	int err;
};

static int fail_targets(const struct ftr_probe *p, int err, const char *why)
{
	return probe_fail(err, "%s%s: %s", p->targets[0]->point.function.name,
		p->ntargets > 1 ? " and others" : "", why);
}

static bool has_room_for_returns(const struct ftr_probe *p)
{
	unsigned most = 0;

	for (size_t i = 0; i < p->ntargets; i++)
		if (p->targets[i]->nreturns > most)
			most = p->targets[i]->nreturns;
	return !p->spec.ret || hook_prepare_returns(most);
}

/* The functions and their detours. */
static int prepare(struct ftr_probe *p, const struct ftr_probe_spec *spec)
{
	const char *why;
	int err = catalog_refresh();

	if (err)
		return probe_fail_system(err);
	err = find_functions(p, spec);
	if (!err)
		err = check_room(p);
	if (err)
		return err;
	enlist(p, 1);
	err = target_make(p->targets, p->ntargets, &why);
	if (!err && !has_room_for_returns(p)) {
		why = "no memory for the return handlers of all threads";
		err = -ENOMEM;
	}
	if (!err)
		return 0;
	enlist(p, -1);
	return fail_targets(p, err, why);
}

static int attach(struct ftr_probe *p, const void *frame)
{
	const struct hook hook = hook_of(p);
	const char *why, *ignored;
	int err =
		target_lead(p->targets, p->ntargets, frame, p->spec.flags & FTR_BEST_EFFORT, &why);

	if (err) {
		enlist(p, -1);
		return fail_targets(p, err, why);
	}
	drop_busy(p);
	rebase_all(p);
	link_probe(p);
	if (!has_handlers(p) || publish(p, &hook))
		return 0;
	unlink_probe(p);
	enlist(p, -1);
	target_lead(p->targets, p->ntargets, frame, true, &ignored);
	return fail_targets(p, -ENOMEM, "no memory");
}

static void make_ready(void *err)
{
	watch_forks();
	*(int *)err = session_ready();
}

static void attach_locked(void *arg)
{
	struct attachment *a = arg;
	struct ftr_probe *p;

	make_ready(&a->err);
	if (!a->err && !probes.process) {
		probes.process = wiped_alloc(sizeof(*probes.process));
		a->err = probes.process ? 0 : -ENOMEM;
	}
	if (a->err) {
		probe_fail_system(a->err);
		return;
	}
	if (!a->q->paused)
		a->q->paused = shadow_pause(true);
	p = a->probe = pool_alloc(sizeof(*p));
	if (!p) {
		a->err = probe_fail(-ENOMEM, "no memory");
		return;
	}
	p->spec = *a->spec;
	p->spec.name = p->spec.module = NULL;
	p->self = p;
	p->serial = ++probes.serial;
	a->err = prepare(p, a->spec);
	if (!a->err)
		a->err = attach(p, a->q->frame);
}

/* Is anything asked for, and in a way that we know? */
static int check(const struct ftr_probe_spec *spec, size_t size, struct ftr_probe **probe)
{
	if (!spec || !probe || size != sizeof(*spec))
		return probe_fail(-EINVAL, "no specification, or one of another version");
	if (!spec->function && !spec->name)
		return probe_fail(-EINVAL, "no function: give its address or its name");
	if (spec->flags & ~(unsigned)(FTR_GENERAL_REGS | FTR_BEST_EFFORT))
		return probe_fail(-EINVAL, "flags 0x%x: unknown", spec->flags);
	if (spec->thread < 0)
		return probe_fail(-EINVAL, "thread %d: no thread has a negative id", spec->thread);
	if ((spec->entry || spec->ret) && !arch_calls_handlers)
		return probe_fail(-ENOSYS, "no handlers on this CPU, only counts");
	if (shadow_hooks.sealed)
		return probe_fail(-EPERM, "system calls may be forbidden (seccomp)");
	return 0;
}

EXPORTED int ftr_attach_sized(const struct ftr_probe_spec *spec, size_t size,
	struct ftr_probe **probe)
{
	struct quiet q = { .frame = __builtin_frame_address(0) };
	struct attachment a = { .q = &q, .spec = spec, .err = check(spec, size, probe) };

	if (a.err)
		return a.err;
	lock_loader(&q, attach_locked, &a);
	if (a.err && a.probe)
		free_probe(a.probe);
	unlock(&q);
	if (a.err)
		return a.err;
	*probe = a.probe;
	return (int)a.probe->ntargets;
}

int probe_prepare(void)
{
	struct quiet q = { .frame = __builtin_frame_address(0) };
	int err;

	if (shadow_hooks.sealed)
		return -EPERM;
	lock_loader(&q, make_ready, &err);
	unlock(&q);
	return err;
}

/* Handlers of the probe may be running in other threads. */
static void wait_for_handlers(const struct ftr_probe *p)
{
	for (unsigned n = 0; has_handlers(p) && !hook_in_handler() && hook_running(p->serial); n++)
		if (n > SPINS_MAX)
			sys_call(SYS_sched_yield);
}

/* Are there no probes any more, and do they not come and go all the time? */
static bool is_rest(void)
{
	static uint64_t last;
	struct timespec now = { 0, 0 };
	uint64_t before = last;

	if (probes.first)
		return false;
	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	last = (uint64_t)now.tv_sec;
	return last - before > 1;
}

/* Give back what is not needed. Every thread has to be heard for that: not too often, therefore. */
static void clean_up(struct quiet *q)
{
	bool rest = is_rest();

	target_tidy();
	if (rest)
		live_release(); /* SIGTRAP goes back to the program */
	if (q->paused && !hook_in_handler())
		q->unused = detours_sweep(rest, q->frame);
}

struct detachment {
	struct quiet *q;
	struct ftr_probe *probe;
	bool knows_modules; /* else code of one may be gone, and is not touched */
	const char *why;
	int err;
};

/* The handlers are out of the lists; free what they need when nobody uses it. */
static int detach(struct detachment *d)
{
	struct ftr_probe *p = d->probe;

	if (has_handlers(p) && !publish(p, NULL))
		silence(p);
	if (d->q->sealed)
		return probe_fail(-EPERM, "system calls may be forbidden (seccomp)");
	p->stays = !hook_synchronize();
	if (!d->err)
		d->err = target_lead(p->targets, p->ntargets, d->q->frame, true, &d->why);
	if (d->err)
		probe_fail(d->err, "%s: %s", p->targets[0]->point.function.name, d->why);
	if (d->knows_modules)
		clean_up(d->q);
	return d->err;
}

/* Detours that do less may be missing. */
static void detach_locked(void *arg)
{
	struct detachment *d = arg;
	int err = d->q->sealed ? 0 : catalog_refresh();

	d->knows_modules = !err;
	if (!unlink_probe(d->probe)) {
		d->probe = NULL;
		return;
	}
	enlist(d->probe, -1);
	d->err = err;
	d->why = "the loaded modules cannot be read";
	if (!err && !d->q->sealed)
		d->err = target_make(d->probe->targets, d->probe->ntargets, &d->why);
	d->err = detach(d);
}

static void free_retired(void)
{
	struct ftr_probe **at = &probes.retired;

	while (*at) {
		struct ftr_probe *p = *at;

		if (has_handlers(p) && hook_running(p->serial)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		if (p->release)
			p->release(p->spec.data);
		free_probe(p);
	}
}

void probe_on_detach(struct ftr_probe *p, void (*release)(void *data))
{
	p->release = release;
}

void probe_on_reset(struct ftr_probe *p, void (*reset)(void *data))
{
	p->reset = reset;
}

EXPORTED int ftr_detach(struct ftr_probe *p)
{
	struct quiet q = { .frame = __builtin_frame_address(0) };
	struct detachment d = { .q = &q, .probe = p };
	int err;

	if (!__atomic_load_n(&probes.first, __ATOMIC_RELAXED))
		return probe_fail(-EINVAL, "no such probe");
	lock_loader(&q, detach_locked, &d);
	err = d.probe ? d.err : probe_fail(-EINVAL, "no such probe");
	unlock(&q);
	if (err == -EINVAL || err == -EPERM)
		return err;
	wait_for_handlers(p);
	if (p->stays)
		return err;
	lock(&q);
	p->next = probes.retired;
	probes.retired = p;
	free_retired();
	unlock(&q);
	return err;
}
