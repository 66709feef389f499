/* SPDX-License-Identifier: MIT */
/*
 * Exceptions, forced unwinding and longjmp through many frames. Prints every destructor and
 * handler as it runs; run.sh compares with the untraced run, and the numbers below with the report.
 *
 *     exceptions [cancelled|noexcept|uncaught]     cancelled: threads are cancelled too
 *
 * expect: thrower(int) calls=606 returned=0 unwound=606
 * expect: next_frame(int) calls=20 returned=20 unwound=0
 * expect: throws_at_once(int) calls=30 returned=0 unwound=30
 * expect: rethrower(int) calls=66 returned=0 unwound=66
 * expect: foreign(int) calls=33 returned=0 unwound=33
 * expect: call_through_c calls=10 returned=0 unwound=10
 * expect: sort_through_c calls=10 returned=0 unwound=10
 * expect: many(int, int, int, int, int, int, int, int, int, int) calls=10 returned=0 unwound=10
 * expect: catch_and_return(int) calls=90 returned=90 unwound=0
 * expect: thrower_in_thread(int) calls=44 returned=0 unwound=44
 * cancelled: deferred(int) calls=8 returned=0 unwound=8
 * cancelled: asynchronous(int) calls=8 returned=0 unwound=8
 * cancelled: spins() calls=2 returned=0 unwound=2
 * expect: exits(int) calls=8 returned=0 unwound=8
 * expect: jumper(int) calls=40 returned=0 unwound=40
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <semaphore.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <unwind.h>

#ifdef __clang__
#define NOIPA __attribute__((noinline, optnone))
#else
#define NOIPA __attribute__((noipa))
#endif

extern "C" void call_through_c(void (*function)(int), int n);
extern "C" void sort_through_c(int (*compare)(const void *, const void *));

static volatile int sink;

struct Guard {
	const char *name;
	int n;
	NOIPA Guard(const char *name, int n) : name(name), n(n)
	{
	}
	NOIPA ~Guard();
};

Guard::~Guard()
{
	printf("~%s %d%s\n", name, n, std::uncaught_exceptions() ? " unwinding" : "");
}

NOIPA void thrower(int n)
{
	Guard guard("thrower", n);

	if (!n)
		throw std::runtime_error("deep");
	thrower(n - 1);
	sink++;
}

NOIPA void throws_at_once(int n)
{
	throw n;
}

NOIPA void next_frame(int n)
{
	try {
		throws_at_once(n);
	} catch (int caught) {
		printf("next frame caught %d\n", caught);
	}
}

NOIPA void rethrower(int n)
{
	Guard guard("rethrower", n);

	try {
		if (!n)
			throw std::string("again");
		rethrower(n - 1);
	} catch (const std::string &) {
		printf("rethrow %d\n", n);
		throw;
	}
	sink++;
}

static void foreign_cleanup(_Unwind_Reason_Code, struct _Unwind_Exception *)
{
	printf("foreign exception deleted\n");
}

NOIPA void foreign(int n)
{
	static struct _Unwind_Exception exception;
	Guard guard("foreign", n);

	if (!n) {
		memset(&exception, 0, sizeof(exception));
		memcpy(&exception.exception_class, "FTR\0TEST", 8);
		exception.exception_cleanup = foreign_cleanup;
		_Unwind_RaiseException(&exception);
		printf("not caught\n");
		abort();
	}
	foreign(n - 1);
	sink++;
}

NOIPA int throwing_compare(const void *, const void *)
{
	Guard guard("compare", 0);

	throw 'c';
}

NOIPA void many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
	Guard guard("many", a + b + c + d + e + f + g + h + i + j);

	throw a;
}

NOIPA int catch_and_return(int n)
{
	try {
		if (n == 0)
			throw 1L;
		return catch_and_return(n - 1) + 1;
	} catch (long) {
		return 100;
	}
}

NOIPA void throws_and_catches(int i)
{
	try {
		thrower(100);
	} catch (const std::exception &e) {
		printf("caught %s\n", e.what());
	}
	next_frame(i);
	try {
		rethrower(10);
	} catch (...) {
		printf("caught the rethrown\n");
	}
}

NOIPA void other_kinds(int i)
{
	try {
		foreign(10);
	} catch (...) {
		printf("caught a foreign one\n");
	}
	(void)i;
}

NOIPA void through_c(int i)
{
	try {
		call_through_c(throws_at_once, i);
	} catch (int caught) {
		printf("through C: %d\n", caught);
	}
	try {
		sort_through_c(throwing_compare);
	} catch (char caught) {
		printf("through qsort: %c\n", caught);
	}
	try {
		many(i, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	} catch (int caught) {
		printf("past stack arguments: %d\n", caught);
	}
	printf("%d\n", catch_and_return(8));
}

/* ---- threads ---- */

