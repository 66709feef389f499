/* SPDX-License-Identifier: MIT */
/* Expectations: how they are made, verified and ended. */
#include "expect.h"
#include "describe.h"
#include "wiped.h"
#include "../arch/sys.h"
#include "../rethook/hook.h"
#include <errno.h>

#define EXPORTED __attribute__((visibility("default")))

struct lists {
	struct ftr_expect *first, **last; /* in the order in which they were made */
	struct expect_order *orders, **last_order;
	struct arena arena; /* of the orders */
	uint32_t lost; /* what could not be made, and has no other way to say so */
};

/*
 * Guarded by the lock, which a fork opens. It is not held when the loader is called: constructors run
 * under the loader's own lock, and may make expectations.
 */
static struct {
	uint32_t *lock;
	struct lists lists;
	uint32_t refused; /* what should have been made where system calls may be forbidden, or without
			   * memory for the lock */
} all;

/* -EPERM: a handler may have interrupted who holds the lock; or system calls may be forbidden, and
 * nothing was made before. */
static int enter(void)
{
	bool sealed = shadow_hooks.sealed;
	uint32_t *none = NULL, *lock;

	if (hook_in_handler())
		return -EPERM;
	if (!__atomic_load_n(&all.lock, __ATOMIC_ACQUIRE)) {
		if (sealed)
			return -EPERM;
		lock = wiped_alloc(sizeof(*lock));
		if (!lock)
			return -ENOMEM;
		if (!__atomic_compare_exchange_n(&all.lock, &none, lock, false, __ATOMIC_ACQ_REL,
			    __ATOMIC_ACQUIRE))
			wiped_free(lock, sizeof(*lock));
	}
	while (__atomic_exchange_n(all.lock, 1, __ATOMIC_ACQUIRE))
		if (!sealed)
			sys_call(SYS_sched_yield);
	if (!all.lists.last) {
		all.lists.last = &all.lists.first;
		all.lists.last_order = &all.lists.orders;
	}
	return 0;
}

static int leave(int result)
{
	__atomic_store_n(all.lock, 0, __ATOMIC_RELEASE);
	return result;
}

/* ---- making them ---- */

/* What takes system calls cannot be done; ftr_verify() will say so. */
static bool is_refused(void)
{
	if (shadow_hooks.sealed)
		__atomic_fetch_add(&all.refused, 1, __ATOMIC_RELAXED);
	return shadow_hooks.sealed;
}

static const char *copy(struct arena *arena, const char *text)
{
	const char *copied = arena_str(arena, text, strlen(text));

	return copied ? copied : "?";
}

static const char *place_text(struct arena *arena, const char *file, int line)
{
	char text[512];

	if (!file)
		return "";
	str_print(text, sizeof(text), "%s:%d: ", file, line);
	return copy(arena, text);
}

/* The expectation is not what the test wanted: ftr_verify() will say so. Returns @err. */
__attribute__((format(printf, 3, 4))) static int mistake(struct ftr_expect *expect, int err,
	const char *format, ...)
{
	struct expect_mistake *m = arena_alloc(&expect->arena, sizeof(*m)), **last;
	char text[512];
	va_list ap;

	if (!m)
		return err;
	va_start(ap, format);
	str_vprint(text, sizeof(text), format, ap);
	va_end(ap);
	*m = (struct expect_mistake){ .text = copy(&expect->arena, text) };
	for (last = &expect->mistakes; *last;)
		last = &(*last)->next;
	*last = m;
	return err;
}

static void attach(struct ftr_expect *expect, const struct ftr_probe_spec *given, size_t size)
{
	struct ftr_probe_spec spec = { 0 };
	struct ftr_function function;
	int found;

	memcpy(&spec, given, size < sizeof(spec) ? size : sizeof(spec));
	if (size > sizeof(spec) || spec.entry || spec.ret || spec.data) {
		mistake(expect, -EINVAL, "wrong struct ftr_probe_spec");
		return;
	}
	spec.entry = expect_entered;
	spec.ret = expect_returned;
	spec.data = expect;
	spec.flags |= FTR_GENERAL_REGS; /* see expect_entered() */
	found = ftr_attach(&spec, &expect->probe);
	if (found == -ENODATA) {
		spec.ret = NULL;
		expect->entry_only = true;
		found = ftr_attach(&spec, &expect->probe);
	}
	if (found < 0) {
		expect->probe = NULL;
		mistake(expect, found, "cannot be watched: %s", ftr_error());
	} else if (!given->name && !ftr_probe_function(expect->probe, 0, &function)) {
		expect->name = copy(&expect->arena, function.name);
	}
}

