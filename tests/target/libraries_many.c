/* SPDX-License-Identifier: MIT */
/*
 * Builds of a library, all different, opened and closed one after the other: each is traced until
 * there is no room for the names of more, which is said once; from then on nothing grows.
 *
 * flags: -O1 -ldl
 * env: FTR_MODULES=libraries_many,build.so
 * library: late_lib.c -O1 -Wl,--build-id=sha1
 * mode: count
 * stacks: several
 * needs: kernel
 * timeout: 600
 * says: modules loaded from now on are not traced
 * expect: use calls=600
 * expect: late_work calls=511
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

enum { BUILDS = 600 };

static char bytes[1 << 20];
static size_t size;

static void read_library(void)
{
	char path[500];
	FILE *file;

	snprintf(path, sizeof(path), "%s/late_lib.so", getenv("TARGET_DIR"));
	file = fopen(path, "r");
	CHECK(file);
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
}

/* Another build: the note's identifier, behind its owner's name, is @number. */
static void write_build(int number)
{
	char *id = memmem(bytes, size, "\x14\0\0\0\3\0\0\0GNU", 12);
	FILE *file = fopen("build.so", "w");

	CHECK(id && file);
	memcpy(id + 12, &number, sizeof(number));
	CHECK(fwrite(bytes, 1, size, file) == size);
	fclose(file);
}

static NOIPA int use(int number)
{
	int (*work)(int), result;
	void *library;

	HIT();
	library = dlopen("./build.so", RTLD_NOW);
	CHECK(library);
	work = (int (*)(int))dlsym(library, "late_work");
	result = work(number);
	CHECK(dlclose(library) == 0 && !unlink("build.so"));
	return result;
}

int main(void)
{
	read_library();
	for (int i = 0; i < BUILDS; i++) {
		write_build(i);
		CHECK(use(i) == 3 * i + 7);
	}
	hits("");
	return 0;
}
