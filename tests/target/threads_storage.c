/* SPDX-License-Identifier: MIT */
/*
 * More threads at once than are prepared for, with room for the functions of libraries that may come:
 * what is stored is what is used. Two come, with functions that all of them call.
 *
 * flags: -O2 -pthread -ldl
 * env: FTR_MODULES=threads_storage,late_lib.so,libm.so*
 * library: late_lib.c -O1
 * needs: kernel
 * expect: work calls=800
 * expect: late_work calls=400
 */
#define _GNU_SOURCE
#include "target.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

enum { THREADS = 400, STORED_MAX = 64 << 20 };

static pthread_barrier_t started, loaded;
static int (*late_work)(int);
static double (*root)(double);

static NOIPA int work(int x)
{
	HIT();
	return x + 1;
}

static void *thread_main(void *unused)
{
	work(1);
	pthread_barrier_wait(&started);
	pthread_barrier_wait(&loaded);
	CHECK(late_work(1) == 10 && root(2.6) == 3);
	work(2);
	return unused;
}

/* Bytes of storage of the data directory, when there is one. */
static long stored(void)
{
	const char *path = getenv("FTR_DATA");
	DIR *dir = path ? opendir(path) : NULL;
	struct dirent *entry;
	struct stat st;
	long sum = 0;

	while (dir && (entry = readdir(dir)))
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0))
			sum += st.st_blocks * 512;
	if (dir)
		closedir(dir);
	return sum;
}

int main(void)
{
	static pthread_t threads[THREADS];
	pthread_attr_t attr;
	char path[4096];
	void *library;

	pthread_barrier_init(&started, NULL, THREADS + 1);
	pthread_barrier_init(&loaded, NULL, THREADS + 1);
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstacksize(&attr, 65536));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], &attr, thread_main, NULL));
	pthread_barrier_wait(&started);
	snprintf(path, sizeof(path), "%s/late_lib.so", getenv("TARGET_DIR"));
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	late_work = (int (*)(int))dlsym(library, "late_work");
	CHECK(late_work);
	library = dlopen("libm.so.6", RTLD_NOW); /* with functions for many pages of records */
	CHECK(library);
	root = (double (*)(double))dlsym(library, "round");
	CHECK(root);
	pthread_barrier_wait(&loaded);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(stored() < STORED_MAX);
	printf("calls work %d\ncalls late_work %d\n", 2 * THREADS, THREADS);
	return 0;
}
