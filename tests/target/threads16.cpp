/* SPDX-License-Identifier: MIT */
/*
 * Sixteen threads of a C++ program: virtual calls, lambdas, exceptions that cross frames with
 * destructors, futures that hand exceptions over, thread-local objects, locks.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * flags: clang -O2 -pthread
 * expect: square::area calls=16000
 * expect: line::area calls=16000
 * expect: throws calls=3200 unwound=3200
 * expect: guarded calls=16000
 * expect: fails calls=16 unwound=16
 * expect: destroyed calls=3216
 * expect: local_destroyed calls=16
 */
#include "target.h"

#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static NOIPA void destroyed()
{
	HIT();
}

static NOIPA void local_destroyed()
{
	HIT();
}

struct shape {
	virtual ~shape() = default;
	virtual long area(long x) = 0;
};

struct square : shape {
	long area(long x) override;
};

struct line : shape {
	long area(long x) override;
};

NOIPA long square::area(long x)
{
	HIT();
	return x * x;
}

NOIPA long line::area(long x)
{
	HIT();
	return x - x;
}

struct local {
	long used = 0;
	~local()
	{
		local_destroyed();
	}
};

struct guard {
	~guard()
	{
		destroyed();
	}
};

static std::mutex mutex;
static thread_local local here;

static NOIPA void throws(long x)
{
	guard g;

	HIT();
	throw std::runtime_error(std::to_string(x));
}

static NOIPA long guarded(long x)
{
	std::lock_guard<std::mutex> lock(mutex);

	HIT();
	here.used++;
	return x;
}

static NOIPA long fails()
{
	guard g;

	HIT();
	throw std::out_of_range("late");
}

static long work()
{
	std::unique_ptr<shape> shapes[] = {std::make_unique<square>(), std::make_unique<line>()};
	long sum = 0;

	for (long i = 0; i < 1000; i++) {
		for (auto &shape : shapes)
			sum += shape->area(i);
		sum += guarded(i);
		if (i % 5 == 0) {
			try {
				throws(i);
			} catch (const std::runtime_error &error) {
				sum += std::stol(error.what());
			}
		}
	}
	return sum + here.used;
}

int main()
{
	std::vector<std::thread> threads;
	std::vector<std::future<long>> late;
	std::vector<long> sums(16);

	for (int i = 0; i < 16; i++)
		threads.emplace_back([&sums, i] { sums[i] = work(); });
	for (auto &thread : threads)
		thread.join();
	for (long sum : sums)
		CHECK(sum == sums[0]);
	for (int i = 0; i < 16; i++)
		late.push_back(std::async(std::launch::async, fails));
	for (auto &one : late) {
		try {
			one.get();
			CHECK(false);
		} catch (const std::out_of_range &) {
		}
	}
	printf("%ld\n", sums[0]);
	hits("");
	return 0;
}
