/* SPDX-License-Identifier: MIT */
#include "watch.h"
#include "record.h"
#include "../rethook/shadow.h"
#include <linux/prctl.h>
#include <sys/syscall.h>

enum watch { WATCH_NONE, WATCH_EXIT, WATCH_PRCTL, WATCH_SYSCALL, WATCH_COUNT };

static const char *const names[WATCH_COUNT] = {
	[WATCH_EXIT] = "_exit",
	[WATCH_PRCTL] = "prctl",
	[WATCH_SYSCALL] = "syscall",
};

uint32_t watch_name(const char *name)
{
	for (uint32_t i = WATCH_EXIT; i < WATCH_COUNT; i++)
		if (str_eq(name, names[i]))
			return i;
	return WATCH_NONE;
}

void watch_entered(const struct slow_frame *f)
{
	uint64_t first = arch_argument(f, 0), second = arch_argument(f, 1);

	switch (f->info->watch) {
	case WATCH_EXIT:
		record_end((int)first);
		break;
	case WATCH_PRCTL:
		shadow_hooks.sealed |= first == PR_SET_SECCOMP;
		break;
	case WATCH_SYSCALL:
		shadow_hooks.sealed |= first == SYS_seccomp
			|| (first == SYS_prctl && second == PR_SET_SECCOMP);
		break;
	}
}
