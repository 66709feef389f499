/* SPDX-License-Identifier: MIT */
/* Language runtimes that read or change stacks by rules of their own. */
#ifndef TRACER_RUNTIMES_H
#define TRACER_RUNTIMES_H

#include "plan.h"

/* Why @symbol must be entry only: REASON_FOREIGN_STACK or REASON_NONE. */
enum site_reason runtimes_reason(const struct plan *plan, const struct symbol *symbol);

/* Tell the runtime in the module where return addresses are kept, if it wants to know. Called
 * once the module's detours are loaded, before they can run. */
void runtimes_announce(const struct plan *plan);

#endif
