/* SPDX-License-Identifier: MIT */
/* The library of late_large.c: a named function and very many that only unwind tables know. */
#if defined(__powerpc__)
#define RETURN "blr"
#else
#define RETURN "ret"
#endif

int large_work(int x);

__asm__(".text\n"
	".rept 300000\n"
	".cfi_startproc\n"
	"nop\n nop\n nop\n nop\n nop\n" RETURN "\n"
	".cfi_endproc\n"
	".endr\n");

static volatile int sum;

__attribute__((noinline, noipa)) int large_work(int x)
{
	sum += x;
	return sum;
}
