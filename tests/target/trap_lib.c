/* SPDX-License-Identifier: MIT */
/* The library of trap_late.c: functions of one and two bytes, side by side. */
__asm__(".text\n.balign 16\n.globl short_one, short_two\n.type short_one, @function\n"
	".type short_two, @function\nshort_one:\n\tret\n.size short_one, .-short_one\n"
	"short_two:\n\tnop\n\tret\n.size short_two, .-short_two\n.globl third\n"
	".type third, @function\nthird:\n\tret\n.size third, .-third\n");
