/* SPDX-License-Identifier: MIT */
#include "../arch/mem.h"
#include "maps.h"
#include "../arch/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* Read a number and the character that must follow it. False: no number, too large, or no @end. */
static bool maps_number(const char **at, unsigned base, char end, uint64_t *value)
{
	const char *p = *at;
	uint64_t v = 0;

	for (;; p++) {
		unsigned digit = *p >= '0' && *p <= '9' ? (unsigned)(*p - '0') :
			*p >= 'a' && *p <= 'f'		? (unsigned)(*p - 'a' + 10) :
							  base;

		if (digit >= base)
			break;
		if (v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	if (p == *at || *p != end)
		return false;
	*at = p + 1;
	*value = v;
	return true;
}

/* "r-xp " */
static bool maps_perms(const char **at, struct mapping *m)
{
	static const char letters[] = "rwx";
	static const uint8_t bits[] = { PROT_READ, PROT_WRITE, PROT_EXEC };
	const char *p = *at;

	for (int i = 0; i < 3; i++) {
		if (p[i] == letters[i])
			m->prot |= bits[i];
		else if (p[i] != '-')
			return false;
	}
	if ((p[3] != 'p' && p[3] != 's') || p[4] != ' ')
		return false;
	m->shared = p[3] == 's';
	*at = p + 5;
	return true;
}

/* "55d0c8a00000-55d0c8a02000 r-xp 00001000 fe:00 131 /usr/bin/true"; *@at is left behind the
 * inode. */
static bool maps_line(const char **at, struct mapping *m)
{
	uint64_t major, minor;

	*m = (struct mapping){ 0 };
	if (!maps_number(at, 16, '-', &m->lo) || !maps_number(at, 16, ' ', &m->hi)
		|| m->lo >= m->hi || !maps_perms(at, m) || !maps_number(at, 16, ' ', &m->offset)
		|| !maps_number(at, 16, ':', &major) || !maps_number(at, 16, ' ', &minor))
		return false;
	m->major = (uint32_t)major;
	m->minor = (uint32_t)minor;
	if (maps_number(at, 10, ' ', &m->inode))
		return true;
	if (!maps_number(at, 10, '\n', &m->inode) && !maps_number(at, 10, 0, &m->inode))
		return false;
	--*at; /* at the line's end: no path */
	return true;
}

static const char *maps_line_end(const char *p)
{
	while (*p && *p != '\n')
		p++;
	return p;
}

/* A "VmFlags:" line of smaps says two-letter words; "bt" is PROT_BTI. */
static bool maps_has_flag(const char *line, const char *end, const char *flag)
{
	for (; end - line >= 3; line++)
		if (line[0] == ' ' && line[1] == flag[0] && line[2] == flag[1]
			&& (line + 3 == end || line[3] == ' '))
			return true;
	return false;
}

int maps_parse(struct maps *maps, const char *text, struct arena *arena)
{
	size_t lines = 1;

	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	if (lines > SIZE_MAX / 2 / sizeof(*maps->list))
		return -ENOMEM;
	*maps = (struct maps){ arena_alloc(arena, lines * sizeof(*maps->list)), 0 };
	if (!maps->list)
		return -ENOMEM;
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		struct mapping *m = maps->list + maps->count;
		const char *p = line;

		end = maps_line_end(line);
		if (maps_line(&p, m)) {
			while (*p == ' ')
				p++;
			m->path = p < end ? arena_str(arena, p, (size_t)(end - p)) : "";
			if (!m->path)
				return -ENOMEM;
			if (maps->count && m->lo < m[-1].hi)
				return -EINVAL;
			maps->count++;
		} else if (maps->count && str_starts(line, "VmFlags:")) {
			m[-1].guarded = maps_has_flag(line, end, "bt");
		}
	}
	return maps->count ? 0 : -EINVAL;
}

int maps_read(struct maps *maps, const char *path, struct arena *arena)
{
	char *text = sys_slurp(arena, path, NULL);
	int fd;

	if (text)
		return maps_parse(maps, text, arena);
	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	sys_close(fd);
	return -ENOMEM;
}

const struct mapping *maps_from(const struct maps *maps, uint64_t addr)
{
	size_t lo = 0, hi = maps->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->list[mid].hi <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < maps->count ? maps->list + lo : NULL;
}

const struct mapping *maps_named(const struct maps *maps, const char *path)
{
	for (size_t i = 0; i < maps->count; i++)
		if (str_eq(maps->list[i].path, path))
			return maps->list + i;
	return NULL;
}

/* struct procmap_query of <linux/fs.h>, which is newer than many systems. */
struct maps_query {
	uint64_t size, flags, addr; /* in */
	uint64_t lo, hi, vma_flags, page_size, offset, inode; /* out */
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define MAPS_QUERY _IOWR('f', 17, struct maps_query)

int maps_query(uint64_t addr, uint64_t *end)
{
	struct maps_query q = { .size = sizeof(q), .addr = addr };
	int fd = sys_open("/proc/self/maps", O_RDONLY, 0);
	long err = fd;

	if (fd >= 0) {
		err = sys_call(SYS_ioctl, fd, MAPS_QUERY, &q);
		sys_close(fd);
	}
	*end = q.hi;
	return err < 0 ? (int)err : 0;
}
