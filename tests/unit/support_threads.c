/* SPDX-License-Identifier: MIT */
#include "support_threads.h"
#include "rethook/mirror.h"
#include "rethook/shadow.h"

static struct func_record record;

static bool attach(struct shadow_thread *thread)
{
	__atomic_store_n(&thread->records[0], (uint64_t)&record, __ATOMIC_RELEASE);
	return false;
}

static void renew(struct shadow_thread *thread)
{
	(void)thread;
}

static void lost_call(void)
{
}

static bool borrowed(void)
{
	return false;
}

void threads_begin(void)
{
	shadow_hooks = (struct shadow_hooks){ .mode = MODE_COUNT, .attach = attach, .renew = renew,
		.lost_call = lost_call, .borrowed = borrowed };
	mirror_setup(MODE_COUNT);
}
