/* SPDX-License-Identifier: MIT */
/*
 * A child has its parent's probes with counts from 0, also when the functions had been called before
 * its parent attached, and what it detaches stays attached in its parent: with fork(2), with a raw system call, and while other threads attach and detach. (After a
 * raw fork of several threads, locks of the C library may be held for ever.)
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;
static atomic_bool stop;

NOINLINE static void work(void)
{
	sink++;
}

NOINLINE static void other(void)
{
	sink++;
}

static void forks(struct ftr_probe *p, int raw, int attaches);

static void in_child(struct ftr_probe *p, int attaches)
{
	struct ftr_counts mine;
	struct ftr_probe *more;

	CHECK_COUNTS(p, 0, 0, 0);
	work();
	CHECK_COUNTS(p, 1, 1, 0);
	CHECK_INT(ftr_read_thread(p, 0, &mine), 0);
	CHECK_INT(mine.calls, 1);
	if (!attaches)
		_exit(0);
	more = attach(work, NULL, NULL, NULL);
	work();
	CHECK_COUNTS(p, 2, 2, 0);
	CHECK_COUNTS(more, 1, 1, 0);
	CHECK_INT(ftr_detach(p), 0);
	if (attaches > 1)
		forks(more, 0, attaches - 1);
	CHECK_INT(ftr_detach(more), 0);
	work();
	_exit(0);
}

static void *toggle(void *unused)
{
	(void)unused;
	while (!stop)
		CHECK_INT(ftr_detach(attach(other, NULL, NULL, NULL)), 0);
	return NULL;
}

static void forks(struct ftr_probe *p, int raw, int attaches)
{
	pid_t child;
	int status;

	fflush(stdout);
#ifdef SYS_fork
	child = raw && !is_emulated() ? (pid_t)syscall(SYS_fork) : fork();
#else
	(void)raw;
	child = fork();
#endif
	if (!child)
		in_child(p, attaches);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
}

int main(void)
{
	struct ftr_probe *p = attach(work, NULL, NULL, NULL);
	pthread_t thread;

	work();
	CHECK_INT(ftr_detach(p), 0);
	p = attach(work, NULL, NULL, NULL); /* has been called before */
	work();
	forks(p, 0, 3);
	work();
	forks(p, 1, 3);
	CHECK_COUNTS(p, 2, 2, 0);
	pthread_create(&thread, NULL, toggle, NULL);
	for (int i = 0; i < 20; i++)
		forks(p, i & 1, !(i & 1));
	stop = true;
	pthread_join(thread, NULL);
	work();
	CHECK_COUNTS(p, 3, 3, 0);
	CHECK_INT(ftr_detach(p), 0);
	puts("ok");
	return 0;
}
