/* SPDX-License-Identifier: MIT */
/*
 * Eight threads that do for a while, in random order, what is hard on a tracer: recursion, longjmp,
 * throw, signals (one of which jumps out of whatever it interrupts), libraries that come and go,
 * threads, forks. Every function counts itself; at the end the numbers of all processes are printed
 * as "calls NAME N", "left NAME N" and, where a jump may come between the call and its own
 * count, "about NAME N SPARE".
 *
 *   soak SEED SECONDS
 *
 * library: late_lib.c -O1
 * library: phases_lib.c -O1
 */
#include "target.h"

#include <cerrno>
#include <cstring>
#include <csetjmp>
#include <csignal>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 8, COUNTERS_MAX = 64, FORKS_A_SECOND = 5, SPIN_MAX = 2000 };

/* First statement of a function that never returns. */
#define LEAVES(name)                                                                               \
	do {                                                                                       \
		HIT_AS(name);                                                                      \
		HIT_AS("left:" name);                                                              \
	} while (0)

static pthread_t workers[WORKERS];
static pthread_barrier_t ready;
static volatile bool stop;
static unsigned long *shared; /* what children have counted */
static long deadline, forks_left;
static const char *directory;

static thread_local unsigned long state;
static thread_local sigjmp_buf *volatile armed;

static unsigned pick(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 11) % n;
}

static NOIPA int climb(int depth)
{
	HIT();
	return depth ? OPAQUE(climb)(depth - 1) + 1 : 0;
}

static NOIPA void inner()
{
	HIT();
}

/* ---- leaving ---- */

static NOIPA void dive(int depth, jmp_buf *back)
{
	LEAVES("dive");
	if (depth)
		OPAQUE(dive)(depth - 1, back);
	longjmp(*back, 1);
}

static NOIPA void jumps()
{
	jmp_buf back;

	HIT();
	if (!setjmp(back))
		dive((int)pick(20), &back);
	climb(1);
}

static NOIPA void thrower(int depth)
{
	LEAVES("thrower");
	if (depth)
		OPAQUE(thrower)(depth - 1);
	throw depth;
}

static NOIPA void throws()
{
	HIT();
	try {
		thrower((int)pick(10));
	} catch (int) {
		climb(2);
	}
}

/* ---- signals ---- */

/* All signals are blocked here, so that no other jump leaves this. */
static NOIPA void on_jump_signal(int)
{
	sigjmp_buf *to = armed;

	HIT();
	climb(1);
	if (!to)
		return;
	HIT_AS("left:on_jump_signal");
	armed = nullptr;
	siglongjmp(*to, 1);
}

static NOIPA void on_timer(int)
{
	int saved = errno;

	HIT();
	climb(2);
	errno = saved;
}

static NOIPA void spin(sigjmp_buf *to)
{
	LEAVES("spin");
	armed = to;
	for (int i = 0; i < SPIN_MAX; i++)
		inner();
	raise(SIGUSR1);
}

static NOIPA void awaits()
{
	sigjmp_buf to;

	HIT();
	if (!sigsetjmp(to, 1))
		spin(&to);
}

static void set_handler(int signal, void (*handler)(int), int flags, bool all)
{
	struct sigaction action = {};

	action.sa_handler = handler;
	action.sa_flags = flags | SA_RESTART;
	if (all)
		sigfillset(&action.sa_mask);
	else
		sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(signal, &action, nullptr);
}

/* ---- libraries, threads, processes ---- */

static void *load(const char *name)
{
	char path[500];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	return library;
}

static NOIPA void library_with_constructor()
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	HIT();
	pthread_mutex_lock(&one);
	void *library = load("late_lib.so");
	HIT_AS("late_init");
	auto work = (int (*)(int))dlsym(library, "late_work");
	CHECK(work);
	for (int i = 0; i < 10; i++) {
		HIT_AS("late_work");
		CHECK(work(i) == 3 * i + 7);
	}
	HIT_AS("late_fini");
	CHECK(!dlclose(library));
	pthread_mutex_unlock(&one);
}

static NOIPA void library_in_common()
{
	HIT();
	void *library = load("phases_lib.so");
	auto late = (int (*)(int))dlsym(library, "phases_late");
	CHECK(late);
	for (int i = 0; i < 10; i++) {
		HIT_AS("phases_late");
		CHECK(late(i) > i);
	}
	CHECK(!dlclose(library));
}

