/* SPDX-License-Identifier: MIT */
/* For the programs of this directory: a failed check says where and what, and ends the program. */
#ifndef PROBE_CHECK_H
#define PROBE_CHECK_H

#include <errno.h>
#include <ftr/ftr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every call of it is made. */
#ifdef __clang__
#define NOINLINE __attribute__((noinline, optnone))
#else
#define NOINLINE __attribute__((noipa))
#endif

#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                     \
			printf(" " __VA_ARGS__);                                                    \
			puts("");                                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define CHECK_INT(got, wanted)                                                                     \
	do {                                                                                       \
		long got_ = (long)(got), wanted_ = (long)(wanted);                                 \
                                                                                                   \
		if (got_ != wanted_) {                                                             \
			printf("%s:%d: %s is %ld, not %ld (%s)\n", __FILE__, __LINE__, #got, got_, \
				wanted_, ftr_error());                                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define CHECK_COUNTS(probe, ncalls, nreturned, nunwound)                                           \
	do {                                                                                       \
		struct ftr_counts counts_;                                                         \
                                                                                                   \
		CHECK_INT(ftr_read(probe, &counts_), 0);                                           \
		CHECK_INT(counts_.calls, ncalls);                                                  \
		CHECK_INT(counts_.returned, nreturned);                                            \
		CHECK_INT(counts_.unwound, nunwound);                                              \
	} while (0)

/* Under qemu-user (tests/qemu/run.sh): there is no seccomp. */
static inline int is_emulated(void)
{
	return getenv("QEMU_LD_PREFIX") != NULL;
}

/* Attach to one function. */
static inline struct ftr_probe *attach(const void *function, ftr_handler *entry, ftr_handler *ret,
	void *data)
{
	const struct ftr_probe_spec spec = { .function = function, .entry = entry, .ret = ret,
		.data = data };
	struct ftr_probe *probe = NULL;

	CHECK_INT(ftr_attach(&spec, &probe), 1);
	return probe;
}

static inline void check_no_handler(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
}

/* Skip the test where there are counters alone. */
static inline void need_handlers(void)
{
	const struct ftr_probe_spec spec = { .name = "main", .entry = check_no_handler };
	struct ftr_probe *probe;
	int n = ftr_attach(&spec, &probe);

	if (n == -ENOSYS) {
		printf("SKIP: %s\n", ftr_error());
		exit(77);
	}
	if (n > 0)
		ftr_detach(probe);
}

#endif
