/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "unload.h"
#include "record.h"
#include "../arch/sys.h"
#include "../rethook/hook.h"
#include "../rethook/shadow.h"
#include "../trampolines/image.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>

#define STATUS_MAX 8192

/* Shadow entries that are swapped out are not seen. */
static bool is_swapped(void)
{
	struct arena arena = { 0 };
	char *text = arena_alloc(&arena, STATUS_MAX);
	int fd = text ? sys_open("/proc/self/status", O_RDONLY, 0) : -1;
	const char *found = NULL;
	bool swapped;

	if (fd >= 0) {
		if (sys_read(fd, text, STATUS_MAX - 1) > 0)
			found = str_find(text, "\nVmSwap:");
		sys_close(fd);
	}
	for (found = found ? found + 8 : ""; *found == ' ' || *found == '\t';)
		found++;
	swapped = !str_starts(found, "0 ");
	arena_free(&arena);
	return swapped;
}

void unload_find_busy(const struct unload *u, unload_note *note, void *arg, const void *frame)
{
	live_find_busy(u->ranges, u->n, u->busy, frame);
	shadow_each_call(note, arg);
	live_find_busy(u->ranges, u->n, u->busy, frame);
	if (is_swapped())
		memset(u->busy, true, u->n);
}

bool unload_retire(const struct unload *u)
{
	for (size_t i = 0; i < u->n; i++)
		if (!u->busy[i])
			shadow_retire_image(u->ranges[i].lo);
	return hook_synchronize();
}

/* A file of ours goes with it. */
void unload_image(void *handle, uint64_t lo)
{
	char path[CONFIG_PATH_MAX + 128] = "";
	struct link_map *map;

	if (!image_loader.info(handle, RTLD_DI_LINKMAP, &map))
		str_print(path, sizeof(path), "%s", map->l_name);
	image_loader.close(handle);
	shadow_remove_image(lo);
	record_image_gone(path);
}
