/* SPDX-License-Identifier: MIT */
/* Handlers: order, nesting, words, arguments, results, skipping; attaching and detaching inside. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

static char log_text[256];

static void note(const char *what)
{
	strncat(log_text, what, sizeof(log_text) - strlen(log_text) - 1);
}

static void expect_log(const char *wanted)
{
	CHECK(!strcmp(log_text, wanted), "\"%s\", not \"%s\"", log_text, wanted);
	log_text[0] = 0;
}

NOINLINE static long add(long a, long b)
{
	note("f");
	return a + b;
}

NOINLINE static double scale(int n, double x, float y)
{
	return n * x + (double)y;
}

NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

NOINLINE static int sum(int n, ...)
{
	va_list ap;
	int total = 0;

	va_start(ap, n);
	while (n--)
		total += va_arg(ap, int);
	va_end(ap);
	return total;
}

NOINLINE static long depth(int n)
{
	return n ? depth(n - 1) + 1 : 0;
}

static void entry(struct ftr_call *call, void *data)
{
	char text[2] = { *(char *)data, 0 };

	note(text);
	*ftr_call_word(call) = (uint64_t)*(char *)data;
}

static void ret(struct ftr_call *call, void *data)
{
	char text[2] = { (char)(*(char *)data - 'a' + 'A'), 0 };

	CHECK_INT(*ftr_call_word(call), *(char *)data);
	note(text);
}

static void nests(void)
{
	struct ftr_probe *a = attach(add, entry, ret, "a"), *b = attach(add, entry, ret, "b");
	struct ftr_probe *c = attach(add, entry, NULL, "c");

	CHECK_INT(add(1, 2), 3);
	expect_log("abcfBA");
	CHECK_INT(ftr_detach(a), 0);
	CHECK_INT(add(1, 2), 3);
	expect_log("bcfB");
	CHECK_COUNTS(b, 2, 2, 0);
	CHECK_INT(ftr_detach(b), 0);
	CHECK_INT(add(1, 2), 3);
	expect_log("cf");
	CHECK_INT(ftr_detach(c), 0);
	CHECK_INT(add(1, 2), 3);
	expect_log("f");
}

static void change(struct ftr_call *call, void *data)
{
	(void)data;
	CHECK_INT(ftr_argument_word(call, 0), 1);
	CHECK_INT(*(long *)ftr_argument(call, "ii", 1), 2);
	*(long *)ftr_argument(call, "i", 0) = 40;
}

static void change_result(struct ftr_call *call, void *data)
{
	(void)data;
	CHECK_INT(*(long *)ftr_result(call, 'i'), 42);
	*(long *)ftr_result(call, 'i') = 43;
}

static void change_doubles(struct ftr_call *call, void *data)
{
	(void)data;
	CHECK(*(double *)ftr_argument(call, "idf", 1) == 1.5);
	CHECK(*(float *)ftr_argument(call, "idf", 2) == 0.25f);
	*(double *)ftr_argument(call, "idf", 1) = 2.5;
	*(float *)ftr_argument(call, "idf", 2) = 0.5f;
}

static void change_double_result(struct ftr_call *call, void *data)
{
	(void)data;
	CHECK(*(double *)ftr_result(call, 'd') == 5.5);
	*(double *)ftr_result(call, 'd') = -1.0;
}

static void change_stacked(struct ftr_call *call, void *data)
{
	(void)data;
	for (unsigned i = 0; i < 8; i++)
		CHECK_INT(*(long *)ftr_argument(call, "iiiiiiii", i), i + 1);
	*(long *)ftr_argument(call, "iiiiiiii", 7) = 0;
	*(long *)ftr_argument(call, "iiiiiiii", 6) = 1;
}

static void change_variadic(struct ftr_call *call, void *data)
{
	(void)data;
	CHECK_INT(*(int *)ftr_argument(call, "i.ii", 2), 20);
	*(int *)ftr_argument(call, "i.ii", 2) = 21;
}

static void sees_values(void)
{
	struct ftr_probe *p = attach(add, change, change_result, NULL);

	CHECK_INT(add(1, 2), 43);
	expect_log("f");
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(add(1, 2), 3);
	expect_log("f");
	p = attach(scale, change_doubles, change_double_result, NULL);
	CHECK(scale(2, 1.5, 0.25f) == -1.0);
	CHECK_INT(ftr_detach(p), 0);
	CHECK(scale(2, 1.5, 0.25f) == 3.25);
	p = attach(many, change_stacked, NULL, NULL);
	CHECK_INT(many(1, 2, 3, 4, 5, 6, 7, 8), 91 + 7);
	CHECK_INT(ftr_detach(p), 0);
	p = attach(sum, change_variadic, NULL, NULL);
	CHECK_INT(sum(3, 10, 20, 30), 61);
	CHECK_INT(ftr_detach(p), 0);
}

static void skip(struct ftr_call *call, void *data)
{
	note("s");
	*(long *)ftr_result(call, 'i') = *(long *)data;
	ftr_set_errno(call, ENOSPC);
	CHECK_INT(ftr_skip(call), 0);
}

static void skips(void)
{
	long value = -1;
	struct ftr_probe *a = attach(add, entry, ret, "a"), *s = attach(add, skip, NULL, &value);
	struct ftr_probe *c = attach(add, entry, ret, "c");

	errno = 0;
	CHECK_INT(add(1, 2), -1);
	CHECK_INT(errno, ENOSPC);
	expect_log("asA");
	CHECK_INT(ftr_detach(s), 0);
	CHECK_INT(add(1, 2), 3);
	expect_log("acfCA");
	CHECK_COUNTS(a, 2, 2, 0);
	CHECK_INT(ftr_detach(a), 0);
	CHECK_INT(ftr_detach(c), 0);
}

static struct ftr_probe *self;

static void detach_self(struct ftr_call *call, void *data)
{
	(void)call;
	note(data);
	CHECK_INT(ftr_detach(self), 0);
}

static void call_again(struct ftr_call *call, void *data)
{
	(void)call;
	note(data);
	add(0, 0);
	depth(0);
}

static void attach_more(struct ftr_call *call, void *data)
{
	(void)call;
	if (!*(struct ftr_probe **)data)
		*(struct ftr_probe **)data = attach(add, entry, ret, "m");
}

static void acts_inside(void)
{
	struct ftr_probe *p, *q, *more = NULL;

	self = attach(add, detach_self, NULL, "d");
	add(1, 2);
	add(1, 2);
	expect_log("dff");
	self = attach(add, NULL, detach_self, "d");
	add(1, 2);
	add(1, 2);
	expect_log("fdf");
	p = attach(add, call_again, NULL, "x");
	q = attach(depth, entry, NULL, "q");
	add(1, 2);
	expect_log("xfqf");
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_detach(q), 0);
	p = attach(depth, attach_more, NULL, &more);
	depth(0);
	CHECK(more);
	add(1, 2);
	expect_log("mfM");
	CHECK_INT(ftr_detach(more), 0);
	CHECK_INT(ftr_detach(p), 0);
}

static unsigned deepest;

static void see_depth(struct ftr_call *call, void *data)
{
	unsigned now = ftr_call_depth(call);

	(void)data;
	deepest = now > deepest ? now : deepest;
}

static void knows_depth_and_caller(void)
{
	struct ftr_probe *p = attach(depth, see_depth, see_depth, NULL);

	CHECK_INT(depth(20), 20);
	CHECK_INT(deepest, 20);
	CHECK_INT(ftr_detach(p), 0);
}

static void only_entry(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
	note("e");
}

static void keeps_to_one_thread(void)
{
	struct ftr_probe *p;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = (void *)add, .entry = only_entry,
			    .thread = 1 }), &p), 1);
	add(1, 2);
	expect_log("f");
	CHECK_INT(ftr_detach(p), 0);
}

static void follows_jumps(void)
{
	struct ftr_probe *p = attach(depth, entry, ret, "j");
	static jmp_buf out;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "setjmp", .ret = ret }), &self),
		-ENODATA);
	(void)out;
	CHECK_INT(depth(1), 1);
	expect_log("jjJJ");
	CHECK_INT(ftr_detach(p), 0);
}

/* Every one is called, and one too many is refused. */
static void has_a_limit(void)
{
	enum { MOST = 61 };
	struct ftr_probe *probes[MOST], *p = NULL;

	for (int i = 0; i < MOST; i++)
		probes[i] = attach(depth, NULL, see_depth, NULL);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = (void *)depth, .ret = see_depth }),
			&p), -ENOSPC);
	deepest = 0;
	CHECK_INT(depth(3), 3);
	CHECK_INT(deepest, 3);
	for (int i = 0; i < MOST; i++)
		CHECK_INT(ftr_detach(probes[i]), 0);
}

int main(void)
{
	need_handlers();
	nests();
	sees_values();
	skips();
	acts_inside();
	knows_depth_and_caller();
	keeps_to_one_thread();
	follows_jumps();
	has_a_limit();
	puts("ok");
	return 0;
}
