/* SPDX-License-Identifier: MIT */
/* What the environment asks for. README.md has the table of variables. */
#ifndef TRACER_CONFIG_H
#define TRACER_CONFIG_H

#include "../arch/arch.h"

#define CONFIG_PATH_MAX 4096

struct config {
	char data[CONFIG_PATH_MAX]; /* absolute path of the data directory */
	enum detour_mode mode;
	const char *modules;   /* globs, NULL: the main program */
	const char *functions; /* globs, NULL: all */
	bool trap;	       /* FTR_PATCH=trap */
	bool verbose;
};

/* A wrong value is named on stderr, and the default stays. @envp as the constructor gets it. */
void config_read(struct config *config, char *const *envp);

/* The value of an environment variable; NULL: not set. */
const char *config_variable(char *const *envp, const char *name);

/* One line on stderr, "ftr: " in front. */
void config_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
