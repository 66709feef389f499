/* SPDX-License-Identifier: MIT */
/*
 * Probes come and go while four threads call the function at full speed: nothing crashes, every
 * result is right, every call of the toggling thread is seen exactly while a probe is there.
 * Usage: toggle [toggles]
 *
 * On few processors a toggle may have to wait until a thread that was preempted runs again, which
 * takes the length of a time slice. With TIMERS in the environment each thread gives its processor
 * away some thousands of times a second, wherever it is.
 */
#define _GNU_SOURCE 1
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4

#if defined(__x86_64__)
/* The entry straddles a cache line, and begins with three short instructions. */
__asm__(".text\n"
	".balign 64\n"
	".skip 62, 0xcc\n"
	".type short_entry, @function\n"
	"short_entry:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset rbx, 0\n"
	"	mov %edi, %ebx\n"
	"	inc %ebx\n"
	"	lea (%rbx, %rbx, 2), %eax\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size short_entry, . - short_entry\n");
int short_entry(int n);
#else
NOINLINE static int short_entry(int n)
{
	return 3 * (n + 1);
}
#endif

static atomic_bool stop;
static atomic_long hits;

static void give_away(int signal)
{
	(void)signal;
	sched_yield();
}

/* Signals for the calling thread, at intervals that differ from those of the others. */
static void begin_timer(void)
{
	static atomic_int threads;
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	long ns = 60000 + 7919 * atomic_fetch_add(&threads, 1);
	timer_t timer;

	to._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	CHECK_INT(timer_create(CLOCK_MONOTONIC, &to, &timer), 0);
	CHECK_INT(timer_settime(timer, 0,
			  &(struct itimerspec){ { 0, ns }, { 0, ns } }, NULL), 0);
}

static void *call_on(void *arg)
{
	unsigned long *calls = arg;
	int (*volatile function)(int) = short_entry;

	if (getenv("TIMERS"))
		begin_timer();
	for (int n = 0; !atomic_load_explicit(&stop, memory_order_relaxed); n = (n + 1) & 0xffff) {
		CHECK_INT(function(n), 3 * (n + 1));
		++*calls;
	}
	return NULL;
}

static void hit(struct ftr_call *call, void *data)
{
	(void)call;
	atomic_fetch_add_explicit((atomic_long *)data, 1, memory_order_relaxed);
}

static void toggle(int kind)
{
	static ftr_handler *const handlers[3][2] = { { NULL, NULL }, { hit, NULL }, { hit, hit } };
	int (*volatile function)(int) = short_entry;
	struct ftr_counts counts;
	struct ftr_probe *p = attach(short_entry, handlers[kind][0], handlers[kind][1], &hits);

	for (int i = 0; i < 3; i++)
		CHECK_INT(function(i), 3 * (i + 1));
	CHECK_INT(ftr_read_thread(p, 0, &counts), 0);
	CHECK_INT(counts.calls, 3);
	if (kind != 1)
		CHECK_INT(counts.returned, 3);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(function(7), 24);
}

int main(int argc, char **argv)
{
	long toggles = argc > 1 ? atol(argv[1]) : is_emulated() ? 30 : 300;
	unsigned long calls[THREADS] = { 0 }, total = 0;
	unsigned char before[32];
	pthread_t threads[THREADS];

	memcpy(before, (void *)short_entry, sizeof(before));
	signal(SIGUSR1, give_away);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, call_on, &calls[i]), 0);
	for (long i = 0; i < toggles; i++)
		toggle((int)(i % 3));
	stop = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		total += calls[i];
	}
	CHECK(!memcmp(before, (void *)short_entry, sizeof(before)));
	CHECK(hits >= toggles / 3 * 9, "%ld handlers ran", (long)hits);
	printf("ok: %ld toggles, %lu calls meanwhile, %ld handlers\n", toggles, total, (long)hits);
	return 0;
}
