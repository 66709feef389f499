/* SPDX-License-Identifier: MIT */
#include "sys.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

size_t sys_page = 4096;

int sys_open(const char *path, int flags, int mode)
{
	return (int)sys_call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

void sys_close(int fd)
{
	sys_call(SYS_close, fd);
}

long sys_read(int fd, void *buf, size_t n)
{
	long got;

	do
		got = sys_call(SYS_read, fd, buf, n);
	while (got == -EINTR);
	return got;
}

long sys_write_all(int fd, const void *buf, size_t n)
{
	const uint8_t *p = buf;

	while (n) {
		long done = sys_call(SYS_write, fd, p, n);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return done ? done : -EIO;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

long sys_pwrite_all(int fd, const void *buf, size_t n, uint64_t offset)
{
	const uint8_t *p = buf;

	while (n) {
		long done = sys_call(SYS_pwrite64, fd, p, n, offset);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return done ? done : -EIO;
		p += done;
		n -= (size_t)done;
		offset += (size_t)done;
	}
	return 0;
}

void *sys_mmap(void *addr, size_t len, int prot, int flags, int fd, uint64_t offset)
{
	return (void *)sys_call(SYS_mmap, addr, len, prot, flags, fd, offset);
}

int sys_munmap(void *addr, size_t len)
{
	return (int)sys_call(SYS_munmap, addr, len);
}

bool sys_failed(const void *mapped)
{
	return (unsigned long)mapped > -4096ul;
}

int sys_getpid(void)
{
	return (int)sys_call(SYS_getpid);
}

int sys_gettid(void)
{
	return (int)sys_call(SYS_gettid);
}

char *sys_slurp(struct arena *arena, const char *path, size_t *len)
{
	size_t room = 1 << 16, used = 0;
	char *buf = arena_alloc(arena, room);
	int fd = sys_open(path, O_RDONLY, 0);

	if (fd < 0)
		return NULL;
	while (buf) {
		long got = sys_read(fd, buf + used, room - 1 - used);

		if (got < 0)
			buf = NULL;
		if (got <= 0)
			break;
		used += (size_t)got;
		if (room - used < 4096) {
			char *more = arena_alloc(arena, room *= 2);

			if (more)
				memcpy(more, buf, used);
			buf = more;
		}
	}
	sys_close(fd);
	if (buf)
		buf[used] = 0;
	if (len)
		*len = used;
	return buf;
}
