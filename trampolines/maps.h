/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a process, as /proc/PID/maps or /proc/PID/smaps lists them.
 */
#ifndef TRAMPOLINES_MAPS_H
#define TRAMPOLINES_MAPS_H

#include "../arch/mem.h"

struct mapping {
	uint64_t lo, hi; /* [lo, hi) */
	uint64_t offset; /* in the file */
	uint64_t inode;	 /* 0: no file */
	uint32_t major, minor; /* of the file's device */
	uint8_t prot;	 /* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool shared;
	bool guarded;	 /* has PROT_BTI; known from smaps only */
	const char *path; /* as the kernel prints it ("[heap]", "/a b (deleted)"); "" when none */
};

struct maps {
	struct mapping *list; /* sorted, without overlap */
	size_t count;
};

/*
 * Parse the text of a maps or smaps file. Lines that are not understood are skipped. Everything
 * lives in @arena. 0; -ENOMEM; -EINVAL: not sorted, or not a single mapping.
 */
int maps_parse(struct maps *maps, const char *text, struct arena *arena);

/* The same for this process: @path is "/proc/self/maps" or "/proc/self/smaps". -ENOENT: cannot
 * be read. */
int maps_read(struct maps *maps, const char *path, struct arena *arena);

/* The end of the mapping that holds @addr in this process, without reading all of them: since Linux
 * 6.11. 0 or -errno. */
int maps_query(uint64_t addr, uint64_t *end);

/* The mapping that holds @addr, else the first one above it; NULL when there is none. */
const struct mapping *maps_from(const struct maps *maps, uint64_t addr);

/* The first mapping whose path is @path; NULL when there is none. */
const struct mapping *maps_named(const struct maps *maps, const char *path);

#endif
