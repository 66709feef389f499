/* SPDX-License-Identifier: MIT */
/* Probes: include/ftr/ftr.h. */
#ifndef TRACER_PROBE_H
#define TRACER_PROBE_H

#include "target.h"

struct shadow_thread;

/* @thread's numbers go on for another thread: what its blocks hold by now is not its own. */
void probe_renewed(struct shadow_thread *thread);

/* Call @release with the probe's data once no handler of it runs any more: at ftr_detach(), or, where
 * that was called by a handler, at a later one. It calls nothing but the kernel. */
void probe_on_detach(struct ftr_probe *probe, void (*release)(void *data));

/* Call @reset with the probe's data at ftr_reset(). */
void probe_on_reset(struct ftr_probe *probe, void (*reset)(void *data));

/* Be ready for probes, and to see system calls being forbidden. 0, -EPERM: they may be; or -errno. */
int probe_prepare(void);

/* Say why a function of the API failed; for ftr_error(). Returns @err. */
int probe_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of what the system or its lack of memory kept from being done. */
int probe_fail_system(int err);

#endif
