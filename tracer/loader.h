/* SPDX-License-Identifier: MIT */
#ifndef TRACER_LOADER_H
#define TRACER_LOADER_H

/*
 * Run @work(@arg) on this thread with the loader's own lock held, as dlopen(3) runs constructors:
 * it may load and unload, and no other thread does meanwhile. Who needs that lock and one of ours
 * takes the loader's first, since a constructor, which has it already, may wait for ours. May be
 * nested. Where libc gives no way to the lock, @work runs without it.
 */
void loader_locked(void (*work)(void *arg), void *arg);

#endif
