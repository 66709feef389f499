/* SPDX-License-Identifier: MIT */
/* What is different for an emulated process. */
#ifndef TESTS_UNIT_SUPPORT_QEMU_H
#define TESTS_UNIT_SUPPORT_QEMU_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Started by tests/qemu/run.sh: no seccomp filters, limits of memory are ignored, and of the files
 * in /proc only some are those of an emulated process. */
static inline bool support_qemu(void)
{
	return getenv("QEMU_LD_PREFIX") != NULL;
}

/*
 * The name by which other programs find the file that this one sees as @path, "/proc/self/exe"
 * included: an emulated process looks into its sysroot first. @path itself when it cannot be opened.
 */
static inline const char *support_real_path(const char *path, char *room, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, room, size - 1);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return path;
	room[n] = '\0';
	return room;
}

#endif
