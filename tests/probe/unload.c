/* SPDX-License-Identifier: MIT */
/* A module that is unloaded takes its functions along; the probe goes on, and so does another. */
#include "check.h"
#include <dlfcn.h>
#include <errno.h>

static void *load(void **handle)
{
	*handle = dlopen("libcrypt.so.1", RTLD_NOW);
	if (!*handle) {
		puts("SKIP: no libcrypt.so.1");
		exit(77);
	}
	return dlsym(*handle, "crypt");
}

int main(void)
{
	struct ftr_probe *p, *again;
	void *handle, *function;

	load(&handle);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "crypt*" }), &p) > 0, 1);
	CHECK_INT(dlclose(handle), 0);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "crypt*" }), &again), -ENOENT);
	function = load(&handle);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = function }), &again), 1);
	(*(char *(**)(const char *, const char *))&function)("a", "ab");
	CHECK_COUNTS(again, 1, 1, 0);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_detach(again), 0);
	CHECK_INT(dlclose(handle), 0);
	puts("ok");
	return 0;
}
