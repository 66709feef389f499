/* SPDX-License-Identifier: MIT */
/*
 * The same without padding: there is nothing to make an island of.
 *
 * flags: powerpc: -O2
 * needs: powerpc
 * mode: count
 * env: FTR_VERBOSE=1
 * says: out of reach
 * expect: f0 calls=2
 * expect: f4000 calls=2
 * skipped: f16384 reason=out-of-reach
 * timeout: 300
 */
#define SOLID "1"
#include "large_text.c"
