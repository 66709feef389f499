/* SPDX-License-Identifier: MIT */
#include "rcu.h"
#include "thread.h"
#include "../arch/sys.h"
#include <linux/membarrier.h>
#include <time.h>

#define WAIT_NS	  50000
#define WAITS_MAX 20000 /* more than a second */
#define SPINS_MAX 100	/* before that: sections are short, and sleep is long where all processors work */

uint64_t rcu_phase = 1;
bool rcu_needs_fence;

static bool barrier(int command)
{
	return sys_call(SYS_membarrier, command, 0, 0) == 0;
}

void rcu_prepare(void)
{
	rcu_needs_fence = !barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static bool is_reading(const struct shadow_thread *t, uint64_t phase)
{
	uint64_t reading = __atomic_load_n(&t->reading, __ATOMIC_ACQUIRE);

	return reading && reading < phase;
}

/*
 * A reader that begins from here on either has its phase stored before the barrier, and is seen
 * below, or reads after it what has been published.
 */
bool rcu_synchronize(void)
{
	uint64_t phase = __atomic_add_fetch(&rcu_phase, 1, __ATOMIC_SEQ_CST);
	struct shadow_thread *self = shadow_self();
	int waits = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!rcu_needs_fence && !barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
		rcu_prepare(); /* in a forked child */
		barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	}
	for (struct shadow_thread *t = thread_first(); t; t = thread_next(t))
		while (t != self && is_reading(t, phase) && !thread_is_gone(t)) {
			struct timespec wait = { 0, WAIT_NS };

			if (++waits < SPINS_MAX)
				continue;
			if (waits > WAITS_MAX)
				return false;
			sys_call(SYS_nanosleep, &wait, NULL);
		}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return true;
}
