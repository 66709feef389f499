/* SPDX-License-Identifier: MIT */
/*
 * Storing over a module's text, many patches at once, while nobody executes it: at the start of
 * the process, or before the module's code has run. No page is ever writable and executable by
 * our doing.
 */
#ifndef TRAMPOLINES_PATCH_H
#define TRAMPOLINES_PATCH_H

#include "../arch/arch.h"

#define PATCH_GUARDED 0x10 /* PROT_BTI, of arm64 */

struct patch_how {
	size_t page;   /* AT_PAGESZ */
	int exec_prot; /* protection that executable pages of this module have and /proc/self/maps
			* does not show: PROT_BTI when the module's property note and HWCAP2_BTI say
			* so, else 0 */
	bool avoid_mem; /* see patch_mem_executes() */
	bool running; /* only with avoid_mem: others may be executing the code; see patch_translated() */
	const void *frame; /* for live_store(): the calling thread's frames below are our own, and
			    * hold addresses that are not returned to; NULL: that of the caller */
};

/*
 * Whether code that is stored through /proc/self/mem is executed from then on, found by trying it
 * on code of our own, once: under qemu-user what has run before stays as it was, though the new
 * bytes are there to read. Also true where /proc/self/mem cannot be written, which is no harm.
 */
bool patch_mem_executes(void);

/*
 * Store @n patches, which must be sorted by address, must not overlap, and must lie in readable
 * memory; whether the bytes there are the expected ones is the caller's to compare. Those already
 * in place cost nothing; of others exactly their bytes are flushed (flush.h).
 *
 * @old: NULL, or room for @n; receives what was there. Storing that is how to undo.
 *
 * 0; -EINVAL: not sorted or overlapping; -ENOMEM; else the kernel's reason. After a failure the
 * text is as before.
 */
int patch_store(const struct isa_patch *patches, size_t n, struct isa_patch *old,
	const struct patch_how *how);

/* For live.c: are they sorted and apart from each other; and keep what is in their places. */
bool patch_sorted(const struct isa_patch *patches, size_t n);
void patch_save(const struct isa_patch *patches, size_t n, struct isa_patch *old);

#endif
