/* SPDX-License-Identifier: MIT */
/* The store's tests, with Criterion: what it does, what it calls for that, and what it does when
 * that fails. */
#include "kv.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <ftr/ftr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];
static struct kv *kv;

/* ---- what every test begins and ends with ---- */

static void report(const char *message, void *data)
{
	(void)data;
	cr_log_error("%s", message);
}

static void begin(void)
{
	snprintf(path, sizeof(path), "/tmp/kv-test-%d", (int)getpid());
	unlink(path);
}

/* Every test ends with this: the expectations it has made are met. */
static void finish(void)
{
	unlink(path);
	cr_assert_eq(ftr_verify(report, NULL), 0, "expectations are not met");
}

TestSuite(kv, .init = begin, .fini = finish);

static void open_store(void)
{
	cr_assert_eq(kv_open(path, &kv), 0);
}

static void put(const char *key, const char *value)
{
	cr_assert_eq(kv_put(kv, key, value), 0, "%s", key);
}

static void file_is(const char *text)
{
	char bytes[4096] = "";
	FILE *file = fopen(path, "r");

	cr_assert(file);
	bytes[fread(bytes, 1, sizeof(bytes) - 1, file)] = 0;
	fclose(file);
	cr_expect_str_eq(bytes, text);
}

/* ---- counts and arguments ---- */

Test(kv, each_put_is_one_call_that_succeeds)
{
	struct ftr_expect *puts = ftr_expect("kv_put", "w(pzz)");

	ftr_expect_calls(puts, 3, 3);
	ftr_expect_integer(puts, FTR_MUST, FTR_RESULT, 0);
	open_store();
	put("a", "1");
	put("b", "2");
	put("a", "3");
	cr_expect_eq(ftr_expect_seen(puts), 3);
	cr_expect_str_eq(kv_get(kv, "a"), "3");
	cr_expect_eq(kv_close(kv), 0);
	file_is("a\t1\nb\t2\na\t3\n");
}

Test(kv, the_record_is_what_is_written)
{
	struct ftr_expect *record = ftr_expect("write", "i(wpi)");

	ftr_expect_bytes(record, FTR_WHEN, 1, "key\tvalue\n", 10);
	ftr_expect_integer(record, FTR_MUST, 2, 10);
	ftr_expect_integer(record, FTR_MUST, FTR_RESULT, 10);
	ftr_expect_calls(record, 1, 1);
	open_store();
	put("key", "value");
	cr_expect_eq(kv_close(kv), 0);
}

Test(kv, getting_allocates_nothing)
{
	struct ftr_expect *memory;

	open_store();
	put("a", "1");
	cr_assert_eq(kv_sync(kv), 0);
	memory = ftr_expect("malloc", "p(i)");
	ftr_expect_calls(memory, 0, 0);
	ftr_expect_thread(memory, FTR_WHEN, 0);
	for (int i = 0; i < 100; i++)
		if (!kv_get(kv, "a") || kv_get(kv, "b"))
			abort();
	cr_expect_eq(ftr_verify(report, NULL), 0);
	kv_close(kv);
}

Test(kv, load_is_a_fraction)
{
	static const double quarter = 1.0 / 64;
	struct ftr_expect *load = ftr_expect("kv_load", "d(p)");

	ftr_expect_double(load, FTR_MUST, FTR_RESULT, &quarter);
	open_store();
	put("a", "1");
	cr_expect_eq(kv_load(kv), quarter);
	kv_close(kv);
}

/* ---- order and threads ---- */

Test(kv, is_read_before_it_is_written)
{
	struct ftr_expect *opens = ftr_expect("open", "w(zw.w)"), *loads = ftr_expect("load", NULL);
	struct ftr_expect *starts = ftr_expect("pthread_create", NULL);
	struct ftr_expect *syncs = ftr_expect("fsync", NULL);

	ftr_expect_string(opens, FTR_WHEN, 0, path);
	ftr_expect_order(FTR_STRICT, opens, loads, starts, syncs);
	open_store();
	put("a", "1");
	cr_expect_eq(kv_close(kv), 0);
}

Test(kv, only_the_writer_writes)
{
	struct ftr_expect *sync = ftr_expect("fsync", NULL);

	ftr_expect_thread(sync, FTR_MUST_NOT, 0);
	open_store();
	put("a", "1");
	cr_expect_eq(kv_close(kv), 0);
}

/* ---- faults ---- */

static struct ftr_probe *fail(const char *name, const struct ftr_fault *fault)
{
	const struct ftr_probe_spec spec = { .name = name };
	struct ftr_probe *probe;
	int n = ftr_override(&spec, fault, &probe);

	cr_assert(n > 0, "%s: %s", name, ftr_error());
	return probe;
}

Test(kv, put_without_memory_changes_nothing)
{
	open_store();
	put("a", "1");
	cr_assert_eq(kv_sync(kv), 0);
	for (unsigned nth = 1; nth <= 3; nth++) {
		const struct ftr_fault fault = { .error = ENOMEM, .from = nth, .to = nth,
			.caller_module = "libkv.so" };
		struct ftr_probe *probes[] = { fail("malloc", &fault), fail("realloc", &fault) };
		int err = kv_put(kv, "b", "2");

		ftr_detach(probes[0]);
		ftr_detach(probes[1]);
		cr_expect_eq(err, nth < 3 ? -ENOMEM : 0, "%u: %d", nth, err);
		cr_expect(nth < 3 ? !kv_get(kv, "b") : !strcmp(kv_get(kv, "b"), "2"));
	}
	cr_expect_eq(kv_close(kv), 0);
	file_is("a\t1\nb\t2\n");
}

