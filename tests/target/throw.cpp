/* SPDX-License-Identifier: MIT */
/*
 * C++ exceptions: through many frames, caught in the very next one, rethrown in the middle, nested,
 * thrown while a destructor runs, through frames without handlers, and many times.
 *
 * flags: -O2
 * flags: -O0
 * flags: -Os
 * flags: clang -O2
 * flags: -O2 -static-libgcc
 * flags: -O2 -fno-pie -no-pie
 * expect: thrower calls=401 returned=0 unwound=401
 * expect: through calls=2000 returned=0 unwound=2000
 * expect: catch_next calls=100 returned=100
 * expect: rethrower calls=100 returned=0 unwound=100
 * expect: around_rethrow calls=100 returned=100
 * expect: nested calls=100 returned=100
 * expect: dtor_throw calls=1 returned=1
 * expect: cleanup calls=2100 returned=2100
 * expect: plain calls=301 returned=301
 */
#include "target.h"

#include <stdexcept>
#include <string>

static NOIPA void plain(void)
{
	HIT();
}

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

static NOIPA int thrower(int kind)
{
	HIT();
	if (kind == 0)
		throw 17;
	if (kind == 1)
		throw std::runtime_error("one");
	throw std::string("other");
}

static NOIPA int through(int n, int kind)
{
	Guard guard;

	HIT();
	return n > 1 ? OPAQUE(through)(n - 1, kind) + 1 : thrower(kind) + 1;
}

static NOIPA int catch_next(void)
{
	HIT();
	try {
		return thrower(0);
	} catch (int value) {
		plain();
		return value;
	}
}

static NOIPA int rethrower(int kind)
{
	HIT();
	try {
		return through(20, kind) + 1;
	} catch (std::exception &error) {
		plain();
		throw;
	}
}

static NOIPA int around_rethrow(void)
{
	HIT();
	try {
		return rethrower(1);
	} catch (std::runtime_error &error) {
		return (int)std::string(error.what()).size();
	}
}

static NOIPA int nested(void)
{
	HIT();
	try {
		try {
			Guard guard;
			thrower(2);
		} catch (std::string &first) {
			try {
				thrower(1);
			} catch (...) {
				plain();
			}
			throw;
		}
	} catch (std::string &again) {
		return (int)again.size();
	}
	return 0;
}

struct Thrower {
	~Thrower() noexcept(false)
	{
		thrower(0);
	}
};

static NOIPA int dtor_throw(void)
{
	HIT();
	try {
		Thrower thrower;
		plain();
	} catch (int value) {
		return value;
	}
	return 0;
}

int main()
{
	long sum = 0;

	for (int i = 0; i < 100; i++) {
		sum += catch_next();
		sum += around_rethrow();
		sum += nested();
	}
	sum += dtor_throw();
	printf("%ld\n", sum);
	hits("");
	return 0;
}
