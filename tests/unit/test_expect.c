/* SPDX-License-Identifier: MIT */
/*
 * Expectations and their messages, to the letter. Probes are played here: what a call has for
 * arguments is what the test says. tests/harness has the real ones.
 */
#define _GNU_SOURCE 1
#include "rethook/hook.h"
#include "support_qemu.h"
#include "support_threads.h"
#include "tracer/wiped.h"
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct played {
	struct ftr_call call; /* first */
	const struct ftr_function *function;
	uint64_t words[8]; /* arguments */
	uint64_t result;
	uint64_t word; /* of the call */
	unsigned depth;
	bool returning;
};

static struct played *played(const struct ftr_call *call)
{
	return (struct played *)call;
}

struct ftr_probe {
	struct ftr_probe *next;
	struct ftr_probe_spec spec;
	struct ftr_function function;
};

static struct ftr_probe *probes;

int ftr_attach_sized(const struct ftr_probe_spec *spec, size_t size, struct ftr_probe **probe)
{
	if (size != sizeof(*spec) || !strcmp(spec->name, "nosuch"))
		return -ENOENT;
	if (spec->ret && !strcmp(spec->name, "setjmp"))
		return -ENODATA;
	*probe = malloc(sizeof(**probe));
	**probe = (struct ftr_probe){ .next = probes, .spec = *spec,
		.function = { .name = spec->name } };
	probes = *probe;
	return 1;
}

int ftr_detach(struct ftr_probe *probe)
{
	struct ftr_probe **p = &probes;

	while (*p != probe)
		p = &(*p)->next;
	*p = probe->next;
	free(probe);
	return 0;
}

const char *ftr_error(void)
{
	return "no such function";
}

int ftr_probe_function(const struct ftr_probe *probe, unsigned index, struct ftr_function *function)
{
	*function = probe->function;
	return index ? -ENOENT : 0;
}

const struct ftr_function *ftr_call_function(const struct ftr_call *call)
{
	return played(call)->function;
}

const void *ftr_call_caller(const struct ftr_call *call)
{
	(void)call;
	return (const char *)ftr_call_caller + 1;
}

uint64_t *ftr_call_word(struct ftr_call *call)
{
	return &played(call)->word;
}

unsigned ftr_call_depth(const struct ftr_call *call)
{
	return played(call)->depth;
}

void *ftr_argument(struct ftr_call *call, const char *types, unsigned n)
{
	(void)types;
	return played(call)->returning ? NULL : &played(call)->words[n];
}

void *ftr_result(struct ftr_call *call, char type)
{
	(void)type;
	return &played(call)->result;
}

static void play(const char *name, struct played *call, bool returning)
{
	struct ftr_probe *next;

	call->returning = returning;
	call->call.frame.slot = ~0ull; /* no frame of this stack is above */
	for (struct ftr_probe *p = probes; p; p = next) {
		ftr_handler *handler = returning ? p->spec.ret : p->spec.entry;

		next = p->next;
		if (strcmp(p->spec.name, name) || !handler)
			continue;
		call->function = &p->function;
		handler(&call->call, p->spec.data);
	}
}

/* A call with up to four arguments that returns. */
static void call_full(const char *name, uint64_t result, const uint64_t words[4])
{
	struct played call = { .result = result };

	memcpy(call.words, words, 4 * sizeof(*words));
	play(name, &call, false);
	play(name, &call, true);
}
#define CALL(name, result, ...)                                                                    \
	call_full((name), (uint64_t)(result), (const uint64_t[4]){ __VA_ARGS__ })

static char told[16384];

static void listen(const char *message, void *data)
{
	size_t len = strlen(told);

	cr_assert_eq(data, told);
	snprintf(told + len, sizeof(told) - len, "%s\n", message);
}

