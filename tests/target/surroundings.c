/* SPDX-License-Identifier: MIT */
/*
 * What a program may look at: descriptor numbers, its threads and children, signal handlers, timers,
 * writable and executable memory, its name, its environment; and its own break.
 *
 * needs: kernel
 * flags: -O2
 * flags: -O2 -fno-pie -no-pie
 * expect: look calls=20
 */
#define _GNU_SOURCE
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static NOIPA void look(void)
{
	struct sigaction action;
	struct itimerval timer;
	char line[500], name[20];
	FILE *maps;
	int fd, wx = 0;

	HIT();
	fd = open("/dev/null", O_RDONLY);
	printf("next descriptor %d, open %d\n", fd, entries("/proc/self/fd"));
	close(fd);
	printf("threads %d\n", entries("/proc/self/task"));
	printf("children: %d\n", waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : 1);
	for (int i = 1; i < SIGRTMAX; i++)
		if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
			printf("signal %d has a handler\n", i);
	for (int i = ITIMER_REAL; i <= ITIMER_PROF; i++)
		if (getitimer(i, &timer) || timer.it_value.tv_sec || timer.it_value.tv_usec)
			printf("timer %d is set\n", i);
	maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		wx += strstr(line, " rwx") != NULL;
	fclose(maps);
	printf("writable and executable mappings: %d\n", wx);
	prctl(PR_GET_NAME, name);
	printf("name %s, dumpable %d\n", name, prctl(PR_GET_DUMPABLE));
	CHECK(sbrk(1 << 20) != (void *)-1);
}

int main(void)
{
	for (int i = 0; i < 20; i++)
		look();
	CHECK(sbrk(256 << 20) != (void *)-1);
	hits("");
	return 0;
}
