/* SPDX-License-Identifier: MIT */
/*
 * Names of every kind: overloads, templates, operators, lambdas, namespaces, local classes,
 * virtual functions reached through thunks, the same static name twice, very long ones.
 *
 * flags: -O2
 * flags: -O0
 * flags: clang -O2
 * expect: _ZN5outer5inner3addEii calls=10
 * expect: _ZN5outer5inner3addEdd calls=20
 * expect: outer::inner::same calls=30
 * expect: _ZN12_GLOBAL__N_19anonymousEi calls=10
 * expect: _ZN4PairIilEplERKS0_ calls=10
 * expect: _ZN7Derived6secondEv calls=20
 * expect: _ZN7Derived5cloneEv calls=20
 * expect: _Z96a_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_to_100v calls=10
 */
#include "target.h"

#define LONG_NAME                                                                                  \
	a_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_to_100

namespace outer
{
namespace inner
{
NOIPA int add(int a, int b)
{
	HIT_AS("_ZN5outer5inner3addEii");
	return a + b;
}

NOIPA double add(double a, double b)
{
	HIT_AS("_ZN5outer5inner3addEdd");
	return a + b;
}

NOIPA int same(int x)
{
	HIT_AS("outer::inner::same");
	return x;
}
} // namespace inner
} // namespace outer

namespace
{
NOIPA int anonymous(int x)
{
	HIT_AS("_ZN12_GLOBAL__N_19anonymousEi");
	return x * 2;
}
} // namespace

static unsigned long plus_calls;

template <typename A, typename B> struct Pair {
	A a;
	B b;
	NOIPA Pair operator+(const Pair &other)
	{
		plus_calls++;
		return {A(a + other.a), B(b + other.b)};
	}
};

struct First {
	virtual ~First() = default;
	virtual int first() = 0;
};

struct Second {
	virtual ~Second() = default;
	virtual int second() = 0;
	virtual Second *clone() = 0;
	int padding = 5;
};

struct Derived : First, Second {
	int value = 7;
	int first() override;
	int second() override;
	Derived *clone() override;
};

NOIPA int Derived::first()
{
	return value;
}

NOIPA int Derived::second()
{
	HIT_AS("_ZN7Derived6secondEv");
	return value + padding;
}

NOIPA Derived *Derived::clone()
{
	HIT_AS("_ZN7Derived5cloneEv");
	return this;
}

NOIPA int LONG_NAME()
{
	HIT_AS("_Z96a_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_"
	       "on_and_on_to_100v");
	return 1;
}

int main()
{
	double sum = 0;
	Derived derived;
	Second *second = &derived;
	First *first = &derived;
	auto lambda = [&sum](int x) { sum += x; };

	__asm__ volatile("" : "+r"(second), "+r"(first));
	for (int i = 0; i < 10; i++) {
		Pair<int, long> one = {i, i}, two = one + one;

		sum += outer::inner::add(i, 1) + outer::inner::add(1.5, 2.5);
		sum += outer::inner::add(0.5, (double)i) + anonymous(i) + two.b;
		sum += outer::inner::same(1) + outer::inner::same(2) + outer::inner::same(3);
		sum += second->second() + first->first() + LONG_NAME();
		sum += second->clone()->second();
		sum += derived.clone()->value;
		lambda(i);
	}
	printf("%g\ncalls _ZN4PairIilEplERKS0_ %lu\n", sum, plus_calls);
	hits("");
	return 0;
}
