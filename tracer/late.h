/* SPDX-License-Identifier: MIT */
/*
 * Modules that are loaded while the program runs. The loader calls an empty function of its own
 * whenever its list has changed, for debuggers (struct r_debug, r_brk); it is watched, and new
 * modules are patched there: before they are relocated, so before any of their code has run.
 */
#ifndef TRACER_LATE_H
#define TRACER_LATE_H

#include "batch.h"

/* Note what is loaded now. Before the first patch. */
void late_start(const struct modules *modules);

/* The loader's list has changed, or is about to. */
void late_changed(void);

#endif
