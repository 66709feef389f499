/* SPDX-License-Identifier: MIT */
/* No test framework at all. */
#undef NDEBUG
#include "kv.h"
#include <assert.h>
#include <errno.h>
#include <ftr/ftr.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	struct ftr_expect *stored = ftr_expect("kv_put", "w(pzz)");
	struct ftr_expect *syncs = ftr_expect("kv_sync", "w(p)");
	struct ftr_probe *full;
	struct kv *kv;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/kv-assert-%d", (int)getpid());
	ftr_expect_calls(stored, 2, 2);
	ftr_expect_integer(stored, FTR_MUST, FTR_RESULT, 0);
	ftr_expect_order(0, stored, stored, syncs);
	assert(kv_open(path, &kv) == 0);
	assert(kv_put(kv, "a", "1") == 0);
	assert(kv_put(kv, "b", "2") == 0);
	assert(kv_close(kv) == 0);
	assert(ftr_verify(NULL, NULL) == 0);

	assert(ftr_fail("open", (uint64_t)-1, EMFILE, 1, 1, &full) > 0);
	assert(kv_open(path, &kv) == -EMFILE);
	assert(ftr_detach(full) == 0);
	unlink(path);
	puts("ok");
	return 0;
}
