/* SPDX-License-Identifier: MIT */
/* A seccomp filter that ends a process for any system call but what a test ends with. */
#ifndef PROBE_SEALED_H
#define PROBE_SEALED_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

static struct sock_filter no_calls_code[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static const struct sock_fprog no_calls = { sizeof(no_calls_code) / sizeof(no_calls_code[0]),
	no_calls_code };

#endif
