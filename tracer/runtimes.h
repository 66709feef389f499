/* SPDX-License-Identifier: MIT */
/* Language runtimes that read or change stacks by rules of their own. */
#ifndef TRACER_RUNTIMES_H
#define TRACER_RUNTIMES_H

#include "plan.h"

/* Give the symbols of a module that must be entry only for a runtime's sake REASON_FOREIGN_STACK.
 * 0 or -ENOMEM. */
int runtimes_mark(struct plan *plan);

/* Tell the runtime in the module where return addresses are kept, if it wants to know. Called
 * once the module's detours are loaded, before they can run. */
void runtimes_announce(const struct plan *plan);

#endif
