/* SPDX-License-Identifier: MIT */
/*
 * Runs a program with libftr.so and lets one of the system calls that are made for the tracer
 * fail: those issued from the library's own code, and those of the loader while it opens an image
 * of detours. They are numbered from 1 on as they come, in all threads and children.
 *
 *   inject LIBRARY LOG NUMBER once|on COMMAND...
 *
 * Call NUMBER fails (0: none), with `on` all later ones of its kind too. LOG gets a line
 * "NUMBER KIND" for each, and " failed" behind those that did. Ends as the program does.
 *
 * The kernel hands the calls over: seccomp_unotify(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct kind {
	int nr;
	const char *name;
	int error; /* 0: only watched */
} kinds[] = {
	{SYS_openat, "openat", EMFILE},
	{SYS_mmap, "mmap", ENOMEM},
	{SYS_munmap, "munmap", ENOMEM},
	{SYS_mprotect, "mprotect", ENOMEM},
	{SYS_madvise, "madvise", ENOMEM},
	{SYS_mincore, "mincore", EAGAIN},
	{SYS_brk, "brk", ENOMEM},
	{SYS_ftruncate, "ftruncate", EIO},
	{SYS_truncate, "truncate", EIO},
	{SYS_fallocate, "fallocate", ENOSPC},
	{SYS_memfd_create, "memfd_create", ENFILE},
	{SYS_fcntl, "fcntl", EMFILE},
	{SYS_read, "read", EIO},
	{SYS_pread64, "pread64", EIO},
	{SYS_write, "write", EIO},
	{SYS_pwrite64, "pwrite64", ENOSPC},
	{SYS_fstat, "fstat", EIO},
	{SYS_newfstatat, "newfstatat", EIO},
	{SYS_mkdirat, "mkdirat", EACCES},
	{SYS_readlinkat, "readlinkat", EACCES},
	{SYS_unlinkat, "unlinkat", EACCES},
	{SYS_getcwd, "getcwd", ENOENT},
	{SYS_prlimit64, "prlimit64", EPERM},
	{SYS_process_vm_readv, "process_vm_readv", EPERM},
	{SYS_close, "close", 0},
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct {
	const char *library;
	FILE *log;
	unsigned number, last;
	bool on;
	int failing; /* the kind of the call that has failed, when later ones are to fail as well */
	uint32_t loading; /* the task whose loader opens an image, 0: none does */
	struct {
		uint64_t pid, lo, hi;
	} code; /* the library's, in the task that made the last call */
} state;

__attribute__((noreturn, format(printf, 1, 2))) static void stop(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("inject: ", stderr);
	vfprintf(stderr, format, ap);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(125);
}

/* ---- the program's side ---- */

static void send_descriptor(int channel, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(fd))] = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	*header = (struct cmsghdr){CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(channel, &message, 0) != 1)
		stop("sendmsg");
}

/* Ask about the calls of `kinds`. Returns the descriptor on which the kernel asks. */
static int install_filter(void)
{
	struct sock_filter code[3 + NKINDS + 1];
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < NKINDS; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kinds[i].nr, (uint8_t)(NKINDS - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		stop("no new privileges");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		&(struct sock_fprog){(unsigned short)n, code});
}

static void run_program(int channel, char **command)
{
	int fd;

	/* Where things are decides how many calls it takes to read and use the map of memory. */
	personality(ADDR_NO_RANDOMIZE);
	setenv("LD_PRELOAD", state.library, 1);
	fd = install_filter();
	if (fd < 0)
		stop("seccomp");
	send_descriptor(channel, fd);
	execv(command[0], command);
	stop("%s", command[0]);
}

/* ---- ours ---- */

static int receive_descriptor(int channel)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space)};
	int fd;

	if (recvmsg(channel, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Note in state.code where the library's code is in a task. The program does not exec. */
static void find_code(uint32_t pid)
{
	char path[64], line[1024];
	unsigned long lo, hi;
	FILE *maps;

	state.code.pid = state.code.lo = state.code.hi = 0;
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps && !state.code.pid && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && strstr(line, " r-xp ") &&
			strstr(line, state.library)) {
			state.code.pid = pid;
			state.code.lo = lo;
			state.code.hi = hi;
		}
	}
	if (maps)
		fclose(maps);
}

static bool in_library(uint32_t pid, uint64_t ip)
{
	if (state.code.pid != pid)
		find_code(pid);
	return ip >= state.code.lo && ip < state.code.hi;
}

static bool is_image(uint32_t pid, uint64_t address)
{
	char path[4096] = "";
	struct iovec to = {path, sizeof(path) - 1}, from = {(void *)address, sizeof(path) - 1};
	size_t n;

	/* It may lie at the end of what is mapped. */
	while (process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0) < 0 && from.iov_len > 64)
		from.iov_len = 64;
	n = strlen(path);
	return (n > 8 && !strcmp(path + n - 8, ".detours")) ||
	       (!strncmp(path, "/proc/", 6) && strstr(path, "/fd/"));
}

/* Is the call one that the tracer makes, or makes the loader do? */
static bool is_ours(const struct seccomp_notif *call)
{
	const struct seccomp_data *data = &call->data;
	bool loading = state.loading == call->pid;

	if (in_library(call->pid, data->instruction_pointer))
		return data->nr != SYS_write || data->args[0] != 2; /* its complaint */
	if (data->nr == SYS_openat && is_image(call->pid, data->args[1])) {
		state.loading = call->pid;
		return true;
	}
	if (loading && data->nr == SYS_close)
		state.loading = 0;
	return loading;
}

/* The error to answer with, 0: let it happen. */
static int judge(const struct seccomp_notif *call)
{
	const struct kind *kind = kinds;
	bool fail;

	while (kind->nr != call->data.nr)
		kind++;
	if (!is_ours(call) || !kind->error)
		return 0;
	state.last++;
	fail = state.last == state.number || state.failing == kind->nr;
	if (state.last == state.number && state.on)
		state.failing = kind->nr;
	if (fail && kind->nr == SYS_openat)
		state.loading = 0;
	fprintf(state.log, "%u %s%s\n", state.last, kind->name, fail ? " failed" : "");
	return fail ? kind->error : 0;
}

static void answer(int listener)
{
	struct seccomp_notif call = {0};
	struct seccomp_notif_resp reply = {0};
	int error;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return; /* the task is gone */
	error = judge(&call);
	reply.id = call.id;
	reply.error = -error;
	reply.flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* Until no task is left that could make a call. */
static void answer_all(int listener)
{
	struct pollfd wait = {.fd = listener, .events = POLLIN};

	while (poll(&wait, 1, -1) > 0 && (wait.revents & POLLIN))
		answer(listener);
}

static int end_like(int status)
{
	struct rlimit none = {0, 0};

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 125;
}

int main(int argc, char **argv)
{
	int channel[2], listener, status;
	pid_t pid;

	if (argc < 6) {
		fputs("usage: inject LIBRARY LOG NUMBER once|on COMMAND...\n", stderr);
		return 125;
	}
	state.library = argv[1];
	state.log = fopen(argv[2], "we");
	state.number = (unsigned)atoi(argv[3]);
	state.on = !strcmp(argv[4], "on");
	state.failing = -1;
	if (!state.log || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, channel))
		stop("%s", argv[2]);
	pid = fork();
	if (pid == 0)
		run_program(channel[1], argv + 5);
	close(channel[1]);
	listener = receive_descriptor(channel[0]);
	if (listener >= 0)
		answer_all(listener);
	fclose(state.log);
	if (waitpid(pid, &status, 0) != pid)
		stop("wait");
	return end_like(status);
}
