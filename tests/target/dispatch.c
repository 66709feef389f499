/* SPDX-License-Identifier: MIT */
/*
 * Jump tables and computed gotos whose targets may lie in a function's first bytes, and threaded
 * interpreters.
 *
 * flags: -O2
 * flags: -Os
 * flags: -O0
 * flags: -O1
 * flags: -O3
 * flags: clang -O2
 * flags: -O2 -fno-pie -no-pie
 * flags: -O2 -fno-jump-tables
 * expect: classify calls=1000
 * expect: interpret calls=100
 * expect: small_switch calls=1000
 * maybe: only_switch calls=1000
 * maybe: only_goto calls=1000
 */
#include "target.h"

static unsigned long only_switch_calls, only_goto_calls;
static volatile int sink;

static NOIPA int classify(int x)
{
	HIT();
	switch (x) {
	case 0:
		return 100;
	case 1:
		return sink + 5;
	case 2:
		return 77;
	case 3:
		return sink * 3;
	case 4:
		sink = 0;
		return 1;
	case 5:
		return -3;
	case 6:
		return 9;
	default:
		return x;
	}
}

static NOIPA int small_switch(int x)
{
	HIT();
	switch (x & 3) {
	case 0:
		return 11;
	case 1:
		sink = 0;
		break;
	case 2:
		return sink;
	}
	return x;
}

/* Nothing but a jump table: its first instructions are the bounds check and the jump. */
NOIPA void only_switch(int x)
{
	switch (x) {
	case 0:
		sink = 5;
		break;
	case 1:
		sink = 3;
		break;
	case 2:
		sink = 8;
		break;
	case 3:
		sink = 1;
		break;
	case 4:
		sink = 9;
		break;
	case 5:
		only_switch_calls += 0;
		break;
	}
}

NOIPA void only_goto(unsigned x)
{
	static const void *const where[] = {&&one, &&two, &&three};

	goto *where[x % 3];
one:
	sink = 1;
	return;
two:
	sink = 2;
	return;
three:
	sink = 3;
}

static NOIPA int interpret(const char *code)
{
	static const void *const where[] = {&&add, &&sub, &&twice, &&end};
	int value = 0;

	HIT();
	goto *where[(int)*code];
add:
	value++;
	goto *where[(int)*++code];
sub:
	value -= 3;
	goto *where[(int)*++code];
twice:
	value *= 2;
	goto *where[(int)*++code];
end:
	return value;
}

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 1000; i++) {
		sum += classify(i % 9) + small_switch(i);
		only_switch(i % 8);
		only_switch_calls++;
		sum += sink;
		only_goto(i);
		only_goto_calls++;
		sum += sink;
	}
	for (int i = 0; i < 100; i++)
		sum += interpret("\0\0\2\1\2\0\3");
	printf("%ld\n", sum);
	printf("calls only_switch %lu\ncalls only_goto %lu\n", only_switch_calls, only_goto_calls);
	hits("");
	return 0;
}