/* What must be told, line by line; thread ids and offsets are not said. */
static void expect_told(int failures, const char *text)
{
	char got[sizeof(told)], *out = got;

	told[0] = 0;
	cr_expect_eq(ftr_verify(listen, told), failures);
	for (const char *s = told; *s;) {
		bool thread = !strncmp(s, "thread ", 7), offset = !strncmp(s, "+0x", 3);

		if (!thread && !offset) {
			*out++ = *s++;
			continue;
		}
		out += sprintf(out, "%s", thread ? "thread T" : "+0xN");
		for (s += thread ? 7 : 3; isxdigit((unsigned char)*s);)
			s++;
	}
	*out = 0;
	cr_expect_str_eq(got, text, "told:\n%s\nnot:\n%s", got, text);
	cr_expect_null(probes, "all are detached");
}

#define FROM "\n    from ftr_call_caller+0xN in test_expect\n"
#define EXPECT(name, signature) ftr_expect_at(NULL, 0, (name), (signature))

Test(expect, what_is_as_expected_is_not_told, .init = threads_begin)
{
	struct ftr_expect *put = EXPECT("put", "w(pz)"), *get = EXPECT("get", NULL);

	ftr_expect_calls(put, 2, 2);
	ftr_expect_string(put, FTR_MUST, 1, "key");
	ftr_expect_integer(put, FTR_MUST, 0, 7);
	ftr_expect_integer(put, FTR_MUST, FTR_RESULT, -1);
	ftr_expect_depth(put, 1);
	ftr_expect_thread(put, FTR_MUST, 0);
	CALL("put", 0xffffffff, 7, (uint64_t)"key");
	CALL("get", 0, 0);
	CALL("put", 0xffffffff, 7, (uint64_t)"key");
	cr_expect_eq(ftr_expect_seen(put), 2);
	cr_expect_eq(ftr_expect_seen(get), 1);
	expect_told(0, "");
}

Test(expect, counts, .init = threads_begin)
{
	static const struct {
		uint64_t least, most;
		int calls;
		const char *text;
	} rows[] = {
		{ 2, 2, 1, "f: expected exactly 2 calls, seen 1\n" },
		{ 1, 1, 0, "f: expected exactly 1 call, seen none\n" },
		{ 3, FTR_ANY, 2, "f: expected at least 3 calls, seen 2\n" },
		{ 0, 1, 2, "f: expected at most 1 call, seen 2\n  call 2: f(), thread T" FROM },
		{ 1, 2, 4, "f: expected 1 to 2 calls, seen 4\n  call 3: f(), thread T" FROM },
		{ 0, 0, 1, "f: expected no call, seen 1\n  call 1: f(), thread T" FROM },
		{ 0, 0, 0, NULL },
		{ 2, 2, 2, NULL },
		{ 0, FTR_ANY, 0, NULL },
		{ 1, 2, 2, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cr_expect_eq(ftr_expect_calls(EXPECT("f", "()"), rows[i].least, rows[i].most), 0);
		for (int j = 0; j < rows[i].calls; j++)
			CALL("f", 0, 0);
		expect_told(rows[i].text ? 1 : 0, rows[i].text ? rows[i].text : "");
	}
}

Test(expect, is_called_unless_it_says_otherwise, .init = threads_begin)
{
	EXPECT("f", NULL);
	expect_told(1, "f: expected at least 1 call, seen none\n");
}

Test(expect, says_where_it_was_written, .init = threads_begin)
{
	ftr_expect_at("tests/x.c", 42, "f", NULL);
	expect_told(1, "tests/x.c:42: f: expected at least 1 call, seen none\n");
}

Test(expect, arguments_that_must_be, .init = threads_begin)
{
	static const double half = 0.5;
	static const float quarter = 0.25f;
	struct ftr_expect *f = EXPECT("f", "(wzdf)");
	struct played call = { .words = { 0xabcdef00fffffffe, (uint64_t)"a\"b" } };

	ftr_expect_integer(f, FTR_MUST, 0, 3);
	ftr_expect_string(f, FTR_MUST, 1, "key");
	ftr_expect_double(f, FTR_MUST, 2, &half);
	ftr_expect_double(f, FTR_MUST_NOT, 3, &half);
	memcpy(&call.words[2], &half, 8);
	memcpy(&call.words[3], &quarter, 4);
	play("f", &call, false);
	play("f", &call, false);
	call.words[0] = 3;
	play("f", &call, false);
	expect_told(2,
		"f: expected argument 0 to be 3, seen -2 in 2 of 3 calls\n"
		"  call 1: f(-2, \"a\\\"b\", 0.5, 0.25), thread T" FROM
		"f: expected argument 1 to be \"key\", seen \"a\\\"b\" in 3 of 3 calls\n"
		"  call 1: f(-2, \"a\\\"b\", 0.5, 0.25), thread T" FROM);
}

Test(expect, arguments_that_must_not_be, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "(ip)");

	ftr_expect_integer(f, FTR_MUST_NOT, 0, 1);
	ftr_expect_bytes(f, FTR_MUST_NOT, 1, "secret", 6);
	CALL("f", 0, 2, (uint64_t)"public");
	CALL("f", 0, 1, 0);
	CALL("f", 0, 2, 8);
	expect_told(1, "f: expected argument 0 not to be 1, seen it in 1 of 3 calls\n"
		       "  call 2: f(1, NULL), thread T" FROM);
	f = EXPECT("f", "(ip)");
	ftr_expect_bytes(f, FTR_MUST, 1, "secret", 6);
	CALL("f", 0, 2, 8);
	expect_told(1, "f: expected argument 1 to be at 6 given bytes, seen otherwise in 1 of 1 call\n"
		       "  call 1: f(2, 0x8), thread T" FROM);
}

