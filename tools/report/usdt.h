/* SPDX-License-Identifier: MIT */
/* The static probes of a file. */
#ifndef REPORT_USDT_H
#define REPORT_USDT_H

#include <stdio.h>

/* List the probes of sys/sdt.h in the ELF file @path. 0, or -1 after one line to @errors. */
int usdt_list(const char *path, FILE *to, FILE *errors);

#endif
