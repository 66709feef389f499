/* SPDX-License-Identifier: MIT */
/* Floating-point numbers by their bits, for code that may not touch vector registers. */
#ifndef TRACER_DECIMAL_H
#define TRACER_DECIMAL_H

#include "../arch/mem.h"

#define DECIMAL_MAX 32

/*
 * Print the shortest decimal number that no other double is nearer to, as "0.1", "-3", "1.5e+300",
 * "inf", "nan". Returns the length.
 */
size_t decimal_print(char out[DECIMAL_MAX], uint64_t bits);

/* The double of the same value as a float. */
uint64_t decimal_widen(uint32_t bits);

/* The float nearest to a double. */
uint32_t decimal_narrow(uint64_t bits);

/* Are they the same number? NaN and NaN are, and 0.0 and -0.0. */
bool decimal_equal(uint64_t a, uint64_t b);

/* A number from 0 to 1 as a fraction of 2^64; 1 is ~0. False when it is outside, or NaN. */
bool decimal_fraction(uint64_t bits, uint64_t *fraction);

#endif