Test(expect, long_and_bad_strings, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "(z)");

	ftr_expect_string(f, FTR_MUST, 0, "key");
	CALL("f", 0, (uint64_t)"0123456789012345678901234567890123456789012345678901234567890");
	expect_told(1,
		"f: expected argument 0 to be \"key\", seen "
		"\"0123456789012345678901234567890123456789012...\" in 1 of 1 call\n"
		"  call 1: f(\"0123456789012345678901234567890123456789012...\"), thread T" FROM);
	f = EXPECT("f", "(z)");
	ftr_expect_string(f, FTR_MUST, 0, "key");
	CALL("f", 0, 8);
	expect_told(1, "f: expected argument 0 to be \"key\", seen 0x8 in 1 of 1 call\n"
		       "  call 1: f(0x8), thread T" FROM);
}

Test(expect, results, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "h(i)");

	ftr_expect_integer(f, FTR_MUST, FTR_RESULT, 0);
	CALL("f", 0x120000, 1);
	CALL("f", 0x1ffff, 1);
	expect_told(1, "f: expected the result to be 0, seen -1 in 1 of 2 calls\n"
		       "  call 2: f(1) = -1, thread T" FROM);
}

/* Of many calls in progress at a time some have lost their arguments when they return. */
Test(expect, deep_calls_keep_their_arguments_as_far_as_possible, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "w(w)");
	struct played calls[40] = { 0 };

	ftr_expect_integer(f, FTR_MUST, FTR_RESULT, 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 40; i++) {
			calls[i].words[0] = (uint64_t)i;
			calls[i].word = 0;
			play("f", &calls[i], false);
		}
		for (int i = 40; i--;) {
			calls[i].result = round && i == 30;
			play("f", &calls[i], true);
		}
	}
	expect_told(1, "f: expected the result to be 0, seen 1 in 1 of 80 calls\n"
		       "  call 71: f(30) = 1, thread T" FROM);
	f = EXPECT("f", "w(w)");
	ftr_expect_integer(f, FTR_MUST, FTR_RESULT, 0);
	for (int i = 0; i < 40; i++) {
		calls[i].word = 0;
		play("f", &calls[i], false);
	}
	calls[39].result = 1;
	play("f", &calls[39], true);
	expect_told(1, "f: expected the result to be 0, seen 1 in 1 of 40 calls\n"
		       "  call 40: f(...) = 1, thread T" FROM);
}

