/* SPDX-License-Identifier: MIT */
/* The handlers of expectations: what is looked at while the program's calls are made. */
#include "expect.h"
#include "decimal.h"
#include "peek.h"
#include "../arch/sys.h"
#include "../rethook/hook.h"

/*
 * The word of a call: CALL_SEEN, what MUST have been and was not at its entry (a bit for each
 * condition), where its arguments are kept (0: nowhere), and its number, unless calls are counted at
 * their return.
 */
#define CALL_SEEN   1
#define FAILED(i)   (2ull << (i))
#define ALL_FAILED  (FAILED(EXPECT_CONDITIONS) - FAILED(0))
#define KEPT_FROM   (EXPECT_CONDITIONS + 1)
#define NUMBER_FROM (KEPT_FROM + 5)

_Static_assert(EXPECT_KEPT < 1 << (NUMBER_FROM - KEPT_FROM), "the place fits");

enum moment { AT_ENTRY, AT_RETURN };

static int thread_id(void)
{
	const struct shadow_thread *thread = shadow_self();

	return thread ? thread->tid : sys_gettid();
}

static bool holds(const struct ftr_expect *expect, const struct expect_condition *c,
	struct ftr_call *call)
{
	uint64_t value;

	switch (c->kind) {
	case KIND_THREAD:
		return thread_id() == (int)c->value;
	case KIND_DEPTH:
		return ftr_call_depth(call) < c->value;
	case KIND_PREDICATE:
		return c->test(call, c->data);
	default:
		break;
	}
	if (!signature_value(&expect->signature, call, c->n, &value))
		return false;
	if (c->kind == KIND_INTEGER)
		return value == c->value;
	if (c->kind == KIND_DOUBLE)
		return decimal_equal(value, c->value);
	return peek_equal(value, c->bytes, c->size);
}

static bool chooses(const struct expect_condition *c)
{
	return c->how == FTR_WHEN || c->how == FTR_UNLESS;
}

static bool met(const struct ftr_expect *expect, const struct expect_condition *c,
	struct ftr_call *call)
{
	return holds(expect, c, call) == (c->how == FTR_MUST || c->how == FTR_WHEN);
}

static bool is_due(const struct expect_condition *c, enum moment moment)
{
	return (c->n == FTR_RESULT) == (moment == AT_RETURN);
}

/* Is the call one of the expectation's, as far as can be told now? */
static bool chosen(const struct ftr_expect *expect, struct ftr_call *call, enum moment moment,
	uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct expect_condition *c = &expect->conditions[i];

		if (chooses(c) && is_due(c, moment) && !met(expect, c, call))
			return false;
	}
	return true;
}

/* What must be and is not. */
static uint64_t failed(const struct ftr_expect *expect, struct ftr_call *call, enum moment moment,
	uint32_t n)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct expect_condition *c = &expect->conditions[i];

		if (!chooses(c) && is_due(c, moment) && !met(expect, c, call))
			bits |= FAILED(i);
	}
	return bits;
}

static void note_value(struct expect_values *to, const struct signature *signature,
	struct ftr_call *call, unsigned n, unsigned at)
{
	char *text = to->texts[at];
	long len;

	if (!signature_value(signature, call, n, &to->values[at]))
		return;
	to->known |= 1u << at;
	if (signature_letter(signature, n) != 'z' || !to->values[at])
		return;
	len = peek_string(text, EXPECT_TEXT, to->values[at]);
	if (len < 0)
		return;
	to->readable |= 1u << at;
	if (len >= EXPECT_TEXT)
		str_print(text + EXPECT_TEXT - 1, 4, "...");
}

static void note_arguments(struct expect_values *to, const struct signature *signature,
	struct ftr_call *call)
{
	to->known = to->readable = 0;
	for (unsigned i = 0; i < signature->n; i++)
		note_value(to, signature, call, i, i);
}

/* After the return the arguments' places are the function's. Returns where they are, from 1. */
static uint64_t keep_arguments(struct ftr_expect *expect, struct ftr_call *call)
{
	for (uint64_t i = 0; i < EXPECT_KEPT; i++) {
		struct expect_kept *kept = &expect->state->kept[i];

		if (__atomic_exchange_n(&kept->used, 1, __ATOMIC_ACQUIRE))
			continue;
		note_arguments(&kept->values, &expect->signature, call);
		return i + 1;
	}
	return 0;
}

static struct expect_kept *kept_at(const struct ftr_expect *expect, uint64_t word)
{
	uint64_t place = word >> KEPT_FROM & ((1u << (NUMBER_FROM - KEPT_FROM)) - 1);

	return place ? &expect->state->kept[place - 1] : NULL;
}

/* A call as a message tells it, at its return. */
static void note_return(struct expect_call *seen, const struct signature *signature,
	struct ftr_call *call, const struct expect_kept *kept)
{
	seen->returned = true;
	seen->arguments = kept;
	if (kept)
		seen->values = kept->values;
	note_value(&seen->values, signature, call, FTR_RESULT, SIGNATURE_MAX);
}

/* A call that a message will tell of. */
struct note {
	struct expect_call *seen;
	const struct ftr_expect *expect;
	uint64_t number;
	enum moment moment;
};

static void write_down(struct ftr_call *call, void *data)
{
	const struct note *note = data;
	struct expect_call *seen = note->seen;
	const struct ftr_expect *expect = note->expect;

	seen->thread = thread_id();
	seen->number = note->number;
	seen->expect = expect;
	seen->function = ftr_call_function(call);
	if (note->moment == AT_ENTRY) {
		seen->arguments = true;
		note_arguments(&seen->values, &expect->signature, call);
	} else {
		note_return(seen, &expect->signature, call, kept_at(expect, *ftr_call_word(call)));
	}
	seen->nstack = ftr_call_stack(call, seen->stack, EXPECT_STACK);
}