static struct ftr_expect *make(const char *file, int line, const struct ftr_probe_spec *spec,
	size_t size, const char *signature)
{
	struct arena arena = { 0 };
	struct ftr_expect *expect = arena_alloc(&arena, sizeof(*expect));

	if (!expect)
		return NULL;
	*expect = (struct ftr_expect){ .arena = arena, .least = 1, .most = FTR_ANY };
	expect->place = place_text(&expect->arena, file, line);
	expect->name = spec->name ? copy(&expect->arena, spec->name) : "?";
	expect->state = wiped_alloc(sizeof(*expect->state));
	if (!expect->state) {
		arena = expect->arena;
		arena_free(&arena);
		return NULL;
	}
	if (!signature_parse(&expect->signature, signature)) {
		mistake(expect, -EINVAL, "wrong signature \"%s\"", signature);
		signature_parse(&expect->signature, NULL);
	}
	attach(expect, spec, size);
	return expect;
}

/* Where no system calls may be made, a handler that has begun is not waited for: the memory stays. */
static void end(struct ftr_expect *expect)
{
	struct arena arena = expect->arena;

	if (expect->probe)
		ftr_detach(expect->probe);
	if (shadow_hooks.sealed)
		return;
	wiped_free(expect->state, sizeof(*expect->state));
	arena_free(&arena);
}

EXPORTED struct ftr_expect *ftr_expect_spec_at(const char *file, int line,
	const struct ftr_probe_spec *spec, size_t size, const char *signature)
{
	struct ftr_expect *expect;

	if (!spec || hook_in_handler() || is_refused())
		return NULL;
	ftr_call_stack_prepare();
	expect = make(file, line, spec, size, signature);
	if (enter()) {
		__atomic_fetch_add(&all.refused, 1, __ATOMIC_RELAXED);
		if (expect)
			end(expect);
		return NULL;
	}
	if (expect) {
		*all.lists.last = expect;
		all.lists.last = &expect->next;
	} else {
		all.lists.lost++;
	}
	leave(0);
	return expect;
}

EXPORTED struct ftr_expect *ftr_expect_at(const char *file, int line, const char *name,
	const char *signature)
{
	const struct ftr_probe_spec spec = { .name = name };

	return ftr_expect_spec_at(file, line, &spec, sizeof(spec), signature);
}

static bool is_known(const struct ftr_expect *expect)
{
	const struct ftr_expect *e = all.lists.first;

	while (e && e != expect)
		e = e->next;
	return e;
}

/* enter() to change @expect. -EINVAL: it is null, or has ended; the latter ftr_verify() will tell. */
static int enter_for(const struct ftr_expect *expect)
{
	int err = expect ? enter() : -EINVAL;

	if (err || is_known(expect))
		return err;
	all.lists.lost++;
	return leave(-EINVAL);
}

EXPORTED int ftr_expect_calls(struct ftr_expect *expect, uint64_t least, uint64_t most)
{
	int err = enter_for(expect);

	if (err)
		return err;
	if (least > most)
		return leave(mistake(expect, -EINVAL, "at least %lu and at most %lu calls: never",
			least, most));
	expect->least = least;
	__atomic_store_n(&expect->most, most, __ATOMIC_RELAXED);
	return leave(0);
}

/* ---- conditions ---- */

/* Do values of @letter have a condition of this kind? */
static bool suits(enum expect_kind kind, char letter)
{
	switch (kind) {
	case KIND_INTEGER:
		return signature_kind(letter) == 'i';
	case KIND_STRING:
	case KIND_BYTES:
		return letter == 'z' || letter == 'p' || letter == 'i';
	case KIND_DOUBLE:
		return signature_kind(letter) == 'd';
	default:
		return true;
	}
}

/* What is wrong with a condition, as an error number and in words. */
static int fault_of(const struct ftr_expect *expect, const struct expect_condition *c,
	const char **why)
{
	bool buffer = c->kind == KIND_STRING || c->kind == KIND_BYTES;

	*why = "a condition is neither FTR_MUST nor its kin";
	if (c->how < FTR_MUST || c->how > FTR_UNLESS)
		return -EINVAL;
	*why = "a condition lacks what it compares with, or that is too long";
	if (c->lacks || (buffer && (!c->bytes || c->size > EXPECT_BYTES))
		|| (c->kind == KIND_PREDICATE && !(c->test && c->words)))
		return -EINVAL;
	*why = "there are too many conditions";
	if (expect->nconditions == EXPECT_CONDITIONS)
		return -ENOSPC;
	*why = "its return cannot be seen";
	if (c->n == FTR_RESULT && expect->entry_only)
		return -ENODATA;
	*why = "the signature has no such argument or result";
	return suits(c->kind, signature_letter(&expect->signature, c->n)) ? 0 : -EINVAL;
}

