/* SPDX-License-Identifier: MIT */
/*
 * More ways of exceptions: through libc's frames, in constructors, carried to another thread, one
 * thrown while another is being handled, and pthread_exit through C++ frames that catch everything.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * flags: clang -O2 -pthread
 * expect: compare calls=40 returned=0 unwound=40
 * expect: sorts calls=40
 * expect: carried calls=20 returned=0 unwound=20
 * expect: carries calls=20
 * expect: fails calls=20 returned=0 unwound=20
 * expect: constructs calls=20
 * expect: replaces calls=20
 * expect: leaves calls=20 returned=0 unwound=20
 * expect: catches_all calls=20 returned=0 unwound=20
 * expect: cleanup calls=60
 */
#include "target.h"

#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <thread>

static NOIPA void cleanup(void)
{
	HIT();
}

struct Guard {
	~Guard()
	{
		cleanup();
	}
};

static NOIPA int compare(const void *a, const void *b)
{
	HIT();
	throw *(const int *)a + *(const int *)b;
}

static NOIPA int sorts(void)
{
	int values[] = {3, 4, 5, 6, 7};

	HIT();
	try {
		qsort(values, 5, sizeof(int), compare);
	} catch (int value) {
		return value;
	}
	return 0;
}

static NOIPA void carried(void)
{
	HIT();
	throw std::runtime_error("from a thread");
}

static NOIPA int carries(void)
{
	std::exception_ptr error;

	HIT();
	std::thread thread([&error] {
		try {
			carried();
		} catch (...) {
			error = std::current_exception();
		}
	});
	thread.join();
	try {
		std::rethrow_exception(error);
	} catch (std::runtime_error &e) {
		return (int)strlen(e.what());
	}
}

static NOIPA int fails(void)
{
	HIT();
	throw std::bad_alloc();
}

struct Member {
	Guard guard;
	int value;
	Member() : value(fails())
	{
	}
};

static NOIPA int constructs(void)
{
	HIT();
	try {
		Member member;
		return member.value;
	} catch (std::bad_alloc &) {
		return 1;
	}
}

static NOIPA int replaces(void)
{
	HIT();
	try {
		try {
			Guard guard;
			throw 1;
		} catch (int) {
			throw std::string("other");
		}
	} catch (std::string &text) {
		return (int)text.size() + std::uncaught_exceptions();
	}
}

static NOIPA void leaves(void)
{
	Guard guard;

	HIT();
	pthread_exit((void *)3);
}

static NOIPA void *catches_all(void *)
{
	HIT();
	try {
		leaves();
	} catch (...) {
		throw;
	}
	return NULL;
}

int main()
{
	pthread_t thread;
	void *result;
	long sum = 0;

	for (int i = 0; i < 20; i++) {
		sum += sorts() + sorts() + carries() + constructs() + replaces();
		pthread_create(&thread, NULL, catches_all, NULL);
		pthread_join(thread, &result);
		sum += (long)result;
	}
	printf("%ld\n", sum);
	hits("");
	return 0;
}