/* Write it down, unless there is one already. */
static void note_call(struct expect_call *seen, const struct ftr_expect *expect,
	struct ftr_call *call, uint64_t number, enum moment moment)
{
	struct note note = { seen, expect, number, moment };
	uint32_t none = CALL_NONE;

	if (!__atomic_compare_exchange_n(&seen->state, &none, CALL_CLAIMED, false, __ATOMIC_RELAXED,
		    __ATOMIC_RELAXED))
		return;
	hook_call_apart(call, write_down, &note);
	__atomic_store_n(&seen->state, CALL_COMPLETE, __ATOMIC_RELEASE);
}

static void fail(struct expect_failure *failure, const struct ftr_expect *expect,
	struct ftr_call *call, uint64_t number, enum moment moment)
{
	__atomic_fetch_add(&failure->calls, 1, __ATOMIC_RELAXED);
	note_call(&failure->first, expect, call, number, moment);
}

static void fail_these(uint64_t bits, const struct ftr_expect *expect, struct ftr_call *call,
	uint64_t number, enum moment moment)
{
	for (uint32_t i = 0; i < EXPECT_CONDITIONS; i++)
		if (bits & FAILED(i))
			fail(&expect->state->conditions[i], expect, call, number, moment);
}

static uint8_t step_of(const struct expect_order *order, const struct ftr_expect *expect)
{
	unsigned i = 0;

	while (order->steps[i] != expect)
		i++;
	return (uint8_t)(i + 1);
}

/* One call more; all that is known of an order changes at once. */
static void go_on(const struct expect_order *order, const struct ftr_expect *expect,
	struct ftr_call *call, uint64_t number, enum moment moment)
{
	struct expect_progress *progress = order->progress;
	uint64_t old = __atomic_load_n(&progress->word, __ATOMIC_ACQUIRE), new;
	bool fits, breaks;

	do {
		uint32_t done = (uint32_t)old;

		fits = done < order->n && order->steps[done] == expect;
		breaks = order->strict && !fits && !(done & EXPECT_BROKEN);
		new = ((old >> 32) + 1) << 32 | (done + fits) | (breaks ? EXPECT_BROKEN : 0);
	} while (!__atomic_compare_exchange_n(
		&progress->word, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	if (old >> 32 < EXPECT_LOG)
		__atomic_store_n(
			&progress->log[old >> 32], step_of(order, expect), __ATOMIC_RELEASE);
	if (breaks)
		note_call(&progress->offender, expect, call, number, moment);
}

/* The call is one of the expectation's. Returns its number. */
static uint64_t count(struct ftr_expect *expect, struct ftr_call *call, enum moment moment)
{
	struct expect_state *state = expect->state;
	uint64_t number = __atomic_add_fetch(&state->calls, 1, __ATOMIC_RELAXED);

	if (number > __atomic_load_n(&expect->most, __ATOMIC_RELAXED))
		fail(&state->excess, expect, call, number, moment);
	for (struct expect_link *l = __atomic_load_n(&expect->orders, __ATOMIC_ACQUIRE); l;
		l = l->next)
		go_on(l->order, expect, call, number, moment);
	return number;
}

static void entered(struct ftr_call *call, void *data)
{
	struct ftr_expect *expect = data;
	uint32_t n = __atomic_load_n(&expect->nconditions, __ATOMIC_ACQUIRE);
	uint64_t number, bits, word = CALL_SEEN;

	if (!chosen(expect, call, AT_ENTRY, n))
		return;
	if (__atomic_load_n(&expect->keeps, __ATOMIC_RELAXED))
		word |= keep_arguments(expect, call) << KEPT_FROM;
	bits = failed(expect, call, AT_ENTRY, n);
	if (__atomic_load_n(&expect->at_return, __ATOMIC_RELAXED)) {
		word |= bits;
	} else {
		number = count(expect, call, AT_ENTRY);
		fail_these(bits, expect, call, number, AT_ENTRY);
		word |= number << NUMBER_FROM;
	}
	*ftr_call_word(call) = word;
}

static void look_at_result(struct ftr_expect *expect, struct ftr_call *call, uint64_t word)
{
	uint32_t n = __atomic_load_n(&expect->nconditions, __ATOMIC_ACQUIRE);
	uint64_t number = word >> NUMBER_FROM;

	if (!number) {
		if (!chosen(expect, call, AT_RETURN, n))
			return;
		number = count(expect, call, AT_RETURN);
	}
	fail_these((word & ALL_FAILED) | failed(expect, call, AT_RETURN, n), expect, call, number,
		AT_RETURN);
}

static void returned(struct ftr_call *call, void *data)
{
	struct ftr_expect *expect = data;
	uint64_t word = *ftr_call_word(call);
	struct expect_kept *kept = kept_at(expect, word);

	if (word & CALL_SEEN)
		look_at_result(expect, call, word);
	if (kept)
		__atomic_store_n(&kept->used, 0, __ATOMIC_RELEASE);
}

/* All of us leaves vectors alone; but predicates do not, nor, on some CPUs, system calls. */
static void look(struct ftr_call *call, struct ftr_expect *expect, ftr_handler *handler)
{
	if (__atomic_load_n(&expect->apart, __ATOMIC_RELAXED))
		hook_call_apart(call, handler, expect);
	else
		handler(call, expect);
}

void expect_entered(struct ftr_call *call, void *data)
{
	look(call, data, entered);
}

void expect_returned(struct ftr_call *call, void *data)
{
	look(call, data, returned);
}
