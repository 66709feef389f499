/* SPDX-License-Identifier: MIT */
/*
 * The part of Criterion's interface that tests/unit and tests/harness use, for CPUs that Criterion was
 * never ported to: Debian has none for powerpc. standin.c has main(): each test runs in a process of its own,
 * one after the other. Messages are printf's, begin with a literal, and may be left out.
 */
#ifndef CRITERION_CRITERION_H
#define CRITERION_CRITERION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct standin_test {
	const char *suite, *name;
	void (*init)(void); /* before it; NULL: nothing */
	void (*run)(void);
	double timeout; /* in seconds; 0: none */
	struct standin_test *next;
};

/* What the tests of a suite begin and end with, each in its own process; NULL: nothing. */
struct standin_suite {
	const char *name;
	void (*init)(void);
	void (*fini)(void);
	struct standin_suite *next;
};

struct standin_place {
	const char *file;
	int line;
	const char *condition;
	bool fatal;
};

/* Called before main(); keep what they are given, which lives as long as the process. */
void standin_add(struct standin_test *test);
void standin_add_suite(struct standin_suite *suite);
/* A condition that did not hold. Returns unless it is fatal. */
void standin_fail(const struct standin_place *place, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void standin_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void standin_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define Test(suite_, name_, ...)                                                                   \
	static void suite_##_##name_##_impl(void);                                                 \
	static struct standin_test suite_##_##name_##_test = {                                     \
		.suite = #suite_, .name = #name_, .run = suite_##_##name_##_impl, __VA_ARGS__      \
	};                                                                                         \
	__attribute__((constructor)) static void suite_##_##name_##_add(void)                      \
	{                                                                                          \
		standin_add(&suite_##_##name_##_test);                                             \
	}                                                                                          \
	static void suite_##_##name_##_impl(void)

#define TestSuite(name_, ...)                                                                      \
	static struct standin_suite name_##_suite = { .name = #name_, __VA_ARGS__ };               \
	__attribute__((constructor)) static void name_##_suite_add(void)                           \
	{                                                                                          \
		standin_add_suite(&name_##_suite);                                                 \
	}                                                                                          \
	_Static_assert(1, "takes the semicolon")

#define STANDIN_CHECK(fatal_, text_, condition_, ...)                                              \
	do {                                                                                       \
		if (!(condition_))                                                                 \
			standin_fail(&(const struct standin_place){ __FILE__, __LINE__, text_,     \
						   fatal_ },                                       \
				" " __VA_ARGS__);                                                   \
	} while (0)
#define STANDIN_COMPARE(fatal_, a_, op_, b_, ...)                                                  \
	STANDIN_CHECK(fatal_, #a_ " " #op_ " " #b_, (a_)op_(b_), __VA_ARGS__)
#define STANDIN_STRINGS(fatal_, a_, b_, ...)                                                       \
	STANDIN_CHECK(fatal_, #a_ " is " #b_, strcmp(a_, b_) == 0, __VA_ARGS__)

#define cr_assert(condition, ...) STANDIN_CHECK(true, #condition, condition, __VA_ARGS__)
#define cr_assert_fail(...) STANDIN_CHECK(true, "never", false, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) STANDIN_COMPARE(true, a, ==, b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) STANDIN_COMPARE(true, a, !=, b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) STANDIN_COMPARE(true, a, <, b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) STANDIN_COMPARE(true, a, <=, b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) STANDIN_COMPARE(true, a, >, b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) STANDIN_COMPARE(true, a, >=, b, __VA_ARGS__)
#define cr_assert_null(a, ...) STANDIN_COMPARE(true, a, ==, NULL, __VA_ARGS__)
#define cr_assert_not_null(a, ...) STANDIN_COMPARE(true, a, !=, NULL, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) STANDIN_STRINGS(true, a, b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...)                                                          \
	STANDIN_CHECK(true, #a " has the bytes of " #b, memcmp(a, b, size) == 0, __VA_ARGS__)

#define cr_expect(condition, ...) STANDIN_CHECK(false, #condition, condition, __VA_ARGS__)
#define cr_expect_not(condition, ...) STANDIN_CHECK(false, "not " #condition, !(condition), __VA_ARGS__)
#define cr_expect_fail(...) STANDIN_CHECK(false, "never", false, __VA_ARGS__)
#define cr_expect_eq(a, b, ...) STANDIN_COMPARE(false, a, ==, b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) STANDIN_COMPARE(false, a, !=, b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) STANDIN_COMPARE(false, a, <, b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) STANDIN_COMPARE(false, a, <=, b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) STANDIN_COMPARE(false, a, >, b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) STANDIN_COMPARE(false, a, >=, b, __VA_ARGS__)
#define cr_expect_null(a, ...) STANDIN_COMPARE(false, a, ==, NULL, __VA_ARGS__)
#define cr_expect_not_null(a, ...) STANDIN_COMPARE(false, a, !=, NULL, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) STANDIN_STRINGS(false, a, b, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...)                                                          \
	STANDIN_CHECK(false, #a " has the bytes of " #b, memcmp(a, b, size) == 0, __VA_ARGS__)

#define cr_skip_test(...) standin_skip(" " __VA_ARGS__)
#define cr_log_info(...) standin_log(" " __VA_ARGS__)
#define cr_log_error(...) standin_log(" " __VA_ARGS__)
#define cr_log_warn(...) standin_log(" " __VA_ARGS__)

#endif
