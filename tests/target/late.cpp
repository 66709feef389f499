/* SPDX-License-Identifier: MIT */
/*
 * Traced functions called before main and at every late moment: constructors, thread-local
 * destructors, key destructors, atexit, on_exit, quick things of the C library, destructors.
 *
 * flags: -O2 -pthread
 * flags: -O0 -pthread
 * flags: clang -O2 -pthread
 * expect: early calls=3
 * expect: thread_local_end calls=11
 * expect: key_end calls=10
 * expect: key_end_again calls=30
 * expect: at_exit calls=2
 * expect: on_exit_handler calls=1
 * expect: global_end calls=1
 * expect: last calls=1
 */
#include "target.h"

#include <pthread.h>

static pthread_key_t key, again;

static NOIPA void early(void)
{
	HIT();
}

static NOIPA void thread_local_end(void)
{
	HIT();
}

static NOIPA void key_end(void *)
{
	HIT();
}

static NOIPA void key_end_again(void *value)
{
	HIT();
	if ((long)value > 1)
		pthread_setspecific(again, (void *)((long)value - 1));
}

static NOIPA void at_exit(void)
{
	HIT();
}

static NOIPA void on_exit_handler(int, void *)
{
	HIT();
}

static NOIPA void global_end(void)
{
	HIT();
}

__attribute__((constructor(101))) static void first_constructor(void)
{
	early();
}

__attribute__((constructor)) static void constructor(void)
{
	early();
}

static NOIPA void last(void)
{
	HIT();
	hits("");
}

__attribute__((destructor(101))) static void destructor(void)
{
	last();
}

struct Global {
	Global()
	{
		early();
	}
	~Global()
	{
		global_end();
	}
};

struct Local {
	long value = 0;
	~Local()
	{
		thread_local_end();
	}
};

static Global global;
static thread_local Local local;

static void *thread_main(void *)
{
	local.value++;
	pthread_setspecific(key, &key);
	pthread_setspecific(again, (void *)3);
	return NULL;
}

int main()
{
	pthread_t thread;

	pthread_key_create(&key, key_end);
	pthread_key_create(&again, key_end_again);
	atexit(at_exit);
	atexit(at_exit);
	on_exit(on_exit_handler, NULL);
	local.value++;
	for (int i = 0; i < 10; i++) {
		pthread_create(&thread, NULL, thread_main, NULL);
		pthread_join(thread, NULL);
	}
	exit(0);
}
