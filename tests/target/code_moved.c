/* SPDX-License-Identifier: MIT */
/*
 * A program that copies one of its functions elsewhere and runs the copy, and rewrites another in
 * place; it asks for these to be left alone. Code made at run time calls traced functions.
 *
 * flags: -O2
 * flags: -O0
 * flags: -O2 -fno-pie -no-pie
 * needs: x86_64
 * env: FTR_FUNCTIONS=*,!copied,!rewritten
 * expect: called_from_made_code calls=200
 * absent: copied rewritten
 */
#define _GNU_SOURCE
#include "target.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int copied(int x);
int rewritten(void);
extern char copied_end[], rewritten_value[];
__asm__(".text\n.balign 16\n.globl copied, copied_end, rewritten, rewritten_value\n"
	".type copied, @function\n.type rewritten, @function\n"
	"copied:\n\tlea 3(%rdi,%rdi), %eax\n\tret\n.size copied, .-copied\ncopied_end:\n"
	".balign 16\nrewritten:\n\t.byte 0xb8\nrewritten_value:\n\t.long 1\n\tret\n"
	".size rewritten, .-rewritten\n.balign 16\n");

static NOIPA long called_from_made_code(long x)
{
	HIT();
	return x + 5;
}

/* mov $f, %rax; sub $8, %rsp; call *%rax; add $8, %rsp; ret */
static void make_call(unsigned char *to, long (*f)(long))
{
	memcpy(to, "\x48\xb8", 2);
	memcpy(to + 2, &f, 8);
	memcpy(to + 10, "\x48\x83\xec\x08\xff\xd0\x48\x83\xc4\x08\xc3", 11);
}

int main(void)
{
	long page = sysconf(_SC_PAGESIZE), sum = 0;
	unsigned char *made =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = (char *)((unsigned long)rewritten & -page);

	memcpy(made, (void *)copied, copied_end - (char *)copied);
	make_call(made + 64, called_from_made_code);
	CHECK(mprotect(made, page, PROT_READ | PROT_EXEC) == 0);
	for (int i = 0; i < 200; i++) {
		sum += ((int (*)(int))made)(i) + copied(i);
		sum += ((long (*)(long))(made + 64))(i);
	}
	CHECK(mprotect(text, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
	for (int i = 0; i < 50; i++) {
		memcpy(rewritten_value, &i, 4);
		CHECK(rewritten() == i);
	}
	CHECK(mprotect(text, 2 * page, PROT_READ | PROT_EXEC) == 0);
	printf("%ld\n", sum);
	hits("");
	return 0;
}
