/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "callstack.h"
#include "../arch/sys.h"
#include "../rethook/hook.h"
#include "../rethook/shadow.h"
#include "../rethook/thread.h"
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <ucontext.h>

#define EXPORTED __attribute__((visibility("default")))

/* Names and register numbers of libunwind's local half; its cursors take up to 280 words. */
#if defined(__x86_64__)
#define UNWIND(name) "_ULx86_64_" name
#define GET_CONTEXT  "_Ux86_64_getcontext"
#define REGISTER_IP  16
#define REGISTER_SP  7
#elif defined(__aarch64__)
#define UNWIND(name) "_ULaarch64_" name
#define GET_CONTEXT  "getcontext" /* libc's, whose layout it has */
#define REGISTER_IP  30
#define REGISTER_SP  31
#else
#define UNWIND(name) "_ULppc64_" name
#define GET_CONTEXT  "getcontext"
#define REGISTER_IP  114
#define REGISTER_SP  1
#endif
#define CURSOR_WORDS 512
#define STACK_NEEDED 65536
#define FRAMES_MAX   1024 /* of ours and others, after which an unwinder is going nowhere */

static struct callstack_unwinder unwinder;
static bool ready;

unsigned callstack_walk(const struct callstack_unwinder *u, const struct ftr_call *call,
	const void **addresses, unsigned n)
{
	uint64_t cursor[CURSOR_WORDS], ip, sp;
	ucontext_t context;
	unsigned stored = 0;

	if (u->get_context(&context))
		return 0;
	if (arch_call_context(call, &context))
		addresses[stored++] = ftr_call_caller(call);
	if (u->init(cursor, &context))
		return 0;
	for (int i = 0; stored < n && i < FRAMES_MAX && u->step(cursor) > 0; i++) {
		if (u->get_register(cursor, REGISTER_IP, &ip)
			|| u->get_register(cursor, REGISTER_SP, &sp) || !ip)
			break;
		if (sp >= call->frame.slot && !shadow_pad_of(ip))
			addresses[stored++] = (const void *)ip;
	}
	return stored;
}

/* libunwind takes some 10 KiB of stack, which a signal handler's own need not have. */
static bool has_room(void)
{
	stack_t stack;

	return !sys_call(SYS_sigaltstack, NULL, &stack)
		&& (!(stack.ss_flags & SS_ONSTACK) || stack.ss_size >= STACK_NEEDED);
}

/*
 * What libunwind and the loader call is none of the program's calls. Signals wait meanwhile: what their
 * handlers call is.
 */
static bool begin_own(uint64_t *signals)
{
	thread_block_signals(signals);
	if (shadow_hooks.attach && shadow_pause(true))
		return true;
	thread_restore_signals(signals);
	return false;
}

static void end_own(const uint64_t *signals)
{
	shadow_pause(false);
	thread_restore_signals(signals);
}

EXPORTED unsigned ftr_call_stack(const struct ftr_call *call, const void **addresses, unsigned n)
{
	unsigned stored = 0;
	uint64_t signals;

	if (!n)
		return 0;
	if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) && !shadow_hooks.sealed && has_room()
		&& begin_own(&signals)) {
		stored = callstack_walk(&unwinder, call, addresses, n);
		end_own(&signals);
	}
	addresses[0] = ftr_call_caller(call);
	return stored ? stored : 1;
}

static int find(void *library)
{
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{ GET_CONTEXT, &unwinder.get_context },
		{ UNWIND("init_local"), &unwinder.init },
		{ UNWIND("step"), &unwinder.step },
		{ UNWIND("get_reg"), &unwinder.get_register },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *found = dlsym(library, wanted[i].name);

		if (!found)
			return -ENOENT;
		memcpy(wanted[i].function, &found, sizeof(found));
	}
	return 0;
}

EXPORTED int ftr_call_stack_prepare(void)
{
	int err, error = *hook_errno(); /* which the loader changes */
	uint64_t signals;
	void *library;
	bool paused;

	if (hook_in_handler() || shadow_hooks.sealed)
		return -EPERM;
	if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		return 0;
	paused = begin_own(&signals);
	library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	err = library ? find(library) : -ENOENT;
	*hook_errno() = error;
	if (paused)
		end_own(&signals);
	if (!err)
		__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
	return err;
}
