/* SPDX-License-Identifier: MIT */
/*
 * An exception that meets a noexcept function: std::terminate's own message and SIGABRT.
 *
 * flags: -O2
 * flags: -O0
 * flags: clang -O2
 * exit: signal 6
 * expect: thrower calls=1 returned=0
 * expect: barrier calls=1 returned=0 open=1
 */
#include "target.h"

#include <stdexcept>

static NOIPA int thrower(void)
{
	HIT();
	throw std::runtime_error("nobody wants me");
}

static NOIPA int barrier(void) noexcept
{
	HIT();
	return thrower() + 1;
}

int main()
{
	printf("calls thrower 1\ncalls barrier 1\n");
	fflush(stdout);
	return barrier();
}
