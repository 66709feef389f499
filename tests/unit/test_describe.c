/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "tracer/describe.h"
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

/* C++'s for describe_test::named(int). */
__attribute__((noinline, used)) void describe_test_named(void) __asm__("_ZN13describe_test5namedEi");
void describe_test_named(void)
{
	__asm__ volatile("nop; nop; nop; nop");
}

Test(describe, names_functions)
{
	struct describer d;
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	char text[128];

	cr_assert(libc);
	describe_begin(&d);
	cr_expect(describe(&d, (uint64_t)describe_test_named + 2, text, sizeof(text)));
	cr_expect_str_eq(text, "describe_test::named+0x2 in test_describe");
	cr_expect(describe(&d, (uint64_t)dlsym(libc, "qsort_r") + 5, text, sizeof(text)));
	cr_expect_str_eq(text, "qsort_r+0x5 in libc.so.6");
	/* back to a module that was open before */
	cr_expect(describe(&d, (uint64_t)describe_test_named + 1, text, sizeof(text)));
	cr_expect_str_eq(text, "describe_test::named+0x1 in test_describe");
	cr_expect(describe(&d, (uint64_t)describe_test_named + 1, text, 10));
	cr_expect_str_eq(text, "describe_");
	describe_end(&d);
}

/* A call that does not return may be a function's last instruction. */
Test(describe, a_return_address_belongs_to_the_call_before_it)
{
	struct describer d;
	char text[128];

	describe_begin(&d);
	cr_expect_not(describe(&d, (uint64_t)describe_test_named, text, sizeof(text))
		&& strstr(text, "describe_test::named"));
	describe_end(&d);
}

Test(describe, addresses_without_function)
{
	static int data;
	struct describer d;
	char text[128];

	describe_begin(&d);
	cr_expect_not(describe(&d, 0x10, text, sizeof(text)));
	cr_expect_str_eq(text, "0x10");
	cr_expect_not(describe(&d, (uint64_t)&data, text, sizeof(text)));
	cr_expect_eq(strncmp(text, "test_describe+0x", 16), 0, "%s", text);
	cr_expect_not(describe(&d, (uint64_t)&text, text, sizeof(text)));
	cr_expect_eq(strncmp(text, "0x", 2), 0, "%s", text);
	describe_end(&d);
}
