/* SPDX-License-Identifier: MIT */
/*
 * How often instruction caches had to learn of code that was put in place. Where they see stores by
 * themselves (x86_64) nothing is ever asked for.
 */
#ifndef TRAMPOLINES_FLUSH_H
#define TRAMPOLINES_FLUSH_H

#include <stdint.h>

/*
 * @asked pieces of code, detours and patches, were to be in place; @done of them were not there yet,
 * so that their bytes were stored and flushed: by arch_flush(), or by the kernel when it stored them
 * for us or mapped the image that they are in.
 */
void flush_count(uint64_t asked, uint64_t done);

/* From now on these are added to, by any thread. */
void flush_count_in(uint64_t *asked, uint64_t *done);

#endif
