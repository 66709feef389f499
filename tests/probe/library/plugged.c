/* SPDX-License-Identifier: MIT */
/* A library that has libftr.a in it. */
#include <ftr/ftr.h>
#include <stdlib.h>

int plugged(void);

/* How many calls of calloc(3) it sees, of one; or -errno. */
int plugged(void)
{
	struct ftr_counts counts = { 0 };
	struct ftr_probe *p;
	void *volatile memory;
	int err = ftr_attach((&(struct ftr_probe_spec){ .name = "calloc", .module = "libc.so*" }), &p);

	if (err < 0)
		return err;
	memory = calloc(1, 1);
	err = ftr_read(p, &counts);
	free(memory);
	if (!err)
		err = ftr_detach(p);
	return err ? err : (int)counts.calls;
}
