/* SPDX-License-Identifier: MIT */
/*
 * A library that comes back again and again, each time to another address: it is traced each time, and
 * what that takes goes again.
 *
 * flags: -O2 -ldl
 * env: FTR_MODULES=dlopen_moving,late_lib.so
 * library: late_lib.c -O1
 * needs: kernel
 * timeout: 300
 * expect: late_init calls=1200
 * expect: late_fini calls=1200
 * expect: late_work calls=12000
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

enum { TIMES = 1200, MAPPINGS_MAX = 400 }; /* of 40 images and more */

/* Of images; in the tracer's data directory. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[8192];
	int n = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, ".detours") != NULL;
	fclose(maps);
	return n;
}

/* Nothing else is loaded where @library was. */
static void occupy(char *start)
{
	for (size_t size = 1 << 14; size; size /= 2)
		if (mmap(start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
			!= MAP_FAILED)
			return;
}

static NOIPA void use_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	struct link_map *map;
	int (*work)(int);
	char *start;

	CHECK(library && !dlinfo(library, RTLD_DI_LINKMAP, &map));
	start = (char *)map->l_addr;
	work = (int (*)(int))dlsym(library, "late_work");
	CHECK(work);
	for (int i = 0; i < 10; i++)
		CHECK(work(i) == 3 * i + 7);
	CHECK(!dlclose(library));
	occupy(start);
}

int main(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/late_lib.so", getenv("TARGET_DIR"));
	for (int i = 0; i < TIMES; i++)
		use_library(path);
	CHECK(mappings() < MAPPINGS_MAX);
	printf("calls late_init %d\ncalls late_fini %d\ncalls late_work %d\n", TIMES, TIMES, 10 * TIMES);
	return 0;
}
