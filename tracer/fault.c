/* SPDX-License-Identifier: MIT */
#include "fault.h"
#include "decimal.h"
#include "describe.h"
#include "plan.h"
#include "probe.h"
#include "wiped.h"
#include "../rethook/hook.h"
#include <errno.h>
#include <sys/mman.h>

#define EXPORTED __attribute__((visibility("default")))

/* ---- which calls ---- */

/* splitmix64: call @number has the same number however many threads there are. */
static uint64_t random_of(uint64_t seed, uint64_t number)
{
	uint64_t z = seed + number * 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

bool fault_chooses(const struct fault *fault, uint64_t number)
{
	if (number < fault->from || (fault->to && number > fault->to)
		|| (number - fault->from) % fault->every)
		return false;
	return fault->chance == ~0ull || random_of(fault->seed, number) < fault->chance;
}

bool fault_concerns(const struct fault *fault, uint64_t caller)
{
	size_t lo = 0, hi = fault->ncallers;

	if (!fault->limited)
		return true;
	/* A return address may be that of what follows the caller. */
	caller--;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (caller >= fault->callers[mid].hi)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < fault->ncallers && caller >= fault->callers[lo].lo;
}

/* Has another handler of this thread caused the call? */
static bool is_nested(void)
{
	return hook_nested() > 1;
}

/* A handler that calls the function gets the function. */
static void fault_entered(struct ftr_call *call, void *data)
{
	const struct fault *fault = data;
	void *result;

	if (is_nested() || !fault_concerns(fault, (uint64_t)ftr_call_caller(call))
		|| !fault_chooses(fault, __atomic_add_fetch(fault->seen, 1, __ATOMIC_RELAXED)))
		return;
	result = ftr_result(call, fault->type);
	if (ftr_skip(call))
		return;
	if (result)
		memcpy(result, &fault->result, fault->type == 'f' ? 4 : 8);
	if (fault->error)
		ftr_set_errno(call, fault->error);
}

/* ---- callers ---- */

struct callers {
	struct filter functions, modules;
	bool by_function; /* else whole modules */
	struct describer describer;
	struct fault *fault;
	size_t room;
	char *scratch;
	int err;
};

static void add_range(struct callers *c, uint64_t lo, uint64_t hi)
{
	struct fault *fault = c->fault;
	struct fault_range *list = fault->callers;

	if (fault->ncallers == c->room) {
		c->room = c->room ? 2 * c->room : 16;
		list = arena_alloc(&fault->arena, c->room * sizeof(*list));
		if (!list) {
			c->err = -ENOMEM;
			return;
		}
		if (fault->ncallers)
			memcpy(list, fault->callers, fault->ncallers * sizeof(*list));
		fault->callers = list;
	}
	list[fault->ncallers++] = (struct fault_range){ lo, hi };
}

static void add_functions(struct callers *c, uint64_t address)
{
	const struct plan plan = { .module = &c->describer.module };
	const struct symbols *symbols = &c->describer.symbols;
	uint64_t bias;

	if (describe_open(&c->describer, address))
		return;
	bias = c->describer.module.bias;
	for (size_t i = 0; !c->err && i < symbols->count; i++) {
		const struct symbol *s = &symbols->list[i];
		const char *names[3];

		plan_symbol_names(&plan, s, true, c->scratch, names);
		if (filter_match(&c->functions, names, 3)
			|| filter_match(&c->functions, s->aliases, s->naliases))
			add_range(c, s->start + bias, s->end + bias);
	}
}

static void add_mapping(struct callers *c, const struct mapping *map)
{
	const char *names[2] = { map->path, str_base(map->path) };

	if (!map->inode || !(map->prot & PROT_EXEC) || !filter_match(&c->modules, names, 2))
		return;
	if (c->by_function)
		add_functions(c, map->lo);
	else
		add_range(c, map->lo, map->hi);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct fault_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static int find_callers(struct fault *fault, const struct ftr_fault *wanted)
{
	struct callers c = { .by_function = wanted->caller, .fault = fault };

	fault->limited = wanted->caller || wanted->caller_module;
	if (!fault->limited)
		return 0;
	describe_begin(&c.describer);
	c.scratch = arena_alloc(&c.describer.arena, 2 * PLAN_NAME_MAX);
	if (!c.scratch || filter_parse(&c.functions, wanted->caller, &c.describer.arena)
		|| filter_parse(&c.modules, wanted->caller_module, &c.describer.arena))
		c.err = -ENOMEM;
	for (size_t i = 0; !c.err && i < c.describer.maps.count; i++)
		add_mapping(&c, &c.describer.maps.list[i]);
	describe_end(&c.describer);
	mem_sort(fault->callers, fault->ncallers, sizeof(*fault->callers), compare_ranges);
	return c.err ? c.err : fault->ncallers ? 0 : -ENOENT;
}

/* ---- making them ---- */

static bool set_result(struct fault *fault, const struct ftr_fault *wanted)
{
	uint64_t bits;

	memcpy(&bits, &wanted->real, sizeof(bits));
	fault->type = wanted->type ? wanted->type : 'i';
	fault->result = fault->type == 'i' ? wanted->value
		: fault->type == 'f'	   ? decimal_narrow(bits)
					   : bits;
	return fault->type == 'i' || fault->type == 'd' || fault->type == 'f' || fault->type == 'n';
}

static int fill(struct fault *fault, const struct ftr_fault *wanted, const char **why)
{
	uint64_t probability;
	int err;

	*why = "the last call is before the first";
	if (wanted->to && wanted->to < wanted->from)
		return -EINVAL;
	*why = "errno is never negative";
	if (wanted->error < 0)
		return -EINVAL;
	*why = "a probability is not in [0, 1], or a type none of i, d, f, n";
	memcpy(&probability, &wanted->probability, sizeof(probability));
	if (!set_result(fault, wanted) || !decimal_fraction(probability, &fault->chance))
		return -EINVAL;
	if (!(probability << 1))
		fault->chance = ~0ull;
	fault->error = wanted->error;
	fault->from = wanted->from ? wanted->from : 1;
	fault->to = wanted->to;
	fault->every = wanted->every ? wanted->every : 1;
	fault->seed = wanted->seed;
	*why = "no memory";
	fault->seen = wiped_alloc(sizeof(*fault->seen));
	if (!fault->seen)
		return -ENOMEM;
	err = find_callers(fault, wanted);
	if (err == -ENOENT)
		*why = "no such caller";
	return err;
}

int fault_make(const struct ftr_fault *wanted, struct fault **fault, const char **why)
{
	struct arena arena = { 0 };
	struct fault *made = arena_alloc(&arena, sizeof(*made));
	int err;

	*why = "no memory";
	if (!made)
		return -ENOMEM;
	made->arena = arena;
	err = fill(made, wanted, why);
	if (err)
		fault_free(made);
	else
		*fault = made;
	return err;
}

void fault_free(void *data)
{
	struct fault *fault = data;
	struct arena arena = fault->arena;

	if (fault->seen)
		wiped_free(fault->seen, sizeof(*fault->seen));
	arena_free(&arena);
}

/* Calls are counted from 1 again. */
static void restart(void *data)
{
	struct fault *fault = data;

	__atomic_store_n(fault->seen, 0, __ATOMIC_RELAXED);
}

EXPORTED int ftr_override_sized(const struct ftr_probe_spec *given, size_t spec_size,
	const struct ftr_fault *wanted, size_t fault_size, struct ftr_probe **probe)
{
	struct ftr_probe_spec spec;
	struct fault *fault;
	const char *why;
	int err;

	if (!given || spec_size != sizeof(spec) || !wanted || fault_size != sizeof(*wanted)
		|| given->entry || given->ret || given->data)
		return probe_fail(-EINVAL, "no specification or fault, or one of another version");
	err = fault_make(wanted, &fault, &why);
	if (err)
		return probe_fail(err, "%s", why);
	spec = *given;
	spec.entry = fault_entered;
	spec.data = fault;
	spec.flags |= FTR_GENERAL_REGS; /* all of us is built so */
	err = ftr_attach(&spec, probe);
	if (err < 0) {
		fault_free(fault);
		return err;
	}
	probe_on_detach(*probe, fault_free);
	probe_on_reset(*probe, restart);
	return err;
}

EXPORTED int ftr_fail(const char *name, uint64_t value, int error, uint64_t from, uint64_t to,
	struct ftr_probe **probe)
{
	const struct ftr_probe_spec spec = { .name = name };
	const struct ftr_fault fault = { .value = value, .error = error, .from = from, .to = to };

	return ftr_override(&spec, &fault, probe);
}