/* A call that does not return has no result that could be wrong. */
Test(expect, unwound_calls_have_no_result, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "i()");
	struct played call = { 0 };

	ftr_expect_integer(f, FTR_MUST, FTR_RESULT, 5);
	play("f", &call, false);
	cr_expect_eq(ftr_expect_seen(f), 1);
	expect_told(0, "");
}

Test(expect, conditions_choose_calls, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "(wz)"), *g = EXPECT("g", "w(w)");

	ftr_expect_calls(f, 0, 0);
	ftr_expect_integer(f, FTR_WHEN, 0, 2);
	ftr_expect_string(f, FTR_UNLESS, 1, "ok");
	ftr_expect_calls(g, 2, 2);
	ftr_expect_integer(g, FTR_WHEN, FTR_RESULT, -1);
	ftr_expect_integer(g, FTR_MUST, 0, 7);
	CALL("f", 0, 1, (uint64_t)"no");
	CALL("f", 0, 2, (uint64_t)"ok");
	CALL("f", 0, 2, (uint64_t)"no");
	CALL("g", 0, 1);
	CALL("g", -1, 8);
	cr_expect_eq(ftr_expect_seen(f), 1);
	cr_expect_eq(ftr_expect_seen(g), 1);
	expect_told(3, "f: expected no call with argument 0 = 2 and without argument 1 = \"ok\", "
		       "seen 1\n"
		       "  call 1: f(2, \"no\"), thread T" FROM
		       "g: expected exactly 2 calls with the result = -1, seen 1\n"
		       "g: expected argument 0 to be 7, seen 8 in 1 of 1 call\n"
		       "  call 1: g(8) = -1, thread T" FROM);
}

static int is_even(struct ftr_call *call, void *data)
{
	(*(int *)data)++;
	return !(*(uint64_t *)ftr_argument(call, "i", 0) & 1);
}

Test(expect, predicates, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "(i)"), *g = EXPECT("g", "(i)");
	int asked = 0;

	ftr_expect_predicate(f, FTR_MUST, 0, is_even, &asked, "an even number");
	ftr_expect_calls(g, 1, 1);
	ftr_expect_predicate(g, FTR_UNLESS, 0, is_even, &asked, "an even number");
	CALL("f", 0, 2);
	CALL("f", 0, 3);
	CALL("g", 0, 2);
	cr_expect_eq(asked, 3);
	expect_told(2, "f: expected an even number, seen otherwise in 1 of 2 calls\n"
		       "  call 2: f(3), thread T" FROM
		       "g: expected exactly 1 call without an even number, seen none\n");
}

static void *calls_f(void *arg)
{
	CALL("f", 0, 0);
	return arg;
}

Test(expect, threads, .init = threads_begin)
{
	struct ftr_expect *only = EXPECT("f", "()"), *not = EXPECT("f", "()");
	struct ftr_expect *here = EXPECT("f", "()");
	pthread_t thread;

	ftr_expect_thread(only, FTR_MUST, 0);
	ftr_expect_thread(not, FTR_MUST_NOT, 0);
	ftr_expect_thread(here, FTR_WHEN, 0);
	ftr_expect_calls(here, 2, 2);
	calls_f(NULL);
	cr_assert_eq(pthread_create(&thread, NULL, calls_f, NULL), 0);
	pthread_join(thread, NULL);
	expect_told(3, "f: expected calls only by thread T, seen thread T in 1 of 2 calls\n"
		       "  call 2: f(), thread T" FROM
		       "f: expected calls not by thread T, seen it in 1 of 2 calls\n"
		       "  call 1: f(), thread T" FROM
		       "f: expected exactly 2 calls by thread T, seen 1\n");
}

Test(expect, depth, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "()");
	struct played call = { 0 };

	ftr_expect_depth(f, 2);
	for (call.depth = 0; call.depth < 4; call.depth++)
		play("f", &call, false);
	expect_told(1, "f: expected at most 2 calls in progress, seen more in 2 of 4 calls\n"
		       "  call 3: f(), thread T" FROM);
}

