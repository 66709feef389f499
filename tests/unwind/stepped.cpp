/* SPDX-License-Identifier: MIT */
/*
 * What step.c steps through: one call of each kind, made from eight traced frames deep.
 */
#include "stepped.h"

#define FTR_WEAK
#include <ftr/ftr.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOIPA __attribute__((noipa))

/* Functions whose first instructions are displaced in different ways. */
__asm__(R"(
	.text
	.macro function name
	.globl \name
	.type \name, @function
	.balign 16
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

	function window_riprel
	mov number(%rip), %rax
	add $1, %rax
	ret
	end window_riprel

	function window_push
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register 6
	push %rbx
	.cfi_offset 3, -24
	sub $24, %rsp
	mov %rdi, %rbx
	lea 1(%rbx), %rax
	mov -8(%rbp), %rbx
	leave
	.cfi_def_cfa 7, 8
	ret
	end window_push

	function window_pushes
	push %r12
	.cfi_def_cfa_offset 16
	.cfi_offset 12, -16
	push %rbx
	.cfi_def_cfa_offset 24
	.cfi_offset 3, -24
	sub $8, %rsp
	.cfi_def_cfa_offset 32
	mov %rdi, %rbx
	call window_riprel
	add $8, %rsp
	.cfi_def_cfa_offset 24
	pop %rbx
	.cfi_def_cfa_offset 16
	pop %r12
	.cfi_def_cfa_offset 8
	ret
	end window_pushes

	function window_call
	sub $8, %rsp
	.cfi_def_cfa_offset 16
	call window_riprel
	add $8, %rsp
	.cfi_def_cfa_offset 8
	ret
	end window_call

	function window_call_first
	call window_riprel
	add $1, %rax
	ret
	end window_call_first

	function window_jump
	jmp window_riprel
	end window_jump

	function window_endbr_jump
	endbr64
	mov $1, %edi
	jmp window_push
	end window_endbr_jump

	function window_nops
	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
	lea 1(%rdi), %rax
	ret
	end window_nops

	function window_short
	xor %eax, %eax
	ret
	.cfi_endproc
	.size window_short, . - window_short
	.balign 16

	function window_branch
	test %rdi, %rdi
	je 1f
	lea 3(%rdi), %rax
	ret
1:	xor %eax, %eax
	ret
	end window_branch

	/* Condition flags are an argument of its own making. */
	function flags_callee
	setc %al
	movzbl %al, %eax
	add $5, %eax
	ret
	end flags_callee

	.data
	.balign 8
number:	.quad 41
	.previous
)");

extern "C" {
long window_riprel(long);
long window_push(long);
long window_pushes(long);
long window_call(long);
long window_call_first(long);
long window_jump(long);
long window_endbr_jump(long);
long window_nops(long);
long window_short(long);
long window_branch(long);
long flags_callee(long);
}

static volatile long sink;

static NOIPA long normal(long a)
{
	sink += a;
	return a + sink;
}

static NOIPA long nested(long a)
{
	long b = normal(a);

	return normal(b) + 1;
}

static NOIPA long tail(long a)
{
	sink++;
	return normal(a + 1);
}

static NOIPA long tail_twice(long a)
{
	sink++;
	return tail(a + 1);
}

static NOIPA long recursion(long n)
{
	sink++;
	return n ? recursion(n - 1) + n : 0;
}

static NOIPA long many_arguments(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return normal(a + b + c + d) + normal(e + f + g + h);
}

static NOIPA void *entry_only(long a)
{
	sink += a;
	return __builtin_return_address(0);
}

static NOIPA double floats(double a, ...)
{
	return a * 2 + (double)sink;
}

struct Guard {
	~Guard();
};

NOIPA Guard::~Guard()
{
	sink++;
}

static NOIPA void throws(int n)
{
	Guard guard;

	if (!n)
		throw 5;
	throws(n - 1);
	sink++;
}

static NOIPA void catches(int n)
{
	try {
		throws(n);
	} catch (int) {
		sink++;
	}
}

static NOIPA void rethrows(int n)
{
	try {
		throws(n);
	} catch (...) {
		sink++;
		throw;
	}
}

static jmp_buf buf;

static NOIPA void jumps(int n)
{
	if (!n)
		longjmp(buf, 1);
	jumps(n - 1);
	sink++;
}

#define SECTION(name) __attribute__((section(name)))

