/* SPDX-License-Identifier: MIT */
/* Runs the child processes and collects what they measured. */
#define _GNU_SOURCE
#include "bench.h"
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const world_names[WORLDS] = {"plain", "count", "profile"};
struct result results[WORLDS][ROWS_MAX];
struct flushes flushes;

size_t find_row(const char *name)
{
	for (size_t i = 0; i < nrows; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return i;
	}
	die("no row \"%s\"", name);
}

static void set_problem(struct result *result, const char *why)
{
	snprintf(result->problem, sizeof(result->problem), "%s", why);
}

static void set_flush_problem(const char *why)
{
	snprintf(flushes.problem, sizeof(flushes.problem), "%s", why);
}

static void take_line(enum world world, const char *line)
{
	char name[64], what[160];
	struct result *result;
	double ns, share;

	if (sscanf(line, "%63s %159[^\n]", name, what) != 2)
		die("a child said: %s", line);
	if (strcmp(name, "flushes") == 0) {
		set_flush_problem(what + 2);
		return;
	}
	result = &results[world][find_row(name)];
	if (what[0] == '!')
		set_problem(result, what + 2);
	else if (sscanf(what, "= %ju", &result->calls) == 1)
		return;
	else if (sscanf(what, "%lf %lf", &ns, &share) == 2) {
		if (result->n == 0 || share < result->share)
			result->share = share;
		result->ns[result->n++] = ns;
	} else
		die("a child said: %s", line);
}

static void exec_child(enum world world, const char *dir)
{
	char world_arg[16], cpu_arg[32], seconds_arg[32];

	if (world != WORLD_PLAIN) {
		setenv("LD_PRELOAD", bench.library, 1);
		setenv("FTR_DATA", dir, 1);
		setenv("FTR_MODE", world_names[world], 1);
		setenv("FTR_MODULES", "*libftr-bench-target*", 1);
		unsetenv("FTR_FUNCTIONS");
	}
	snprintf(world_arg, sizeof(world_arg), "%d", world);
	snprintf(cpu_arg, sizeof(cpu_arg), "%d,%d", bench.cpus[0], bench.cpus[1]);
	snprintf(seconds_arg, sizeof(seconds_arg), "%g", bench.seconds);
	execl(bench.self, "ftr-bench", "--cpus", cpu_arg, "--seconds", seconds_arg, "--library",
		bench.library, "--child", world_arg, (char *)NULL);
	die("cannot run %s: %s", bench.self, strerror(errno));
}

static void run_child(enum world world, const char *dir)
{
	char *line = NULL;
	size_t room = 0;
	int pipe_fds[2], status;
	FILE *from;
	pid_t pid;

	fflush(stdout);
	if (pipe(pipe_fds) || (pid = fork()) < 0)
		die("cannot start a child: %s", strerror(errno));
	if (pid == 0) {
		dup2(pipe_fds[1], STDOUT_FILENO);
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		exec_child(world, dir);
	}
	close(pipe_fds[1]);
	from = fdopen(pipe_fds[0], "r");
	while (from && getline(&line, &room, from) > 0)
		take_line(world, line);
	free(line);
	if (from)
		fclose(from);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		die("the child in mode %s failed (wait status 0x%x)", world_names[world],
			(unsigned int)status);
}

/* Does the data say what was done? Rows of the same function are checked together. */
static void check_counts(enum world world, const char *dir)
{
	for (size_t i = 0; i < nrows; i++) {
		uint64_t calls, returned, wanted = 0;
		struct result *result = &results[world][i];
		const char *why;

		if (!rows[i].traced_too || result->problem[0])
			continue;
		for (size_t k = 0; k < nrows; k++) {
			if (rows[k].function == rows[i].function)
				wanted += results[world][k].calls;
		}
		why = counts_read(dir, rows[i].function_name, &calls, &returned);
		if (why)
			set_problem(result, why);
		else if (calls != wanted || returned != (rows[i].entry_only ? 0 : wanted)) {
			snprintf(result->problem, sizeof(result->problem),
				"%ju calls made, but %ju entries and %ju returns counted",
				(uintmax_t)wanted, (uintmax_t)calls, (uintmax_t)returned);
			result->wrong = true;
		}
	}
}

static void read_flushes(const char *dir)
{
	const char *why = counts_flushes(dir, &flushes.asked, &flushes.done);

	if (why)
		set_flush_problem(why);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void run_traced(enum world world)
{
	char dir[] = "/tmp/ftr-bench.XXXXXX";

	if (!mkdtemp(dir))
		die("%s: %s", dir, strerror(errno));
	run_child(world, dir);
	check_counts(world, dir);
	if (world == WORLD_COUNT)
		read_flushes(dir);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void summarize(struct result *r)
{
	if (r->n == 0)
		return;
	qsort(r->ns, (size_t)r->n, sizeof(r->ns[0]), compare_doubles);
	r->min = r->ns[0];
	r->max = r->ns[r->n - 1];
	r->median = (r->ns[(r->n - 1) / 2] + r->ns[r->n / 2]) / 2;
}

/* Without the library nothing can be traced: say so once, not in every child. */
static bool no_library(enum world world)
{
	if (access(bench.library, R_OK) == 0)
		return false;
	for (size_t i = 0; i < nrows; i++) {
		if (rows[i].traced_too)
			set_problem(&results[world][i], "there is no libftr.so");
	}
	set_flush_problem("there is no libftr.so");
	return true;
}

bool run_all(void)
{
	bool right = true;

	for (int rep = 0; rep < bench.repetitions; rep++) {
		run_child(WORLD_PLAIN, NULL);
		for (int world = WORLD_COUNT; world < WORLDS; world++) {
			if (!no_library(world))
				run_traced(world);
		}
	}
	for (int world = 0; world < WORLDS; world++) {
		for (size_t i = 0; i < nrows; i++) {
			summarize(&results[world][i]);
			right = right && !results[world][i].wrong;
		}
	}
	return right;
}
