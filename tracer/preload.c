/* SPDX-License-Identifier: MIT */
/*
 * The library's constructor. With -z initfirst it runs before every other constructor of the
 * program, libc's included; environ is not set yet, so the arguments are taken from here (glibc
 * passes argc, argv, envp to constructors).
 *
 * Preloaded, the library traces the program. Linked or opened by it (include/ftr/ftr.h), it waits
 * to be asked.
 */
#include "session.h"
#include "start.h"
#include "../arch/sys.h"
#include <elf.h>

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

/* In libftr.a only. */
extern const char __start_ftr_text[] __attribute__((weak, visibility("hidden")));

static bool separates(char c)
{
	return c == ':' || c == ' ' || c == '\t' || c == '\n';
}

/* Does @list, as in LD_PRELOAD, name a library that is called like this one? */
static bool names_library(const char *list)
{
	bool ours = false; /* the name so far */

	for (const char *p = list; *p; p++) {
		if (separates(*p)) {
			if (ours)
				return true;
		} else if (p == list || separates(p[-1]) || p[-1] == '/') {
			ours = str_starts(p, "libftr");
		} else if (*p == '/') {
			ours = false;
		}
	}
	return ours;
}

static bool in_main_program(void)
{
	return (uint64_t)&__ehdr_start + __ehdr_start.e_phoff == session.phdr;
}

static bool is_preloaded(char *const *envp)
{
	const char *list = config_variable(envp, "LD_PRELOAD");
	struct arena arena = { 0 };
	size_t len;
	bool found;

	if (in_main_program() || __start_ftr_text)
		return false;
	if (list && names_library(list))
		return true;
	list = sys_slurp(&arena, "/etc/ld.so.preload", &len);
	found = list && names_library(list);
	arena_free(&arena);
	return found;
}

__attribute__((constructor)) static void preload(int argc, char **argv, char **envp)
{
	(void)argc;
	session_see(envp);
	if (is_preloaded(envp))
		start(argv, envp);
}
