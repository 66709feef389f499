/* SPDX-License-Identifier: MIT */
/*
 * Every register and the flags, checked at a function's entry and after its return, also in a new
 * thread's first call (which takes the slow path) and from a stack without the usual alignment.
 *
 * flags: -O2 -pthread registers.S
 * flags: -O2 -pthread registers.S -DFLAGS_LIVE
 * flags: -O2 -pthread -fno-pie -no-pie registers.S
 * needs: x86_64
 * expect: register_callee calls=1013
 * expect: check_registers calls=1013
 */
#include "target.h"

#include <pthread.h>

int check_registers(void);
extern unsigned long register_callee_calls;

static void *thread_main(void *arg)
{
	return (void *)(long)check_registers();
}

static int misaligned(void)
{
	int result;

	__asm__ volatile("mov %%rsp, %%rbx\n\tand $-16, %%rsp\n\tsub $136, %%rsp\n\t"
			 "call check_registers\n\tmov %%rbx, %%rsp"
			 : "=a"(result)
			 :
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc",
			 "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
			 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return result;
}

int main(void)
{
	pthread_t thread;
	void *result;
	int wrong = 0;

	for (int i = 0; i < 1000 && !wrong; i++)
		wrong = check_registers();
	printf("wrong register: %d\n", wrong);
	printf("misaligned stack: %d\n", misaligned());
	for (int i = 0; i < 12; i++) {
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_join(thread, &result);
		CHECK((long)result == 0);
	}
	printf("calls register_callee %lu\n", register_callee_calls);
	return wrong;
}
