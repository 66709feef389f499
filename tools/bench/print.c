/* SPDX-License-Identifier: MIT */
/* What was measured, for people and for programs. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

/* What a row adds to the same call untraced; 0 when there is nothing to compare with. */
static double added(enum world world, size_t i)
{
	size_t base = i;

	if (world == WORLD_PLAIN) {
		if (!rows[i].probe && !rows[i].nprobes)
			return 0;
		for (base = 0; rows[base].function != rows[i].function; base++)
			;
	}
	return results[world][i].median - results[WORLD_PLAIN][base].median;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

typedef void print_row(enum world world, size_t i, const struct result *r);

static void each_row(print_row *print)
{
	for (int world = 0; world < WORLDS; world++) {
		for (size_t i = 0; i < nrows; i++) {
			const struct result *r = &results[world][i];

			if (r->n || r->problem[0])
				print(world, i, r);
		}
	}
}

static double empty_ns(void)
{
	return results[WORLD_PLAIN][find_row("empty")].median;
}

static double clock_ns(void)
{
	return results[WORLD_PLAIN][find_row("clock")].median;
}

static void text_row(enum world world, size_t i, const struct result *r)
{
	printf("%-8s %-15s ", world_names[world], rows[i].name);
	if (r->problem[0]) {
		printf("%s: %s\n", r->wrong ? "WRONG" : "not measured", r->problem);
		return;
	}
	printf("%9.2f %9.2f %9.2f %8.1f %8.2f", r->median, r->min, r->max,
		ratio(r->median, empty_ns()), ratio(r->median, clock_ns()));
	if (world != WORLD_PLAIN || rows[i].probe || rows[i].nprobes)
		printf(" %9.2f %8.2f", added(world, i), ratio(added(world, i), clock_ns()));
	else
		printf(" %9s %8s", "-", "-");
	printf(" %5.0f\n", r->share * 100);
}

/* Calls per second of two threads together, against one. */
static double scaling(enum world world, const char *one, const char *two)
{
	return 2 *
	       ratio(results[world][find_row(one)].median, results[world][find_row(two)].median);
}

static void print_scaling(enum world world, const char *one, const char *two)
{
	if (results[world][find_row(two)].problem[0] == '\0')
		printf("%-8s %-15s %.2f x the calls per second of one thread\n", world_names[world],
			two, scaling(world, one, two));
}

static void text_flushes(void)
{
	printf("%-8s %-15s ", world_names[WORLD_COUNT], "flushes");
	if (flushes.problem[0])
		printf("not measured: %s\n", flushes.problem);
	else if (!flushes.asked)
		printf("none to do: instruction caches see what is stored\n");
	else
		printf("%ju done of %ju asked for, %.1f %% saved: the code was there already\n",
			(uintmax_t)flushes.done, (uintmax_t)flushes.asked,
			100 * (1 - ratio((double)flushes.done, (double)flushes.asked)));
}

void print_text(const char *machine)
{
	printf("# %s\n# CPU %d, %d repetitions of %g s each; times are nanoseconds per call\n",
		machine, bench.cpus[0], bench.repetitions, bench.seconds);
	printf("%-8s %-15s %9s %9s %9s %8s %8s %9s %8s %5s\n", "mode", "row", "median", "min",
		"max", "/empty", "/clock", "added", "/clock", "cpu%");
	each_row(text_row);
	putchar('\n');
	for (int world = 0; world < WORLDS; world++)
		print_scaling(world, "empty", "empty-2");
	print_scaling(WORLD_PLAIN, "own-stack", "own-stack-2");
	print_scaling(WORLD_PLAIN, "free-list", "free-list-2");
	text_flushes();
}

static const char *separator = "";

static void print_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		if ((unsigned char)*s >= ' ')
			putchar(*s);
	}
	putchar('"');
}

static void json_row(enum world world, size_t i, const struct result *r)
{
	printf("%s\n  {\"mode\": \"%s\", \"row\": \"%s\", \"threads\": %u, ", separator,
		world_names[world], rows[i].name, rows[i].threads);
	separator = ",";
	if (r->problem[0]) {
		printf("\"%s\": ", r->wrong ? "wrong" : "not_measured");
		print_string(r->problem);
	} else {
		printf("\"ns\": %.3f, \"min\": %.3f, \"max\": %.3f, \"per_empty\": %.3f, "
		       "\"per_clock\": %.3f, \"added_ns\": %.3f, \"cpu_share\": %.3f",
			r->median, r->min, r->max, ratio(r->median, empty_ns()),
			ratio(r->median, clock_ns()), added(world, i), r->share);
	}
	putchar('}');
}

void print_json(const char *machine)
{
	printf("{\"machine\": ");
	print_string(machine);
	printf(", \"cpu\": %d, \"repetitions\": %d, \"seconds\": %g, \"rows\": [", bench.cpus[0],
		bench.repetitions, bench.seconds);
	each_row(json_row);
	printf("\n], \"flushes\": {");
	if (flushes.problem[0]) {
		printf("\"not_measured\": ");
		print_string(flushes.problem);
	} else {
		printf("\"asked\": %ju, \"done\": %ju", (uintmax_t)flushes.asked,
			(uintmax_t)flushes.done);
	}
	printf("}}\n");
}
