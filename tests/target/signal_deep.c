/* SPDX-License-Identifier: MIT */
/*
 * Signals in the middle of a deep recursion, on the same stack, on a tiny alternate stack and
 * nested in each other; and one delivered to a thread that has called nothing yet.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * expect: down calls=100010
 * expect: on_same calls=60
 * expect: on_alt calls=30
 * expect: from_handler calls=190
 * expect: first_call_of_thread calls=10
 */
#define _GNU_SOURCE
#include "target.h"

#include <pthread.h>
#include <signal.h>

static char alt_stack[16384];
static pthread_barrier_t barrier;

static NOIPA void from_handler(void)
{
	HIT();
}

static NOIPA void first_call_of_thread(int number)
{
	HIT();
	from_handler();
}

static NOIPA void on_same(int number)
{
	HIT();
	from_handler();
	from_handler();
	if (number == SIGRTMIN)
		raise(SIGUSR2);
}

static NOIPA void on_alt(int number)
{
	HIT();
	from_handler();
	raise(SIGUSR1);
	from_handler();
}

static NOIPA long down(long n)
{
	HIT();
	if (n % 1000 == 500)
		raise(n % 4000 == 500 ? SIGUSR1 : n % 4000 == 1500 ? SIGUSR2 : SIGCONT);
	return n ? OPAQUE(down)(n - 1) + 1 : 0;
}

static void *thread_main(void *arg)
{
	sigset_t set;

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	sigfillset(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return NULL;
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigaction(number, &action, NULL);
}

int main(void)
{
	stack_t stack = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};
	pthread_t thread;
	sigset_t set;
	long sum = 0;

	CHECK(sigaltstack(&stack, NULL) == 0);
	handle(SIGUSR1, on_same, 0);
	handle(SIGUSR2, on_alt, SA_ONSTACK);
	handle(SIGHUP, first_call_of_thread, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 10; i++)
		sum += down(10000);
	sigfillset(&set);
	for (int i = 0; i < 10; i++) {
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_barrier_wait(&barrier);
		pthread_kill(thread, SIGHUP);
		pthread_barrier_wait(&barrier);
		pthread_join(thread, NULL);
	}
	printf("%ld\n", sum);
	hits("");
	return 0;
}
