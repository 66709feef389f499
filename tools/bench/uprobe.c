/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own probes, as counting perf events of this process. See perf_event_open(2) and
 * /sys/bus/event_source/devices/uprobe.
 */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PMU "/sys/bus/event_source/devices/uprobe/"

/* Where the code at an address comes from. */
struct place {
	uintptr_t address;
	const char *path;
	uint64_t offset;
};

static int find_place(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *place = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || place->address - start >= ph->p_filesz)
			continue;
		place->path = info->dlpi_name;
		place->offset = ph->p_offset + (place->address - start);
		return 1;
	}
	return 0;
}

/* A number in a one-line file, behind @prefix. */
static bool read_number(const char *path, const char *prefix, unsigned int *number)
{
	char format[32];
	FILE *file = fopen(path, "r");
	bool ok;

	if (!file)
		return false;
	snprintf(format, sizeof(format), "%s%%u", prefix);
	ok = fscanf(file, format, number) == 1;
	fclose(file);
	return ok;
}

const char *uprobe_open(const struct row *row, int *fd)
{
	static char why[128];
	struct place place = {.address = (uintptr_t)row->function};
	struct perf_event_attr attr = {.size = sizeof(attr), .disabled = 1};
	unsigned int type, retprobe_bit;

	if (!read_number(PMU "type", "", &type) ||
		!read_number(PMU "format/retprobe", "config:", &retprobe_bit))
		return "this kernel has no uprobe events";
	if (!dl_iterate_phdr(find_place, &place))
		return "the function's file was not found";
	attr.type = type;
	attr.config = row->probe == PROBE_RETURN ? 1ull << retprobe_bit : 0;
	attr.uprobe_path = (uintptr_t)place.path;
	attr.probe_offset = place.offset;
	*fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (*fd >= 0 && ioctl(*fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
		return NULL;
	snprintf(why, sizeof(why), "perf_event_open: %s%s", strerror(errno),
		errno == EACCES || errno == EPERM ? " (needs root)" : "");
	return why;
}

uint64_t uprobe_close(int fd)
{
	uint64_t hits = 0;

	if (read(fd, &hits, sizeof(hits)) != sizeof(hits))
		hits = 0;
	close(fd);
	return hits;
}
