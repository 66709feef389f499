/* SPDX-License-Identifier: MIT */
/*
 * Handlers, by running hooked functions: what a program can see is the same as without, unless a
 * handler changes it; who is called when; and what is left behind by calls that do not return.
 */
#define _GNU_SOURCE 1
#include "support_detour.h"
#include "rethook/hook.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HOOKS_MAX 80

static struct hook_point point;
static uint64_t serials;

/* ---- handlers ---- */

#define GENERAL __attribute__((target("general-regs-only")))

/* All that a function may change, and the flags. */
#define SPOIL_GENERAL                                                                              \
	__asm__ volatile("mov $-1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi\n\t" \
			 "mov %%rax, %%rdi; mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10\n\t" \
			 "mov %%rax, %%r11; add $1, %%rax; cmp $-5, %%rcx" ::                      \
				: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", \
				"memory")

static unsigned entries, returns;

GENERAL static void general(struct ftr_call *call, void *data)
{
	(void)call;
	++*(unsigned *)data;
	SPOIL_GENERAL;
}

static bool has_avx512;

static void vectors(struct ftr_call *call, void *data)
{
	(void)call;
	++*(unsigned *)data;
	if (has_avx512)
		__asm__ volatile(".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,30,31\n\t"
				 "vpternlogd $0xff, %zmm\\n, %zmm\\n, %zmm\\n\n\t.endr\n\t"
				 ".irp n, 1,2,3,4,5,6,7\n\tkxnorw %k\\n, %k\\n, %k\\n\n\t.endr");
	__asm__ volatile(".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
			 "pcmpeqd %xmm\\n, %xmm\\n\n\t.endr\n\t"
			 "fldpi; fldl2e; fld1; fldz; fldln2; fldlg2; fldl2t; fldpi");
	SPOIL_GENERAL;
}

/* Both, in attach order. */
static struct hook_list *list_of(unsigned count)
{
	struct hook_list *list = calloc(1, sizeof(*list) + count * sizeof(struct hook));

	list->count = count;
	for (unsigned i = 0; i < count; i++)
		list->hooks[i].serial = ++serials;
	return list;
}

static void publish(struct hook_list *list)
{
	struct hook_list *old = hook_publish(&point, list);

	cr_assert(hook_synchronize());
	free(old);
}

static void attach_one(ftr_handler *entry, ftr_handler *ret, bool uses_vectors)
{
	struct hook_list *list = list_of(1);

	list->vectors = list->hooks[0].vectors = uses_vectors;
	list->hooks[0].entry = entry;
	list->hooks[0].ret = ret;
	list->hooks[0].data = entry ? &entries : &returns;
	publish(list);
}

/* ---- registers ---- */

static void fill_state(uint8_t *state)
{
	uint32_t mxcsr = 0x1f80 | 0x6000 | 0x20; /* round to zero, inexact */
	uint64_t xcr0;
	uint32_t low, high;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	xcr0 = low & RUN_STATE_MASK;
	memset(state, 0, RUN_STATE_SIZE);
	for (size_t i = 160; i < RUN_STATE_SIZE; i++)
		if (i < 416 || i >= 576)
			state[i] = (uint8_t)random64();
	memcpy(state + 24, &mxcsr, 4);
	state[0] = 0x7f; /* control word: single precision, round to zero */
	state[1] = 0x0c;
	state[3] = 6 << 3; /* two registers on the stack */
	state[4] = 0xc0;
	for (int i = 0; i < 2; i++) {
		uint64_t mantissa = random64() | 1ull << 63;

		memcpy(state + 32 + 16 * i, &mantissa, 8);
		state[32 + 16 * i + 8] = 0xff;
		state[32 + 16 * i + 9] = 0x3f;
	}
	memcpy(state + 512, &xcr0, 8);
	has_avx512 = xcr0 >> 5 & 1;
}

/* As compare() does it, with all the state there is. */
static void compare_all(struct traced *t, const struct row *r, const char *how)
{
	static uint8_t before[RUN_STATE_SIZE] __attribute__((aligned(64)));
	static uint8_t plain[RUN_STATE_SIZE] __attribute__((aligned(64)));
	static uint8_t hooked[RUN_STATE_SIZE] __attribute__((aligned(64)));
	uint8_t saved[64];

	for (int round = 0; round < ROUNDS; round++) {
		struct cpu cpu, as_is, through;

		randomize(&cpu);
		fill_state(before);
		as_is = through = cpu;
		memcpy(plain, before, sizeof(before));
		memcpy(hooked, before, sizeof(before));
		run_state = plain;
		run_cpu(&as_is, t->start);
		memcpy(saved, area, sizeof(saved));
		patch(t, r->name);
		run_state = hooked;
		run_cpu(&through, t->start);
		run_state = NULL;
		memcpy(area, saved, sizeof(saved));
		same(r->name, how, &as_is, &through);
		for (size_t i = 0; i < RUN_STATE_SIZE; i++)
			cr_assert_eq(plain[i], hooked[i], "%s, %s: byte %zu of the XSAVE area is %x, "
				"not %x", r->name, how, i, hooked[i], plain[i]);
	}
}

static const struct {
	const char *name;
	ftr_handler *entry, *ret;
	bool vectors;
} handlers[] = {
	{ "no handler" },
	{ "entry", general },
	{ "return", NULL, general },
	{ "entry and return", general, general },
	{ "entry, vectors", vectors, NULL, true },
	{ "return, vectors", NULL, vectors, true },
	{ "entry and return, vectors", vectors, vectors, true },
};
#define HANDLERS (sizeof(handlers) / sizeof(handlers[0]))


static void changes_nothing(enum detour_mode mode, bool returning, bool entry_only, bool recorded)
{
	begin(mode);
	for (uint32_t i = 0; i < ROWS; i++)
		for (size_t h = 0; h < HANDLERS; h++) {
			struct func_record was = records[0][i];
			struct traced t;

			place(&t, &rows[i], recorded ? i : ID_NONE);
			t.site.entry_only = entry_only;
			t.in.point = (uint64_t)&point;
			t.in.hook_return = returning;
			emit(&t, rows[i].name);
			attach_one(handlers[h].entry, handlers[h].ret, handlers[h].vectors);
			entries = returns = 0;
			compare_all(&t, &rows[i], handlers[h].name);
			cr_assert_eq(entries + returns, ROUNDS * (handlers[h].entry != NULL)
					+ ROUNDS * (handlers[h].ret && returning),
				"%s, %s: %u handlers were called", rows[i].name, handlers[h].name,
				entries + returns);
			if (!recorded)
				continue;
			cr_assert_eq(records[0][i].calls - was.calls, ROUNDS);
			cr_assert_eq(records[0][i].returned - was.returned, entry_only ? 0 : ROUNDS);
		}
	cr_assert_eq(hook_in_handler(), false);
}

#define MODES(name, ...)                                                                           \
	Test(hook, name)                                                                           \
	{                                                                                          \
		changes_nothing(MODE_COUNT, __VA_ARGS__);                                          \
	}                                                                                          \
	Test(hook, name##_with_times)                                                              \
	{                                                                                          \
		changes_nothing(MODE_PROFILE, __VA_ARGS__);                                        \
	}

MODES(entry_handlers_change_nothing, false, false, true)
MODES(return_handlers_change_nothing, true, false, true)
MODES(handlers_of_entry_only_functions_change_nothing, false, true, true)
MODES(handlers_of_functions_without_records_change_nothing, true, false, false)
MODES(entry_handlers_of_functions_without_records_change_nothing, false, false, false)
