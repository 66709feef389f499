/* SPDX-License-Identifier: MIT */
/* Counter probes: by address, name, glob and module; per thread; reset; and what is refused. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;
static jmp_buf out;

NOINLINE static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

NOINLINE static void leave(int jump)
{
	sink++;
	if (jump)
		longjmp(out, 1);
}

NOINLINE static int twin_one(int n)
{
	return sink + n;
}

NOINLINE static int twin_two(int n)
{
	return sink - n;
}

static void counts_calls(void)
{
	struct ftr_probe *p = attach(fib, NULL, NULL, NULL), *again;
	struct ftr_counts counts;

	CHECK_COUNTS(p, 0, 0, 0);
	CHECK_INT(fib(10), 55);
	CHECK_COUNTS(p, 177, 177, 0);
	again = attach(fib, NULL, NULL, NULL);
	fib(3);
	CHECK_COUNTS(p, 182, 182, 0);
	CHECK_COUNTS(again, 5, 5, 0);
	CHECK_INT(ftr_reset(p), 0);
	fib(3);
	CHECK_COUNTS(p, 5, 5, 0);
	CHECK_COUNTS(again, 10, 10, 0);
	CHECK_INT(ftr_detach(p), 0);
	fib(3);
	CHECK_COUNTS(again, 15, 15, 0);
	CHECK_INT(ftr_read_counts((void *)fib, &counts), 0);
	CHECK(counts.calls >= 192);
	CHECK_INT(ftr_detach(again), 0);
}

static void counts_jumps(void)
{
	struct ftr_probe *p = attach(leave, NULL, NULL, NULL);

	for (int i = 0; i < 3; i++)
		if (!setjmp(out))
			leave(i);
	leave(0);
	CHECK_COUNTS(p, 4, 2, 2);
	CHECK_INT(ftr_detach(p), 0);
}

static void finds_by_name(void)
{
	struct ftr_function f;
	struct ftr_probe *p;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "twin_*" }), &p), 2);
	twin_one(1);
	twin_one(1);
	twin_two(1);
	CHECK_COUNTS(p, 3, 3, 0);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(ftr_probe_function(p, i, &f), 0);
		CHECK(!strncmp(f.name, "twin_", 5), "%s", f.name);
		CHECK(f.address == (i ? (void *)twin_two : (void *)twin_one)
			|| f.address == (i ? (void *)twin_one : (void *)twin_two));
	}
	CHECK_INT(ftr_probe_function(p, 2, &f), -ENOENT);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){
			    .name = "getpp?d", .module = "libc.so*" }), &p), 1);
	getppid();
	getppid();
	CHECK_COUNTS(p, 2, 2, 0);
	CHECK_INT(ftr_detach(p), 0);
}

/* In the middle of a call of fib(). */
static void reset_another(struct ftr_call *call, void *data)
{
	if (!ftr_call_depth(call))
		CHECK_INT(ftr_reset(*(struct ftr_probe **)data), 0);
}

static void attach_another(struct ftr_call *call, void *data)
{
	if (!ftr_call_depth(call))
		*(struct ftr_probe **)data = attach(fib, NULL, NULL, NULL);
}

/* A call that was in progress has no entry, and so no return. */
static void begins_within_a_call(void)
{
	struct ftr_probe *counter = attach(fib, NULL, NULL, NULL), *later = NULL, *p;

	p = attach(fib, reset_another, check_no_handler, &counter);
	fib(1);
	CHECK_COUNTS(counter, 0, 0, 0);
	fib(1); /* resets it again */
	CHECK_COUNTS(counter, 0, 0, 0);
	fib(2);
	CHECK_COUNTS(counter, 2, 2, 0);
	CHECK_INT(ftr_detach(p), 0);
	p = attach(fib, attach_another, check_no_handler, &later);
	fib(1);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_COUNTS(later, 0, 0, 0);
	fib(2);
	CHECK_COUNTS(later, 3, 3, 0);
	CHECK_INT(ftr_detach(later), 0);
	CHECK_INT(ftr_detach(counter), 0);
}

NOINLINE static int add_one(int n)
{
	return sink + n + 1;
}

static int (*choose_one(void))(int)
{
	return add_one;
}

static int indirect(int n) __attribute__((ifunc("choose_one")));

/* One that no other module can ask the loader for, as target_clones makes it in a program. */
static void finds_indirect_functions_of_the_program(void)
{
	struct ftr_function f;
	struct ftr_probe *p;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "indirect" }), &p), 1);
	CHECK_INT(ftr_probe_function(p, 0, &f), 0);
	CHECK(f.address == (void *)add_one);
	CHECK_INT(indirect(1), sink + 2);
	CHECK_COUNTS(p, 1, 1, 0);
	CHECK_INT(ftr_detach(p), 0);
}

/* An indirect function is its implementation. */
static void finds_indirect_functions(void)
{
	size_t (*volatile length)(const char *) = strlen;
	struct ftr_probe *p;
	int n = ftr_attach((&(struct ftr_probe_spec){ .name = "strlen", .module = "libc.so*" }), &p);

	CHECK(n == 1 || n == -ENOTSUP, "%d: %s", n, ftr_error());
	if (n < 0)
		return;
	length("abc");
	length("abc");
	CHECK_COUNTS(p, 2, 2, 0);
	CHECK_INT(ftr_detach(p), 0);
}

static void *five(void *tid)
{
	*(int *)tid = (int)syscall(SYS_gettid);
	for (int i = 0; i < 5; i++)
		twin_one(i);
	return NULL;
}

