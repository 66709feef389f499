/* SPDX-License-Identifier: MIT */
/*
 * An exception nobody catches: the terminate handler runs with every frame still there, and the
 * program dies of SIGABRT.
 *
 * flags: -O2
 * flags: -O0
 * flags: clang -O2
 * exit: signal 6
 * expect: thrower calls=1 returned=0
 * expect: outer calls=1 returned=0
 * expect: on_terminate calls=1 returned=0 open=1
 * expect: plain calls=1
 */
#include "target.h"

#include <exception>

static NOIPA void plain(void)
{
	HIT();
}

static NOIPA void on_terminate(void)
{
	HIT();
	plain();
	try {
		throw;
	} catch (int value) {
		printf("terminate with %d\n", value);
	}
	hits("");
	abort();
}

static NOIPA int thrower(int value)
{
	HIT();
	throw value;
}

static NOIPA int outer(int value)
{
	HIT();
	return thrower(value) + 1;
}

int main()
{
	std::set_terminate(on_terminate);
	return outer(5);
}
