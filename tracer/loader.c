/* SPDX-License-Identifier: MIT */
/*
 * No function of libc takes the loader's lock for its caller. But dlsym(3) of glibc holds it while
 * an indirect function (STT_GNU_IFUNC) says which code stands for it, and asks again each time.
 */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include "loader.h"
#include <dlfcn.h>
#include <stddef.h>

/* volatile: dlsym() is declared as a function that calls nobody here. */
static __thread volatile struct {
	void (*work)(void *arg);
	void *arg;
} waiting __attribute__((tls_model("initial-exec")));

static void run_waiting(void)
{
	void (*work)(void *arg) = waiting.work;

	waiting.work = NULL;
	if (work)
		work(waiting.arg);
}

static void nothing(void)
{
}

static void (*choose(void))(void)
{
	run_waiting();
	return nothing;
}

/* Found by its name only; a program that is linked with libftr.a exports it (cmake/static.cmake). */
__attribute__((visibility("default"), ifunc("choose"))) void ftr_loader_lock(void);

void loader_locked(void (*work)(void *arg), void *arg)
{
	waiting.arg = arg;
	waiting.work = work;
	dlsym(RTLD_DEFAULT, "ftr_loader_lock");
	run_waiting(); /* unless it has been */
}