Test(expect, orders, .init = threads_begin)
{
	static const struct {
		unsigned flags;
		const char *calls; /* letters of a, b, c */
		const char *text;
	} rows[] = {
		{ 0, "abac", NULL },
		{ 0, "cacbcaac", NULL },
		{ FTR_STRICT, "abac", NULL },
		{ 0, "", ": step 1 (a) is missing" },
		{ 0, "abc", ": step 3 (a) is missing" },
		{ FTR_STRICT, "ab", ": step 3 (a) is missing" },
		{ FTR_STRICT, "acb", "\n  call 1: c(7), thread T" FROM },
		{ FTR_STRICT, "abaca", "\n  call 3: a(), thread T" FROM },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ftr_expect *a = EXPECT("a", "()"), *b = EXPECT("b", "()"),
				  *c = EXPECT("c", "(w)"), *steps[] = { a, b, a, c };
		char text[256] = "", *out = text;

		ftr_expect_calls(a, 0, FTR_ANY);
		ftr_expect_calls(b, 0, FTR_ANY);
		ftr_expect_calls(c, 0, FTR_ANY);
		cr_expect_eq(ftr_expect_order_at("x.c", 3, rows[i].flags, steps, 4), 0);
		for (const char *s = rows[i].calls; *s; s++)
			CALL(((char[]){ *s, 0 }), 0, 7);
		if (rows[i].text) {
			out += sprintf(out, "x.c:3: order: expected %sa, b, a, c, seen ",
				rows[i].flags ? "exactly " : "");
			for (const char *s = rows[i].calls; *s; s++)
				out += sprintf(out, "%s%c", s == rows[i].calls ? "" : ", ", *s);
			out += sprintf(out, "%s%s", *rows[i].calls ? "" : "none", rows[i].text);
			if (out[-1] != '\n')
				sprintf(out, "\n");
		}
		expect_told(rows[i].text ? 1 : 0, text);
	}
}

Test(expect, long_orders_are_cut_off_in_messages, .init = threads_begin)
{
	struct ftr_expect *a = EXPECT("a", "()"), *b = EXPECT("b", "()");
	struct ftr_expect *steps[64];

	for (int i = 0; i < 64; i++)
		steps[i] = a;
	ftr_expect_calls(b, 0, 0);
	cr_expect_eq(ftr_expect_order_at(NULL, 0, 0, steps, 64), 0);
	cr_expect_eq(ftr_expect_order_at(NULL, 0, 0, steps, 65), -EINVAL);
	for (int i = 0; i < 34; i++)
		CALL("a", 0, 0);
	told[0] = 0;
	cr_expect_eq(ftr_verify(listen, told), 2);
	cr_expect(strstr(told, "a, a, a and 2 more: step 35 (a) is missing\n"), "%s", told);
	cr_expect(strstr(told, "\nftr: 1 expectations, conditions or orders could not be made: "
			       "wrong arguments, expectations that have ended, no memory, or no "
			       "system calls\n"), "%s", told);
}

Test(expect, mistakes_are_failures, .init = threads_begin)
{
	static const double half = 0.5;
	struct ftr_expect *none = EXPECT("nosuch", NULL), *wrong = EXPECT("f", "i(q)"),
			  *f = EXPECT("f", "i(wd)"), *twice = EXPECT("setjmp", "w(p)");

	cr_assert(none && wrong && f && twice);
	ftr_expect_calls(wrong, 0, 0);
	ftr_expect_calls(twice, 0, 0);
	ftr_expect_calls(f, 0, 0);
	cr_expect_eq(ftr_expect_calls(f, 2, 1), -EINVAL);
	cr_expect_eq(ftr_expect_integer(f, FTR_MUST, 1, 3), -EINVAL, "a double");
	cr_expect_eq(ftr_expect_integer(f, FTR_MUST, 2, 3), -EINVAL, "no third one");
	cr_expect_eq(ftr_expect_double(f, FTR_MUST, 0, &half), -EINVAL);
	cr_expect_eq(ftr_expect_string(f, FTR_MUST, 0, "x"), -EINVAL);
	cr_expect_eq(ftr_expect_string(f, FTR_MUST, FTR_RESULT, NULL), -EINVAL);
	cr_expect_eq(ftr_expect_integer(f, (enum ftr_how)9, 0, 3), -EINVAL);
	cr_expect_eq(ftr_expect_integer(twice, FTR_MUST, FTR_RESULT, 3), -ENODATA);
	cr_expect_eq(ftr_expect_integer(NULL, FTR_MUST, 0, 3), -EINVAL);
	expect_told(10, "nosuch: cannot be watched: no such function\n"
			"f: wrong signature \"i(q)\"\n"
			"f: at least 2 and at most 1 calls: never\n"
			"f: the signature has no such argument or result\n"
			"f: the signature has no such argument or result\n"
			"f: the signature has no such argument or result\n"
			"f: the signature has no such argument or result\n"
			"f: a condition lacks what it compares with, or that is too long\n"
			"f: a condition is neither FTR_MUST nor its kin\n"
			"setjmp: its return cannot be seen\n");
}

