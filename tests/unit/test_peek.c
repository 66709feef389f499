/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "tracer/peek.h"
#include "rethook/shadow.h"
#include <criterion/criterion.h>
#include <sys/mman.h>

#define PAGE 4096

/* Three pages of which the last cannot be read. */
static char *pages(void)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	__builtin_memset(p, 'x', 2 * PAGE);
	cr_assert_eq(mprotect(p + 2 * PAGE, PAGE, PROT_NONE), 0);
	return p;
}

static void check_strings(void)
{
	char *p = pages(), text[600];

	__builtin_strcpy(p + 2 * PAGE - 4, "abc");
	cr_expect_eq(peek_string(text, sizeof(text), (uint64_t)p + 2 * PAGE - 4), 3);
	cr_expect_str_eq(text, "abc");
	cr_expect(peek_equal((uint64_t)p + 2 * PAGE - 4, "abc", 4));
	cr_expect_not(peek_equal((uint64_t)p + 2 * PAGE - 4, "abcd", 5));
	cr_expect(peek_bytes(text, (uint64_t)p + PAGE - 4, 8) && text[7] == 'x');
	cr_expect_not(peek_bytes(text, 0, 8));
	/* longer than a piece, over the end of a page */
	p[PAGE + 299] = 0;
	cr_expect_eq(peek_string(text, sizeof(text), (uint64_t)p + PAGE - 2), 301);
	cr_expect_eq(peek_string(text, 301, (uint64_t)p + PAGE - 2), 301, "cut off");
	cr_expect_eq(__builtin_strlen(text), 300);
	cr_expect(peek_equal((uint64_t)p + PAGE - 2, text, 300));
	text[299] = 'y';
	cr_expect_not(peek_equal((uint64_t)p + PAGE - 2, text, 300));
	cr_expect_eq(peek_string(text, sizeof(text), 0), -1);
	cr_expect_str_eq(text, "");
	cr_expect_not(peek_equal(0, "", 1));
	munmap(p, 3 * PAGE);
}

Test(peek, reads_strings)
{
	check_strings();
}

/* A program that gave up system calls: nothing that is not part of a string is read. */
Test(peek, reads_strings_directly)
{
	shadow_hooks.sealed = true;
	check_strings();
}

Test(peek, tells_bad_addresses)
{
	char *p = pages(), text[64];

	cr_expect_eq(peek_string(text, sizeof(text), (uint64_t)p + 2 * PAGE), -1);
	cr_expect_not(peek_bytes(text, (uint64_t)p + 2 * PAGE - 4, 8));
	cr_expect_eq(peek_string(text, sizeof(text), (uint64_t)p + 2 * PAGE - 3), 3, "no end");
	cr_expect_str_eq(text, "xxx");
	cr_expect_not(peek_equal((uint64_t)p + 2 * PAGE - 3, "xxxx", 4));
	cr_expect_eq(peek_string(text, sizeof(text), ~0ull - 8), -1);
	munmap(p, 3 * PAGE);
}
