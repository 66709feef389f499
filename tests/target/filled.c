/* SPDX-License-Identifier: MIT */
/*
 * A library with no free memory within 3 GiB around it: its functions have patches that reach
 * further, or are out of reach where they are too short for these.
 *
 * flags: arm64: -O2 -ldl
 * needs: arm64
 * library: filled_lib.c -Wl,-Ttext-segment=0x210000000000 -Wl,-z,max-page-size=4096
 * env: FTR_MODULES=*filled*
 * expect: work calls=10
 * maybe: library_work calls=10
 * expect: library_pair calls=10
 */
#define _GNU_SOURCE
#include "target.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOME 0x210000000000ul
#define FILL (3ul << 30)

static NOIPA void work(void)
{
	HIT();
}

/* The address space that the library takes, in whole pages. */
static unsigned long size_of(const char *path)
{
	union {
		Elf64_Ehdr header;
		char bytes[4096];
	} file;
	const Elf64_Phdr *ph = (const void *)(file.bytes + sizeof(file.header));
	unsigned long end = 0;
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && read(fd, &file, sizeof(file)) == sizeof(file));
	close(fd);
	for (int i = 0; i < file.header.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD)
			end = ph[i].p_vaddr + ph[i].p_memsz;
	return (end - HOME + 4095) & -4096ul;
}

/* False where there is something already, or no such memory. */
static int fill(unsigned long at, unsigned long size)
{
	void *p = mmap((void *)at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);

	return p == (void *)at;
}

int main(void)
{
	char path[4096];
	void *library;
	int (*f)(int), (*pair)(int);

	snprintf(path, sizeof(path), "%s/filled_lib.so", getenv("TARGET_DIR"));
	CHECK(fill(HOME - FILL, FILL) && fill(HOME + size_of(path), FILL));
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	f = (int (*)(int))dlsym(library, "library_work");
	pair = (int (*)(int))dlsym(library, "library_pair");
	CHECK(f && pair && (unsigned long)f - HOME < size_of(path));
	for (int i = 0; i < 10; i++) {
		work();
		CHECK(f(i) == i + 1 && pair(i) == 2 * i + 3);
	}
	/* Room for others is left. */
	CHECK(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	hits("");
	return 0;
}