/* Is it more than looking at registers? Strings among the arguments are kept with a result. */
static bool needs_more(const struct ftr_expect *expect, const struct expect_condition *c)
{
	bool strings = false;

	for (unsigned i = 0; c->n == FTR_RESULT && i < expect->signature.n; i++)
		strings |= signature_letter(&expect->signature, i) == 'z';
	return strings || c->kind == KIND_STRING || c->kind == KIND_BYTES || c->kind == KIND_PREDICATE;
}

/* Add a condition; handlers see it complete. */
static int add(struct ftr_expect *expect, struct expect_condition c)
{
	int err = enter_for(expect);
	const char *why;

	if (err)
		return err;
	err = fault_of(expect, &c, &why);
	if (err)
		return leave(mistake(expect, err, "%s", why));
	if (c.kind == KIND_INTEGER)
		c.value = signature_cut(signature_letter(&expect->signature, c.n), c.value);
	if (c.bytes) {
		c.bytes = (const uint8_t *)arena_str(
			&expect->arena, (const char *)c.bytes, c.size);
		if (!c.bytes)
			return leave(mistake(expect, -ENOMEM, "no memory for a condition"));
	}
	if (c.words)
		c.words = copy(&expect->arena, c.words);
	expect->conditions[expect->nconditions] = c;
	if (needs_more(expect, &c))
		__atomic_store_n(&expect->apart, true, __ATOMIC_RELAXED);
	if (c.n == FTR_RESULT)
		__atomic_store_n(&expect->keeps, true, __ATOMIC_RELAXED);
	if (c.n == FTR_RESULT && (c.how == FTR_WHEN || c.how == FTR_UNLESS))
		__atomic_store_n(&expect->at_return, true, __ATOMIC_RELAXED);
	__atomic_store_n(&expect->nconditions, expect->nconditions + 1, __ATOMIC_RELEASE);
	return leave(0);
}

EXPORTED int ftr_expect_integer(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	int64_t value)
{
	return add(expect, (struct expect_condition){ .kind = KIND_INTEGER, .how = how, .n = n,
		.value = (uint64_t)value });
}

EXPORTED int ftr_expect_string(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	const char *text)
{
	return add(expect, (struct expect_condition){ .kind = KIND_STRING, .how = how, .n = n,
		.bytes = (const uint8_t *)text, .size = text ? strlen(text) + 1 : 0 });
}

EXPORTED int ftr_expect_bytes(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	const void *bytes, size_t size)
{
	return add(expect, (struct expect_condition){ .kind = KIND_BYTES, .how = how, .n = n,
		.bytes = bytes, .size = size });
}

EXPORTED int ftr_expect_double(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	const double *value)
{
	struct expect_condition c = { .kind = KIND_DOUBLE, .how = how, .n = n, .lacks = !value };

	if (value)
		memcpy(&c.value, value, sizeof(c.value));
	return add(expect, c);
}

EXPORTED int ftr_expect_thread(struct ftr_expect *expect, enum ftr_how how, int thread)
{
	if (!thread && shadow_hooks.sealed)
		return -EPERM;
	return add(expect, (struct expect_condition){ .kind = KIND_THREAD, .how = how,
		.value = (uint64_t)(thread ? thread : sys_gettid()) });
}

EXPORTED int ftr_expect_predicate(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	ftr_predicate *test, void *data, const char *words)
{
	return add(expect, (struct expect_condition){ .kind = KIND_PREDICATE, .how = how, .n = n,
		.test = test, .data = data, .words = words });
}

EXPORTED int ftr_expect_depth(struct ftr_expect *expect, unsigned most)
{
	return add(expect, (struct expect_condition){ .kind = KIND_DEPTH, .how = FTR_MUST,
		.value = most });
}

/* ---- orders ---- */

static int link_order(struct ftr_expect *expect, struct expect_order *order)
{
	struct expect_link *link = expect->orders;

	if (link && link->order == order)
		return 0; /* in it more than once */
	link = arena_alloc(&expect->arena, sizeof(*link));
	if (!link)
		return -ENOMEM;
	*link = (struct expect_link){ .next = expect->orders, .order = order };
	__atomic_store_n(&expect->orders, link, __ATOMIC_RELEASE);
	return 0;
}

