/* SPDX-License-Identifier: MIT */
/* What rethook/ needs to know the calling thread, for tests that trace nothing. */
#ifndef TESTS_UNIT_SUPPORT_THREADS_H
#define TESTS_UNIT_SUPPORT_THREADS_H

void threads_begin(void);

#endif
