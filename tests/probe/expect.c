/* SPDX-License-Identifier: MIT */
/* Expectations of real calls; tests/unit/test_expect.c has the messages, one by one. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sink;
static jmp_buf out;
static char told[8192];

static void listen(const char *message, void *data)
{
	(void)data;
	strncat(told, message, sizeof(told) - strlen(told) - 1);
	strcat(told, "\n");
}

static void verify(int failures)
{
	told[0] = 0;
	CHECK_INT(ftr_verify(listen, NULL), failures);
}

static void says(const char *text)
{
	CHECK(strstr(told, text), "\"%s\" is not in\n%s", text, told);
}

NOINLINE static int factorial(int n)
{
	return n < 2 ? 1 + (int)sink : n * factorial(n - 1);
}

NOINLINE static double scale(double x, float y, int n)
{
	return x * (double)y + n + (double)sink;
}

NOINLINE static long many(long a, long b, long c, long d, long e, long f, const char *g, short h)
{
	return a + b + c + d + e + f + *g + h + sink;
}

NOINLINE static int leave(int how)
{
	sink += 0;
	if (how)
		longjmp(out, 1);
	return how;
}

static void arguments_and_results(void)
{
	static const double two = 2, quarter = 0.25, wanted = 3.5;
	struct ftr_expect *s = ftr_expect("scale", "d(dfw)"), *m = ftr_expect("many", "i(iiiiiizh)");

	ftr_expect_double(s, FTR_MUST, 0, &two);
	ftr_expect_double(s, FTR_MUST, 1, &quarter);
	ftr_expect_integer(s, FTR_MUST, 2, 3);
	ftr_expect_double(s, FTR_MUST, FTR_RESULT, &wanted);
	ftr_expect_string(m, FTR_MUST, 6, "g");
	ftr_expect_integer(m, FTR_MUST, 7, -8);
	ftr_expect_integer(m, FTR_MUST, FTR_RESULT, 21 + 'g' - 8);
	CHECK(scale(2, 0.25f, 3) == 3.5);
	CHECK_INT(many(1, 2, 3, 4, 5, 6, "g", -8), 21 + 'g' - 8);
	verify(0);
	s = ftr_expect("scale", "d(dfw)");
	ftr_expect_double(s, FTR_MUST, FTR_RESULT, &wanted);
	CHECK(scale(1.5, 2, -1) == 2);
	verify(1);
	says("scale: expected the result to be 3.5, seen 2 in 1 of 1 call\n"
	     "  call 1: scale(1.5, 2, -1) = 2, thread ");
}

NOINLINE static void depth_and_stack(void)
{
	struct ftr_expect *f = ftr_expect("factorial", "w(w)");

	ftr_expect_depth(f, 4);
	CHECK_INT(factorial(4), 24);
	CHECK_INT(ftr_expect_seen(f), 4);
	CHECK_INT(factorial(5), 120);
	verify(1);
	says("factorial: expected at most 4 calls in progress, seen more in 1 of 9 calls\n"
	     "  call 9: factorial(1), thread ");
	says("\n    from factorial+0x");
	if (ftr_call_stack_prepare() == 0)
		says("\n    from depth_and_stack+0x");
}

static void unwound_calls(void)
{
	struct ftr_expect *f = ftr_expect("leave", "w(w)"), *returning = ftr_expect("leave", "w(w)");

	ftr_expect_calls(f, 3, 3);
	ftr_expect_integer(f, FTR_MUST, FTR_RESULT, 0);
	ftr_expect_integer(returning, FTR_WHEN, FTR_RESULT, 0);
	ftr_expect_calls(returning, 2, 2);
	for (volatile int i = 0; i < 3; i++)
		if (!setjmp(out))
			leave(i == 1);
	verify(0);
}

/* A call may be more than one expectation's, and probes come and go beside them. */
static void several_of_one_function(void)
{
	struct ftr_expect *odd = ftr_expect("factorial", "w(w)"), *all = ftr_expect("fact*", NULL);
	struct ftr_probe *p = attach(factorial, NULL, NULL, NULL);

	ftr_expect_integer(odd, FTR_WHEN, 0, 3);
	ftr_expect_calls(odd, 1, 1);
	ftr_expect_calls(all, 4, 4);
	ftr_expect_order(0, all, odd, all, all);
	ftr_expect_order(0, odd, odd);
	factorial(4);
	CHECK_COUNTS(p, 4, 4, 0);
	CHECK_INT(ftr_detach(p), 0);
	verify(1);
	says(": order: expected factorial, factorial, seen factorial: step 2 (factorial) is missing\n");
}

static void not_in_handlers(struct ftr_call *call, void *data)
{
	(void)call;
	CHECK_INT(ftr_expect_calls(data, 1, 1), -EPERM);
	CHECK(!ftr_expect("factorial", NULL));
	CHECK_INT(ftr_verify(NULL, NULL), -EPERM);
	CHECK_INT(ftr_forget(), -EPERM);
	CHECK_INT(ftr_call_stack_prepare(), -EPERM);
	CHECK_INT(ftr_describe((void *)not_in_handlers, told, sizeof(told)), -EPERM);
}

static void refuses_in_handlers(void)
{
	struct ftr_expect *e = ftr_expect("many", NULL);
	struct ftr_probe *p = attach(factorial, not_in_handlers, NULL, e);

	factorial(1);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_forget(), 0);
	verify(0);
}

