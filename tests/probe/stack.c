/* SPDX-License-Identifier: MIT */
/* Call stacks from handlers, through functions that have handlers too. */
#include "check.h"
#include <errno.h>

static const void *stacks[2][16]; /* at the entry, at the return */
static unsigned depths[2];
static volatile long sink;

static void note(struct ftr_call *call, void *data)
{
	int which = *(int *)data;

	depths[which] = ftr_call_stack(call, stacks[which], 16);
	CHECK(stacks[which][0] == ftr_call_caller(call));
}

static void nothing(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
}

NOINLINE static long leaf(long n)
{
	return n + sink;
}

NOINLINE static long middle(long n)
{
	return leaf(n) + 1;
}

NOINLINE static long outer(long n)
{
	return middle(n) + 1;
}

static int compare(const void *a, const void *b)
{
	return (int)leaf(*(const int *)a - *(const int *)b);
}

static void starts_with(int which, const char *const *names, unsigned n)
{
	char text[256], wanted[64];

	for (unsigned i = 0; i < n; i++) {
		CHECK(i < depths[which], "%u of %u", i, depths[which]);
		ftr_describe(stacks[which][i], text, sizeof(text));
		snprintf(wanted, sizeof(wanted), "%s+0x", names[i]);
		CHECK(!strncmp(text, wanted, strlen(wanted)), "%u: %s, not %s", i, text, names[i]);
	}
}

int main(void)
{
	static const char *const names[] = { "middle", "outer", "main" };
	static const char *const sorting[] = { "compare" };
	int entry = 0, ret = 1, numbers[2] = { 2, 1 };
	/* Not a constant: code that refers to the inside of a function keeps it from being patched. */
	const char *volatile inside = (const char *)leaf;
	struct ftr_probe *between = NULL;
	char text[64];

	if (ftr_call_stack_prepare()) {
		puts("SKIP: there is no libunwind.so.8");
		return 77;
	}
	attach(leaf, note, NULL, &entry);
	attach(leaf, NULL, note, &ret);
	for (int traced = 0; traced < 2; traced++) {
		if (traced)
			between = attach(middle, nothing, nothing, NULL);
		depths[0] = depths[1] = 0;
		CHECK_INT(outer(1), 3);
		starts_with(0, names, 3);
		starts_with(1, names, 3);
	}
	CHECK_INT(ftr_detach(between), 0);
	qsort(numbers, 2, sizeof(int), compare);
	starts_with(0, sorting, 1);
	CHECK(depths[0] > 2);
	CHECK_INT(ftr_describe(inside + 1, text, sizeof(text)), 0);
	CHECK(!strncmp(text, "leaf+0x1 in probe_stack", 23), "%s", text);
	CHECK_INT(ftr_describe(&depths, text, sizeof(text)), -ENOENT);
	puts("ok");
	return 0;
}
