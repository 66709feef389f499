/* SPDX-License-Identifier: MIT */
/* Probes of the library on a row's function, attached while it is measured. */
#include "bench.h"
#include <dlfcn.h>
#include <ftr/ftr.h>
#include <stdio.h>

#define PROBES_MAX 10

static struct ftr_probe *probes[PROBES_MAX];
static unsigned nprobes;

#if defined(__x86_64__) || defined(__aarch64__)
__attribute__((target("general-regs-only")))
#endif
__attribute__((noinline)) static void handler(struct ftr_call *call, void *data)
{
	(void)call;
	__asm__ volatile("" ::"r"(data) : "memory");
}

/* One that does use vector registers. */
static void vector_handler(struct ftr_call *call, void *data)
{
	static volatile double number = 1;

	(void)call;
	(void)data;
	number = number * number;
}

typedef int attach_function(const struct ftr_probe_spec *spec, size_t size, struct ftr_probe **probe);

static void *library_symbol(const char *name)
{
	static void *library;

	if (!library)
		library = dlopen(bench.library, RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, name) : NULL;
}

const char *handlers_attach(const struct row *row)
{
	attach_function *attach = (attach_function *)library_symbol("ftr_attach_sized");
	ftr_handler *called = row->handlers & HANDLERS_VECTORS ? vector_handler : handler;
	const struct ftr_probe_spec spec = {
		.function = (const void *)row->function,
		.entry = row->handlers & HANDLERS_ENTRY ? called : NULL,
		.ret = row->handlers & HANDLERS_RETURN ? called : NULL,
	};

	if (!attach)
		return dlerror();
	for (nprobes = 0; nprobes < row->nprobes; nprobes++)
		if (attach(&spec, sizeof(spec), &probes[nprobes]) != 1) {
			handlers_detach();
			return ((const char *(*)(void))library_symbol("ftr_error"))();
		}
	return NULL;
}

void handlers_detach(void)
{
	int (*detach)(struct ftr_probe *) = library_symbol("ftr_detach");

	while (nprobes)
		detach(probes[--nprobes]);
}

/* ---- what a list costs against a direct call ---- */

struct list {
	uint32_t count;
	struct {
		ftr_handler *handler;
		void *data;
	} hooks[PROBES_MAX];
};
static struct list one = { 1, { { handler, &one } } };
static struct list *volatile current = &one;

void handlers_call_direct(void)
{
	handler(NULL, &one);
}

void handlers_call_list(void)
{
	const struct list *list = current;

	for (uint32_t i = 0; i < list->count; i++)
		list->hooks[i].handler(NULL, list->hooks[i].data);
}
