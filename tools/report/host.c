/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "host.h"

#define CALIBRATION_NS 20000000

static void host_read_file(const char *path, char *buf, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t len = 0;

	if (file) {
		len = fread(buf, 1, size - 1, file);
		fclose(file);
	}
	buf[len] = 0;
}

bool host_is_this_boot(const uint64_t boot_id[2])
{
	uint64_t halves[2] = { 0, 0 };
	char text[64];
	size_t digits = 0;

	host_read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	for (const char *s = text; *s && digits < 32; s++) {
		char digit[2] = { *s, 0 };

		if (isxdigit((unsigned char)*s)) {
			uint64_t *half = &halves[digits++ / 16];

			*half = *half << 4 | strtoul(digit, NULL, 16);
		}
	}
	return digits == 32 && halves[0] == boot_id[0] && halves[1] == boot_id[1];
}

/* Field @n of a stat file, counted as proc(5) does. Field 2 may hold anything in parentheses. */
static const char *host_stat_field(const char *stat, int n)
{
	const char *field = strrchr(stat, ')');

	for (int i = 2; field && i < n; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	return field;
}

bool host_is_running(uint32_t pid, uint64_t start_time)
{
	char path[32], stat[1024];
	const char *state, *start;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	host_read_file(path, stat, sizeof(stat));
	state = host_stat_field(stat, 3);
	start = host_stat_field(stat, 22);
	return state && start && *state != 'Z' && *state != 'X' &&
	       strtoull(start, NULL, 10) == start_time;
}

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
static uint64_t host_ticks(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
static uint64_t host_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#elif defined(__powerpc64__)
#define HOST_MACHINE EM_PPC64
static uint64_t host_ticks(void)
{
	return __builtin_ppc_get_timebase();
}
#else
#define HOST_MACHINE EM_NONE
static uint64_t host_ticks(void)
{
	return 0;
}
#endif

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Both clocks at one moment: the reading that took the least time of several. */
static struct host_rate host_both_clocks(void)
{
	struct host_rate best = { 0, 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before = host_ticks();
		uint64_t ns = host_ns();
		uint64_t took = host_ticks() - before;

		if (took < shortest) {
			shortest = took;
			best = (struct host_rate){ before + took / 2, ns };
		}
	}
	return best;
}

struct host_rate host_clock_rate(uint32_t machine)
{
	static struct host_rate rate;
	const struct timespec pause = { 0, CALIBRATION_NS };
	struct host_rate from, to;

	if (machine != HOST_MACHINE)
		return (struct host_rate){ 0, 0 };
	if (rate.ticks)
		return rate;
	/*
	 * Two readings now, not the program's first one and one now: in between the machine may
	 * have been suspended, which stops one clock and not the other.
	 */
	from = host_both_clocks();
	nanosleep(&pause, NULL);
	to = host_both_clocks();
	rate = (struct host_rate){ to.ticks - from.ticks, to.ns - from.ns };
	return rate;
}
