/* SPDX-License-Identifier: MIT */
/* A harness with all that ftr has in use, that dies of a signal it cannot catch. */
#include "kv.h"
#include <ftr/ftr.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void nothing(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
}

int main(int argc, char **argv)
{
	const struct ftr_probe_spec spec = { .name = "kv_*", .entry = nothing, .ret = nothing };
	struct ftr_probe *probe, *fault;
	struct kv *kv;

	if (argc != 2 || ftr_attach(&spec, &probe) < 0
		|| ftr_fail("read", (uint64_t)-1, 5, 1000, 0, &fault) < 0
		|| !ftr_expect("kv_put", "w(pzz)") || kv_open(argv[1], &kv) || kv_put(kv, "a", "1")
		|| kv_sync(kv)) {
		printf("killed: %s\n", ftr_error());
		return 1;
	}
	raise(SIGKILL);
	return 1;
}