static void counts_by_thread(void)
{
	struct ftr_probe *p = attach(twin_one, NULL, NULL, NULL), *mine;
	struct ftr_counts counts;
	pthread_t thread;
	int tid;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){
			    .name = "twin_one", .thread = (int)syscall(SYS_gettid) }), &mine), 1);
	twin_one(0);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, five, &tid);
		pthread_join(thread, NULL);
	}
	CHECK_COUNTS(p, 101, 101, 0);
	CHECK_COUNTS(mine, 1, 1, 0);
	CHECK_INT(ftr_read_thread(p, 0, &counts), 0);
	CHECK_INT(counts.calls, 1);
	CHECK_INT(ftr_read_thread(p, tid, &counts), 0);
	CHECK_INT(counts.calls, 5);
	CHECK_INT(ftr_read_thread(p, 1, &counts), 0);
	CHECK_INT(counts.calls, 0);
	CHECK_INT(ftr_detach(mine), 0);
	CHECK_INT(ftr_detach(p), 0);
}

/* As compilers name the parts that they move out of a function. The first is called, the second is
 * jumped to, with a frame. */
int split(int n) __asm__("_Z5spliti");
int split_part(int n) __asm__("_Z5spliti.part.0");
__asm__(".pushsection .text\n"
	".type _Z5spliti.cold, %function\n"
	"_Z5spliti.cold:\n"
	".cfi_startproc\n"
	".cfi_def_cfa_offset 64\n"
	".long 0, 0\n"
	".cfi_endproc\n"
	".size _Z5spliti.cold, 8\n"
	".popsection\n");

NOINLINE int split_part(int n)
{
	return sink + n;
}

NOINLINE int split(int n)
{
	return split_part(n) + 1;
}

static void ignores_parts(void)
{
	struct ftr_probe *p = NULL;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "split" }), &p), 1);
	split(1);
	CHECK_COUNTS(p, 1, 1, 0);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "_Z5split*" }), &p), 2);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "_Z5spliti.cold" }), &p), -ENOTSUP);
	CHECK(strstr(ftr_error(), "fragment"), "%s", ftr_error());
}

/* What there is too little of for now is not missing later. */
static void needs_descriptors(void)
{
	struct rlimit limit;
	struct ftr_probe *p;
	rlim_t was;

	if (is_emulated())
		return;
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
	was = limit.rlim_cur;
	limit.rlim_cur = 3;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "fib" }), &p), -EMFILE);
	limit.rlim_cur = was;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "fib" }), &p), 1);
	CHECK_INT(ftr_detach(p), 0);
}

static void needs_memory(void)
{
	const struct rlimit none = { 1, RLIM_INFINITY };
	struct ftr_probe *p;
	pid_t child;
	int status;

	if (is_emulated())
		return;
	child = fork();
	if (!child) {
		CHECK_INT(setrlimit(RLIMIT_AS, &none), 0);
		CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "fib" }), &p), -ENOMEM);
		ftr_expect("fib", NULL);
		CHECK(ftr_verify(NULL, NULL) != 0);
		ftr_expect("fib", NULL);
		CHECK_INT(setrlimit(RLIMIT_AS, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
		CHECK_INT(ftr_verify(NULL, NULL), 1); /* it has not been forgotten */
		_exit(0);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
}

static void refuses(void)
{
	/* Not a constant: code that refers to the inside of a function keeps it from being patched. */
	const char *volatile begin = (const char *)fib;
	struct ftr_probe *p = NULL;
	struct ftr_counts counts;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "no_such_function" }), &p), -ENOENT);
	CHECK(!strcmp(ftr_error(), "no_such_function: no such function"), "%s", ftr_error());
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = begin + 1 }), &p),
		-ENOENT);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = &p }), &p), -ENOENT);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ 0 }), &p), -EINVAL);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "fib", .flags = 1u << 30 }), &p),
		-EINVAL);
	CHECK_INT(ftr_attach_sized(&(struct ftr_probe_spec){ .name = "fib" }, 3, &p), -EINVAL);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "fib" }), NULL), -EINVAL);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "fib", .thread = -1 }), &p), -EINVAL);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "__vdso_time" }), &p), -ENOTSUP);
	CHECK(strstr(ftr_error(), "vDSO"), "%s", ftr_error());
	CHECK_INT(ftr_detach(NULL), -EINVAL);
	CHECK_INT(ftr_detach((struct ftr_probe *)8), -EINVAL);
	CHECK_INT(ftr_read(NULL, &counts), -EINVAL);
	CHECK_INT(ftr_reset(NULL), -EINVAL);
	CHECK(!strcmp(ftr_error(), "no such probe, or nowhere to put the answer"));
	CHECK(!p);
}

/* What is no probe, or not any more. */
static void knows_its_probes(void)
{
	struct ftr_probe *p = attach(fib, NULL, NULL, NULL);
	void *other[64];
	struct ftr_counts counts;
	struct ftr_function f;

	memset(other, 0xa5, sizeof(other));
	CHECK_INT(ftr_detach(p), 0);
	for (int i = 0; i < 2; i++) {
		struct ftr_probe *none = i ? (struct ftr_probe *)other : p;

		CHECK_INT(ftr_read(none, &counts), -EINVAL);
		CHECK_INT(ftr_read_thread(none, 0, &counts), -EINVAL);
		CHECK_INT(ftr_reset(none), -EINVAL);
		CHECK_INT(ftr_probe_function(none, 0, &f), -ENOENT);
		CHECK_INT(ftr_detach(none), -EINVAL);
	}
}

int main(void)
{
	needs_memory();
	needs_descriptors(); /* before anything has been read */
	counts_calls();
	counts_jumps();
	finds_by_name();
	finds_indirect_functions();
	finds_indirect_functions_of_the_program();
	begins_within_a_call();
	counts_by_thread();
	ignores_parts();
	refuses();
	knows_its_probes();
	puts("ok");
	return 0;
}