/* Memory fails at random, in the same way each time; what a put said is what a get sees. */
Test(kv, survives_random_failures)
{
	const struct ftr_fault fault = { .error = ENOMEM, .probability = 0.1, .seed = 42,
		.caller_module = "libkv.so" };
	struct ftr_probe *probe;
	bool stored[1000];
	char key[16];
	int failures = 0;

	open_store();
	probe = fail("malloc", &fault);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		stored[i] = kv_put(kv, key, "v") == 0;
		failures += !stored[i];
	}
	ftr_detach(probe);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		cr_expect_eq(kv_get(kv, key) != NULL, stored[i], "%s", key);
	}
	cr_expect(failures > 100 && failures < 300, "%d", failures);
	cr_expect_eq(kv_close(kv), 0);
}

Test(kv, interrupted_reads_are_repeated)
{
	struct ftr_probe *probe;

	open_store();
	put("a", "1");
	kv_close(kv);
	probe = fail("read", &(struct ftr_fault){ .value = (uint64_t)-1, .error = EINTR, .to = 3,
					      .caller_module = "libkv.so" });
	open_store();
	ftr_detach(probe);
	cr_expect_str_eq(kv_get(kv, "a"), "1");
	kv_close(kv);
}

Test(kv, a_full_disk_is_told)
{
	struct ftr_probe *probe;

	open_store();
	put("a", "1");
	cr_assert_eq(kv_sync(kv), 0);
	probe = fail("write", &(struct ftr_fault){ .value = (uint64_t)-1, .error = ENOSPC,
					       .caller_module = "libkv.so" });
	put("b", "2");
	cr_expect_eq(kv_sync(kv), -ENOSPC);
	ftr_detach(probe);
	cr_expect_eq(kv_close(kv), -ENOSPC);
	file_is("a\t1\n");
}

Test(kv, without_a_thread_nothing_stays_open)
{
	struct ftr_expect *opens = ftr_expect("open", "w(zw.w)"), *closes = ftr_expect("close", "w(w)");
	struct ftr_probe *probe = fail("pthread_create", &(struct ftr_fault){ .value = EAGAIN });

	ftr_expect_string(opens, FTR_WHEN, 0, path);
	ftr_expect_calls(opens, 1, 1);
	ftr_expect_thread(closes, FTR_WHEN, 0);
	ftr_expect_calls(closes, 1, 1);
	ftr_expect_integer(closes, FTR_MUST, FTR_RESULT, 0);
	cr_expect_eq(kv_open(path, &kv), -EAGAIN);
	ftr_detach(probe);
}

Test(kv, a_file_that_cannot_be_opened)
{
	struct ftr_probe *probe;

	cr_assert(ftr_fail("open", (uint64_t)-1, EACCES, 1, 1, &probe) > 0, "%s", ftr_error());
	cr_expect_eq(kv_open(path, &kv), -EACCES);
	ftr_detach(probe);
}

/* ---- what a failure looks like ---- */

static char told[4096];

static void listen(const char *message, void *data)
{
	(void)data;
	strncat(told, message, sizeof(told) - strlen(told) - 1);
}

Test(kv, a_failure_says_what_and_where)
{
	struct ftr_expect *puts = ftr_expect_at("test_kv.c", 7, "kv_put", "w(pzz)");
	const char *begin = "test_kv.c:7: kv_put: expected argument 1 to be \"a\", seen \"b\" "
			    "in 1 of 2 calls\n  call 2: kv_put(0x";

	ftr_expect_string(puts, FTR_MUST, 1, "a");
	open_store();
	put("a", "1");
	put("b", "2");
	cr_expect_eq(ftr_verify(listen, NULL), 1);
	cr_expect_eq(strncmp(told, begin, strlen(begin)), 0, "%s", told);
	cr_expect(strstr(told, ", \"b\", \"2\"), thread "), "%s", told);
	cr_expect(strstr(told, "\n    from put+0x"), "%s", told);
	cr_expect(strstr(told, "\n    from kv_a_failure_says_what_and_where_impl+0x"), "%s", told);
	kv_close(kv);
}

/* ---- the end of a block ---- */

Test(kv, probes_end_with_their_block)
{
	unsigned char before[16];

	memcpy(before, (const void *)kv_get, sizeof(before));
	open_store();
	{
		FTR_SCOPED struct ftr_probe *probe = NULL;
		const struct ftr_probe_spec spec = { .function = (const void *)kv_get };
		struct ftr_counts counts;

		cr_assert_eq(ftr_attach(&spec, &probe), 1, "%s", ftr_error());
		if (!getenv("LD_PRELOAD")) /* else it is traced, and patched anyway */
			cr_expect_neq(memcmp(before, (const void *)kv_get, sizeof(before)), 0);
		kv_get(kv, "a");
		cr_expect(ftr_read(probe, &counts) == 0 && counts.calls == 1);
	}
	cr_expect_eq(memcmp(before, (const void *)kv_get, sizeof(before)), 0, "its code is as it was");
	kv_close(kv);
}
