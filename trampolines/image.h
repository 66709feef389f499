/* SPDX-License-Identifier: MIT */
/*
 * The ELF shared object that carries the detours of a module.
 *
 * Built in memory, written to a file, loaded by the program's own loader. It is bound to one
 * address: begin, add detours, finish, write, load.
 */
#ifndef TRAMPOLINES_IMAGE_H
#define TRAMPOLINES_IMAGE_H

#include "../arch/arch.h"

enum image_part {
	IMAGE_TEXT,    /* the image from its first byte: headers and code; at the end everything */
	IMAGE_FRAMES,  /* .eh_frame: CIEs, then an FDE per range of code */
	IMAGE_INDEX,   /* .eh_frame_hdr's search table */
	IMAGE_LOCALS,  /* symbols; locals come first in the table */
	IMAGE_GLOBALS,
	IMAGE_STRINGS,
	IMAGE_PARTS
};

struct image_buffer {
	uint8_t *bytes;
	size_t room;
};

struct image {
	const struct isa *isa;
	uint64_t base;
	size_t room, page;
	struct isa_common common;
	struct image_buffer parts[IMAGE_PARTS];
	size_t used[IMAGE_PARTS];
	uint32_t cie[CIE_COUNT]; /* offsets in IMAGE_FRAMES */
	uint32_t text_start;	 /* offset of the code */
	uint32_t soname;	 /* in IMAGE_STRINGS */
};

/*
 * Begin an image whose first byte will be at run-time address @base, with @room bytes of address
 * space to fill, and write its common part. @page: AT_PAGESZ. @root: see isa->cie().
 * @max_detours is a hint. 0; -EINVAL: @base or @page is unusable; -ENOSPC: @room is too small;
 * -ENOMEM. After a failure there is nothing to free.
 */
int image_begin(struct image *im, const struct isa *isa, uint64_t base, size_t room, size_t page,
	uint64_t root, const struct isa_env *env, size_t max_detours);

const struct isa_common *image_common(const struct image *im);

/* The run-time address of the next detour, and in *@out the place for its bytes: room for
 * isa->detour_max, valid until the next image_*() call. What is not added may be overwritten. */
uint64_t image_next(const struct image *im, uint8_t **out);

/*
 * Keep the detour that was written at image_next(). It gets the symbol `@name@ftr`, over all of it;
 * @name NULL stands for `sub_` and @fallback in hexadecimal.
 * 0; -ENOSPC: the image would outgrow its room; -ENOMEM; -EINVAL: @d is not within its own size.
 * After a failure the image is as before.
 */
int image_add(struct image *im, const struct isa_detour *d, const char *name, uint64_t fallback);

/* Complete the image. The bytes are valid until image_free(). 0 or -ENOMEM. */
int image_finish(struct image *im, const void **bytes, size_t *size);

void image_free(struct image *im);

/* Write the image to a new file, which must not exist. Whole, or removed again and -errno. Never
 * raises SIGXFSZ. */
int image_write(const void *bytes, size_t size, const char *path);

/*
 * Put the image into a memfd, sealed, and print the path by which it can be loaded into @path
 * (with a number that was not used before: loaders tell objects apart by name). Returns the
 * descriptor, to be closed after loading (debuggers can read the image only while it is open), or
 * -errno.
 */
int image_memfd(const void *bytes, size_t size, char path[64]);

/*
 * The loader's calls: those that the linker gave us, unless the tracer has found libc's own (a
 * program may have functions of these names).
 */
extern struct image_loader {
	void *(*open)(const char *, int);
	int (*close)(void *);
	int (*info)(void *, int, void *);
	char *(*error)(void);
} image_loader;

/* Is @err a lack of descriptors or of memory? Then *@why says so. */
bool image_lacks(int err, const char **why);

/*
 * Load the image with the program's loader. 0; -EADDRNOTAVAIL: it landed elsewhere and has been
 * unloaded; -EPERM, -EMFILE, -ENFILE, -ENOMEM: the system does not let it be mapped; -ELIBBAD: the
 * loader has another reason. On failure *@why says why, until the next call.
 */
int image_load(const char *path, uint64_t base, void **handle, const char **why);

#endif
