/* SPDX-License-Identifier: MIT */
/* The random numbers of a test: splitmix64, from a seed that the test names. */
#ifndef TESTS_UNIT_SUPPORT_RANDOM_H
#define TESTS_UNIT_SUPPORT_RANDOM_H

#include <stdint.h>

extern uint64_t random_state; /* set it to the seed */

uint64_t random64(void);

#endif
