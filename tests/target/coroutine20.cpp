/* SPDX-License-Identifier: MIT */
/*
 * C++20 coroutines: a compiler-made frame, resumed and destroyed through function pointers.
 *
 * flags: -std=c++20 -O2
 * flags: -std=c++20 -O0
 * stacks: several
 * expect: consume calls=1000 returned=966 unwound=34
 * expect: take calls=100
 */
#include "target.h"

#include <coroutine>
#include <exception>

struct Generator {
	struct promise_type {
		long value = 0;
		Generator get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(long v)
		{
			value = v;
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			throw;
		}
	};
	std::coroutine_handle<promise_type> handle;
};

static Generator numbers(long from, bool fails)
{
	for (;; from++) {
		if (fails && from % 10 == 9)
			throw from;
		co_yield from;
	}
}

static NOIPA long consume(Generator &generator)
{
	HIT();
	generator.handle.resume();
	return generator.handle.promise().value;
}

static NOIPA long take(long from, bool fails)
{
	Generator generator = numbers(from * 10, fails);
	long sum = 0;

	HIT();
	try {
		for (int i = 0; i < 10; i++)
			sum += consume(generator);
	} catch (long value) {
		sum += 1000 * value;
	}
	generator.handle.destroy();
	return sum;
}

int main()
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum += take(i, i % 3 == 0);
	printf("%ld\n", sum);
	hits("");
	return 0;
}
