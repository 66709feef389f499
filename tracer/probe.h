/* SPDX-License-Identifier: MIT */
/* Probes: include/ftr/ftr.h. */
#ifndef TRACER_PROBE_H
#define TRACER_PROBE_H

#include "target.h"

struct shadow_thread;

/* @thread's numbers go on for another thread: what its blocks hold by now is not its own. */
void probe_renewed(struct shadow_thread *thread);

/* Say why a function of the API failed; for ftr_error(). Returns @err. */
int probe_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
