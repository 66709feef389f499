/* SPDX-License-Identifier: MIT */
/*
 * What the system refuses: each row is a process of its own, without the tracer, from which one thing
 * has been taken. Whatever is asked for then fails with the error and the words of the row, and the
 * functions are as they were.
 */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct row {
	const char *name;
	int call; /* that fails, with -EACCES, */
	int argument; /* if this argument, from 1, has all @bits; 0: always */
	unsigned bits;
	int limit; /* else a limit, and what it is */
	int most;
	int err;
	const char *words;
} rows[] = {
	{ "memfd", SYS_memfd_create, 0, 0, 0, 0, -EPERM, "memfd_create(2) is not allowed" },
	{ "executable", SYS_mmap, 3, PROT_EXEC, 0, 0, -EPERM, "new executable memory is not allowed" },
	{ "proc", SYS_openat, 0, 0, 0, 0, -EIO, "/proc/self/maps cannot be read" },
	{ "wiped", SYS_madvise, 0, 0, 0, 0, -ENOSYS, "MADV_WIPEONFORK" },
	{ "descriptors", -1, 0, 0, RLIMIT_NOFILE, 3, -EMFILE, "no file descriptor is left" },
	{ "size", -1, 0, 0, RLIMIT_FSIZE, 100, -EPERM, "RLIMIT_FSIZE" },
	{ "memory", -1, 0, 0, RLIMIT_AS, 1, -ENOMEM, "no memory" },
};

NOINLINE static int watched(int n)
{
	return n * 3 + 1;
}

static void entered(struct ftr_call *call, void *data)
{
	(void)call;
	++*(int *)data;
}

static void ignore(const char *message, void *data)
{
	(void)message;
	(void)data;
}

static void filter(const struct row *row)
{
	unsigned place = offsetof(struct seccomp_data, args[row->argument ? row->argument - 1 : 0]);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)row->call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, row->bits),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	/* The library sees no function of the program's before there is a probe. */
	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void take_away(const struct row *row)
{
	if (row->call >= 0)
		filter(row);
	else
		CHECK_INT(setrlimit(row->limit, &(struct rlimit){ row->most, row->most }), 0);
}

static void try(const struct row *row)
{
	const struct ftr_probe_spec spec = { .function = watched };
	struct ftr_probe *p;
	int hits = 0;

	take_away(row);
	errno = E2BIG;
	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = watched, .entry = entered,
			    .data = &hits }), &p), row->err);
	CHECK(strstr(ftr_error(), row->words), "%s", ftr_error());
	CHECK_INT(ftr_attach(&spec, &p), row->err);
	CHECK(strstr(ftr_error(), row->words), "%s", ftr_error());
	CHECK(ftr_fail("watched", 0, 0, 0, 0, &p) < 0);
	ftr_expect("watched", NULL);
	CHECK_INT(errno, E2BIG);
	CHECK_INT(watched(2), 7);
	CHECK_INT(hits, 0);
	CHECK(ftr_verify(ignore, NULL) != 0);
}

/* In a program of its own: the tracer would have needed what is taken away. */
static void start(const char *program, const struct row *row)
{
	char *const arguments[] = { (char *)program, (char *)row->name, NULL };
	char *const environment[] = { NULL };
	pid_t child = fork();
	int status;

	if (!child) {
		execve("/proc/self/exe", arguments, environment);
		_exit(127);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(status == 0, "%s: status 0x%x", row->name, status);
}

int main(int argc, char **argv)
{
	if (is_emulated()) {
		puts("SKIP: an emulator has neither seccomp filters nor limits of memory");
		return 77;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (argc < 2)
			start(argv[0], &rows[i]);
		else if (!strcmp(argv[1], rows[i].name))
			try(&rows[i]);
	}
	puts("ok");
	return 0;
}
