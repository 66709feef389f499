/* SPDX-License-Identifier: MIT */
/*
 * A library that libftr.a is a part of may be closed after it has attached: what stays patched leads
 * to code that is still there, also at the end of the process. It does not trace, whatever is preloaded.
 * Usage: plugin LIBRARY
 */
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
	int (*plugged)(void);
	void *handle;

	CHECK_INT(argc, 2);
	for (int i = 0; i < 3; i++) {
		handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		CHECK(handle, "%s", dlerror());
		*(void **)&plugged = dlsym(handle, "plugged");
		CHECK_INT(plugged(), 1);
		CHECK_INT(dlclose(handle), 0);
	}
	puts("ok");
	return 0;
}
