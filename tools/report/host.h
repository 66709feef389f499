/* SPDX-License-Identifier: MIT */
/* What the running system tells about traced processes. */
#ifndef REPORT_HOST_H
#define REPORT_HOST_H

#include <stdbool.h>
#include <stdint.h>

/* @ticks of the clock take @ns. ticks = 0: not known. */
struct host_rate {
	uint64_t ticks;
	uint64_t ns;
};

/* Whether the kernel's boot id, a UUID, is this number of 128 bits, the upper half first. */
bool host_is_this_boot(const uint64_t boot_id[2]);

/* The process that was started at @start_time (/proc/PID/stat field 22) is there, no zombie. */
bool host_is_running(uint32_t pid, uint64_t start_time);

/*
 * The rate of this machine's clock, if it is the one that programs of ELF machine @machine read.
 * The first call takes 20 ms.
 */
struct host_rate host_clock_rate(uint32_t machine);

#endif
