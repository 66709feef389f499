/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "tracer/callstack.h"
#include "rethook/hook.h"
#include "support_threads.h"
#include <criterion/criterion.h>
#include <dlfcn.h>

static const void *caller = "caller";

const void *ftr_call_caller(const struct ftr_call *call)
{
	(void)call;
	return caller;
}

#if defined(__aarch64__)
#include "arch/arm64/a64.h"

/* As the hook stub leaves it: x29 is at a fixed place below the slot, in this frame. */
__attribute__((noinline)) static unsigned ask(const void **addresses, unsigned n)
{
	struct {
		struct ftr_call call;
		volatile uint64_t below[2 * A64_HOOK_LINK / 8];
	} local = { .call.frame.slot = (uint64_t)__builtin_dwarf_cfa(), .call.frame.ret = 1 };
	volatile uint64_t *link = (uint64_t *)(local.call.frame.slot - A64_HOOK_LINK);

	cr_assert(link >= local.below && link < (volatile uint64_t *)(&local + 1));
	caller = __builtin_return_address(0);
	*link = *(uint64_t *)__builtin_frame_address(0);
	return ftr_call_stack(&local.call, addresses, n);
}
#else
/* What a handler would see that the function called which asks: its caller, and who called that. */
__attribute__((noinline)) static unsigned ask(const void **addresses, unsigned n)
{
	struct ftr_call call = { .frame.slot = (uint64_t)__builtin_frame_address(0) + 8 };

	return ftr_call_stack(&call, addresses, n);
}

#endif

__attribute__((noinline)) static unsigned outer(const void **addresses, unsigned n, const void **inside)
{
	unsigned stored;

	*inside = __builtin_return_address(0);
	stored = ask(addresses, n);
	__asm__ volatile("");
	return stored;
}

static bool installed(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		cr_skip_test("there is no libunwind.so.8");
	return library;
}

Test(callstack, caller_alone_until_prepared, .init = threads_begin)
{
	const void *addresses[8], *inside;

	cr_expect_eq(outer(addresses, 8, &inside), 1);
	cr_expect_eq(addresses[0], ftr_call_caller(NULL));
	cr_expect_eq(outer(addresses, 0, &inside), 0);
}

Test(callstack, caller_first, .init = threads_begin)
{
	const void *addresses[64], *inside;
	unsigned n;

	if (!installed())
		return;
	cr_assert_eq(ftr_call_stack_prepare(), 0);
	n = outer(addresses, 64, &inside);
	cr_expect(n > 3, "%u", n);
	cr_expect_eq(addresses[0], ftr_call_caller(NULL));
	cr_expect_eq(addresses[1], inside);
	cr_expect_eq(outer(addresses, 2, &inside), 2);
	cr_expect_eq(addresses[1], inside);
}

Test(callstack, detours_are_left_out, .init = threads_begin)
{
	const void *addresses[64], *inside, *next = NULL;

	if (!installed())
		return;
	cr_assert_eq(ftr_call_stack_prepare(), 0);
	for (volatile int hidden = 0; hidden < 2; hidden++) {
		cr_assert_geq(outer(addresses, 64, &inside), 3);
		if (hidden)
			cr_expect_eq(addresses[1], next);
		next = addresses[2];
		/* As if the second frame's address were in a detour. */
		shadow_add_image((uint64_t)inside, (uint64_t)inside + 1, 1);
	}
}

Test(callstack, no_system_calls_once_they_are_forbidden, .init = threads_begin)
{
	const void *addresses[8], *inside;

	if (!installed())
		return;
	cr_assert_eq(ftr_call_stack_prepare(), 0);
	shadow_hooks.sealed = true;
	cr_expect_eq(outer(addresses, 8, &inside), 1);
}

/* The program's own unwinder stays what it was. */
Test(callstack, libunwind_is_not_seen, .init = threads_begin)
{
	void *before = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");

	if (!installed())
		return;
	cr_assert_eq(ftr_call_stack_prepare(), 0);
	cr_expect_eq(dlsym(RTLD_DEFAULT, "_Unwind_RaiseException"), before);
	cr_expect_null(dlsym(RTLD_DEFAULT, "_ULx86_64_step"));
}
