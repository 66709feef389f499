/* SPDX-License-Identifier: MIT */
/*
 * What is told of an expectation that was not met. One form for all:
 *
 *	file:line: FUNCTION: expected WHAT, seen WHAT
 *	  call NUMBER: FUNCTION(ARGUMENTS), thread ID
 *	    from FUNCTION+0xOFFSET in MODULE
 */
#include "expect.h"
#include "describe.h"

#define MESSAGE_MAX 8192

struct text {
	char *bytes; /* NULL: there is no memory */
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	va_list ap;

	if (!text->bytes)
		return;
	va_start(ap, format);
	text->len += str_vprint(text->bytes + text->len, MESSAGE_MAX - text->len, format, ap);
	va_end(ap);
}

static void put_value(struct text *text, char letter, uint64_t value, const char *string)
{
	if (text->bytes)
		text->len += signature_print(text->bytes + text->len, MESSAGE_MAX - text->len, letter,
			value, string);
}

static struct text begin(struct expect_messages *messages, const char *place, const char *name)
{
	struct text text = { .bytes = arena_alloc(messages->arena, MESSAGE_MAX) };

	put(&text, "%s%s: ", place, name);
	return text;
}

static void end(struct expect_messages *messages, const struct text *text)
{
	struct expect_message *message = arena_alloc(messages->arena, sizeof(*message));

	messages->count++;
	if (!message || !text->bytes)
		return;
	*message = (struct expect_message){ .text = text->bytes };
	*messages->last = message;
	messages->last = &message->next;
}

/* ---- a call ---- */

static void put_noted(struct text *text, const struct signature *signature,
	const struct expect_call *seen, unsigned n, unsigned at)
{
	const struct expect_values *v = &seen->values;

	if (!(v->known >> at & 1))
		put(text, "?");
	else
		put_value(text, signature_letter(signature, n), v->values[at],
			v->readable >> at & 1 ? v->texts[at] : NULL);
}

static void put_arguments(struct text *text, const struct signature *signature,
	const struct expect_call *seen)
{
	if (signature->none || (signature->n && !seen->arguments)) {
		put(text, "(...)");
		return;
	}
	put(text, "(");
	for (unsigned i = 0; i < signature->n; i++) {
		put(text, "%s", i ? ", " : "");
		put_noted(text, signature, seen, i, i);
	}
	put(text, ")");
}

static void put_call(struct text *text, const struct expect_call *seen, struct describer *describer)
{
	const struct ftr_expect *expect = seen->expect;
	char line[512];

	if (__atomic_load_n(&seen->state, __ATOMIC_ACQUIRE) != CALL_COMPLETE)
		return;
	put(text, "\n  call %lu: %s", seen->number, seen->function->name);
	put_arguments(text, &expect->signature, seen);
	if (seen->returned && expect->signature.result) {
		put(text, " = ");
		put_noted(text, &expect->signature, seen, FTR_RESULT, SIGNATURE_MAX);
	}
	put(text, ", thread %d", seen->thread);
	for (unsigned i = 0; i < seen->nstack; i++) {
		describe(describer, (uint64_t)seen->stack[i], line, sizeof(line));
		put(text, "\n    from %s", line);
	}
}

/* ---- counts ---- */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void put_count(struct text *text, uint64_t least, uint64_t most)
{
	if (!most)
		put(text, "no call");
	else if (least == most)
		put(text, "exactly %lu call%s", most, plural(most));
	else if (most == FTR_ANY)
		put(text, "at least %lu call%s", least, plural(least));
	else if (!least)
		put(text, "at most %lu call%s", most, plural(most));
	else
		put(text, "%lu to %lu calls", least, most);
}

static void put_value_of(struct text *text, const struct ftr_expect *expect,
	const struct expect_condition *c)
{
	char letter = signature_letter(&expect->signature, c->n);

	if (c->kind == KIND_STRING)
		put_value(text, 'z', 1, (const char *)c->bytes);
	else if (c->kind == KIND_BYTES)
		put(text, "%lu given byte%s", c->size, plural(c->size));
	else
		put_value(text, letter == 'z' ? 'p' : letter, c->value, NULL);
}

static void put_subject(struct text *text, unsigned n)
{
	if (n == FTR_RESULT)
		put(text, "the result");
	else
		put(text, "argument %u", n);
}

/* The calls that a condition chooses: "with argument 1 = 3". */
static void put_choice(struct text *text, const struct ftr_expect *expect,
	const struct expect_condition *c)
{
	const char *with = c->how == FTR_WHEN ? "with" : "without";

	if (c->kind == KIND_THREAD) {
		put(text, "%s by thread %d", c->how == FTR_WHEN ? "" : " not", (int)c->value);
	} else if (c->kind == KIND_PREDICATE) {
		put(text, " %s %s", with, c->words);
	} else {
		put(text, " %s ", with);
		put_subject(text, c->n);
		put(text, c->kind == KIND_BYTES ? " at " : " = ");
		put_value_of(text, expect, c);
	}
}

static void put_choices(struct text *text, const struct ftr_expect *expect)
{
	const char *also = "";

	for (uint32_t i = 0; i < expect->nconditions; i++) {
		const struct expect_condition *c = &expect->conditions[i];

		if (c->how != FTR_WHEN && c->how != FTR_UNLESS)
			continue;
		put(text, "%s", also);
		put_choice(text, expect, c);
		also = " and";
	}
}

