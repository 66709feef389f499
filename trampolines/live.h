/* SPDX-License-Identifier: MIT */
/*
 * Replacing code while other threads execute it, and telling whether anyone may still be in code
 * that is to be freed. Works from any thread, handlers of probes included, several at once; not
 * from signal handlers.
 */
#ifndef TRAMPOLINES_LIVE_H
#define TRAMPOLINES_LIVE_H

#include "patch.h"
#include "threads.h"
#include <signal.h>

/* What a thread must not block while it waits for another one that may be in these functions: it
 * could not be examined. As a mask of rt_sigprocmask(2). */
#define LIVE_SIGNALS (1ull << (SIGTRAP - 1) | 1ull << (SIGNAL_ASK - 1))

/*
 * Store @n patches (sorted, not overlapping, in readable memory) over code that any thread may be
 * executing. From the return on every thread executes the new code; meanwhile each one executes all
 * of the old or all of the new bytes of each patch. Those already in place cost nothing.
 *
 * @windows: how many bytes from each patch's address on hold the whole instructions that it
 * replaces, or that are put back; 0: nobody can be inside, since the old bytes are one instruction
 * that is not shorter than the patch. No thread is inside a window, or returns there, when its bytes
 * change. NULL: all 0.
 * @old: NULL or room for @n; receives what was there.
 *
 * 0, or an error after which the text is as before:
 * -EBUSY: a thread does not leave a window, cannot be held, or could not be examined; -EPERM: /proc
 * is not there or closed, the caller is a child of vfork(2), or an emulator would have to replace
 * more than one instruction; -EINVAL: not sorted, or overlapping; -ENOMEM.
 */
int live_store(const struct isa_patch *patches, size_t n, const uint8_t *windows,
	struct isa_patch *old, const struct patch_how *how);

/*
 * May a thread other than the calling one be executing in the code of @ranges (sorted, apart from
 * each other), or return there? Code that cannot be entered any more and is not busy can be freed or
 * replaced, unless somebody keeps an address of it elsewhere: a shadow stack, a fiber that does not
 * run. Also for the jump in padding that a SITE_HOP's short jump led to, before it is taken away.
 */
bool live_busy(const struct code_range *ranges, size_t n);

/* The same for each of them: sets those of @busy. @frame: the calling thread counts as well, by its
 * stack from there on; NULL: it does not. */
void live_find_busy(const struct code_range *ranges, size_t n, bool *busy, const void *frame);

/* Does no thread but the calling one block SIGTRAP? 0; -EBUSY: one does; -EPERM, -ENOMEM. */
int live_hears_traps(void);

/*
 * Give SIGTRAP back to the program, when nothing needs it for now. It stays taken when it cannot be
 * told that no thread is on its way to the handler; that harms nothing.
 */
void live_release(void);

/* In a forked child of a system that wipes nothing (MADV_WIPEONFORK), as qemu-user does. */
void live_forked(void);

/* For the SIGTRAP handler: is the breakpoint at @site one of ours, be it gone by now? Sleep while
 * it is there, but not for long. */
bool live_owns(uint64_t site);
void live_wait(uint64_t site, const void *context);

/* A number that is another one whenever replacing has begun or ended. */
uint32_t live_changes(void);

#endif
