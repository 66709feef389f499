/* SPDX-License-Identifier: MIT */
/*
 * FTR_PATCH=trap: the program blocks or handles SIGTRAP, in one of the ways there are, or forbids the
 * return from signal handlers, and goes on calling functions that had breakpoints until then.
 *
 * flags: -O2 -pthread -DHOW=sigaction
 * flags: -O2 -pthread -DHOW=signal
 * flags: -O2 -pthread -DHOW=handler_mask
 * flags: -O2 -pthread -DHOW=pthread_sigmask
 * flags: -O2 -pthread -DHOW=sigprocmask
 * flags: -O2 -pthread -DHOW=sigsuspend
 * flags: -O2 -pthread -DHOW=ppoll
 * flags: -O2 -pthread -DHOW=pselect
 * flags: -O2 -pthread -DHOW=epoll_pwait
 * flags: -O2 -pthread -DHOW=attribute
 * flags: -O2 -pthread -DHOW=raw
 * flags: -O2 -pthread -DHOW=setcontext
 * flags: -O2 -pthread -DHOW=seccomp
 * env: FTR_PATCH=trap
 * needs: x86_64
 * letgo: some
 * expect: short_one calls=100
 */
#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

void short_one(void);
void next_to_it(void);
__asm__(".text\n.balign 16\n.globl short_one, next_to_it\n.type short_one, @function\n"
	".type next_to_it, @function\nshort_one:\n\tret\n.size short_one, .-short_one\n"
	"next_to_it:\n\tret\n.size next_to_it, .-next_to_it\n");

static int traps;

static void call_short(void)
{
	for (int i = 0; i < 100; i++)
		short_one();
}

static void on_trap(int signal)
{
	(void)signal;
	traps++;
}

static void on_signal(int signal)
{
	(void)signal;
	call_short();
}

static void *thread_main(void *unused)
{
	call_short();
	return unused;
}

static void start_blocked(const sigset_t *all)
{
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setsigmask_np(&attr, all));
	CHECK(!pthread_create(&thread, &attr, thread_main, NULL) && !pthread_join(thread, NULL));
}

static void in_context(const sigset_t *all)
{
	static volatile int done;
	ucontext_t here;

	CHECK(!getcontext(&here));
	here.uc_sigmask = *all;
	if (!done++)
		setcontext(&here);
}

static void forbid_return(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* SIGUSR1 arrives in a call that blocks all others meanwhile. */
static void wait_in(const char *how, const sigset_t *others)
{
	struct epoll_event event;
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	signal(SIGUSR1, on_signal);
	CHECK(!pthread_sigmask(SIG_BLOCK, &usr1, NULL));
	raise(SIGUSR1);
	if (!strcmp(how, "sigsuspend"))
		sigsuspend(others);
	else if (!strcmp(how, "ppoll"))
		ppoll(NULL, 0, NULL, others);
	else if (!strcmp(how, "pselect"))
		pselect(0, NULL, NULL, NULL, NULL, others);
	else
		epoll_pwait(epoll_create1(0), &event, 1, -1, others);
}

#define TEXT(word) #word
#define NAME(macro) TEXT(macro)

int main(void)
{
	const char *how = NAME(HOW);
	struct sigaction action = { .sa_handler = on_trap };
	unsigned long all_of_them = ~0ul;
	sigset_t all, others;

	call_short();
	/* Addresses that are wrong are for the kernel to find out. */
	CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_rt_sigaction, SIGUSR2, 8, NULL, 8) == -1 && errno == EFAULT);
	CHECK(sigsuspend((sigset_t *)8) == -1 && errno == EFAULT);
	CHECK(ppoll(NULL, 0, NULL, (sigset_t *)8) == -1 && errno == EFAULT);
	sigfillset(&all);
	others = all;
	sigdelset(&others, SIGUSR1);
	if (!strcmp(how, "sigaction")) {
		CHECK(!sigaction(SIGTRAP, &action, NULL));
	} else if (!strcmp(how, "signal")) {
		CHECK(signal(SIGTRAP, on_trap) != SIG_ERR);
	} else if (!strcmp(how, "handler_mask")) {
		action = (struct sigaction){ .sa_handler = on_signal, .sa_mask = all };
		CHECK(!sigaction(SIGUSR1, &action, NULL));
		raise(SIGUSR1);
	} else if (!strcmp(how, "pthread_sigmask")) {
		CHECK(!pthread_sigmask(SIG_SETMASK, &all, NULL));
	} else if (!strcmp(how, "sigprocmask")) {
		CHECK(!sigprocmask(SIG_BLOCK, &all, NULL));
	} else if (!strcmp(how, "raw")) {
		CHECK(!syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all_of_them, NULL, 8));
	} else if (!strcmp(how, "setcontext")) {
		in_context(&all);
	} else if (!strcmp(how, "seccomp")) {
		forbid_return();
	} else if (!strcmp(how, "attribute")) {
		start_blocked(&all);
	} else {
		wait_in(how, &others);
	}
	call_short();
	CHECK(!traps);
	printf("calls short_one 100\n"); /* with its breakpoint */
	return 0;
}
