/* SPDX-License-Identifier: MIT */
/*
 * Wrappers: of setjmp and vfork as the program's own assembler functions, of getcontext used as a
 * loop, of malloc by dlsym(RTLD_NEXT), and a function that edits its own return address.
 *
 * flags: -O2
 * flags: -O0
 * flags: -O2 -fno-pie -no-pie
 * needs: x86_64
 * expect: malloc_wrapper calls=10
 * expect: loops calls=10
 * expect: after calls=70
 * maybe: skip_next calls=20
 * maybe: my_setjmp calls=10
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static jmp_buf env;

/* A tail call of setjmp: returns twice, from the caller's point of view. */
int my_setjmp(jmp_buf buf) __attribute__((returns_twice));
/* Returns one byte behind its return address for each call of it. */
long skip_next(void);
extern unsigned long skip_next_calls, my_setjmp_calls;
__asm__(".text\n.globl my_setjmp, skip_next\n.type my_setjmp, @function\n"
	".type skip_next, @function\n"
	"my_setjmp:\n\tincq my_setjmp_calls(%rip)\n\tjmp _setjmp@PLT\n"
	".size my_setjmp, .-my_setjmp\n"
	"skip_next:\n\tincq skip_next_calls(%rip)\n\tadd $2, (%rsp)\n\tmov $7, %eax\n\tret\n"
	".size skip_next, .-skip_next\n"
	".bss\n.globl my_setjmp_calls, skip_next_calls\nmy_setjmp_calls: .zero 8\n"
	"skip_next_calls: .zero 8\n.text\n");

static NOIPA void after(void)
{
	HIT();
}

static NOIPA void *malloc_wrapper(size_t size)
{
	void *(*next)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");

	HIT();
	CHECK(next);
	return next(size);
}

static NOIPA int loops(int times)
{
	ucontext_t context;
	volatile int done = 0;

	HIT();
	getcontext(&context);
	after();
	if (++done < times)
		setcontext(&context);
	return done;
}

static NOIPA int skips(void)
{
	long value;

	/* the two bytes behind the call are a trap */
	__asm__ volatile("sub $128, %%rsp\n\tcall skip_next\n\tud2\n\tadd $128, %%rsp"
			 : "=a"(value)
			 :
			 : "memory", "cc");
	return (int)value;
}

int main(void)
{
	for (volatile int i = 0; i < 10; i++) {
		void *memory = malloc_wrapper(100);
		int status;
		pid_t pid;

		free(memory);
		CHECK(loops(5) == 5);
		CHECK(skips() == 7 && skips() == 7);
		if (my_setjmp(env) == 0)
			longjmp(env, 1);
		after();
		pid = vfork();
		if (pid == 0)
			_exit(5);
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5);
		after();
	}
	printf("calls skip_next %lu\ncalls my_setjmp %lu\n", skip_next_calls, my_setjmp_calls);
	hits("");
	return 0;
}
