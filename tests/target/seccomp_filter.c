/* SPDX-License-Identifier: MIT */
/*
 * System calls forbidden after the start, all but write and exit: traced functions make none.
 *
 * needs: kernel
 * flags: -O2
 * flags: -O0
 * expect: before calls=10
 * expect: within calls=1000
 * expect: first_time calls=1
 */
#define _GNU_SOURCE
#include "target.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static NOIPA void before(void)
{
	HIT();
}

static NOIPA int within(int n)
{
	HIT();
	return n ? OPAQUE(within)(n - 1) + 1 : 0;
}

static NOIPA void first_time(void)
{
	HIT();
}

static void forbid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(void)
{
	for (int i = 0; i < 10; i++)
		before();
	hits("");
	forbid();
	within(999);
	first_time();
	syscall(SYS_write, 1, "done\n", 5);
	return 0;
}
