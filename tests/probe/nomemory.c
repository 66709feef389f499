/* SPDX-License-Identifier: MIT */
/* Probes are detached where there is no memory for what that takes: their handlers are not called again. */
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

static void count(struct ftr_call *call, void *data)
{
	(void)call;
	++*(volatile long *)data;
}

/* Handlers at many functions. */
static struct ftr_probe *attach_many(const char *name, volatile long *hits)
{
	const struct ftr_probe_spec spec = { .name = name, .module = "libc.so*", .entry = count,
		.data = (void *)hits, .flags = FTR_BEST_EFFORT | FTR_GENERAL_REGS };
	struct ftr_probe *p;
	int n = ftr_attach(&spec, &p);

	CHECK(n > 20, "%d: %s", n, ftr_error());
	return p;
}

NOINLINE static int watched(int n)
{
	return n * 3 + 1;
}

/* Return handlers are called, or ftr_attach() says that they would not be. */
static void needs_room_for_returns(void)
{
	struct ftr_probe *counter = attach(watched, NULL, NULL, NULL), *p;
	struct ftr_probe_spec spec = { .function = watched, .ret = count };
	FILE *statm = fopen("/proc/self/statm", "r");
	volatile long hits = 0;
	struct rlimit limit;
	long pages;
	rlim_t was;
	int n;

	CHECK(statm && fscanf(statm, "%ld", &pages) == 1);
	fclose(statm);
	watched(1); /* makes the thread known */
	spec.data = (void *)&hits;
	CHECK_INT(getrlimit(RLIMIT_AS, &limit), 0);
	was = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (30 << 20);
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
	n = ftr_attach(&spec, &p);
	CHECK(n == 1 || n == -ENOMEM, "%d", n);
	CHECK_INT(watched(1), 4);
	CHECK(hits == (n == 1), "%ld", hits);
	limit.rlim_cur = was;
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
	if (n == 1)
		CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_detach(counter), 0);
}

int main(void)
{
	static volatile long first, second, rest;
	struct ftr_probe *here[14], *there[13];
	struct rlimit limit;
	rlim_t was;
	int err;

	if (is_emulated()) {
		puts("SKIP: an emulator has no limits of memory");
		return 77;
	}
	needs_room_for_returns(); /* before this thread has any */
	/* The lists of as many handlers are large, and those that were replaced are in use again. */
	for (int i = 0; i < 14; i++)
		here[i] = attach_many("[n-z_]*", i == 0 ? &first : i == 1 ? &second : &rest);
	for (int i = 0; i < 13; i++)
		there[i] = attach_many("[a-m]*", &rest);
	first = second = 0;
	rand();
	CHECK(first && first == second, "%ld %ld", first, second);
	CHECK_INT(getrlimit(RLIMIT_AS, &limit), 0);
	was = limit.rlim_cur;
	limit.rlim_cur = 1;
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
	err = ftr_detach(here[0]);
	CHECK(err == 0 || err == -ENOMEM, "%d", err);
	first = second = 0;
	rand();
	CHECK(!first && second, "%ld %ld", first, second);
	limit.rlim_cur = was;
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
	/* What is silent goes with the next list. */
	here[0] = attach_many("[n-z_]*", &first);
	first = second = 0;
	rand();
	CHECK(first && first == second, "%ld %ld", first, second);
	for (int i = 0; i < 14; i++)
		CHECK_INT(ftr_detach(here[i]), 0);
	for (int i = 0; i < 13; i++)
		CHECK_INT(ftr_detach(there[i]), 0);
	puts("ok");
	return 0;
}