static void mistakes(void)
{
	ftr_expect("no_such_function", NULL);
	ftr_expect_calls(ftr_expect("factorial", "w(q)"), 0, 0);
	errno = E2BIG;
	verify(2);
	CHECK_INT(errno, E2BIG);
	says("no_such_function: cannot be watched: no_such_function: no such function\n");
	says("factorial: wrong signature \"w(q)\"\n");
}

/* What has ended is not to be changed. */
static void after_the_end(void)
{
	struct ftr_expect *e = ftr_expect("factorial", "w(w)");
	struct ftr_expect *const steps[] = { e };

	CHECK_INT(ftr_expect_double(e, FTR_MUST, 0, NULL), -EINVAL);
	CHECK_INT(ftr_forget(), 0);
	CHECK_INT(ftr_expect_calls(e, 1, 1), -EINVAL);
	CHECK_INT(ftr_expect_integer(e, FTR_MUST, 0, 1), -EINVAL);
	CHECK_INT(ftr_expect_depth(e, 1), -EINVAL);
	CHECK_INT(ftr_expect_order_at(NULL, 0, 0, steps, 1), -EINVAL);
	CHECK_INT(ftr_expect_double(NULL, FTR_MUST, 0, NULL), -EINVAL);
	verify(1);
	says("ftr: 4 expectations, conditions or orders could not be made");
}

static void *work(void *arg)
{
	for (int i = 0; i < 5000; i++)
		factorial(3);
	return arg;
}

/* Expectations are made and ended while other threads make the calls. */
static void beside_other_threads(void)
{
	pthread_t threads[3];
	struct ftr_expect *f;

	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < 50; i++) {
		f = ftr_expect("factorial", "w(w)");
		ftr_expect_calls(f, 0, FTR_ANY);
		ftr_expect_integer(f, FTR_MUST_NOT, 0, 4);
		ftr_expect_integer(f, FTR_MUST_NOT, FTR_RESULT, 5);
		ftr_expect_order(0, f);
		ftr_expect_calls(ftr_expect("many", NULL), 0, 0);
		CHECK_INT(ftr_forget(), 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	f = ftr_expect("factorial", "w(w)");
	ftr_expect_calls(f, 3 * 5000 * 3, 3 * 5000 * 3);
	ftr_expect_integer(f, FTR_MUST_NOT, 0, 4);
	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	verify(0);
}

static void forks(void)
{
	struct ftr_expect *f = ftr_expect("factorial", "w(w)");
	int status;

	ftr_expect_calls(f, 2, 2);
	factorial(1);
	if (fork() == 0) {
		CHECK_INT(ftr_expect_seen(f), 0);
		factorial(2);
		verify(0);
		factorial(2);
		_exit(0);
	}
	CHECK(wait(&status) > 0);
	CHECK_INT(status, 0);
	CHECK_INT(ftr_expect_seen(f), 1);
	factorial(1);
	verify(0);
}

static char noted[4096];

/* Makes no system call, unlike note(). */
static void note_silently(const char *message, void *count)
{
	size_t at = strlen(noted);

	++*(int *)count;
	while (*message && at + 1 < sizeof(noted))
		noted[at++] = *message++;
}

/* What was expected before is verified; nothing more can be expected. */
static int without_system_calls(struct ftr_expect *m)
{
	int messages = 0;

	if (ftr_expect_seen(m) != 1 || ftr_call_stack_prepare() != -EPERM)
		return 1;
	if (ftr_expect_calls(m, 2, 2) || ftr_expect_integer(m, FTR_MUST, 0, 1))
		return 2;
	if (ftr_expect("many", NULL) || ftr_expect_order(0, m, m) != -EPERM)
		return 3;
	/* the string, the result, the number of calls, what could not be made */
	if (ftr_verify(note_silently, &messages) != 4 || messages != 4)
		return 4;
	if (!strstr(noted, "expected argument 6 to be \"no\", seen \"g\" in 1 of 1 call\n  call 1: many(1, 2, 3, 4")
		|| !strstr(noted, "ftr: 2 expectations, conditions or orders could not be made"))
		return 5;
	many(1, 2, 3, 4, 5, 6, "g", -8);
	if (ftr_verify(NULL, NULL) || ftr_forget())
		return 6;
	return 0;
}

/* A process that gave up all system calls but exit goes on. */
static void gives_up_system_calls(void)
{
	struct ftr_expect *m = ftr_expect("many", "i(iiiiiizh)");
	int status;

	ftr_expect_string(m, FTR_MUST, 6, "no");
	ftr_expect_integer(m, FTR_MUST, FTR_RESULT, 0);
	ftr_expect_calls(m, 0, 0);
	if (fork() == 0) {
		CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
		many(1, 2, 3, 4, 5, 6, "g", -8);
		syscall(SYS_exit, without_system_calls(m));
	}
	CHECK(wait(&status) > 0);
	CHECK(status == 0, "status %x", (unsigned)status);
	verify(0);
}

int main(void)
{
	need_handlers();
	if (!is_emulated())
		gives_up_system_calls();
	arguments_and_results();
	depth_and_stack();
	unwound_calls();
	several_of_one_function();
	refuses_in_handlers();
	mistakes();
	after_the_end();
	beside_other_threads();
	forks();
	puts("ok");
	return 0;
}