static void tell_count(const struct ftr_expect *expect, struct expect_messages *messages,
	struct describer *describer)
{
	uint64_t seen = expect->state->calls;
	struct text text;

	if (seen >= expect->least && seen <= expect->most)
		return;
	text = begin(messages, expect->place, expect->name);
	put(&text, "expected ");
	put_count(&text, expect->least, expect->most);
	put_choices(&text, expect);
	if (seen)
		put(&text, ", seen %lu", seen);
	else
		put(&text, ", seen none");
	if (seen > expect->most)
		put_call(&text, &expect->state->excess.first, describer);
	end(messages, &text);
}

/* ---- conditions ---- */

static void put_seen(struct text *text, const struct ftr_expect *expect,
	const struct expect_condition *c, const struct expect_call *seen)
{
	unsigned at = c->n == FTR_RESULT ? SIGNATURE_MAX : c->n;

	bool complete = __atomic_load_n(&seen->state, __ATOMIC_ACQUIRE) == CALL_COMPLETE;

	if (c->how == FTR_MUST_NOT)
		put(text, "it");
	else if (complete && c->kind == KIND_THREAD)
		put(text, "thread %d", seen->thread);
	else if (c->kind == KIND_DEPTH)
		put(text, "more");
	else if (complete && c->kind <= KIND_STRING && seen->values.known >> at & 1)
		put_noted(text, &expect->signature, seen, c->n, at);
	else
		put(text, "otherwise");
}

static void put_demand(struct text *text, const struct ftr_expect *expect,
	const struct expect_condition *c)
{
	const char *not = c->how == FTR_MUST_NOT ? "not " : "";

	if (c->kind == KIND_THREAD) {
		put(text, "calls %sby thread %d", *not ? not : "only ", (int)c->value);
	} else if (c->kind == KIND_DEPTH) {
		put(text, "at most %lu call%s in progress", c->value, plural(c->value));
	} else if (c->kind == KIND_PREDICATE) {
		put(text, "%s%s", not, c->words);
	} else {
		put_subject(text, c->n);
		put(text, " %sto be %s", not, c->kind == KIND_BYTES ? "at " : "");
		put_value_of(text, expect, c);
	}
}

static void tell_condition(const struct ftr_expect *expect, uint32_t i,
	struct expect_messages *messages, struct describer *describer)
{
	const struct expect_failure *failure = &expect->state->conditions[i];
	struct text text;

	if (!failure->calls)
		return;
	text = begin(messages, expect->place, expect->name);
	put(&text, "expected ");
	put_demand(&text, expect, &expect->conditions[i]);
	put(&text, ", seen ");
	put_seen(&text, expect, &expect->conditions[i], &failure->first);
	put(&text, " in %lu of %lu call%s", failure->calls, expect->state->calls,
		plural(expect->state->calls));
	put_call(&text, &failure->first, describer);
	end(messages, &text);
}

void expect_tell(const struct ftr_expect *expect, struct expect_messages *messages,
	struct describer *describer)
{
	for (const struct expect_mistake *m = expect->mistakes; m; m = m->next) {
		struct text text = begin(messages, expect->place, expect->name);

		put(&text, "%s", m->text);
		end(messages, &text);
	}
	if (!expect->probe)
		return;
	tell_count(expect, messages, describer);
	for (uint32_t i = 0; i < expect->nconditions; i++)
		tell_condition(expect, i, messages, describer);
}

/* ---- orders ---- */

static void put_steps(struct text *text, const struct expect_order *order)
{
	for (unsigned i = 0; i < order->n; i++)
		put(text, "%s%s", i ? ", " : "", order->steps[i]->name);
}

static void put_log(struct text *text, const struct expect_order *order, uint64_t seen)
{
	const struct expect_progress *progress = order->progress;

	for (uint64_t i = 0; i < seen && i < EXPECT_LOG; i++) {
		uint8_t step = __atomic_load_n(&progress->log[i], __ATOMIC_ACQUIRE);

		put(text, "%s%s", i ? ", " : "", step ? order->steps[step - 1]->name : "?");
	}
	if (seen > EXPECT_LOG)
		put(text, " and %lu more", seen - EXPECT_LOG);
	if (!seen)
		put(text, "none");
}

void expect_tell_order(const struct expect_order *order, struct expect_messages *messages,
	struct describer *describer)
{
	uint64_t word = __atomic_load_n(&order->progress->word, __ATOMIC_ACQUIRE);
	uint32_t done = (uint32_t)word & (EXPECT_BROKEN - 1);
	struct text text;

	if (!(word & EXPECT_BROKEN) && done == order->n)
		return;
	text = begin(messages, order->place, "order");
	put(&text, "expected %s", order->strict ? "exactly " : "");
	put_steps(&text, order);
	put(&text, ", seen ");
	put_log(&text, order, word >> 32);
	if (word & EXPECT_BROKEN)
		put_call(&text, &order->progress->offender, describer);
	else
		put(&text, ": step %u (%s) is missing", done + 1, order->steps[done]->name);
	end(messages, &text);
}

void expect_tell_lost(uint32_t lost, struct expect_messages *messages)
{
	struct text text = begin(messages, "", "ftr");

	put(&text, "%u expectations, conditions or orders could not be made: wrong arguments, "
		   "expectations that have ended, no memory, or no system calls", lost);
	end(messages, &text);
}
