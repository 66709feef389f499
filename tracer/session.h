/* SPDX-License-Identifier: MIT */
/* What all that is traced in a process has in common. One per process; it stays. */
#ifndef TRACER_SESSION_H
#define TRACER_SESSION_H

#include "config.h"
#include "plan.h"

struct session {
	struct config config;
	struct filter module_filter, function_filter;
	struct isa_env env;
	struct plan_settings settings;
	uint64_t phdr, phnum; /* of the main program */
	uint64_t features; /* AT_HWCAP */
	bool guards;	   /* arm64: the processor has guarded pages */
	bool ready;	      /* threads may be given records */
};

extern struct session session;

/*
 * Note what the kernel tells a new process; once, by the constructor. @envp is followed by the
 * auxiliary vector.
 */
void session_see(char *const *envp);

/* The process's modules, and its mappings. 0, catalog_lacks(), or -EIO: they cannot be read. */
int session_modules(struct modules *modules, struct maps *maps, struct arena *arena);

/* Complete session.env and what detours need, for session.config.mode. */
void session_set_env(void);

/* All is prepared for records: threads may have them from now on. */
void session_start(void);

/*
 * Be ready for probes in a process that is not being traced: counts, kept in memory. Nothing is
 * done when the process is traced, or was readied before. One caller at a time. 0 or -errno.
 */
int session_ready(void);

#endif
