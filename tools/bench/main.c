/* SPDX-License-Identifier: MIT */
/* ftr-bench: what tracing a call costs. See bench.h for how it measures. */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct bench bench = {.repetitions = 5, .seconds = 0.1, .cpus = {-1, -1}};

void die(const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("ftr-bench: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void describe_machine(char *buf, size_t size)
{
	char line[256], model[160] = "unknown CPU";
	FILE *info = fopen("/proc/cpuinfo", "r");
	struct utsname uts;

	while (info && fgets(line, sizeof(line), info)) {
		if (sscanf(line, "model name : %159[^\n]", model) == 1)
			break;
	}
	if (info)
		fclose(info);
	uname(&uts);
	snprintf(buf, size, "%s, %s %s %s", model, uts.sysname, uts.release, uts.machine);
}

/* Choose the CPUs, and stay on the first. */
static void pin(int wanted)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity: %s", strerror(errno));
	if (wanted >= 0 && (wanted >= CPU_SETSIZE || !CPU_ISSET(wanted, &set)))
		die("CPU %d is not ours to run on", wanted);
	bench.cpus[0] = wanted;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set) || cpu == bench.cpus[0])
			continue;
		if (bench.cpus[0] < 0)
			bench.cpus[0] = cpu;
		else if (bench.cpus[1] < 0)
			bench.cpus[1] = cpu;
	}
	CPU_ZERO(&set);
	CPU_SET(bench.cpus[0], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot run on CPU %d: %s", bench.cpus[0], strerror(errno));
}

/* libftr.so: beside this program (as built), or where it is installed. */
static const char *find_library(const char *self)
{
	static const char *const places[] = {".", "../" FTR_LIBDIR};
	static char path[PATH_MAX + 32];
	char copy[PATH_MAX];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(copy, sizeof(copy), "%s", self);
		snprintf(path, sizeof(path), "%s/%s/libftr.so", dirname(copy), places[i]);
		if (access(path, R_OK) == 0)
			return path;
	}
	return "libftr.so";
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: ftr-bench [options]\n"
		"  -j, --json            print JSON\n"
		"  -q, --quick           a short run, for tests: figures are rough\n"
		"  -r, --repetitions N   5 to %d (default 5)\n"
		"  -s, --seconds S       length of one measurement (default 0.1)\n"
		"  -c, --cpu N           the CPU to run on (default: the first allowed one)\n"
		"  -l, --library PATH    the libftr.so to measure\n"
		"  -h, --help\n",
		REPETITIONS_MAX);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"repetitions", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 's'},
		{"cpu", required_argument, NULL, 'c'},
		{"library", required_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{"cpus", required_argument, NULL, 'C'}, /* for ourselves */
		{"child", required_argument, NULL, 'W'}, /* likewise */
		{NULL, 0, NULL, 0},
	};
	static char self[PATH_MAX];
	char machine[512];
	bool json = false, right;
	int cpu = -1, c;

	while ((c = getopt_long(argc, argv, "jqr:s:c:l:h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'q':
			bench.seconds = 0.005;
			break;
		case 'r':
			bench.repetitions = atoi(optarg);
			if (bench.repetitions < 5 || bench.repetitions > REPETITIONS_MAX)
				die("--repetitions wants 5 to %d", REPETITIONS_MAX);
			break;
		case 's':
			bench.seconds = atof(optarg);
			if (!(bench.seconds > 0 && bench.seconds <= 60))
				die("--seconds wants more than 0, at most 60");
			break;
		case 'c':
			cpu = atoi(optarg);
			if (cpu < 0)
				die("--cpu wants the number of a CPU");
			break;
		case 'l':
			bench.library = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'C':
			sscanf(optarg, "%d,%d", &bench.cpus[0], &bench.cpus[1]);
			break;
		case 'W':
			child_main((enum world)atoi(optarg));
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc) {
		usage(stderr);
		return 2;
	}

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		die("/proc/self/exe: %s", strerror(errno));
	bench.self = self;
	if (!bench.library)
		bench.library = find_library(self);
	pin(cpu);
	right = run_all();
	describe_machine(machine, sizeof(machine));
	if (json)
		print_json(machine);
	else
		print_text(machine);
	return !right;
}
