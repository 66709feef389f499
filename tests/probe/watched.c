/* SPDX-License-Identifier: MIT */
/*
 * Functions that the library watches for its own sake can have probes, at their entries, and are
 * watched nevertheless, before and after.
 */
#define _GNU_SOURCE 1
#include "check.h"
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_entry(struct ftr_call *call, void *data)
{
	*(uint64_t *)data += ftr_argument_word(call, 0);
}

static void allow_all(void)
{
	static struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	static const struct sock_fprog program = { 1, code };

	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		puts("SKIP: no seccomp filters");
		exit(77);
	}
}

/* The child's status is what its handler makes of it. */
static void end_with(struct ftr_call *call, void *data)
{
	(void)data;
	*(int *)ftr_argument(call, "i", 0) += 1;
}

static void ends_of_children(void)
{
	struct ftr_probe *probe = attach(dlsym(RTLD_DEFAULT, "_exit"), end_with, NULL, NULL);
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(5);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6, "status %x", (unsigned)status);
	CHECK_INT(ftr_detach(probe), 0);
}

int main(void)
{
	const void *calls = dlsym(RTLD_DEFAULT, "syscall"), *options = dlsym(RTLD_DEFAULT, "prctl");
	struct ftr_probe *counter, *handler, *none;
	struct ftr_counts counts;
	unsigned char before[16];
	uint64_t numbers = 0;

	need_handlers();
	memcpy(before, calls, sizeof(before));
	counter = attach(calls, NULL, NULL, NULL);
	handler = attach(calls, on_entry, NULL, &numbers);
	CHECK_INT(syscall(SYS_getpid), getpid());
	CHECK_INT(syscall(SYS_getppid), getppid());
	CHECK_INT(ftr_read(counter, &counts), 0);
	CHECK_INT(counts.calls, 2);
	CHECK_INT(numbers, SYS_getpid + SYS_getppid);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = calls, .ret = on_entry }), &none),
		-ENODATA);
	CHECK_INT(ftr_detach(counter), 0);
	CHECK_INT(ftr_detach(handler), 0);
	CHECK(!memcmp(before, calls, sizeof(before)));
	ends_of_children();
	counter = attach(options, NULL, NULL, NULL);
	allow_all();
	CHECK_INT(ftr_read(counter, &counts), 0);
	CHECK_INT(counts.calls, 2);
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = calls }), &none), -EPERM);
	puts("ok");
	return 0;
}
