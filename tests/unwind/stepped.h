/* SPDX-License-Identifier: MIT */
/* The marks between which step.c follows a program instruction by instruction. */
#ifndef UNWIND_STEPPED_H
#define UNWIND_STEPPED_H

#define STEPS_BEGIN 0x5354455042454731ul
#define STEPS_END   0x53544550454e4431ul

#define STEPS_ALL  0 /* look at every instruction */
#define STEPS_OURS 1 /* not at those of libraries */
#define STEPS_SOME 2 /* as STEPS_OURS, and of the tracer's C code one in STEPS_FEW */
#define STEPS_FEW  499

/*
 * Follow this thread from here on. What [@caller, @caller_end) calls is checked; it is on the
 * stack already, and this may be run in it or in a function it called.
 */
static inline __attribute__((always_inline)) void begin_steps(const char *name, const void *caller,
	const void *caller_end, unsigned long which)
{
	register const void *end __asm__("r9") = caller_end;

	__asm__ volatile("int3" ::"a"(STEPS_BEGIN), "D"(name), "S"(caller), "d"(which), "r"(end)
			 : "memory");
}

static inline __attribute__((always_inline)) void end_steps(void)
{
	__asm__ volatile("int3" ::"a"(STEPS_END) : "memory");
}

#endif
