/* SPDX-License-Identifier: MIT */
/* Overrides: functions of libc fail in the program and in its libraries, ours are not harmed. */
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sink;

static struct ftr_probe *override(const char *name, const struct ftr_fault *fault)
{
	const struct ftr_probe_spec spec = { .name = name };
	struct ftr_probe *probe = NULL;
	int n = ftr_override(&spec, fault, &probe);

	CHECK(n > 0, "%s: %d %s", name, n, ftr_error());
	return probe;
}

static struct ftr_probe *failing(const char *name, long value, int error)
{
	struct ftr_probe *probe = NULL;

	CHECK(ftr_fail(name, (uint64_t)value, error, 1, 0, &probe) > 0, "%s: %s", name, ftr_error());
	errno = 0;
	return probe;
}

static void end(struct ftr_probe *probe, int error)
{
	int seen = errno;

	CHECK_INT(ftr_detach(probe), 0);
	CHECK_INT(seen, error);
}

static void *thread_main(void *arg)
{
	return arg;
}

static void fails_in_the_program(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int s = socket(AF_INET, SOCK_STREAM, 0), fd = open("/dev/zero", O_RDONLY);
	void *(*volatile allocate)(size_t) = malloc;
	struct ftr_probe *p;
	pthread_t thread;
	char byte = 1;

	p = failing("malloc", 0, ENOMEM);
	CHECK(!allocate(10));
	end(p, ENOMEM);
	free(allocate(10));
	p = failing("read", -1, EIO);
	CHECK_INT(read(fd, &byte, 1), -1);
	end(p, EIO);
	CHECK_INT(byte, 1);
	CHECK_INT(read(fd, &byte, 1), 1);
	p = failing("open", -1, ENFILE);
	CHECK_INT(open("/dev/zero", O_RDONLY), -1);
	end(p, ENFILE);
	p = failing("connect", -1, ECONNREFUSED);
	CHECK_INT(connect(s, (struct sockaddr *)&address, sizeof(address)), -1);
	end(p, ECONNREFUSED);
	p = failing("pthread_create", EAGAIN, 0);
	CHECK_INT(pthread_create(&thread, NULL, thread_main, NULL), EAGAIN);
	end(p, 0);
	CHECK_INT(pthread_create(&thread, NULL, thread_main, NULL), 0);
	pthread_join(thread, NULL);
	close(s);
	close(fd);
}

/* strdup calls malloc inside libc, or not, by a way that can be patched. */
static void fails_in_libraries(void)
{
	struct ftr_probe *p = failing("malloc", 0, ENOMEM);
	char *(*volatile copy)(const char *) = strdup;

	CHECK(!copy("text"));
	end(p, ENOMEM);
	free(copy("text"));
}

NOINLINE static long number(long n)
{
	return n + sink;
}

NOINLINE static double real(double x)
{
	return x * 2 + (double)sink;
}

NOINLINE static float narrow(float x)
{
	return x * 2 + (float)sink;
}

static void returns_values_of_any_type(void)
{
	struct ftr_probe *p = override("number", &(struct ftr_fault){ .value = 1ull << 40 });

	CHECK_INT(number(1), 1l << 40);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(number(1), 1);
	p = override("real", &(struct ftr_fault){ .type = 'd', .real = -0.5 });
	CHECK(real(1) == -0.5);
	CHECK_INT(ftr_detach(p), 0);
	CHECK(real(1) == 2);
	p = override("narrow", &(struct ftr_fault){ .type = 'f', .real = 0.25 });
	CHECK(narrow(1) == 0.25f);
	CHECK_INT(ftr_detach(p), 0);
	CHECK(narrow(1) == 2);
}

static void chooses_calls(void)
{
	struct ftr_probe *p = override("number",
		&(struct ftr_fault){ .value = (uint64_t)-1, .from = 3, .to = 7, .every = 2 });
	struct ftr_counts counts;
	long failed = 0;

	for (int i = 1; i <= 10; i++)
		failed |= (number(i) == -1) << i;
	CHECK_INT(failed, 1 << 3 | 1 << 5 | 1 << 7);
	CHECK(!ftr_read(p, &counts) && counts.calls == 10);
	CHECK_INT(ftr_reset(p), 0); /* and count from 1 again */
	failed = 0;
	for (int i = 1; i <= 10; i++)
		failed |= (number(i) == -1) << i;
	CHECK_INT(failed, 1 << 3 | 1 << 5 | 1 << 7);
	CHECK_INT(ftr_detach(p), 0);
}

NOINLINE static long first_caller(long n)
{
	return number(n) * 2;
}

NOINLINE static long second_caller(long n)
{
	return number(n) * 2;
}

