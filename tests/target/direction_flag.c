/* SPDX-License-Identifier: MIT */
/*
 * The direction flag is set when a traced function is entered and left, also by the first call of a
 * new thread.
 *
 * flags: -O2 -pthread
 * needs: x86_64
 * expect: backwards calls=21
 */
#include "target.h"

#include <pthread.h>

extern unsigned long backwards_calls;
__asm__(".text\n.type backwards, @function\nbackwards:\n\tincq backwards_calls(%rip)\n\t"
	"pushf\n\tpop %rax\n\tret\n.size backwards, .-backwards\n"
	".bss\n.globl backwards_calls\nbackwards_calls: .zero 8\n.text\n");

static void *thread_main(void *arg)
{
	unsigned long inside, behind;

	__asm__ volatile("sub $128, %%rsp\n\tstd\n\tcall backwards\n\tpushf\n\tcld\n\tpop %1\n\t"
			 "add $128, %%rsp"
			 : "=&a"(inside), "=r"(behind)
			 :
			 : "memory", "cc");
	CHECK((inside & 0x400) && (behind & 0x400));
	return NULL;
}

int main(void)
{
	pthread_t thread;

	thread_main(NULL);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_join(thread, NULL);
	}
	printf("calls backwards %lu\n", backwards_calls);
	return 0;
}
