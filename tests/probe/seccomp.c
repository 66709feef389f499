/* SPDX-License-Identifier: MIT */
/*
 * Hits make no system call: behind a filter that ends the process at any but write(2) and
 * exit_group(2) functions are still counted, and their handlers run; on a thread that has called
 * none of them before, too.
 */
#include "check.h"
#include "sealed.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS 1000

NOINLINE static int counted(int n)
{
	volatile int room[4] = { n, n, n, n };

	return room[3] + 1;
}

NOINLINE static int entered(int n)
{
	return counted(n) + 1;
}

NOINLINE static int watched(int n)
{
	return n ? watched(n - 1) + 1 : entered(n);
}

NOINLINE static double with_vectors(double x)
{
	volatile double room[2] = { x, x };

	return room[1] + 1;
}

static jmp_buf out;

NOINLINE static void leaves(void)
{
	longjmp(out, 1);
}

static long entries, returns, vectors;

static void on_entry(struct ftr_call *call, void *data)
{
	(void)call;
	++*(long *)data;
}

static void on_return(struct ftr_call *call, void *data)
{
	*(int *)ftr_result(call, 'i') += 0;
	++*(long *)data;
}

static void on_vectors(struct ftr_call *call, void *data)
{
	*(double *)ftr_argument(call, "d", 0) += 0;
	++*(long *)data;
}

static void call_all(void)
{
	for (int i = 0; i < CALLS; i++) {
		CHECK_INT(watched(3), 5);
		CHECK_INT((int)with_vectors(i), i + 1);
	}
	for (int i = 0; i < CALLS; i++)
		if (!setjmp(out))
			leaves();
}

static atomic_int phase; /* who waits for it makes no system call */

static void wait_for(int n)
{
	while (atomic_load(&phase) != n)
		;
}

static void *late_thread(void *arg)
{
	atomic_store(&phase, 1);
	wait_for(2);
	for (int i = 0; i < CALLS; i++)
		CHECK_INT(watched(3), 5);
	atomic_store(&phase, 3);
	wait_for(4); /* it cannot end */
	return arg;
}

static void forbid_system_calls(void)
{
	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &no_calls)) {
		puts("SKIP: no seccomp filters");
		exit(77);
	}
}

int main(void)
{
	struct ftr_probe *count, *thrown, *entry, *both, *third, *vector, *none;
	struct ftr_counts counts;
	pthread_t thread;

	need_handlers();
	puts("begin"); /* it has its buffer */
	fflush(stdout);
	count = attach(counted, NULL, NULL, NULL);
	thrown = attach(leaves, NULL, NULL, NULL);
	entry = attach(entered, on_entry, NULL, &entries);
	both = attach(watched, on_entry, on_return, &returns);
	third = attach(watched, on_entry, on_return, &returns);
	vector = attach(with_vectors, on_vectors, NULL, &vectors);
	CHECK_INT(pthread_create(&thread, NULL, late_thread, NULL), 0);
	call_all();
	wait_for(1);
	forbid_system_calls();
	call_all();
	atomic_store(&phase, 2);
	wait_for(3);
	CHECK_INT(ftr_read(count, &counts), 0);
	CHECK(counts.calls >= 2 * CALLS && counts.calls <= 3 * CALLS, "%lu", counts.calls);
	CHECK_INT(ftr_read(thrown, &counts), 0);
	CHECK_INT(counts.calls, 2 * CALLS);
	CHECK(entries >= 2 * CALLS, "%ld", entries);
	CHECK(returns >= 2 * CALLS * 4 * 4, "%ld", returns);
	CHECK_INT(vectors, 2 * CALLS);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = counted }), &none), -EPERM);
	CHECK_INT(ftr_detach(entry), -EPERM);
	CHECK_INT(ftr_detach(vector), -EPERM);
	call_all();
	CHECK(entries <= 3 * CALLS, "%ld", entries);
	CHECK_INT(vectors, 2 * CALLS);
	(void)both;
	(void)third;
	puts("ok");
	fflush(stdout);
	_exit(0);
}
