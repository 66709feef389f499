/* SPDX-License-Identifier: MIT */
/*
 * Coroutines by makecontext and swapcontext: a thousand switches, left half-way, and resumed in
 * another thread.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * flags: clang -O2 -pthread
 * stacks: several
 * expect: step calls=1500
 * expect: deep calls=1500
 * expect: yield calls=1002 left>=0
 * expect: coroutine calls=5 returned=4 open=1
 * expect: resume calls=1006
 */
#include "target.h"

#include <pthread.h>
#include <ucontext.h>

#define STACK 65536
#define STEPS 200

struct routine {
	ucontext_t self, back;
	int steps;
	int done;
	long sum;
	char *stack;
};

static struct routine routines[5];

static NOIPA void yield(struct routine *routine)
{
	HIT();
	swapcontext(&routine->self, &routine->back);
}

static NOIPA void resume(struct routine *routine)
{
	HIT();
	swapcontext(&routine->back, &routine->self);
}

static NOIPA long step(long x)
{
	HIT();
	return x + 1;
}

static NOIPA long deep(struct routine *routine, int n)
{
	long sum;

	HIT();
	sum = n ? OPAQUE(deep)(routine, n - 1) : 0;
	if (!n)
		yield(routine);
	return step(sum);
}

static NOIPA void coroutine(int number)
{
	struct routine *routine = &routines[number];

	HIT();
	for (int i = 0; i < routine->steps; i++)
		routine->sum += deep(routine, i % 2);
	routine->done = 1;
	if (number == 4)
		for (;;)
			yield(routine);
}

static void start(int number, int steps)
{
	struct routine *routine = &routines[number];

	routine->steps = steps;
	routine->stack = malloc(STACK);
	getcontext(&routine->self);
	routine->self.uc_stack.ss_sp = routine->stack;
	routine->self.uc_stack.ss_size = STACK;
	routine->self.uc_link = &routine->back;
	makecontext(&routine->self, (void (*)(void))coroutine, 1, number);
}

static void *thread_main(void *arg)
{
	resume(arg);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	long sum = 0;

	for (int i = 0; i < 5; i++)
		start(i, STEPS);
	/* three taking turns */
	while (!routines[0].done)
		for (int i = 0; i < 3; i++)
			resume(&routines[i]);
	/* one that runs a step here, a step in a new thread */
	for (int i = 0; !routines[3].done; i++) {
		if (i % 2) {
			resume(&routines[3]);
			continue;
		}
		pthread_create(&thread, NULL, thread_main, &routines[3]);
		pthread_join(thread, NULL);
	}
	/* one that never returns from its loop */
	for (int i = 0; i < STEPS + 2; i++)
		resume(&routines[4]);
	for (int i = 0; i < 5; i++)
		sum += routines[i].sum;
	printf("%ld\n", sum);
	hits("");
	return 0;
}
