/* SPDX-License-Identifier: MIT */
/*
 * What the programs of this directory share: functions that count their own calls, so that the
 * expected numbers are proven without a tracer.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdio.h>
#include <stdlib.h>

/* One real function with an entry of its own at every optimisation level. */
#ifdef __clang__
#define NOIPA __attribute__((noinline))
#else
#define NOIPA __attribute__((noipa))
#endif

/* @f for a call that the compiler cannot turn into a loop, clone or fold. */
#define OPAQUE(f)                                                                                  \
	__extension__({                                                                            \
		__typeof__(f) *opaque_ = &(f);                                                     \
		__asm__ volatile("" : "+r"(opaque_));                                              \
		opaque_;                                                                           \
	})

struct hit {
	const char *name;
	unsigned long calls;
};

extern struct hit __start_hit_counts[] __attribute__((weak));
extern struct hit __stop_hit_counts[] __attribute__((weak));

/* Atomic additions are loops here: not one to a function's entry, which would be refused for it. */
#if defined(__powerpc64__)
#define HIT_BEGIN() __asm__ volatile("nop")
#else
#define HIT_BEGIN() ((void)0)
#endif

/* First statement of a function that counts itself. */
#define HIT() HIT_AS(__func__)
#define HIT_AS(text)                                                                               \
	do {                                                                                       \
		static struct hit hit_ __attribute__((section("hit_counts"), used)) = {text, 0};         \
		HIT_BEGIN();                                                                       \
		__atomic_fetch_add(&hit_.calls, 1, __ATOMIC_RELAXED);                              \
	} while (0)

/* Print a line for each counter, @who ("" or "child:") before its name. */
__attribute__((unused)) static NOIPA void hits(const char *who)
{
	struct hit *hit = __start_hit_counts;

	for (; hit < __stop_hit_counts; hit++)
		if (hit->calls)
			printf("calls %s%s %lu\n", who, hit->name, hit->calls);
	fflush(stdout);
}

/* In a forked child: begin at zero, as its report does. */
__attribute__((unused)) static NOIPA void hits_reset(void)
{
	struct hit *hit = __start_hit_counts;

	for (; hit < __stop_hit_counts; hit++)
		hit->calls = 0;
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: wrong: %s\n", __FILE__, __LINE__, #condition);              \
			fflush(stdout);                                                            \
			_Exit(99);                                                                 \
		}                                                                                  \
	} while (0)

#endif