/* A function that is followed while it runs @statement. */
#define FOLLOWED(function, which, statement)                                                       \
	extern "C" const char __stop_step_##function[];                                            \
	static NOIPA SECTION("step_" #function) void function(void)                                \
	{                                                                                          \
		begin_steps(#function, (void *)function, __stop_step_##function, which);           \
		statement;                                                                         \
		end_steps();                                                                       \
		sink++;                                                                            \
	}

FOLLOWED(first_call, STEPS_OURS, normal(1))
FOLLOWED(call_normal, STEPS_ALL, normal(1))
FOLLOWED(call_nested, STEPS_ALL, nested(1))
FOLLOWED(call_twice, STEPS_ALL, normal(1); normal(2))
FOLLOWED(call_tail, STEPS_ALL, tail(1))
FOLLOWED(call_tail_twice, STEPS_ALL, tail_twice(1))
FOLLOWED(call_recursion, STEPS_ALL, recursion(5))
FOLLOWED(call_many_arguments, STEPS_ALL, many_arguments(1, 2, 3, 4, 5, 6, 7, 8))
FOLLOWED(call_entry_only, STEPS_ALL, entry_only(1))
FOLLOWED(call_floats, STEPS_ALL, sink = (long)floats(1.5, 2.5))
FOLLOWED(call_riprel, STEPS_ALL, window_riprel(1))
FOLLOWED(call_push, STEPS_ALL, window_push(1))
FOLLOWED(call_pushes, STEPS_ALL, window_pushes(1))
FOLLOWED(call_call, STEPS_ALL, window_call(1))
FOLLOWED(call_call_first, STEPS_ALL, window_call_first(1))
FOLLOWED(call_jump, STEPS_ALL, window_jump(1))
FOLLOWED(call_endbr_jump, STEPS_ALL, window_endbr_jump(1))
FOLLOWED(call_nops, STEPS_ALL, window_nops(1))
FOLLOWED(call_short, STEPS_ALL, window_short(1))
FOLLOWED(call_branch, STEPS_ALL, window_branch(1); window_branch(0))
FOLLOWED(call_flags, STEPS_ALL, flags_callee(1))
/* Here the tracer looks the unwinder up. */
FOLLOWED(first_throw, STEPS_SOME, try { throws(1); } catch (int) { sink++; })
FOLLOWED(call_throws, STEPS_OURS, try { throws(2); } catch (int) { sink++; })
FOLLOWED(call_catches, STEPS_OURS, catches(2))
FOLLOWED(call_rethrows, STEPS_OURS, try { rethrows(1); } catch (int) { sink++; })
FOLLOWED(call_jumps, STEPS_OURS, if (!setjmp(buf)) jumps(2))
/* The places of the calls that longjmp left are used again. */
FOLLOWED(call_after_jump, STEPS_ALL, recursion(3))

/* A call that began before a fork and returns in the child: see made_by_parent(). */
extern "C" const char __stop_step_call_forks[];
static void call_forks(void);

static NOIPA int forks(void)
{
	pid_t child = fork();

	if (!child)
		begin_steps("exit after fork", (void *)call_forks, __stop_step_call_forks, STEPS_OURS);
	return child;
}

static NOIPA SECTION("step_call_forks") void call_forks(void)
{
	int child = forks();
	int status = 0;

	sink++;
	if (!child) {
		end_steps();
		_exit(0);
	}
	waitpid(child, &status, 0);
	sink++;
}

/* The first call that a forked child makes. */
FOLLOWED(call_in_child, STEPS_OURS, normal(1))

static NOIPA void run_in_child(void (*function)(void))
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		function();
		_exit(0);
	}
	waitpid(child, &status, 0);
	sink++;
}

static NOIPA void child_calls(void)
{
	run_in_child(call_in_child);
	sink++;
}

FOLLOWED(call_in_thread, STEPS_OURS, normal(1); normal(2))

static NOIPA void *thread_calls(void *)
{
	call_in_thread();
	sink++;
	return nullptr;
}

static NOIPA void calls_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, nullptr, thread_calls, nullptr);
	pthread_join(thread, nullptr);
}

template<int N> static NOIPA void deep(void (*function)(void))
{
	if constexpr (N > 0)
		deep<N - 1>(function);
	else
		function();
	sink++;
}

static const struct {
	const char *name;
	void (*run)(void);
} calls[] = {
	{ "normal", call_normal },
	{ "nested", call_nested },
	{ "twice", call_twice },
	{ "tail", call_tail },
	{ "tail_twice", call_tail_twice },
	{ "recursion", call_recursion },
	{ "many_arguments", call_many_arguments },
	{ "entry_only", call_entry_only },
	{ "floats", call_floats },
	{ "riprel", call_riprel },
	{ "push", call_push },
	{ "pushes", call_pushes },
	{ "call", call_call },
	{ "call_first", call_call_first },
	{ "jump", call_jump },
	{ "endbr_jump", call_endbr_jump },
	{ "nops", call_nops },
	{ "short", call_short },
	{ "branch", call_branch },
	{ "flags", call_flags },
	{ "first_throw", first_throw },
	{ "throws", call_throws },
	{ "catches", call_catches },
	{ "rethrows", call_rethrows },
	{ "jumps", call_jumps },
	{ "after_jump", call_after_jump },
	{ "forks", call_forks },
	{ "child", child_calls },
	{ "thread", calls_in_thread },
};

extern "C" void handle(struct ftr_call *call, void *)
{
	*ftr_call_word(call) += 1;
	sink++;
}

/* Handlers at the entries and returns of all that is called here but themselves. */
static int attach(void)
{
	struct ftr_probe_spec spec = {};
	struct ftr_probe *probe;

	if (!ftr_attach_sized)
		return 2;
	spec.name = "[!h]*";
	spec.module = "stepped";
	spec.flags = FTR_BEST_EFFORT;
	spec.entry = spec.ret = handle;
	return ftr_attach(&spec, &probe) < 0 ? 3 : 0;
}

/* "first": the call is the program's very first traced one, when only `normal` is traced.
 * "hooked": all are, with handlers; or one, which is named then. */
int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : nullptr;

	if (only && !strcmp(only, "first")) {
		deep<7>(first_call);
		return 0;
	}
	if (only && !strcmp(only, "hooked")) {
		if (int error = attach())
			return error;
		only = argv[2];
	}
	for (auto &call : calls)
		if (!only || !strcmp(only, call.name))
			deep<7>(call.run);
	return 0;
}