static NOIPA void quit(int depth)
{
	LEAVES("quit");
	if (depth)
		OPAQUE(quit)(depth - 1);
	pthread_exit(nullptr);
}

static NOIPA void *short_main(void *seed)
{
	HIT();
	state = (unsigned long)seed | 1;
	climb((int)pick(10));
	if (pick(2)) {
		HIT_AS("left:short_main");
		quit((int)pick(5));
	}
	return nullptr;
}

static NOIPA void short_thread()
{
	pthread_t thread;

	HIT();
	CHECK(!pthread_create(&thread, nullptr, short_main, (void *)(state * 31)));
	CHECK(!pthread_join(thread, nullptr));
}

static void add_up()
{
	for (hit *h = __start_hit_counts; h < __stop_hit_counts; h++)
		__atomic_fetch_add(&shared[h - __start_hit_counts], h->calls, __ATOMIC_RELAXED);
}

static NOIPA void forks()
{
	int status;

	HIT();
	if (__atomic_sub_fetch(&forks_left, 1, __ATOMIC_RELAXED) < 0)
		return;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		hits_reset();
		for (unsigned i = pick(20); i; i--) {
			climb((int)pick(5));
			jumps();
			throws();
		}
		awaits();
		short_thread();
		add_up();
		_exit(7);
	}
	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static NOIPA void signals()
{
	HIT();
	pthread_kill(workers[pick(WORKERS)], pick(4) ? SIGUSR1 : SIGPROF);
}

/* ---- all of it ---- */

static NOIPA void *worker(void *seed)
{
	static void (*const often[])() = {jumps, throws, awaits, signals};
	static void (*const seldom[])() = {
		library_with_constructor, library_in_common, short_thread, forks};
	static char stacks[WORKERS][65536];
	static int nstacks;
	stack_t stack = {};

	HIT();
	state = (unsigned long)seed;
	stack.ss_sp = stacks[__atomic_fetch_add(&nstacks, 1, __ATOMIC_RELAXED)];
	stack.ss_size = sizeof(stacks[0]);
	sigaltstack(&stack, nullptr);
	pthread_barrier_wait(&ready);
	while (!stop) {
		climb((int)pick(100));
		often[pick(4)]();
		if (!pick(100))
			seldom[pick(4)]();
		if (time(nullptr) >= deadline)
			stop = true;
	}
	pthread_barrier_wait(&ready); /* signals may be sent to any until here */
	return nullptr;
}

static void run(unsigned long seed)
{
	struct itimerval each_ms = {{0, 1000}, {0, 1000}}, none = {};

	set_handler(SIGUSR1, on_jump_signal, SA_ONSTACK, true);
	set_handler(SIGPROF, on_timer, SA_NODEFER, false);
	pthread_barrier_init(&ready, nullptr, WORKERS + 1);
	for (unsigned long i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&workers[i], nullptr, worker,
			(void *)((seed + i + 1) * 0x9e3779b97f4a7c15ul)));
	setitimer(ITIMER_PROF, &each_ms, nullptr);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	for (pthread_t thread : workers)
		pthread_join(thread, nullptr);
	setitimer(ITIMER_PROF, &none, nullptr);
}

static unsigned long total(const char *prefix, const char *name)
{
	unsigned long sum = 0;
	size_t n = strlen(prefix);

	for (hit *h = __start_hit_counts; h < __stop_hit_counts; h++)
		if (!strncmp(h->name, prefix, n) && !strcmp(h->name + n, name))
			sum += shared[h - __start_hit_counts];
	return sum;
}

int main(int, char **argv)
{
	long seconds = atol(argv[2]);

	directory = getenv("TARGET_DIR");
	deadline = time(nullptr) + seconds;
	forks_left = seconds * FORKS_A_SECOND;
	shared = (unsigned long *)mmap(nullptr, COUNTERS_MAX * sizeof(*shared),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(__stop_hit_counts - __start_hit_counts <= COUNTERS_MAX);
	run(strtoul(argv[1], nullptr, 10));
	add_up();
	for (hit *h = __start_hit_counts; h < __stop_hit_counts; h++) {
		if (!strncmp(h->name, "left:", 5))
			continue;
		if (!strcmp(h->name, "inner"))
			printf("about inner %lu %lu\n", total("", "inner"), total("left:", "spin"));
		else
			printf("calls %s %lu\nleft %s %lu\n", h->name, total("", h->name), h->name,
				total("left:", h->name));
	}
	return 0;
}
