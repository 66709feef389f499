/* SPDX-License-Identifier: MIT */
/*
 * Probes come while other threads load libraries: a constructor may attach although another thread
 * does so at the moment, what both are given numbers for is told apart, and no library is unloaded
 * under a probe that comes or goes.
 * Usage: loader LIBRARY
 */
#include "check.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOADS	  30
#define RELOADS	  1000
#define LOOKS	  200
#define TIMES	  1000
#define TEN(x, i) x(i##0) x(i##1) x(i##2) x(i##3) x(i##4) x(i##5) x(i##6) x(i##7) x(i##8) x(i##9)
#define SOME(x)	  TEN(x, 1) TEN(x, 2) TEN(x, 3)
#define FUNCTIONS 30

static const char *library;
static atomic_int other; /* the thread that attaches meanwhile */

NOINLINE static int in_constructor(int n)
{
	return 1000 * n + 1;
}

NOINLINE static int elsewhere(int n)
{
	return 1000 * n + 2;
}

static struct ftr_probe *attach_and_call(int (*function)(int), int result)
{
	int (*volatile called)(int) = function;
	struct ftr_probe *p = attach(function, NULL, NULL, NULL);

	CHECK_INT(called(1), result);
	CHECK_COUNTS(p, 1, 1, 0);
	return p;
}

static void *attach_elsewhere(void *unused)
{
	other = (int)syscall(SYS_gettid);
	CHECK_INT(ftr_detach(attach_and_call(elsewhere, 1002)), 0);
	return unused;
}

/* Until @tid waits for something, and goes on waiting, since we have it. */
static void await_sleep(int tid)
{
	char path[64], before[256] = "", text[256] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	for (int same = 0; same < LOOKS;
		same = !strncmp(text, "running", 7) || strcmp(text, before) ? 0 : same + 1) {
		int fd = open(path, O_RDONLY);

		memcpy(before, text, sizeof(before));
		memset(text, 0, sizeof(text));
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
			printf("SKIP: %s cannot be read\n", path);
			_exit(77);
		}
		close(fd);
		sched_yield();
	}
}

static pthread_t thread;
static bool want_other;

void constructed(void);
__attribute__((visibility("default"))) void constructed(void)
{
	if (!want_other)
		return;
	pthread_create(&thread, NULL, attach_elsewhere, NULL);
	while (!other)
		;
	await_sleep(other);
	CHECK_INT(ftr_detach(attach_and_call(in_constructor, 1001)), 0);
}

static void *load(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW);

	CHECK(handle, "%s", dlerror());
	return handle;
}

static void attaches_in_a_constructor(void)
{
	void *handle;

	want_other = true;
	handle = load(library);
	want_other = false;
	pthread_join(thread, NULL);
	CHECK_INT(dlclose(handle), 0);
}

/* ---- numbers of functions ---- */

static void copy(const char *to)
{
	char buffer[4096];
	int in = open(library, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	CHECK(in >= 0 && out >= 0);
	for (ssize_t n; (n = read(in, buffer, sizeof(buffer))) > 0;)
		CHECK_INT(write(out, buffer, (size_t)n), n);
	close(in);
	close(out);
}

static pthread_barrier_t begin;

static void *load_copies(void *unused)
{
	char path[] = "/tmp/ftr_loader.XXXXXX", name[64];

	CHECK(mkdtemp(path));
	pthread_barrier_wait(&begin);
	for (int i = 0; i < LOADS; i++) {
		int (*next)(int);

		snprintf(name, sizeof(name), "%s/%d.so", path, i);
		copy(name);
		*(void **)&next = dlsym(load(name), "constructed_next");
		for (int k = 0; k < TIMES; k++)
			CHECK_INT(next(k), 3 * (k + 1));
		unlink(name);
	}
	rmdir(path);
	return unused;
}

#define FUNCTION(i)                                                                                \
	NOINLINE static int function_##i(int n)                                                    \
	{                                                                                          \
		return 1000 * n + i;                                                               \
	}
#define NAME(i) function_##i,
SOME(FUNCTION)
static int (*const functions[FUNCTIONS])(int) = { SOME(NAME) };

static void numbers_are_told_apart(void)
{
	struct ftr_probe *probes[FUNCTIONS];

	pthread_barrier_init(&begin, NULL, 2);
	CHECK_INT(pthread_create(&thread, NULL, load_copies, NULL), 0);
	pthread_barrier_wait(&begin);
	for (int i = 0; i < FUNCTIONS; i++)
		probes[i] = attach_and_call(functions[i], 1010 + i);
	pthread_join(thread, NULL);
	for (int i = 0; i < FUNCTIONS; i++) {
		CHECK_COUNTS(probes[i], 1, 1, 0);
		CHECK_INT(ftr_detach(probes[i]), 0);
	}
}

/* ---- what is attached to is unloaded ---- */

static atomic_bool unloaded;

static void *unload(void *unused)
{
	for (int i = 0; i < RELOADS; i++) {
		void *handle = load(library);
		int (*next)(int);

		*(void **)&next = dlsym(handle, "constructed_next");
		CHECK_INT(next(i), 3 * (i + 1));
		CHECK_INT(dlclose(handle), 0);
	}
	unloaded = true;
	return unused;
}

/* No code goes away while it is looked at or patched. */
static void unloads_meanwhile(void)
{
	const struct ftr_probe_spec spec = { .name = "constructed_next" };
	struct ftr_probe *p;

	CHECK_INT(pthread_create(&thread, NULL, unload, NULL), 0);
	while (!unloaded) {
		int n = ftr_attach(&spec, &p);

		if (n == -ENOENT || n == -EBUSY)
			continue;
		CHECK_INT(n, 1);
		n = ftr_detach(p);
		CHECK(!n || n == -EBUSY, "%d", n);
	}
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	CHECK_INT(argc, 2);
	library = argv[1];

	attaches_in_a_constructor();
	numbers_are_told_apart();
	unloads_meanwhile();
	puts("ok");
	return 0;
}