static int make_order(const char *file, int line, bool strict, struct ftr_expect *const *steps,
	unsigned n)
{
	struct expect_order *order = arena_alloc(&all.lists.arena, sizeof(*order));
	int err = 0;

	if (!order)
		return -ENOMEM;
	*order = (struct expect_order){ .n = n, .strict = strict,
		.place = place_text(&all.lists.arena, file, line),
		.progress = wiped_alloc(sizeof(*order->progress)) };
	if (!order->progress)
		return -ENOMEM;
	memcpy(order->steps, steps, n * sizeof(*steps));
	*all.lists.last_order = order;
	all.lists.last_order = &order->next;
	for (unsigned i = 0; !err && i < n; i++)
		err = link_order(steps[i], order);
	return err;
}

EXPORTED int ftr_expect_order_at(const char *file, int line, unsigned flags,
	struct ftr_expect *const *steps, size_t n)
{
	int err = !hook_in_handler() && is_refused() ? -EPERM : enter();
	bool good = steps && n && n <= EXPECT_STEPS && !(flags & ~(unsigned)FTR_STRICT);

	if (err == -ENOMEM)
		__atomic_fetch_add(&all.refused, 1, __ATOMIC_RELAXED);
	if (err)
		return err;
	for (size_t i = 0; good && i < n; i++)
		good = is_known(steps[i]);
	err = good ? make_order(file, line, flags & FTR_STRICT, steps, (unsigned)n) : -EINVAL;
	if (err)
		all.lists.lost++;
	return leave(err);
}

EXPORTED uint64_t ftr_expect_seen(const struct ftr_expect *expect)
{
	return expect ? __atomic_load_n(&expect->state->calls, __ATOMIC_RELAXED) : 0;
}

/* ---- the end ---- */

/* Take all there is: from here on it is the caller's alone. 0; -EPERM: not in handlers. */
static int take(struct lists *taken)
{
	int err = enter();

	*taken = (struct lists){ 0 };
	if (!err) {
		*taken = all.lists;
		all.lists = (struct lists){ 0 };
		leave(0);
	} else if (hook_in_handler() || !shadow_hooks.sealed) {
		return err;
	}
	taken->lost += __atomic_exchange_n(&all.refused, 0, __ATOMIC_RELAXED);
	return 0;
}

static void tell_all(const struct lists *lists, struct expect_messages *messages)
{
	struct describer describer;

	describe_begin(&describer);
	for (const struct ftr_expect *e = lists->first; e; e = e->next)
		expect_tell(e, messages, &describer);
	for (const struct expect_order *o = lists->orders; o; o = o->next)
		expect_tell_order(o, messages, &describer);
	if (lists->lost)
		expect_tell_lost(lists->lost, messages);
	describe_end(&describer);
}

/* Handlers look at orders, until the last probe is detached. */
static void end_all(struct lists *lists)
{
	struct ftr_expect *next;

	for (struct ftr_expect *e = lists->first; e; e = next) {
		next = e->next;
		end(e);
	}
	if (shadow_hooks.sealed)
		return;
	for (struct expect_order *o = lists->orders; o; o = o->next)
		wiped_free(o->progress, sizeof(*o->progress));
	arena_free(&lists->arena);
}

static void print(const char *message, void *data)
{
	(void)data;
	sys_write_all(2, message, strlen(message));
	sys_write_all(2, "\n", 1);
}

/* For messages where no memory may be mapped. Failures beyond are counted only; so are those that a
 * second thread verifies meanwhile. */
static _Alignas(16) uint8_t reserve[1u << 18];
static uint32_t reserve_used;

static bool take_reserve(struct arena *arena)
{
	if (!shadow_hooks.sealed || __atomic_exchange_n(&reserve_used, 1, __ATOMIC_ACQUIRE))
		return false;
	memset(reserve, 0, sizeof(reserve));
	*arena = (struct arena){ .next = reserve, .end = reserve + sizeof(reserve) };
	return true;
}

static void report_all(const struct expect_messages *messages, ftr_report *report, void *data)
{
	if (!report && shadow_hooks.sealed)
		return;
	for (const struct expect_message *m = messages->first; m; m = m->next)
		(report ? report : print)(m->text, data);
}

EXPORTED int ftr_verify(ftr_report *report, void *data)
{
	struct arena arena = { 0 };
	struct expect_messages messages = { .arena = &arena, .last = &messages.first };
	struct lists lists;
	bool reserved;
	int err = take(&lists);

	if (err)
		return err;
	reserved = take_reserve(&arena);
	tell_all(&lists, &messages);
	end_all(&lists);
	/* Nothing is held now: @report may do what it likes. */
	report_all(&messages, report, data);
	if (reserved)
		__atomic_store_n(&reserve_used, 0, __ATOMIC_RELEASE);
	else
		arena_free(&arena);
	return messages.count;
}

EXPORTED int ftr_forget(void)
{
	struct lists lists;
	int err = take(&lists);

	if (!err)
		end_all(&lists);
	return err;
}
