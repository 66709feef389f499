/* SPDX-License-Identifier: MIT */
/*
 * Handlers while signals come at any instruction: handlers of signals call hooked functions too,
 * and leave some of them by siglongjmp. Threads call while a probe is attached and detached.
 */
#include "check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>

#define SIGNALS 2000
#define TOGGLES 200
#define THREADS 3

static _Thread_local unsigned long opened, closed, bad;

/* Its word tells a return handler that this call's entry was seen. */
static void entry(struct ftr_call *call, void *data)
{
	(void)data;
	*ftr_call_word(call) = ftr_argument_word(call, 0) ^ 0x5a5a;
	opened++;
}

static void ret(struct ftr_call *call, void *data)
{
	(void)data;
	bad += *ftr_call_word(call) != (*(uint64_t *)ftr_result(call, 'i') ^ 0x5a5a);
	closed++;
}

static volatile long sum;
static volatile sig_atomic_t raises; /* the next call of leaf() is left by siglongjmp */

NOINLINE static long leaf(long n)
{
	if (raises)
		raise(SIGALRM);
	sum += n;
	return n;
}

NOINLINE static long nested(long n)
{
	return leaf(n) + 0 * leaf(n + 1);
}

/* ---- signals ---- */

static atomic_ulong signals;
static sigjmp_buf out;
static volatile sig_atomic_t may_jump;

static void on_signal(int number)
{
	bool leaves = raises;

	(void)number;
	raises = false;
	signals++;
	CHECK_INT(nested((long)signals), (long)signals);
	if (leaves || (may_jump && signals % 3 == 0))
		siglongjmp(out, 1);
}

static void storm(bool jumps)
{
	const struct itimerval every = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };

	signals = 0;
	signal(SIGALRM, on_signal);
	/* Where every signal comes between calls, since this runs slowly, one does not. */
	if (!sigsetjmp(out, 1) && jumps) {
		raises = true;
		nested(1);
	}
	may_jump = jumps;
	setitimer(ITIMER_REAL, &every, NULL);
	for (long n = 1; signals < SIGNALS; n++)
		CHECK_INT(nested(n), n);
	may_jump = 0;
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
}

static void survives_signals(void)
{
	struct ftr_probe *a = attach(leaf, entry, ret, NULL), *b = attach(nested, entry, ret, NULL);
	struct ftr_counts counts;

	storm(false);
	CHECK_INT(opened, closed);
	CHECK_INT(bad, 0);
	CHECK_INT(ftr_read(a, &counts), 0);
	CHECK_INT(counts.calls, counts.returned);
	storm(true);
	CHECK(opened > closed && closed);
	CHECK_INT(bad, 0);
	/* Nobody is blind for good. */
	opened = closed = 0;
	CHECK_INT(nested(7), 7);
	CHECK_INT(opened, 3);
	CHECK_INT(closed, 3);
	CHECK_INT(ftr_detach(a), 0);
	CHECK_INT(ftr_detach(b), 0);
}

/* ---- threads ---- */

static atomic_bool stop, attached;
static atomic_ulong late, bads;

/* @data is unmapped, as it were, when the probe is gone. */
static void watched(struct ftr_call *call, void *data)
{
	entry(call, NULL);
	late += !*(atomic_bool *)data;
}

static void *calls(void *unused)
{
	(void)unused;
	for (long n = 0; !stop; n++)
		if (nested(n) != n)
			bad++;
	bads += bad;
	return NULL;
}

static void survives_toggles(void)
{
	pthread_t threads[THREADS];
	struct ftr_probe *kept = attach(leaf, entry, ret, NULL);

	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, calls, NULL), 0);
	for (int i = 0; i < TOGGLES; i++) {
		struct ftr_probe *p;

		attached = true;
		p = attach(leaf, watched, ret, &attached);
		CHECK_INT(leaf(i), i);
		CHECK_INT(ftr_detach(p), 0);
		attached = false;
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_INT(late, 0);
	CHECK_INT(bads, 0);
	CHECK_INT(ftr_detach(kept), 0);
}

int main(void)
{
	survives_signals();
	survives_toggles();
	puts("ok");
	return 0;
}