static sem_t ready;

NOIPA void thrower_in_thread(int n)
{
	Guard guard("thread", n);

	if (!n)
		throw 3.5;
	thrower_in_thread(n - 1);
}

static void cleanup_handler(void *arg)
{
	printf("cleanup %s\n", (const char *)arg);
}

NOIPA void deferred(int n)
{
	Guard guard("deferred", n);

	pthread_cleanup_push(cleanup_handler, (void *)"deferred");
	if (n) {
		deferred(n - 1);
	} else {
		sem_post(&ready);
		for (;;)
			pause();
	}
	pthread_cleanup_pop(0);
}

/* Cancelled at any instruction: with nothing of its own to clean up. */
NOIPA void spins(void)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
	sem_post(&ready);
	for (;;)
		__asm__ volatile("" ::: "memory");
}

NOIPA void asynchronous(int n)
{
	Guard guard("asynchronous", n);

	pthread_cleanup_push(cleanup_handler, (void *)"asynchronous");
	if (n)
		asynchronous(n - 1);
	else
		spins();
	pthread_cleanup_pop(0);
}

NOIPA void exits(int n)
{
	Guard guard("exits", n);

	pthread_cleanup_push(cleanup_handler, (void *)"exits");
	if (!n)
		pthread_exit((void *)7);
	exits(n - 1);
	pthread_cleanup_pop(0);
}

NOIPA void *thread_throws(void *)
{
	try {
		thrower_in_thread(10);
	} catch (double caught) {
		printf("thread caught %g\n", caught);
	}
	return nullptr;
}

NOIPA void *thread_deferred(void *)
{
	deferred(3);
	return nullptr;
}

NOIPA void *thread_asynchronous(void *)
{
	asynchronous(3);
	return nullptr;
}

NOIPA void *thread_exits(void *)
{
	try {
		exits(3);
	} catch (...) {
		printf("forced unwinding passes\n");
		throw;
	}
	return nullptr;
}

NOIPA void run_thread(void *(*function)(void *), bool cancel)
{
	pthread_t thread;
	void *result;

	pthread_create(&thread, nullptr, function, nullptr);
	if (cancel) {
		sem_wait(&ready);
		pthread_cancel(thread);
	}
	pthread_join(thread, &result);
	printf("thread: %ld\n", (long)result);
}

static jmp_buf place;

NOIPA void jumper(int n)
{
	if (!n)
		longjmp(place, 1);
	jumper(n - 1);
	sink++;
}

NOIPA void jumps(void)
{
	if (!setjmp(place))
		jumper(3);
	else
		printf("jumped\n");
}

/* ---- the end ---- */

NOIPA void not_allowed(void) noexcept
{
	Guard guard("noexcept", 0);

	thrower(2);
}

static void at_terminate()
{
	printf("terminate\n");
	fflush(stdout);
	_exit(9);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	setvbuf(stdout, nullptr, _IOLBF, 0);
	if (!strcmp(how, "uncaught"))
		thrower(3);
	if (!strcmp(how, "noexcept")) {
		std::set_terminate(at_terminate);
		not_allowed();
	}
	sem_init(&ready, 0, 0);
	for (int i = 0; i < 6; i++)
		throws_and_catches(i);
	for (int i = 6; i < 20; i++)
		next_frame(i);
	for (int i = 0; i < 3; i++)
		other_kinds(i);
	for (int i = 0; i < 10; i++)
		through_c(i);
	for (int i = 0; i < 4; i++)
		run_thread(thread_throws, false);
	for (int i = 0; i < 2; i++) {
		if (!strcmp(how, "cancelled")) {
			run_thread(thread_deferred, true);
			run_thread(thread_asynchronous, true);
		}
		run_thread(thread_exits, false);
	}
	for (int i = 0; i < 10; i++)
		jumps();
	printf("end\n");
	return 0;
}
