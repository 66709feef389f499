/* SPDX-License-Identifier: MIT */
#include "tracer/fault.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Which of calls 1 to 20 fail, a letter each. */
static const char *chosen(const struct ftr_fault *wanted)
{
	static char text[21];
	struct fault *fault;
	const char *why;

	cr_assert_eq(fault_make(wanted, &fault, &why), 0, "%s", why);
	for (uint64_t n = 1; n <= 20; n++)
		text[n - 1] = fault_chooses(fault, n) ? 'x' : '.';
	fault_free(fault);
	return text;
}

Test(fault, chooses_calls)
{
	static const struct {
		struct ftr_fault fault;
		const char *chosen;
	} rows[] = {
		{ { 0 }, "xxxxxxxxxxxxxxxxxxxx" },
		{ { .from = 3, .to = 3 }, "..x................." },
		{ { .from = 3 }, "..xxxxxxxxxxxxxxxxxx" },
		{ { .to = 2 }, "xx.................." },
		{ { .every = 4 }, "x...x...x...x...x..." },
		{ { .from = 3, .to = 12, .every = 4 }, "..x...x...x........." },
		{ { .probability = 1 }, "xxxxxxxxxxxxxxxxxxxx" },
		{ { .probability = 0x1p-64 }, "...................." },
		{ { .probability = 0.5, .seed = 1 }, "...xx...x.x.x.xx...." },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		cr_expect_str_eq(chosen(&rows[i].fault), rows[i].chosen, "row %zu: %s", i,
			chosen(&rows[i].fault));
}

Test(fault, seeds_are_repeatable_and_differ)
{
	struct ftr_fault one = { .probability = 0.5, .seed = 1 }, two = one;
	char first[21];

	two.seed = 2;
	strcpy(first, chosen(&one));
	cr_expect_str_eq(chosen(&one), first);
	cr_expect(strcmp(chosen(&two), first));
}

Test(fault, probability_is_a_share_of_calls)
{
	const struct ftr_fault wanted = { .probability = 0.25, .seed = 7 };
	struct fault *fault;
	const char *why;
	int n = 0;

	cr_assert_eq(fault_make(&wanted, &fault, &why), 0);
	for (uint64_t i = 1; i <= 100000; i++)
		n += fault_chooses(fault, i);
	cr_expect(n > 24500 && n < 25500, "%d", n);
	fault_free(fault);
}

Test(fault, results)
{
	static const struct {
		struct ftr_fault fault;
		char type;
		uint64_t result;
	} rows[] = {
		{ { .value = (uint64_t)-1 }, 'i', ~0ull },
		{ { .type = 'i', .value = 5 }, 'i', 5 },
		{ { .type = 'd', .real = 0.5 }, 'd', 0x3fe0000000000000 },
		{ { .type = 'f', .real = 0.5 }, 'f', 0x3f000000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fault *fault;
		const char *why;

		cr_assert_eq(fault_make(&rows[i].fault, &fault, &why), 0);
		cr_expect_eq(fault->type, rows[i].type);
		cr_expect_eq(fault->result, rows[i].result);
		fault_free(fault);
	}
}

#define WRONG "a probability is not in [0, 1], or a type none of i, d, f, n"

Test(fault, refuses)
{
	static const struct {
		struct ftr_fault fault;
		int err;
		const char *why;
	} rows[] = {
		{ { .type = 'x' }, -EINVAL, WRONG },
		{ { .probability = 1.5 }, -EINVAL, WRONG },
		{ { .probability = NAN }, -EINVAL, WRONG },
		{ { .from = 5, .to = 3 }, -EINVAL, "the last call is before the first" },
		{ { .error = -ENOMEM }, -EINVAL, "errno is never negative" },
		{ { .caller = "no_such_function" }, -ENOENT, "no such caller" },
		{ { .caller_module = "no_such_file" }, -ENOENT, "no such caller" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fault *fault;
		const char *why;

		cr_expect_eq(fault_make(&rows[i].fault, &fault, &why), rows[i].err, "row %zu", i);
		cr_expect_str_eq(why, rows[i].why);
	}
}

__attribute__((noinline)) static const void *here(void)
{
	return __builtin_extract_return_addr(__builtin_return_address(0));
}

__attribute__((noinline)) static const void *fault_test_one(void)
{
	const void *address = here();

	__asm__ volatile("");
	return address;
}

__attribute__((noinline)) static const void *fault_test_two(void)
{
	const void *address = here();

	__asm__ volatile("" : : "r"(address));
	return address;
}

static bool concerns(const struct ftr_fault *wanted, const void *caller)
{
	struct fault *fault;
	const char *why;
	bool result;

	cr_assert_eq(fault_make(wanted, &fault, &why), 0, "%s", why);
	result = fault_concerns(fault, (uint64_t)caller);
	fault_free(fault);
	return result;
}

Test(fault, callers)
{
	const void *one = fault_test_one(), *two = fault_test_two();
	const struct ftr_fault any = { 0 }, by_name = { .caller = "fault_test_one" },
			       by_glob = { .caller = "fault_test_*" },
			       by_module = { .caller_module = "test_fault" },
			       by_both = { .caller = "fault_test_*",
				       .caller_module = "libc.so*,test_*" },
			       elsewhere = { .caller_module = "libc.so*" };

	cr_expect(concerns(&any, one));
	cr_expect(concerns(&by_name, one));
	cr_expect_not(concerns(&by_name, two));
	cr_expect(concerns(&by_glob, two));
	cr_expect(concerns(&by_module, two));
	cr_expect_not(concerns(&by_glob, (void *)getenv));
	cr_expect_not(concerns(&by_module, (void *)getenv));
	cr_expect(concerns(&by_both, two));
	cr_expect_not(concerns(&elsewhere, one));
	cr_expect_not(concerns(&by_name, NULL));
}