Test(expect, too_many_conditions, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "(w)");

	ftr_expect_calls(f, 0, 0);
	for (int i = 0; i < 16; i++)
		cr_expect_eq(ftr_expect_integer(f, FTR_WHEN, 0, 3), 0);
	cr_expect_eq(ftr_expect_integer(f, FTR_WHEN, 0, 3), -ENOSPC);
	CALL("f", 0, 4);
	expect_told(1, "f: there are too many conditions\n");
}

Test(expect, forgets, .init = threads_begin)
{
	ftr_expect_order_at(NULL, 0, 0, (struct ftr_expect *[]){ EXPECT("f", NULL) }, 1);
	EXPECT("nosuch", NULL);
	cr_expect_eq(ftr_forget(), 0);
	cr_expect_null(probes);
	expect_told(0, "");
}

/* A forked child has the expectations, and has seen nothing. */
Test(expect, forks, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "()");
	int status;

	ftr_expect_calls(f, 2, 2);
	ftr_expect_order_at(NULL, 0, FTR_STRICT, &f, 1);
	CALL("f", 0, 0);
	if (fork() == 0) {
		bool good;

		if (support_qemu())
			wiped_forked();
		good = ftr_expect_seen(f) == 0;

		told[0] = 0;
		good = good && ftr_verify(listen, told) == 2
			&& !strcmp(told, "f: expected exactly 2 calls, seen none\n"
					 "order: expected exactly f, seen none: step 1 (f) is missing\n");
		_exit(good ? 0 : 1);
	}
	cr_assert(wait(&status) > 0);
	cr_expect_eq(status, 0);
	expect_told(1, "f: expected exactly 2 calls, seen 1\n");
}

struct storm {
	pthread_barrier_t *barrier;
	int calls;
};

static void *storm_main(void *arg)
{
	const struct storm *storm = arg;
	struct ftr_probe *p = probes;

	pthread_barrier_wait(storm->barrier);
	for (int i = 0; i < storm->calls; i++) {
		struct played call = { .function = &p->function, .words = { (uint64_t)i } };

		call.call.frame.slot = ~0ull;
		p->spec.entry(&call.call, p->spec.data);
		p->spec.ret(&call.call, p->spec.data);
	}
	return NULL;
}

/* Handlers of several threads at a time lose no number, and one call is told of. */
Test(expect, threads_at_the_same_time, .init = threads_begin)
{
	struct ftr_expect *f = EXPECT("f", "(w)");
	pthread_barrier_t barrier;
	struct storm storm = { &barrier, 20000 };
	pthread_t threads[4];

	pthread_barrier_init(&barrier, NULL, 4);
	ftr_expect_integer(f, FTR_MUST_NOT, 0, 5);
	ftr_expect_calls(f, 80000, 80000);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, storm_main, &storm), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	told[0] = 0;
	cr_expect_eq(ftr_verify(listen, told), 1);
	cr_expect(strstr(told, "f: expected argument 0 not to be 5, seen it in 4 of 80000 calls\n"),
		"%s", told);
	cr_expect(strstr(told, ": f(5), thread "), "%s", told);
}
