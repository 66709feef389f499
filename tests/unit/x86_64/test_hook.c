/* SPDX-License-Identifier: MIT */
/*
 * Handlers, by running hooked functions: what a program can see is the same as without, unless a
 * handler changes it; who is called when; and what is left behind by calls that do not return.
 */
#define _GNU_SOURCE 1
#include "support_detour.h"
#include "rethook/hook.h"
#include "rethook/thread.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Has looked at a vector when it puts all of them aside. */
GENERAL static void looks_and_puts_aside(struct ftr_call *call, void *data)
{
	cr_assert(ftr_argument(call, "d", 0));
	hook_call_apart(call, vectors, data);
}

/* In attach order. */
static struct hook_list *list_of(unsigned count)
{
	struct hook_list *list = calloc(1, sizeof(*list) + count * sizeof(struct hook));

	list->count = count;
	for (unsigned i = 0; i < count; i++)
		list->hooks[i].serial = ++serials;
	return list;
}

/* Lists stay readable, see hook_publish(); what was in one may not be called any more. */
static struct replaced {
	struct replaced *next;
	struct hook_list *list;
} *replaced;

static void publish(struct hook_list *list)
{
	struct replaced *r = malloc(sizeof(*r));
	struct hook_list *old = hook_publish(&point, list);

	cr_assert(hook_synchronize());
	for (unsigned i = 0; old && i < old->count; i++)
		old->hooks[i].entry = old->hooks[i].ret = NULL;
	*r = (struct replaced){ replaced, old };
	replaced = r;
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
	{ "vectors put aside", looks_and_puts_aside, looks_and_puts_aside },
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
			cr_assert_eq(entries + returns, (unsigned)(ROUNDS * (handlers[h].entry != NULL)
					+ ROUNDS * (handlers[h].ret && returning)),
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

/* ---- who is called ---- */

static char log_text[512];

static void note(char c)
{
	size_t n = strlen(log_text);

	cr_assert_lt(n + 1, sizeof(log_text));
	log_text[n] = c;
	log_text[n + 1] = 0;
}

static void expect_log(const char *when, const char *expected)
{
	cr_expect_str_eq(log_text, expected, "%s: \"%s\", not \"%s\"", when, log_text, expected);
	log_text[0] = 0;
}

static char letters[HOOKS_MAX];

/* Leaves its letter in the call's word. */
static void note_entry(struct ftr_call *call, void *data)
{
	uint64_t *word = ftr_call_word(call);

	note(*(char *)data);
	cr_expect_eq(*word, 0, "the word of %c is not zero", *(char *)data);
	*word = (uint64_t)*(char *)data;
}

static void note_return(struct ftr_call *call, void *data)
{
	uint64_t word = *ftr_call_word(call);

	cr_expect_eq(word, (uint64_t)*(char *)data, "a word of another: %lu, not %c", word,
		*(char *)data);
	note((char)(*(char *)data - 'a' + 'A'));
}

static int thread; /* that the following are for */

/* A probe, by its letter: 'a' to 'z' with both handlers. */
static struct hook *add_letter(char letter, ftr_handler *entry, ftr_handler *ret)
{
	struct hook_list *old = point.list, *list = list_of(old ? old->count + 1 : 1);
	struct hook *h = &list->hooks[list->count - 1];
	uint64_t serial = h->serial;

	if (old)
		memcpy(list->hooks, old->hooks, old->count * sizeof(*h));
	letters[(unsigned char)letter % HOOKS_MAX] = letter;
	*h = (struct hook){ .serial = serial, .entry = entry, .ret = ret, .thread = thread,
		.data = &letters[(unsigned char)letter % HOOKS_MAX] };
	publish(list);
	return h;
}

static void add(const char *names)
{
	for (; *names; names++)
		add_letter(*names, note_entry, note_return);
}

static void remove_letter(char letter)
{
	struct hook_list *old = point.list, *list = list_of(old->count - 1);
	uint32_t n = 0;

	for (uint32_t i = 0; i < old->count; i++)
		if (*(char *)old->hooks[i].data != letter)
			list->hooks[n++] = old->hooks[i];
	cr_assert_eq(n, list->count);
	publish(list);
}

/* mov %rdi,%rax behind a nop: a function that returns its argument */
static const struct row returns_argument = { "it returns its argument",
	CODE("\x0f\x1f\x44\x00\x00\x48\x89\xf8\xc3"), SITE_NOPS, 0, 5, true };

static long (*hooked)(long);
static struct traced hooked_function;

static void hook_function(enum detour_mode mode, bool returning, bool entry_only)
{
	struct traced *t = &hooked_function;

	begin(mode);
	place(t, &returns_argument, 1);
	t->in.point = (uint64_t)&point;
	t->in.hook_return = returning;
	t->site.entry_only = entry_only;
	emit(t, "hooked");
	patch(t, "hooked");
	hooked = (long (*)(long))t->start;
}

Test(hook, probes_nest)
{
	hook_function(MODE_COUNT, true, false);
	add("abc");
	cr_expect_eq(hooked(5), 5);
	expect_log("three", "abcCBA");
	remove_letter('b');
	hooked(5);
	expect_log("two", "acCA");
	add("b");
	hooked(5);
	expect_log("the order is that of attaching", "acbBCA");
	add("defghijklm"); /* more than a small state holds */
	hooked(5);
	expect_log("many", "acbdefghijklmMLKJIHGFEDBCA");
	cr_expect_eq(hook_in_handler(), false);
}

Test(hook, as_many_return_handlers_as_there_can_be)
{
	struct hook_list *list = list_of(HOOK_RETURNS_MAX);
	static unsigned n[HOOK_RETURNS_MAX];

	hook_function(MODE_COUNT, true, false);
	for (unsigned i = 0; i < HOOK_RETURNS_MAX; i++) {
		list->hooks[i].entry = list->hooks[i].ret = general;
		list->hooks[i].data = &n[i];
	}
	publish(list);
	cr_expect_eq(hooked(5), 5);
	for (unsigned i = 0; i < HOOK_RETURNS_MAX; i++)
		cr_expect_eq(n[i], 2, "hook %u: %u", i, n[i]);
}

/* What a handler of 'b' does, once. */
static const char *inside_does;

static void acts(struct ftr_call *call, void *data)
{
	(void)call;
	note(*(char *)data);
	for (const char *p = inside_does; *p; p += 2)
		if (p[0] == '-')
			remove_letter(p[1]);
		else
			add((char[]){ p[1], 0 });
	inside_does = "";
}

struct act {
	const char *does, *log, *next;
};

/* In the entry handler, between 'a' and 'c'. */
static const struct act acts_at_entry[] = {
	{ "", "abcCA", "abcCA" },
	{ "-c", "abA", "abA" },
	{ "-a", "abcC", "bcC" },
	{ "-b", "abcCA", "acCA" },
	{ "-a-b-c", "ab", "" },
	{ "+d", "abcCA", "abcdDCA" },
	/* d takes c's place, but has not seen the entry */
	{ "-c+d", "abA", "abdDA" },
	{ "-a+d", "abcC", "bcdDC" },
	{ NULL },
};

/* In the return handler, between 'c' and 'a'. */
static const struct act acts_at_return[] = {
	{ "", "acCbA", "acCbA" },
	{ "-c", "acCbA", "abA" },
	{ "-a", "acCb", "cCb" },
	{ "-b", "acCbA", "acCA" },
	{ "-a-b-c", "acCb", "" },
	{ "+d", "acCbA", "acdDCbA" },
	{ "-c+d", "acCbA", "adDbA" },
	{ "-a+d", "acCb", "cdDCb" },
	{ NULL },
};

/* At the entry, with nothing else there. */
static const struct act acts_alone[] = {
	{ "", "bb", "bb" },
	{ "-b", "b", "" },
	{ "+d", "bb", "bdDb" },
	{ "-b+d", "b", "dD" },
	{ NULL },
};

static void act_inside(const struct act *row, const char *before, ftr_handler *entry,
	ftr_handler *ret, const char *behind)
{
	for (; row->does; row++) {
		publish(NULL);
		add(before);
		add_letter('b', entry, ret);
		add(behind);
		inside_does = row->does;
		hooked(1);
		expect_log(row->does, row->log);
		hooked(1);
		expect_log("the next call", row->next);
		cr_expect_eq(hook_in_handler(), false);
	}
}

Test(hook, handlers_attach_and_detach)
{
	hook_function(MODE_COUNT, true, false);
	/* Handlers for one thread are called in the general way. */
	for (int way = 0; way < 2; way++) {
		thread = way ? getpid() : 0;
		act_inside(acts_at_entry, "a", acts, NULL, "c");
		act_inside(acts_at_return, "a", NULL, acts, "c");
		act_inside(acts_alone, "", acts, acts, "");
	}
}

static void calls_again(struct ftr_call *call, void *data)
{
	(void)call;
	note(*(char *)data);
	cr_assert(hook_in_handler());
	cr_assert_eq(hooked(7), 7);
}

Test(hook, a_probe_is_blind_to_its_own_calls)
{
	hook_function(MODE_COUNT, true, false);
	add_letter('x', calls_again, calls_again);
	hooked(1);
	expect_log("alone", "xx");
	add("a");
	hooked(1);
	expect_log("others are not", "xaAaAxaA");
	add_letter('y', calls_again, NULL);
	hooked(1);
	expect_log("nor are two", "xayaAAayxaAaAxaAAxayaAA");
	cr_expect_eq(records[0][1].calls, records[0][1].returned);
}

static long skip_value;

static void skips(struct ftr_call *call, void *data)
{
	note(*(char *)data);
	if (skip_value)
		*(long *)ftr_result(call, 'i') = skip_value;
	cr_expect_eq(ftr_skip(call), 0);
	if (!skip_value)
		return;
	ftr_set_errno(call, ENOSPC);
}

static void sees_result(struct ftr_call *call, void *data)
{
	cr_expect_eq(*(long *)ftr_result(call, 'i'), skip_value);
	cr_expect_eq(ftr_skip(call), -EPERM);
	note((char)(*(char *)data - 'a' + 'A'));
}

static void skip_function(enum detour_mode mode, bool returning, bool entry_only)
{
	hook_function(mode, returning, entry_only);
	for (skip_value = 0; skip_value < 2; skip_value++) {
		publish(NULL);
		add_letter('s', skips, NULL);
		errno = 1;
		cr_expect_eq(hooked(7), skip_value);
		expect_log("alone", "s");
		cr_expect_eq(errno, skip_value ? ENOSPC : 1);
		publish(NULL);
		add_letter('a', note_entry, sees_result);
		add_letter('s', skips, sees_result);
		add("c");
		cr_expect_eq(hooked(7), skip_value);
		expect_log("between two", entry_only ? "as" : "asA");
	}
	publish(NULL);
	cr_expect_eq(hooked(7), 7);
	cr_expect_eq(records[0][1].calls, 5);
	cr_expect_eq(records[0][1].returned, entry_only ? 0 : 5);
}

Test(hook, functions_are_skipped)
{
	skip_function(MODE_COUNT, true, false);
}

Test(hook, functions_are_skipped_with_times)
{
	skip_function(MODE_PROFILE, true, false);
}

Test(hook, functions_without_return_handlers_are_skipped)
{
	skip_function(MODE_PROFILE, false, false);
}

Test(hook, functions_whose_returns_are_not_seen_are_skipped)
{
	skip_function(MODE_COUNT, false, true);
}

/* ---- calls that end in a jump ---- */

static struct hook_point second_point;
static struct traced second_function;

/* The first function jumps to the second, helper: rax = rax + rdi + 2. */
static long (*hook_two(enum detour_mode mode, bool first_returns, bool second_returns))(long)
{
	static const struct row jumps = { "jmp", CODE("\xe9\xfb\x08\x00\x00"), SITE_ONE, 0, 5,
		true };
	struct traced *first = &hooked_function, *second = &second_function;
	struct isa_patch patches[2];

	begin(mode);
	place(first, &jumps, 1);
	first->in.point = first_returns ? (uint64_t)&point : 0;
	first->in.hook_return = first_returns;
	emit(first, "the first");
	*second = *first;
	second->func.start = first->func.start + HELPER;
	second->func.end = second->func.start + sizeof(helper);
	second->site.len = 5;
	second->module.funcs = &second->func;
	second->module.texts = &second->text;
	second->in.func = &second->func;
	second->in.site = &second->site;
	second->in.module = &second->module;
	second->in.at = first->in.at + 0x1000;
	second->in.id = 2;
	second->in.point = second_returns ? (uint64_t)&second_point : 0;
	second->in.hook_return = second_returns;
	cr_assert_eq(x86_emit(&second->in, area + DETOUR + 0x1000, &second->detour), 0);
	cr_assert_eq(x86_patch(&second->in, patches), 1);
	memcpy((void *)patches[0].addr, patches[0].bytes, patches[0].len);
	patch(first, "the first");
	return (long (*)(long))first->start;
}

static void jumps(enum detour_mode mode, bool first_returns, bool second_returns)
{
	static char b = 'b';
	struct hook_list *list = list_of(1);
	long (*function)(long) = hook_two(mode, first_returns, second_returns);

	list->hooks[0].entry = note_entry;
	list->hooks[0].ret = note_return;
	list->hooks[0].data = &b;
	hook_publish(&second_point, list);
	add("a");
	for (int i = 0; i < 3; i++) {
		function(40);
		expect_log("a jump", first_returns ? second_returns ? "abBA" : "aA" : "bB");
	}
	for (int id = 1; id <= 2; id++) {
		cr_expect_eq(records[0][id].calls, 3, "%d", id);
		cr_expect_eq(records[0][id].returned, 3, "%d", id);
		cr_expect_eq(records[0][id].left, 0, "%d", id);
	}
	cr_expect_eq(shadow_self()->nparked, 0);
	cr_expect_eq(shadow_self()->node.overflow, shadow_self()->node.overflow_end);
	publish(NULL);
	function(40);
	expect_log("no handlers", second_returns ? "bB" : "");
}

#define JUMPS(name, ...)                                                                           \
	Test(hook, name)                                                                           \
	{                                                                                          \
		jumps(MODE_COUNT, __VA_ARGS__);                                                    \
	}                                                                                          \
	Test(hook, name##_with_times)                                                              \
	{                                                                                          \
		jumps(MODE_PROFILE, __VA_ARGS__);                                                  \
	}

JUMPS(a_return_is_seen_behind_a_jump, true, false)
JUMPS(returns_of_both_are_seen_behind_a_jump, true, true)
JUMPS(a_return_is_seen_after_a_jump, false, true)

/* ---- who reads ---- */

Test(hook, a_section_that_was_left_does_not_hold_up_for_ever)
{
	struct shadow_thread left = { .tid = 0 };
	struct hook_list *list = list_of(1);

	hook_function(MODE_COUNT, true, false);
	list->hooks[0] = (struct hook){ .serial = serials, .entry = general, .data = &entries,
		.thread = getpid() }; /* not uniform */
	publish(list);
	hooked(1);
	/* A thread that is there but reads no more. */
	left.tid = getpid();
	left.reading = 1;
	left.node.next = shadow_root.nodes;
	shadow_root.nodes = (uint64_t)&left;
	cr_expect_eq(hook_synchronize(), false);
	left.reading = 0;
	cr_expect(hook_synchronize());
	/* Its own section is closed by the next call that has one. */
	shadow_self()->reading = 1;
	hooked(1);
	cr_expect_eq(shadow_self()->reading, 0);
}

Test(hook, handlers_of_other_threads_are_told)
{
	struct shadow_thread other = { .tid = 0 };

	hook_function(MODE_COUNT, true, false);
	hooked(1);
	other.tid = THREAD_FREE;
	other.active[0] = (struct hook_activation){ .slot = 8, .serial = 77 };
	other.node.next = shadow_root.nodes;
	shadow_root.nodes = (uint64_t)&other;
	cr_expect_eq(hook_running(77), false, "its thread is gone");
	other.tid = getpid();
	cr_expect(hook_running(77));
	cr_expect_eq(hook_running(78), false);
	shadow_self()->active[0] = other.active[0];
	other.active[0].slot = 0;
	cr_expect_eq(hook_running(77), false, "its own do not count");
}

/* A handler that a signal's handler has left is on the list until its stack is in use again. */
Test(hook, a_handler_that_was_left_is_not_blind_for_ever)
{
	struct shadow_thread *t;

	hook_function(MODE_COUNT, true, false);
	add("a");
	hooked(1);
	expect_log("before", "aA");
	t = shadow_self();
	t->active[0].serial = ((struct hook_list *)point.list)->hooks[0].serial;
	t->active[0].slot = (uint64_t)__builtin_frame_address(0) - 4096;
	hooked(1);
	expect_log("a frame below", "aA");
	cr_expect_eq(hook_nested(), 0);
	t->active[0].serial = ((struct hook_list *)point.list)->hooks[0].serial;
	t->active[0].slot = (uint64_t)__builtin_frame_address(0) + 64;
	hooked(1);
	expect_log("a frame that is there", "");
	cr_expect_eq(hook_nested(), 1);
}
