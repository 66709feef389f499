// SPDX-License-Identifier: MIT
/* The runner behind the stand-in for Criterion. Its last line is like Criterion's. */
#include <criterion/criterion.h>

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_FAILED = 1, STATUS_SKIPPED = 77 };

static struct standin_test *tests;
static struct standin_suite *suites;
static const struct standin_test *running;
static bool failed; /* in the process of a test */

void standin_add(struct standin_test *test)
{
	struct standin_test **last = &tests;

	while (*last)
		last = &(*last)->next;
	*last = test;
}

void standin_add_suite(struct standin_suite *suite)
{
	suite->next = suites;
	suites = suite;
}

/* That of @test; NULL: nothing is said of it. */
static const struct standin_suite *standin_suite_of(const struct standin_test *test)
{
	const struct standin_suite *suite = suites;

	while (suite && strcmp(suite->name, test->suite) != 0)
		suite = suite->next;
	return suite;
}

static void standin_say(const char *kind, const char *format, va_list args)
{
	printf("[%s] %s::%s:", kind, running->suite, running->name);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
}

void standin_fail(const struct standin_place *place, const char *format, ...)
{
	va_list args;

	printf("%s:%d: not so: %s\n", place->file, place->line, place->condition);
	va_start(args, format);
	standin_say("FAIL", format, args);
	va_end(args);
	failed = true;
	if (place->fatal)
		_exit(STATUS_FAILED);
}

void standin_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	standin_say("SKIP", format, args);
	va_end(args);
	_exit(STATUS_SKIPPED);
}

void standin_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	standin_say("INFO", format, args);
	va_end(args);
}

/* In its own process. */
static void standin_run_here(const struct standin_test *test)
{
	const struct standin_suite *suite = standin_suite_of(test);

	alarm((unsigned int)test->timeout);
	if (suite && suite->init)
		suite->init();
	if (test->init)
		test->init();
	test->run();
	if (suite && suite->fini)
		suite->fini();
	fflush(stdout);
	_exit(failed ? STATUS_FAILED : 0);
}

/* The status of a process of its own in which the test ran. */
static int standin_run(const struct standin_test *test)
{
	int status;
	pid_t pid;

	running = test;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		standin_run_here(test);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("standin: fork");
		exit(2);
	}
	return status;
}

/* Options are Criterion's; only --filter SUITE/NAME, with wildcards, means anything here. */
int main(int argc, char **argv)
{
	unsigned int ntests = 0, passed = 0, unsuccessful = 0, crashed = 0;
	const char *filter = "*";

	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--filter") == 0)
			filter = argv[i + 1];
	for (const struct standin_test *test = tests; test; test = test->next) {
		char name[256];
		int status;

		snprintf(name, sizeof(name), "%s/%s", test->suite, test->name);
		if (fnmatch(filter, name, 0) != 0)
			continue;
		status = standin_run(test);
		if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIPPED)
			continue;
		ntests++;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			passed++;
			printf("[PASS] %s::%s\n", test->suite, test->name);
		} else if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_FAILED) {
			unsuccessful++;
		} else {
			crashed++;
			printf("[CRASH] %s::%s: wait status %#x\n", test->suite, test->name, status);
		}
	}
	printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: %u\n", ntests, passed,
		unsuccessful, crashed);
	return unsuccessful || crashed ? 1 : 0;
}