static void chooses_callers(void)
{
	struct ftr_probe *p =
		override("number", &(struct ftr_fault){ .value = 100, .caller = "first_*" });

	CHECK_INT(first_caller(1), 200);
	CHECK_INT(second_caller(1), 2);
	CHECK_INT(ftr_detach(p), 0);
	p = override("number", &(struct ftr_fault){ .value = 100, .caller_module = "libc.so*" });
	CHECK_INT(first_caller(1), 2);
	CHECK_INT(ftr_detach(p), 0);
}

static void allocates(struct ftr_call *call, void *data)
{
	void *(*volatile allocate)(size_t) = malloc;

	(void)call;
	*(void **)data = allocate(32);
	free(*(void **)data);
}

/* Without memory for anybody probes come and go, and handlers have memory. */
static void spares_ftr_and_handlers(void)
{
	struct ftr_probe *no_memory = failing("*alloc", 0, ENOMEM), *p;
	int prepared = ftr_call_stack_prepare();
	void *got = NULL;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .name = "number", .entry = allocates,
			    .data = &got }), &p), 1);
	number(1);
	CHECK(got);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(ftr_detach(no_memory), 0);
	CHECK_INT(prepared, ftr_call_stack_prepare());
}

/* A child counts its own calls. */
static void counts_from_the_start_in_a_child(void)
{
	struct ftr_probe *p =
		override("number", &(struct ftr_fault){ .value = 100, .from = 2, .to = 2 });
	int status;

	CHECK_INT(number(1), 1);
	if (fork() == 0)
		_exit(number(1) == 1 && number(1) == 100 && number(1) == 1 ? 0 : 1);
	CHECK(wait(&status) > 0);
	CHECK_INT(status, 0);
	CHECK_INT(number(1), 100);
	CHECK_INT(ftr_detach(p), 0);
}

static void *many(void *failed)
{
	for (int i = 0; i < 10000; i++)
		if (number(i) == -1)
			__atomic_fetch_add((long *)failed, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* However many threads there are, as many calls fail. */
static void threads_share_the_count(void)
{
	const struct ftr_fault fault = { .value = (uint64_t)-1, .probability = 0.25, .seed = 3 };
	struct ftr_probe *p = override("number", &fault);
	pthread_t threads[4];
	long one = 0, four = 0;

	for (int i = 0; i < 4; i++)
		many(&one);
	CHECK_INT(ftr_detach(p), 0);
	p = override("number", &fault);
	for (int i = 0; i < 4; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, many, &four), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_INT(ftr_detach(p), 0);
	CHECK_INT(four, one);
	CHECK(one > 9000 && one < 11000, "%ld", one);
}

static void detach_it(struct ftr_call *call, void *data)
{
	(void)call;
	CHECK_INT(ftr_detach(data), 0);
}

/* What a fault consists of stays as long as other threads look at it. */
static void detached_by_a_handler(void)
{
	pthread_t threads[3];
	long failed = 0;

	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, many, &failed), 0);
	for (int i = 0; i < 20; i++) {
		struct ftr_probe *fault = override("number",
			&(struct ftr_fault){ .value = (uint64_t)-1, .caller = "man?" });
		struct ftr_probe *p = attach(second_caller, detach_it, NULL, fault);

		CHECK_INT(second_caller(1), 2);
		CHECK_INT(ftr_detach(p), 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK_INT(number(1), 1);
}

static void refuses(void)
{
	const struct ftr_probe_spec spec = { .name = "number" };
	const struct ftr_probe_spec with_data = { .name = "number", .data = (void *)&sink };
	struct ftr_probe *p = NULL;

	CHECK_INT(ftr_override(&with_data, &(struct ftr_fault){ 0 }, &p), -EINVAL);
	CHECK_INT(ftr_override_sized(&spec, sizeof(spec), &(struct ftr_fault){ 0 }, 8, &p), -EINVAL);
	CHECK_INT(ftr_override(&spec, &(struct ftr_fault){ .type = 'x' }, &p), -EINVAL);
	CHECK_INT(ftr_override(&spec, &(struct ftr_fault){ .caller = "no_such" }, &p), -ENOENT);
	CHECK(!strcmp(ftr_error(), "no such caller"), "%s", ftr_error());
	CHECK_INT(ftr_fail("no_such_function", 0, 0, 1, 1, &p), -ENOENT);
	CHECK_INT(ftr_fail("number", 0, 0, 7, 2, &p), -EINVAL);
	CHECK(!p);
}

int main(void)
{
	need_handlers();
	fails_in_the_program();
	fails_in_libraries();
	returns_values_of_any_type();
	chooses_calls();
	chooses_callers();
	spares_ftr_and_handlers();
	counts_from_the_start_in_a_child();
	threads_share_the_count();
	detached_by_a_handler();
	refuses();
	puts("ok");
	return 0;
}
