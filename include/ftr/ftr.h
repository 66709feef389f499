/* SPDX-License-Identifier: MIT */
/*
 * ftr from inside the traced program.
 *
 *	#include <ftr/ftr.h>
 *	#include <stdio.h>
 *	#include <stdlib.h>
 *
 *	int main(void)
 *	{
 *		struct ftr_counts before, after;
 *
 *		if (!ftr_read_counts || ftr_read_counts((void *)work, &before))
 *			return 77;			// not traced
 *		work();
 *		ftr_read_counts((void *)work, &after);
 *		if (after.calls != before.calls + 1)
 *			abort();
 *	}
 *
 *	cc -g app.c -o app && LD_PRELOAD=libftr.so ./app
 *
 * All functions may be called from any thread and from signal handlers, make no system call, take
 * no lock and leave errno alone. They are weak: a program that is not preloaded or linked with the
 * library sees null pointers.
 */
#ifndef FTR_FTR_H
#define FTR_FTR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What has been counted in this process so far, by all its threads. A forked child begins at 0. */
struct ftr_counts {
	uint64_t calls;	   /* entries */
	uint64_t returned; /* calls that came back, or ended in a jump to another function */
	uint64_t unwound;  /* calls left by an exception, a longjmp or the end of their thread */
};

/*
 * Read the counts of the function that begins at address @function. Calls in progress on other
 * threads may be in or not; calls >= returned + unwound holds always. In a program that is not
 * position independent, the address of a library's function may be that of a stub of the program.
 *
 * 0; -ENOENT: no traced function begins there; -ENODATA: its entries alone are recorded: calls is
 * filled in, the others are 0; -EINVAL: @counts is null.
 */
int ftr_read_counts(const void *function, struct ftr_counts *counts) __attribute__((weak));

/* The library's version, "0.1.0"; a constant string. */
const char *ftr_version(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
