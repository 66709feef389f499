/* SPDX-License-Identifier: MIT */
/*
 * The preload library's constructor. With -z initfirst it runs before every other constructor of
 * the program, libc's included; environ is not set yet, so the arguments are taken from here
 * (glibc passes argc, argv, envp to constructors).
 */
#include "start.h"

__attribute__((constructor)) static void preload(int argc, char **argv, char **envp)
{
	(void)argc;
	start(argv, envp);
}
