/* SPDX-License-Identifier: MIT */
#ifndef TRACER_START_H
#define TRACER_START_H

/*
 * Trace this process as its environment asks. Called once, by the preload constructor, while there
 * is one thread. Whatever goes wrong, the program runs on untouched. @envp is followed by the
 * auxiliary vector.
 */
void start(char *const *argv, char *const *envp);

#endif
